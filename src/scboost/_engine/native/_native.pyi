# Types of the compiled kernels; see the C++ sources beside this file.

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

What: TypeAlias = Literal["scores", "values", "nodes", "shap"]

class Pool:
    def __init__(self, n_threads: int) -> None: ...
    @property
    def n_threads(self) -> int: ...

class Bins:
    @staticmethod
    def dense(
        X: npt.NDArray[np.float32],
        max_bin: int,
        categories: npt.NDArray[np.uint32] | None,
        weight: npt.NDArray[np.float64] | None,
        cut_indptr: npt.NDArray[np.int64] | None,
        cuts: npt.NDArray[np.float32] | None,
        pool: Pool | None,
    ) -> Bins: ...
    @staticmethod
    def sparse(
        indptr: npt.NDArray[np.int64],
        indices: npt.NDArray[np.int32],
        values: npt.NDArray[np.float32],
        n_features: int,
        max_bin: int,
        categories: npt.NDArray[np.uint32] | None,
        weight: npt.NDArray[np.float64] | None,
        cut_indptr: npt.NDArray[np.int64] | None,
        cuts: npt.NDArray[np.float32] | None,
        pool: Pool | None,
    ) -> Bins: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def cut_points(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]: ...
    def codes(self) -> npt.NDArray[np.int32]: ...

class Tree:
    def document(self) -> dict[str, Any]: ...
    def gains(self) -> npt.NDArray[np.float64]: ...
    def leaves(self) -> npt.NDArray[np.int32]: ...

class Grower:
    def __init__(
        self,
        bins: Bins,
        policy: str,
        max_depth: int,
        max_leaves: int,
        reg_lambda: float,
        reg_alpha: float,
        min_child_weight: float,
        min_split_loss: float,
        max_delta_step: float,
        monotone: list[int],
        interactions: list[list[int]],
        by_tree: float,
        by_level: float,
        by_node: float,
        max_cat_to_onehot: int,
        max_cat_threshold: int,
    ) -> None: ...
    def grow_shared(
        self,
        gradient: npt.NDArray[np.floating],
        hessian: npt.NDArray[np.floating],
        factor: float,
        seed: int,
        features: list[int] | None,
        pool: Pool | None,
    ) -> tuple[Tree, npt.NDArray[np.integer], npt.NDArray[np.float32]]: ...
    def grow(
        self,
        gradient: npt.NDArray[np.floating],
        hessian: npt.NDArray[np.floating],
        factor: float,
        seeds: list[int],
        features: list[int] | None,
        pool: Pool | None,
    ) -> list[tuple[Tree, npt.NDArray[np.integer], npt.NDArray[np.float32]]]: ...

class Forest:
    @staticmethod
    def make(trees: list[dict[str, Any]], outputs: list[int], n_features: int, n_outputs: int) -> Forest: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def n_trees(self) -> int: ...
    def predict(self, X: npt.NDArray[np.floating], what: What, pool: Pool | None) -> npt.NDArray[Any]: ...
    def predict_sparse(
        self,
        indptr: npt.NDArray[np.int64],
        indices: npt.NDArray[np.int32],
        values: npt.NDArray[np.float32],
        what: What,
        pool: Pool | None,
    ) -> npt.NDArray[Any]: ...

