"""XGBoost's model document; no other module depends on its keys.

A model is a nested dictionary, as :func:`scboost._model.ubjson.decode` returns it. Trees are dictionaries of arrays by
node; a leaf has no left child, and its value stands where other nodes have their threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import BoolArray, FloatArray, IntArray
from scboost._model import compact, ubjson
from scboost._model.json_text import read_json, write_json
from scboost._model.structure import LEAF, ROOT_PARENT, base_scores, check
from scboost._xgboost import import_xgboost, usable_threads

if TYPE_CHECKING:
    import xgboost

Tree = dict[str, Any]
"""A decoded tree: arrays by node, as in the native model."""

Table = Sequence[str] | npt.NDArray[np.int64]
"""Categories of a feature in the order of their codes: all strings, or all integers."""

_INT64 = 15  # XGBoost's number for this type in a table of categories


# XGBoost's default parameters of a ranking objective, which do not affect predictions.
_LAMBDARANK = {
    "lambdarank_bias_norm": "1",
    "lambdarank_normalization": "1",
    "lambdarank_num_pair_per_sample": "4294967295",
    "lambdarank_pair_method": "topk",
    "lambdarank_score_normalization": "1",
    "lambdarank_unbiased": "0",
    "ndcg_exp_gain": "1",
}


@dataclass(frozen=True)
class Document:
    """An XGBoost model with trees, of the booster ``gbtree`` or ``dart``.

    Attributes
    ----------
    content : dict
        The decoded model. Methods return changed copies and leave it alone.
    """

    content: dict[str, Any]

    @classmethod
    def of(cls, booster: xgboost.Booster) -> Document:
        """Decode and check a Booster."""
        document = cls(ubjson.decode(booster.save_raw("ubj")))
        document.check()
        return document

    @classmethod
    def new(
        cls,
        trees: Sequence[Tree],
        *,
        objective: str,
        n_outputs: int,
        base_score: float,
        n_features: int,
        feature_names: Sequence[str] = (),
        feature_types: Sequence[str] = (),
        tables: Sequence[Table | None] = (),
    ) -> Document:
        """Make a model from trees, those of the K outputs of a round after each other.

        Parameters
        ----------
        trees : sequence of Tree
            As many for each output.
        objective : str
            XGBoost's name of the loss, which gives the model its link.
        n_outputs : int
            K.
        base_score : float
            Intercept of all outputs after the inverse link, as XGBoost stores it. One number, as text without brackets:
            XGBoost before 3.1 silently reads a text with brackets as 0.5.
        n_features : int
            Number of features.
        feature_names, feature_types : sequence of str
            Of each feature, or empty; the type of a categorical feature is "c".
        tables : sequence of (Table or None)
            Categories of each feature, None for numeric features; empty if the model does not store them.
        """
        K = n_outputs
        stated = {
            "multi:softprob": {"softmax_multiclass_param": {"num_class": str(K)}},
            "count:poisson": {"poisson_regression_param": {"max_delta_step": "0.7"}},
            "survival:cox": {},
            "rank:ndcg": {"lambdarank_param": _LAMBDARANK},
            "rank:pairwise": {"lambdarank_param": _LAMBDARANK},
            "survival:aft": {"aft_loss_param": {"aft_loss_distribution": "normal", "aft_loss_distribution_scale": "1"}},
        }
        parameters = {"name": objective, **stated.get(objective, {"reg_loss_param": {"scale_pos_weight": "1"}})}
        learner = {
            "attributes": {},
            "feature_names": list(feature_names),
            "feature_types": list(feature_types),
            "gradient_booster": {"model": {"cats": _categories(tables)}, "name": "gbtree"},
            "learner_model_param": {
                "base_score": _number_text(base_score),
                "boost_from_average": "0",
                "num_class": str(K if objective == "multi:softprob" else 0),
                "num_feature": str(n_features),
                "num_target": str(1 if objective == "multi:softprob" else K),
            },
            "objective": parameters,
        }
        empty = cls({"learner": learner, "version": [3, 1, 1]})
        return empty.with_trees(trees, list(range(K)) * (len(trees) // K))

    def check(self) -> None:
        """Raise ValueError with the location of the problem if the model is invalid; see ``_model.structure``."""
        check(self)

    @property
    def learner(self) -> dict[str, Any]:
        """The model without the version."""
        learner: dict[str, Any] = self.content["learner"]
        return learner

    @property
    def attributes(self) -> dict[str, str]:
        """String attributes of the model."""
        attributes: dict[str, str] = self.learner["attributes"]
        return attributes

    @property
    def objective(self) -> str:
        """XGBoost's name of the loss."""
        return str(self.learner["objective"]["name"])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.learner["learner_model_param"]["num_feature"])

    @property
    def n_outputs(self) -> int:
        """K: number of classes or of targets."""
        parameters = self.learner["learner_model_param"]
        return max(int(parameters["num_class"]), int(parameters["num_target"]), 1)

    @property
    def model(self) -> dict[str, Any]:
        """The part that holds the trees."""
        booster = self.learner["gradient_booster"]
        model: dict[str, Any] = (booster["gbtree"] if booster["name"] == "dart" else booster).get("model", {})
        if "trees" not in model:
            raise ValueError(f"The booster {booster['name']!r} has no trees; allowed: 'gbtree' and 'dart'.")
        return model

    @property
    def trees(self) -> list[Tree]:
        """The trees, in the order in which they were grown."""
        trees: list[Tree] = self.model["trees"]
        return trees

    @property
    def outputs(self) -> IntArray:
        """Output of each tree, of shape (n_trees,)."""
        return np.asarray(self.model["tree_info"], dtype=np.intp)

    @property
    def tree_weights(self) -> FloatArray:
        """Factor of each tree, of shape (n_trees,): 1 but for DART.

        Until XGBoost 3.2 the factors stand beside the trees of the booster "dart"; since 3.4 they stand in every model.
        """
        booster = self.learner["gradient_booster"]
        factors = booster.get("weight_drop", self.model.get("weight_drop"))
        return np.ones(len(self.trees)) if factors is None else np.asarray(factors, dtype=np.float64)

    def by_round(self) -> IntArray:
        """Numbers of the trees by position within their output, then by output, of shape (n_trees,)."""
        by_output = [np.flatnonzero(self.outputs == k) for k in range(self.n_outputs)]
        if len({len(trees) for trees in by_output}) != 1:
            raise ValueError("The XGBoost model has different numbers of trees for its outputs.")
        return np.stack(by_output, axis=1).ravel()

    def with_learner(self, **parts: Any) -> Document:
        """Replace parts of the learner, such as ``attributes`` or ``feature_names``."""
        return Document({**self.content, "learner": {**self.learner, **parts}})

    def with_trees(
        self,
        trees: Sequence[Tree],
        outputs: Iterable[int],
        *,
        rounds: Iterable[int] | None = None,
    ) -> Document:
        """Replace the trees; without DART's factors.

        Parameters
        ----------
        trees : sequence of Tree
            Their ``id`` is set anew.
        outputs : sequence of int
            Output of each tree.
        rounds : sequence of int, optional
            Number of trees after 0, 1, 2, ... rounds; if not given, a round has one tree for each output.
        """
        K = self.n_outputs
        model = {
            "cats": _categories(()),
            **self.learner["gradient_booster"].get("gbtree", self.learner["gradient_booster"])["model"],
            "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
            "iteration_indptr": list(range(0, len(trees) + 1, K)) if rounds is None else [int(t) for t in rounds],
            "tree_info": [int(k) for k in outputs],
            "trees": [{**tree, "id": i} for i, tree in enumerate(trees)],
        }
        model.pop("weight_drop", None)
        return self.with_learner(gradient_booster={"model": model, "name": "gbtree"})

    def without_tables(self) -> Document:
        """Leave out the names of the categories, for readers that support codes only."""
        booster = self.learner["gradient_booster"]
        return self.with_learner(gradient_booster={**booster, "model": {**self.model, "cats": _categories(())}})

    def with_base_score(self, base_score: Iterable[float]) -> Document:
        """Replace the intercepts, given after the inverse link."""
        parameters = {**self.learner["learner_model_param"], "base_score": _numbers_text(base_score)}
        return self.with_learner(learner_model_param=parameters)

    def by_tree(self) -> Document:
        """Return a model whose outputs are the individual trees, in the order of :attr:`trees`.

        Finding leaf numbers (``pred_leaf``) takes XGBoost three times as long as predicting. A model with one class per
        tree has the trees' values as its margins, at the cost of an ordinary prediction.
        """
        # XGBoost does not support a model with one class: a single tree becomes the first of two.
        n_classes = str(max(len(self.trees), 2))
        parameters = {
            **self.learner["learner_model_param"],
            "num_class": n_classes,
            "num_target": "1",
            "base_score": "0E0",
        }
        objective = {"name": "multi:softprob", "softmax_multiclass_param": {"num_class": n_classes}}
        changed = self.with_learner(learner_model_param=parameters, objective=objective)
        return changed.with_trees(self.trees, list(range(len(self.trees))), rounds=[0, len(self.trees)])

    def base_margin(self) -> FloatArray:
        """Margin without any tree, of shape (K,); XGBoost itself applies the objective's link."""
        K = self.n_outputs
        # With trees whose value is zero: without trees, XGBoost does not apply the link.
        bare = self.with_learner(feature_names=[], feature_types=[]).with_trees([constant(0.0)] * K, range(K))
        row = np.full((1, self.n_features), np.nan)
        return np.asarray(bare.booster().inplace_predict(row, predict_type="margin"), dtype=np.float64).ravel()

    @property
    def base_scores(self) -> list[float]:
        """Intercepts after the inverse link: one for each output, or one for all of them."""
        return base_scores(self.learner["learner_model_param"]["base_score"])

    def in_current_layout(self) -> Document:
        """Return the model as :meth:`new` writes it; schema 1 wrote several outputs of a regression as classes."""
        K, objective = self.n_outputs, self.objective
        if K == 1 or objective != "reg:squarederror" or self.learner["learner_model_param"]["num_class"] == "0":
            return self
        parameters = {**self.learner["learner_model_param"], "num_class": "0", "num_target": str(K)}
        stated = {**self.learner["objective"], "reg_loss_param": {"scale_pos_weight": "1"}}
        stated.pop("softmax_multiclass_param", None)
        return self.with_learner(learner_model_param=parameters, objective=stated)

    def equals_but_for_values(self, other: Document) -> bool:
        """Whether two valid models are equal except for their attributes, intercepts and leaf values."""
        return ubjson.encode(self._without_values()) == ubjson.encode(other._without_values())

    def _without_values(self) -> list[Any]:
        learner = {k: v for k, v in self.learner.items() if k not in {"attributes", "gradient_booster"}}
        parameters = {k: v for k, v in self.learner["learner_model_param"].items() if k != "base_score"}
        model = {k: v for k, v in self.model.items() if k != "trees"}
        booster = {k: v for k, v in self.learner["gradient_booster"].items() if k not in {"model", "gbtree"}}
        rest = {k: v for k, v in self.content.items() if k != "learner"}
        trees = [
            {
                **tree,
                "split_conditions": np.where(leaves(tree), np.float32(0), tree["split_conditions"]),
                "base_weights": np.where(leaves(tree), np.float32(0), tree["base_weights"]),
            }
            for tree in self.trees
        ]
        return [{**learner, "learner_model_param": parameters}, booster, model, rest, trees]

    def encode(self) -> bytes:
        """Return the model as UBJSON."""
        return ubjson.encode(self.content)

    def encode_compact(self) -> bytes:
        """Return the model as UBJSON in fewer bytes, which takes longer to read; see :mod:`scboost._model.compact`."""
        return compact.encode(self.content)

    @classmethod
    def decode(cls, data: bytes) -> Document:
        """Read a model from UBJSON or JSON; the caller checks it.

        Parameters
        ----------
        data : bytes
            Untrusted. Anything that is not a model of one of the two formats is a ValueError.
        """
        return cls(compact.decode(data) if data[:2] == b"{L" else read_json(data))

    def encode_json(self) -> bytes:
        """Return the model as JSON that XGBoost reads to the same bits."""
        return write_json(self.content)

    def booster(self, n_threads: int = 1) -> xgboost.Booster:
        """Make the Booster; 0 threads for all."""
        booster: xgboost.Booster = import_xgboost().Booster({"nthread": usable_threads(n_threads)})
        booster.load_model(bytearray(self.encode()))
        return booster


