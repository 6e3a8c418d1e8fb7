"""Binned data, growth of trees on them, and prediction: the typed side of the compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from scboost._engine.interface import Tree

from . import MISSING

try:
    from . import _native
except ImportError as error:
    raise ImportError(MISSING) from error

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Matrix: TypeAlias = "npt.NDArray[np.floating] | sparse.csr_matrix | sparse.csr_array"
Pool = _native.Pool
"""Threads that sleep when idle: ``Pool(n)``; the calling thread is one of them, and does everything if n is 1."""

_GROWN = {np.dtype(np.float32), np.dtype(np.float64)}  # of gradients and Hessians
_UINT32_MAX = np.iinfo(np.uint32).max


def _csr(X: sparse.csr_matrix | sparse.csr_array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Float32]:
    """Return row pointers, indices and values in the types of the kernels."""
    return (
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        np.ascontiguousarray(X.indices, dtype=np.int32),
        np.ascontiguousarray(X.data, dtype=np.float32),
    )


@dataclass(frozen=True)
class Cuts:
    """Cut points of the bins.

    Attributes
    ----------
    indptr : ndarray of shape (n_features + 1,)
        Where the cut points of each feature start.
    values : ndarray
        Cut points, ascending within a feature: bin i holds ``values[i - 1] <= x < values[i]``, and the last bin all
        greater values. Of a categorical feature, the categories.
    """

    indptr: npt.NDArray[np.int64]
    values: Float32


class BinnedData:
    """Features of samples, replaced by the number of their bin.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        NaN is a missing value; so is an entry that a sparse matrix does not store.
    max_bin : int, default=256
        Largest number of bins of a numeric feature. Up to as many distinct values have a bin each, with cuts half-way
        between them; otherwise bins have about equal weight.
    n_categories : sequence of int, optional
        Number of categories of each feature, 0 for a numeric one. A category is a bin.
    sample_weight : ndarray of shape (n_samples,), optional
        Weights of the samples in the quantiles.
    cuts : Cuts, optional
        Cut points to be used as they are.
    pool : Pool, optional
        Affects speed only.

    Examples
    --------
    >>> import numpy as np
    >>> data = BinnedData(np.array([[1.0], [2.0], [4.0], [np.nan]]))
    >>> data.codes().ravel()
    array([0, 1, 2, 3], dtype=int32)
    >>> data.cuts.values[:2]
    array([1.5, 3. ], dtype=float32)
    """

    def __init__(
        self,
        X: Matrix,
        *,
        max_bin: int = 256,
        n_categories: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        cuts: Cuts | None = None,
        pool: Pool | None = None,
    ) -> None:
        counts = None if n_categories is None else np.ascontiguousarray(n_categories, dtype=np.uint32)
        weight = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
        indptr, values = (None, None) if cuts is None else (cuts.indptr, cuts.values)
        rest = max_bin, counts, weight, indptr, values, pool
        if sparse.issparse(X):
            pointers, indices, entries = _csr(X.tocsr())
            self.native = _native.Bins.sparse(pointers, indices, entries, X.shape[1], *rest)
        else:
            self.native = _native.Bins.dense(np.ascontiguousarray(X, dtype=np.float32), *rest)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and features."""
        return self.native.n_samples, self.native.n_features

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the bins take."""
        return self.native.nbytes

    @property
    def cuts(self) -> Cuts:
        """Cut points of the bins."""
        return Cuts(*self.native.cut_points())

    def codes(self) -> npt.NDArray[np.int32]:
        """Bins of all values, of shape (n_samples, n_features); the last bin plus 1 for missing values."""
        return self.native.codes().reshape(self.shape)


@dataclass(frozen=True)
class GrowthOptions:
    """How trees are grown. Names and meanings are those of XGBoost, unless stated otherwise.

    Attributes
    ----------
    grow_policy : {"depth-wise", "leaf-wise", "symmetric"}
        Level by level; or the leaf with the largest gain first; or one split a level, for all leaves in which it is
        allowed, with the largest sum of gains.
    max_depth, max_leaves : int
        0 for no limit.
    reg_lambda, reg_alpha, min_child_weight, max_delta_step : float
        Regularization of leaf values. ``max_delta_step=0`` is no limit.
    min_split_loss : float
        Least gain of a split, in the unit of the gradients. There is no other threshold: any gain above rounding is
        a gain, whatever the unit.
    monotone_constraints : tuple of int
        Sign for each feature; empty for none.
    interaction_constraints : tuple of tuple of int
        Groups of features that may be used together on a path; empty for no constraints.
    colsample_bytree, colsample_bylevel, colsample_bynode : float in (0, 1]
        Shares of the features, drawn by the seed of the tree alone.
    max_cat_to_onehot : int
        Categorical features with fewer categories have one-vs-rest splits, others subset splits.
    max_cat_threshold : int
        Largest number of categories of a subset split.
    """

    grow_policy: Literal["depth-wise", "leaf-wise", "symmetric"] = "depth-wise"
    max_depth: int = 6
    max_leaves: int = 0
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    min_child_weight: float = 1.0
    min_split_loss: float = 0.0
    max_delta_step: float = 0.0
    monotone_constraints: tuple[int, ...] = ()
    interaction_constraints: tuple[tuple[int, ...], ...] = field(default=())
    colsample_bytree: float = 1.0
    colsample_bylevel: float = 1.0
    colsample_bynode: float = 1.0
    max_cat_to_onehot: int = 4
    max_cat_threshold: int = 64


class GrownTree(NamedTuple):
    """A tree with the leaves of the training samples.

    Attributes
    ----------
    native : Tree of the kernels
        The tree, as it was grown.
    leaf : ndarray of shape (n_samples,)
        Leaf of each sample, numbered from 0, in the smallest integer type.
    values : ndarray of shape (n_leaves,)
        Value of each leaf.
    """

    native: _native.Tree
    leaf: npt.NDArray[np.integer]
    values: Float32

    @property
    def tree(self) -> Tree:
        """The tree, in the arrays of XGBoost's model document."""
        return self.native.document()

    @property
    def nodes(self) -> npt.NDArray[np.int32]:
        """Node of each leaf."""
        return self.native.leaves()