def logistic(
    y: npt.NDArray[np.float32],
    F: npt.NDArray[np.float32],
    weight: npt.NDArray[np.float64] | None,
    r: npt.NDArray[np.float32],
    hessian: npt.NDArray[np.float32],
    pool: Pool | None = None,
) -> tuple[float, float]: ...
def softmax(
    y: npt.NDArray[np.float32],
    F: npt.NDArray[np.float32],
    weight: npt.NDArray[np.float64] | None,
    r: npt.NDArray[np.float32],
    hessian: npt.NDArray[np.float32],
    pool: Pool | None = None,
) -> tuple[float, float]: ...
def squared(
    y: npt.NDArray[np.float32],
    F: npt.NDArray[np.float32],
    weight: npt.NDArray[np.float64] | None,
    r: npt.NDArray[np.float32],
    hessian: npt.NDArray[np.float32],
    pool: Pool | None = None,
) -> tuple[float, float]: ...
def logistic_loss(
    y: npt.NDArray[np.float32],
    F: npt.NDArray[np.float32],
    index: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64] | None,
) -> tuple[float, float]: ...
def softmax_loss(
    y: npt.NDArray[np.float32],
    F: npt.NDArray[np.float32],
    index: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64] | None,
) -> tuple[float, float]: ...
def squared_loss(
    y: npt.NDArray[np.float32],
    F: npt.NDArray[np.float32],
    index: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64] | None,
) -> tuple[float, float]: ...
def project(
    H: npt.NDArray[np.float32],
    r: npt.NDArray[np.float32],
    hessian: npt.NDArray[np.float32] | None,
    weight: npt.NDArray[np.float64] | None,
    alpha: float,
    gamma: float,
    floor: float,
    out: npt.NDArray[np.float32],
    pool: Pool | None = None,
) -> tuple[int, float, float, float]: ...
def set_target(
    q: npt.NDArray[np.float32],
    hessian: npt.NDArray[np.float32],
    weight: npt.NDArray[np.float64] | None,
    keys: npt.NDArray[np.uint32] | None,
    scale: npt.NDArray[np.float32] | None,
    table: npt.NDArray[np.float32] | None,
    streams: list[int],
    size: float,
    target: npt.NDArray[np.floating],
    weighted: npt.NDArray[np.floating],
    energies: npt.NDArray[np.float64],
    spans: npt.NDArray[np.float64],
    pool: Pool | None = None,
) -> float: ...
def newton_values(
    leaf: npt.NDArray[np.integer],
    r: npt.NDArray[np.float32],
    hessian: npt.NDArray[np.float32],
    weight: npt.NDArray[np.float64] | None,
    l2: float,
    l1: float,
    values: npt.NDArray[np.float32],
) -> None: ...
def leaf_sums(
    leaf: npt.NDArray[np.integer],
    a: npt.NDArray[np.float32],
    b: npt.NDArray[np.float32],
    weight: npt.NDArray[np.float64] | None,
    out: npt.NDArray[np.float64],
) -> None: ...
def add_predictions(
    leaf: npt.NDArray[np.integer],
    values: npt.NDArray[np.float32],
    eta: float,
    h: npt.NDArray[np.float32] | None,
    F: npt.NDArray[np.float32],
    pool: Pool | None = None,
) -> None: ...
def finish_round(
    grower: Grower,
    H: npt.NDArray[np.float32] | None,
    r: npt.NDArray[np.float32],
    hessian: npt.NDArray[np.float32],
    in_metric: bool,
    weight: npt.NDArray[np.float64] | None,
    alpha: float,
    gamma: float,
    floor: float,
    q: npt.NDArray[np.float32],
    keys: npt.NDArray[np.uint32] | None,
    scale: npt.NDArray[np.float32] | None,
    table: npt.NDArray[np.float32] | None,
    stream: int,
    size: float,
    target: npt.NDArray[np.floating],
    weighted: npt.NDArray[np.floating] | None,
    l2: float,
    l1: float,
    eta: float,
    place: npt.NDArray[np.float32] | None,
    F: npt.NDArray[np.float32],
    features: list[int] | None,
    pool: Pool | None,
) -> tuple[Tree, npt.NDArray[np.integer], npt.NDArray[np.float32], int, float, float, float] | None: ...
def add_leaf_values(
    leaf: npt.NDArray[np.unsignedinteger], values: npt.NDArray[np.float64], out: npt.NDArray[np.float64]
) -> None: ...
def sum_by_leaf(
    leaf: npt.NDArray[np.unsignedinteger], u: npt.NDArray[np.float64], out: npt.NDArray[np.float64]
) -> None: ...
def sum_by_pair(
    leaf: npt.NDArray[np.unsignedinteger],
    other: npt.NDArray[np.unsignedinteger],
    weight: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None: ...
def move_and_sum(
    leaf: npt.NDArray[np.unsignedinteger],
    change: npt.NDArray[np.float64],
    residual: npt.NDArray[np.float64],
    hessian: npt.NDArray[np.float64],
    other: npt.NDArray[np.unsignedinteger],
    moved: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None: ...
def lambdarank(
    y: npt.NDArray[np.float64],
    score: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64] | None,
    truncation: int,
    normalized: bool,
    loss: npt.NDArray[np.float64],
    gradient: npt.NDArray[np.float64] | None,
    hessian: npt.NDArray[np.float64] | None,
) -> None: ...
def pairwise(
    y: npt.NDArray[np.float64],
    score: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64] | None,
    loss: npt.NDArray[np.float64],
    gradient: npt.NDArray[np.float64] | None,
    hessian: npt.NDArray[np.float64] | None,
) -> None: ...
def xendcg(
    y: npt.NDArray[np.float64],
    score: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64] | None,
    loss: npt.NDArray[np.float64],
    gradient: npt.NDArray[np.float64] | None,
    hessian: npt.NDArray[np.float64] | None,
) -> None: ...