class NewestTrees:
    """Reads the trees that were added to a booster since the last call.

    Only new trees are decoded. The bytes of earlier trees do not change, and the content before the list of trees grows
    with it, so that the list never starts earlier than before.

    Parameters
    ----------
    reader : ObjectReader, optional
        Reader of other boosters with the same kind of trees, to reuse their layout.
    """

    def __init__(self, reader: ubjson.ObjectReader | None = None) -> None:
        self._count = self._size = self._list = 0
        self.reader = reader or ubjson.ObjectReader()

    def read(self, raw: bytes | bytearray) -> list[Tree]:
        """Decode the new trees of ``booster.save_raw("ubj")``, a booster of the kind gbtree."""
        if self._list:
            self._list = ubjson.find_list(raw, "trees", self._list)
        else:
            self._list = ubjson.find(raw, ("learner", "gradient_booster", "model", "trees"))
        count, start = ubjson.list_at(raw, self._list)
        at = start + self._size
        trees: list[Tree] = []
        for _ in range(count - self._count):
            tree, at = self.reader.read(raw, at)
            trees.append(tree)
        self._count, self._size = count, at - start
        return trees


def leaves(tree: Tree) -> BoolArray:
    """Which nodes are leaves, of shape (n_nodes,)."""
    return np.asarray(tree["left_children"] == LEAF)


