"""The tree matrix H: the prediction of each tree for each sample, the same view for the ensembles of all libraries.

Every supported model is a weighted sum, ``raw score = H @ weights + intercept``. Entry (i, t) of H is the value of the
leaf that sample i reaches in tree t. The raw score of each library:

=============================================  ============================================================
XGBoost (``XGBClassifier`` ..., ``Booster``)   ``predict(..., output_margin=True)``
LightGBM (``LGBMClassifier`` ..., ``Booster``) ``predict(..., raw_score=True)``, divided by T for boosting="rf"
CatBoost                                       ``predict(..., prediction_type="RawFormulaVal")``
GradientBoosting*, HistGradientBoosting*       ``decision_function``; before the inverse link for regressors
RandomForest*, ExtraTrees*                     ``predict_proba`` (second class if there are two); ``predict``
AdaBoostClassifier                             ``decision_function``; the value of a tree is its vote
AdaBoostRegressor                              weighted *mean* of the trees (``predict`` is their median)
SCBoostClassifier, SCBoostRegressor            ``decision_function``; the raw score for the regressor
WeightedTrees                                  ``decision_function``
=============================================  ============================================================

Models of other libraries are supported through :func:`register_reader`.

The vote of a tree is +1 where its value exceeds the tree's share of the *base score* of the ensemble, -1 elsewhere. The
base score is the prediction before any feature is known. A tree of a boosted sum therefore votes by its sign (the base
score is the intercept), a tree of a classification forest by P(class) against 1 / n_classes, a tree of a regression
forest by its value against the mean of the root values, and the learners of AdaBoost's classifiers vote as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray, blocks
from scboost.diagnostics._registry import read_ensemble

BLOCK_SIZE = 8192
_BLOCK_VALUES = 5_000_000  # tree predictions of a block of samples


@dataclass(frozen=True)
class TreeMatrix:
    """Predictions of each tree of an ensemble, and the weights that sum them up to the raw score.

    With K outputs (K classes if there are more than two) and T trees per output there are T * K columns; column
    ``t * K + k`` is the t-th tree of output k.

    Attributes
    ----------
    H : ndarray of shape (n_samples, T * K)
        Prediction of each tree for each sample, in Fortran order.
    column_weights : ndarray of shape (T * K,)
        Weight of each column in the raw score of its output.
    intercepts : ndarray of shape (K,)
        Raw score without any tree.
    centers : ndarray of shape (T * K,)
        Threshold between the two votes of a tree: its share of the base score.
    library : str
        "xgboost", "lightgbm", "catboost", "sklearn", "scboost", or the name of a registered reader.
    link : str
        Meaning of the raw score: "logit", "softmax", "identity", "quantile" (a quantile of y), "probability", "vote"
        (a score that is not the log-odds: AdaBoost, the exponential loss) or "other".
    classes : ndarray of shape (n_classes,) or None
        Class labels in the order of the outputs; None for regression and for boosters without labels.
    n_outputs : int
        K.
    average : bool
        Whether the trees are averaged (forests, AdaBoost) rather than summed; determines what a truncated ensemble
        predicts.
    """

    H: FloatArray
    column_weights: FloatArray
    intercepts: FloatArray
    centers: FloatArray
    library: str
    link: str
    classes: npt.NDArray[Any] | None
    n_outputs: int
    average: bool

    @property
    def n_trees(self) -> int:
        """T, the number of trees per output."""
        return len(self.column_weights) // self.n_outputs

    @property
    def is_classifier(self) -> bool:
        """Whether the model is a classifier."""
        return self.classes is not None or self.link in {"logit", "softmax"}

    @property
    def on_target_scale(self) -> bool:
        """Whether predictions of the target can be computed from the raw score."""
        return self.is_classifier or self.link in {"identity", "quantile"}

    @property
    def weights(self) -> FloatArray:
        """Weights of shape (T,) for one output and (T * K, K) for several, so that H @ weights works for both."""
        if self.n_outputs == 1:
            return self.column_weights
        return self.column_weights[:, None] * np.tile(np.eye(self.n_outputs), (self.n_trees, 1))

    @property
    def intercept(self) -> float | FloatArray:
        """A float for one output, an array of shape (K,) for several."""
        return float(self.intercepts[0]) if self.n_outputs == 1 else self.intercepts

    def margin(self) -> FloatArray:
        """Return the raw score H @ weights + intercept in float64, of shape (n_samples,) or (n_samples, K)."""
        K = self.n_outputs
        F = np.empty((len(self.H), K))
        for rows in blocks(len(F), BLOCK_SIZE):
            block = self.H[rows].astype(np.float64)
            for k in range(K):
                F[rows, k] = block[:, k::K] @ self.column_weights[k::K]
        F += self.intercepts
        return F[:, 0] if K == 1 else F

    def staged_margins(self, sizes: IntArray) -> Iterator[FloatArray]:
        """Yield the raw score of the ensemble truncated after each number of trees.

        Boosted sums keep the intercept and the first trees; averages become the average of the first trees.

        Parameters
        ----------
        sizes : ndarray of int
            Numbers of trees, increasing.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, K)
        """
        K, T = self.n_outputs, self.n_trees
        w = self.column_weights.reshape(T, K)
        F = np.zeros((len(self.H), K))
        done = 0
        for size in sizes:
            for t in range(done, size):
                F += self.H[:, t * K : (t + 1) * K] * w[t]
            done = int(size)
            margin = F * (w.sum(axis=0) / w[:done].sum(axis=0) if self.average else 1.0) + self.intercepts
            yield margin[:, 0] if K == 1 else margin

    def base(self) -> float:
        """Return the base score of an ensemble with one output: its prediction before any feature is known."""
        return float(self.intercepts[0] + self.column_weights @ self.centers)

    def votes(self) -> npt.NDArray[np.int8]:
        """Return +1 where the value of a tree exceeds its center and -1 elsewhere, of the shape of H."""
        return np.where(self.centers < self.H, np.int8(1), np.int8(-1))

    def output(self, k: int) -> TreeMatrix:
        """Return the trees of output k as an ensemble with one output; H is a view."""
        K = self.n_outputs
        return replace(
            self,
            H=self.H[:, k::K],
            column_weights=self.column_weights[k::K],
            intercepts=self.intercepts[k : k + 1],
            centers=self.centers[k::K],
            n_outputs=1,
        )


@dataclass(frozen=True)
class EnsembleReader:
    """A fitted ensemble whose tree matrix is computed on demand.

    Attributes
    ----------
    fill : callable
        ``fill(X, out)`` writes the tree predictions for a block of samples into ``out``, a Fortran-ordered array of
        shape (block, T * K).
    column_weights, intercepts, centers, library, link, classes, average
        As in :class:`TreeMatrix`.
    n_features : int
        Number of features.
    feature_names : list of str, optional
        Feature names; a table must have these columns in this order.
    needs_table : bool
        Whether the model has categorical features that only a table can hold, so that a numeric array is refused.
    task : {"", "ranking", "survival", "distribution"}
        What the model is for, if not classification or regression.
    uncertainty : {"", "interval", "set", "distribution"}
        What it predicts beside labels or values: ``predict_interval``, ``predict_set`` or ``predict_distribution``.
    """

    fill: Callable[[Any, FloatArray], None]
    column_weights: FloatArray
    intercepts: FloatArray
    centers: FloatArray
    library: str
    link: str
    classes: npt.NDArray[Any] | None
    n_features: int
    feature_names: list[str] | None = None
    average: bool = False
    needs_table: bool = False
    task: str = ""
    uncertainty: str = ""

    def __post_init__(self) -> None:
        weights, outputs, centers = (np.shape(a) for a in (self.column_weights, self.intercepts, self.centers))
        if len(outputs) != 1 or outputs[0] == 0:
            raise ValueError(f"intercepts must have shape (K,) with one value per output, got shape {outputs}.")
        if len(weights) != 1 or weights[0] % outputs[0]:
            raise ValueError(
                f"column_weights must have shape (T * K,) for T trees and K={outputs[0]} outputs, got shape {weights}."
            )
        if centers != weights:
            raise ValueError(
                f"centers must have shape {weights}, one value per column like column_weights, got shape {centers}. "
                "Pass zeros if the trees have no base score of their own."
            )

    def matrix(self, X: Any, dtype: npt.DTypeLike, block_size: int) -> TreeMatrix:
        """Return the tree matrix of all samples, filled block by block."""
        H = np.empty((len(self.column_weights), X.shape[0]), dtype).T
        for rows in blocks(X.shape[0], block_size):
            self.fill(take_samples(X, rows), H[rows])
        return self.with_predictions(H)

    def with_predictions(self, H: FloatArray) -> TreeMatrix:
        """Return the tree matrix of tree predictions of shape (n_samples, T * K)."""
        return TreeMatrix(
            H,
            self.column_weights,
            self.intercepts,
            self.centers,
            self.library,
            self.link,
            self.classes,
            len(self.intercepts),
            self.average,
        )

    def matrices(self, X: Any, dtype: npt.DTypeLike, block_size: int = BLOCK_SIZE) -> Iterator[TreeMatrix]:
        """Yield the tree matrices of consecutive blocks of samples."""
        X = self.check(X)
        return (self.matrix(take_samples(X, rows), dtype, block_size) for rows in blocks(X.shape[0], block_size))

    def margin(self, X: Any) -> FloatArray:
        """Return the raw score of all samples, in the memory of one block."""
        size = max(1, _BLOCK_VALUES // len(self.column_weights))
        parts = [self.matrix(take_samples(X, rows), np.float32, size).margin() for rows in blocks(X.shape[0], size)]
        return np.concatenate(parts)

    def check(self, X: Any) -> Any:
        """Return X as an object with a shape, or raise an error that names what is wrong with its columns."""
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        if len(X.shape) != 2:
            raise ValueError(f"X must have two dimensions, got shape {tuple(X.shape)}.")
        if X.shape[0] == 0:
            raise ValueError("X must have at least one sample, got none.")
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but the model was fitted with {self.n_features}.")
        if self.needs_table and not hasattr(X, "columns") and X.dtype.kind != "O":
            raise TypeError(
                f"X is a {type(X).__name__}, but the model was fitted on a table with categorical columns; pass a "
                "table with the same columns."
            )
        names = column_names(X) or self.feature_names
        if self.feature_names is not None and _normalized(names) != _normalized(self.feature_names):
            raise ValueError(
                f"X has columns {names}, but the model was fitted with {self.feature_names} in this order."
            )
        return X


def tree_matrix(
    model: object, X: Any, *, dtype: npt.DTypeLike = np.float32, block_size: int = BLOCK_SIZE
) -> TreeMatrix:
    """Compute the prediction of each tree of a fitted ensemble for each sample.

    Leaves are found by the library's own native code, one call per block of samples. If the model was fitted with early
    stopping, the trees are those that its own ``predict`` uses.

    Parameters
    ----------
    model : object
        A fitted model of a supported library, of a registered reader, or one that defines ``__tree_ensemble__``.
    X : array-like or table of shape (n_samples, n_features)
        Samples, with the features the model was fitted with.
    dtype : dtype, default=float32
        Precision of H. XGBoost's leaves are float32; those of the other libraries are float64.
    block_size : int, default=8192
        Samples per native call. Peak memory is the result, n_samples * T * K * itemsize bytes, plus at most
        block_size * T * K * 24 bytes.

    Returns
    -------
    TreeMatrix
        ``H``, ``weights`` and ``intercept`` with ``H @ weights + intercept`` equal to the raw score of the model.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model has not been fitted.
    TypeError
        If the model is not supported, or X is an array and the model has categorical features of a table.
    ValueError
        If X has other features than the model was fitted with, or the model is not a sum of constant leaves (linear
        boosters, linear trees, an ``init`` estimator that depends on the sample).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> X, y = make_classification(200, 5, random_state=0)
    >>> model = GradientBoostingClassifier(n_estimators=7, random_state=0).fit(X, y)
    >>> trees = tree_matrix(model, X)
    >>> trees.H.shape
    (200, 7)
    >>> bool(np.allclose(trees.H @ trees.weights + trees.intercept, model.decision_function(X), atol=1e-6))
    True
    """
    ensemble = read_ensemble(model)
    return ensemble.matrix(ensemble.check(X), dtype, check_positive_integer("block_size", block_size))


def iter_tree_matrix(
    model: object, X: Any, *, dtype: npt.DTypeLike = np.float32, block_size: int = BLOCK_SIZE
) -> Iterator[TreeMatrix]:
    """Yield :func:`tree_matrix` for consecutive blocks of samples, in bounded memory.

    Parameters
    ----------
    model, X, dtype
        As for :func:`tree_matrix`.
    block_size : int, default=8192
        Samples per block (the last may be smaller). Peak memory is block_size * T * K * (itemsize + 24) bytes for any
        number of samples.

    Yields
    ------
    TreeMatrix
        Of the next samples; all attributes but ``H`` are the same for every block.
    """
    yield from read_ensemble(model).matrices(X, dtype, check_positive_integer("block_size", block_size))


def check_positive_integer(name: str, value: object) -> int:
    """Return a parameter that must be an integer of at least 1."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
    return int(value)