class TreeGrower:
    """Grows trees on binned data.

    Parameters
    ----------
    data : BinnedData
        The training samples.
    options : GrowthOptions
        How trees are grown.

    Examples
    --------
    >>> import numpy as np
    >>> data = BinnedData(np.arange(6.0)[:, None])
    >>> grower = TreeGrower(data, GrowthOptions(max_depth=1, reg_lambda=0.0))
    >>> target = np.array([[0.0, 0.0, 0.0, 3.0, 3.0, 3.0]], dtype=np.float32)
    >>> [grown] = grower.grow(-target, np.ones_like(target))
    >>> grown.leaf, grown.values
    (array([0, 0, 0, 1, 1, 1], dtype=uint8), array([0., 3.], dtype=float32))
    """

    def __init__(self, data: BinnedData, options: GrowthOptions) -> None:
        self.data, self.options = data, options
        o = options
        self._native = _native.Grower(
            data.native,
            o.grow_policy,
            o.max_depth,
            o.max_leaves,
            o.reg_lambda,
            o.reg_alpha,
            o.min_child_weight,
            o.min_split_loss,
            o.max_delta_step,
            list(o.monotone_constraints),
            [list(group) for group in o.interaction_constraints],
            o.colsample_bytree,
            o.colsample_bylevel,
            o.colsample_bynode,
            min(o.max_cat_to_onehot, _UINT32_MAX),
            o.max_cat_threshold,
        )

    def grow(
        self,
        gradient: npt.NDArray[np.floating],
        hessian: npt.NDArray[np.floating],
        *,
        factor: float = 1.0,
        seed: int = 0,
        features: Sequence[int] | None = None,
        pool: Pool | None = None,
    ) -> list[GrownTree]:
        """Grow one tree for each row of the gradient.

        Parameters
        ----------
        gradient, hessian : ndarray of shape (n_trees, n_samples)
            Derivatives of the loss, times the sample weights. Samples that have both at 0 do not count, but get a leaf.
        factor : float
            By which gradients are multiplied; a power of two, or its negative.
        seed : int
            Seed of feature sampling.
        features : sequence of int, optional
            Features that the trees may use; all by default.
        pool : Pool, optional
            Affects speed only.
        """
        g, h = _derivatives(gradient, hessian)
        seeds = [(seed + k) % 2**64 for k in range(len(g))]
        grown = self._native.grow(g, h, factor, seeds, None if features is None else list(features), pool)
        return [GrownTree(*one) for one in grown]

    def finish_round(
        self, arguments: tuple[Any, ...], features: list[int] | None, pool: Pool | None
    ) -> tuple[GrownTree, tuple[int, float, float, float]] | None:
        """Do what follows the gradient in a round of one output; see ``finish_round`` of the kernels."""
        done = _native.finish_round(self._native, *(*arguments, features, pool))
        return None if done is None else (GrownTree(*done[:3]), done[3:])

    def grow_shared(
        self,
        gradient: npt.NDArray[np.floating],
        hessian: npt.NDArray[np.floating],
        *,
        factor: float = 1.0,
        seed: int = 0,
        features: Sequence[int] | None = None,
        pool: Pool | None = None,
    ) -> GrownTree:
        """Grow one tree for all rows of the gradient, whose leaf values are 0.

        The gain of a split is the sum of those of all outputs, with one Hessian for all: their mean, weighted by
        itself. The gradients of more than five outputs are added up to five channels with random signs, which keeps
        the sum of the gains in expectation (a count sketch).

        Parameters
        ----------
        gradient, hessian : ndarray of shape (n_outputs, n_samples)
            See :meth:`grow`.
        factor : float
            See :meth:`grow`.
        seed : int
            Seed of the channels and of feature sampling.
        features : sequence of int, optional
            Features that the tree may use; all by default.
        pool : Pool, optional
            Affects speed only.
        """
        g, h = _derivatives(gradient, hessian)
        chosen = None if features is None else list(features)
        return GrownTree(*self._native.grow_shared(g, h, factor, seed % 2**64, chosen, pool))