def with_leaf_values(tree: Tree, values: FloatArray) -> Tree:
    """Copy of a tree with other leaf values, given by node: those of inner nodes are not read."""
    leaf = leaves(tree)
    return {
        **tree,
        "split_conditions": np.where(leaf, values, tree["split_conditions"]).astype(np.float32),
        "base_weights": np.where(leaf, values, tree["base_weights"]).astype(np.float32),
    }


def scaled(tree: Tree, weight: float, shift: float = 0.0) -> Tree:
    """Copy of a tree whose leaf values are ``weight * value + shift``, rounded once."""
    return with_leaf_values(tree, tree["split_conditions"].astype(np.float64) * weight + shift)


def constant(value: float) -> Tree:
    """Return a tree with a single leaf."""
    node = {
        name: np.zeros(1, dtype=np.float32)
        for name in ("loss_changes", "sum_hessian", "split_conditions", "base_weights")
    }
    children = {name: np.full(1, LEAF, dtype=np.int32) for name in ("left_children", "right_children")}
    empty = {
        "categories": np.zeros(0, dtype=np.int32),
        "categories_nodes": np.zeros(0, dtype=np.int32),
        "categories_segments": np.zeros(0, dtype=np.int64),
        "categories_sizes": np.zeros(0, dtype=np.int64),
    }
    rest = {
        "default_left": np.zeros(1, dtype=np.uint8),
        "id": 0,
        "parents": np.full(1, ROOT_PARENT, dtype=np.int32),
        "split_indices": np.zeros(1, dtype=np.int32),
        "split_type": np.zeros(1, dtype=np.uint8),
        "tree_param": {"num_deleted": "0", "num_feature": "0", "num_nodes": "1", "size_leaf_vector": "1"},
    }
    return with_leaf_values({**node, **children, **empty, **rest}, np.full(1, value))