def column_names(X: Any) -> list[str] | None:
    """Return the column names of a table; None for arrays."""
    names = getattr(X, "column_names", getattr(X, "columns", None))  # pyarrow's `columns` are the data
    return None if names is None else [str(name) for name in names]


def take_samples(X: Any, rows: slice | IntArray) -> Any:
    """Return some samples of an array, sparse matrix or table."""
    if hasattr(X, "column_names") and not isinstance(rows, slice):  # pyarrow
        return X.take(rows)
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _normalized(names: list[str] | None) -> list[str]:
    """Return names with underscores in place of whitespace, as LightGBM stores them."""
    return [re.sub(r"\s", "_", name) for name in names or []]


def gather(values: list[FloatArray]) -> Callable[[Any, FloatArray], None]:
    """Return a function that replaces leaf indices (block, T) by leaf values; values[t] has shape (n_leaves, K)."""
    K = values[0].shape[1]
    tables = [[np.ascontiguousarray(table[:, k]) for k in range(K)] for table in values]
    cast = {np.dtype(np.float32): [[v.astype(np.float32) for v in columns] for columns in tables]}

    def fill(leaves: Any, out: FloatArray) -> None:
        leaves = leaves.astype(np.intp)
        for t, columns in enumerate(cast.get(out.dtype, tables)):
            for k, table in enumerate(columns):
                # "clip" only because it writes straight into out; leaf indices of a library are in range
                table.take(leaves[:, t], out=out[:, t * K + k], mode="clip")

    return fill