def _derivatives(
    gradient: npt.NDArray[np.floating], hessian: npt.NDArray[np.floating]
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]:
    """Return gradients and Hessians in the form of the kernels."""
    g, h = gradient, hessian
    if not (g.dtype == h.dtype in _GROWN and g.flags.c_contiguous and h.flags.c_contiguous):
        dtype = np.result_type(g, h, np.float32)
        g, h = (np.ascontiguousarray(a, dtype=dtype) for a in (g, h))
    return g, h


class TreePredictor:
    """Trees prepared for prediction.

    Parameters
    ----------
    trees : sequence of dict
        Trees as in XGBoost's model document; they are not checked beyond what memory safety needs.
    outputs : sequence of int
        Output of each tree.
    n_features, n_outputs : int
        d and K.
    """

    def __init__(self, trees: list[Tree], outputs: list[int], n_features: int, n_outputs: int = 1) -> None:
        self._native = _native.Forest.make(trees, outputs, n_features, n_outputs)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self._native.n_trees

    def _predict(self, X: Matrix, what: _native.What, pool: Pool | None) -> npt.NDArray[Any]:
        if sparse.issparse(X):
            if X.shape[1] != self._native.n_features:
                raise ValueError(f"X has {X.shape[1]} features, but the trees have {self._native.n_features}.")
            return self._native.predict_sparse(*_csr(X.tocsr()), what, pool)
        if X.dtype not in {np.dtype(np.float32), np.dtype(np.float64)}:
            X = X.astype(np.float32)
        return self._native.predict(np.ascontiguousarray(X), what, pool)

    def scores(self, X: Matrix, pool: Pool | None = None) -> Float64:
        """Return the sums of the trees' values, of shape (n_outputs, n_samples)."""
        return self._predict(X, "scores", pool)

    def tree_values(self, X: Matrix, pool: Pool | None = None) -> Float32:
        """Return the value of each tree, of shape (n_trees, n_samples)."""
        return self._predict(X, "values", pool)

    def nodes(self, X: Matrix, pool: Pool | None = None) -> npt.NDArray[np.int32]:
        """Return the number of each tree's leaf node, of shape (n_samples, n_trees)."""
        return self._predict(X, "nodes", pool)

    def shap_values(self, X: Matrix, pool: Pool | None = None) -> Float64:
        """Return path-dependent TreeSHAP values, of shape (n_samples, n_outputs, n_features + 1), the mean last."""
        return self._predict(X, "shap", pool)