def _number_text(value: float) -> str:
    """Write a float32 as XGBoost does: more digits than nine, or "E+1" for "E1", make older versions read 0.5."""
    digits, exponent = f"{value:.8E}".split("E")
    return f"{digits}E{int(exponent)}"


def _numbers_text(values: Iterable[float]) -> str:
    return f"[{','.join(map(_number_text, values))}]"


def _categories(tables: Sequence[Table | None]) -> dict[str, Any]:
    """Category tables as XGBoost stores them since 3.1: for each column its categories and their sorted order."""
    entries: list[dict[str, Any]] = []
    sizes = [0] * bool(tables)
    orders: list[IntArray] = [np.zeros(0, dtype=np.int32)]
    for table in tables:
        if table is None:
            entries.append({"offsets": np.zeros(0, dtype=np.int32), "values": np.zeros(0, dtype=np.int8)})
        elif isinstance(table, np.ndarray):
            entries.append({"type": _INT64, "values": table.astype(np.int64)})
            orders.append(np.argsort(table))
        else:
            texts = [text.encode() for text in table]
            offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
            entries.append({"offsets": offsets, "values": np.frombuffer(b"".join(texts), dtype=np.int8)})
            orders.append(np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int32))
        sizes.append(0 if table is None else len(table))
    return {
        "enc": entries,
        "feature_segments": np.cumsum(sizes).astype(np.int32),
        "sorted_idx": np.concatenate(orders).astype(np.int32),
    }
