"""One view of any tree ensemble: the matrix H of what each tree predicts for each row.

Every supported model is a weighted sum, ``margin = H @ weights + intercept``. Row i, column t of H is the value
of the leaf where tree t puts row i. What the margin is, by library:

=============================================  ============================================================
XGBoost (``XGBClassifier`` ..., ``Booster``)   ``predict(..., output_margin=True)``
LightGBM (``LGBMClassifier`` ..., ``Booster``) ``predict(..., raw_score=True)``, divided by T for boosting="rf"
CatBoost                                       ``predict(..., prediction_type="RawFormulaVal")``
GradientBoosting*, HistGradientBoosting*       ``decision_function``; the link's argument for regressors
RandomForest*, ExtraTrees*                     ``predict_proba`` (second class if there are two); ``predict``
AdaBoostClassifier                             ``decision_function``; a tree's value is its vote
AdaBoostRegressor                              the weighted *mean* of the trees (``predict`` is their median)
SCBoostClassifier, SCBoostRegressor            ``decision_function``; the raw score for the regressor
WeightedTrees                                  ``decision_function``
=============================================  ============================================================

Other models can join: see :func:`register_reader`.

The vote of a tree is defined here, once: +1 where its value is above the tree's share of the *ensemble's base*, -1
elsewhere. The base is what the ensemble says before it has seen the row, so a tree of a boosted sum votes by its sign
(the base is the intercept), a tree of a classification forest by P(class) against 1 / n_classes, a tree of a
regression forest by its value against the mean of the trees' roots, and AdaBoost's classifiers vote as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray
from scboost.diagnostics._registry import read_ensemble

BLOCK_ROWS = 8192


@dataclass(frozen=True)
class TreeMatrix:
    """Per-tree predictions of an ensemble, and how they add up to its margin.

    With K outputs (K classes if there are more than two) and T trees per output there are T * K columns; column
    ``t * K + k`` is the t-th tree of output k.

    Attributes
    ----------
    H : ndarray of shape (n, T * K)
        Value of each tree for each row, in Fortran order (the transpose is contiguous by tree).
    column_weights : ndarray of shape (T * K,)
        Weight of each column in the margin of its output.
    intercepts : ndarray of shape (K,)
        What the margin is without any tree.
    centers : ndarray of shape (T * K,)
        Value that separates the two votes of a tree: see the module's text.
    library : str
        "xgboost", "lightgbm", "catboost", "sklearn", "scboost", or the name of a library that was registered.
    link : str
        How a margin becomes a prediction: "logit", "softmax", "identity", "quantile" (the margin is a quantile of
        y), "probability" (the margin is one), "vote" (a score that is no log-odds: AdaBoost, the exponential loss) or
        "other".
    classes : ndarray of shape (n_classes,) or None
        Labels in the order of the outputs; None for regression and for boosters that do not know their labels.
    n_outputs : int
        K.
    average : bool
        Whether the trees are averaged (forests, AdaBoost) rather than added up: what a shorter ensemble would do.
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
        """T, the number of trees of one output."""
        return len(self.column_weights) // self.n_outputs

    @property
    def classifies(self) -> bool:
        """Whether the targets are classes."""
        return self.classes is not None or self.link in {"logit", "softmax"}

    @property
    def weights(self) -> FloatArray:
        """Weights of shape (T,) for one output and (T * K, K) for several, so that H @ weights works for both."""
        if self.n_outputs == 1:
            return self.column_weights
        return self.column_weights[:, None] * np.tile(np.eye(self.n_outputs), (self.n_trees, 1))

    @property
    def intercept(self) -> Any:
        """A float for one output, an array of shape (K,) for several."""
        return float(self.intercepts[0]) if self.n_outputs == 1 else self.intercepts

    def margin(self) -> FloatArray:
        """Return H @ weights + intercept in float64, of shape (n,) or (n, K), without the zeros of the weights."""
        K = self.n_outputs
        F = np.empty((len(self.H), K))
        for start in range(0, len(F), BLOCK_ROWS):
            block = self.H[start : start + BLOCK_ROWS].astype(np.float64)
            for k in range(K):
                F[start : start + BLOCK_ROWS, k] = block[:, k::K] @ self.column_weights[k::K]
        F += self.intercepts
        return F[:, 0] if K == 1 else F

    def base(self) -> float:
        """Return what the ensemble (of one output) says before it has seen a row: see the module's text."""
        return float(self.intercepts[0] + self.column_weights @ self.centers)

    def votes(self) -> npt.NDArray[np.int8]:
        """Return +1 where a tree's value is above its center and -1 elsewhere, of the shape of H."""
        return np.where(self.centers < self.H, np.int8(1), np.int8(-1))

    def output(self, k: int) -> TreeMatrix:
        """Return the trees of output k alone, as an ensemble with one output (a view)."""
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
    """What is known of a model before it sees rows: a TreeMatrix whose columns are computed on demand.

    Attributes
    ----------
    fill : callable
        ``fill(X, out)`` writes the columns of a block of rows into ``out``, a Fortran-ordered (b, T * K) array.
    column_weights, intercepts, centers, library, link, classes, average
        As in :class:`TreeMatrix`.
    n_features : int
        Number of columns of X.
    feature_names : list of str, optional
        Their names, which a table must have in this order.
    needs_table : bool
        Whether columns hold categories that only a table has, so that an array of numbers cannot stand for it.
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

    def matrix(self, X: Any, dtype: npt.DTypeLike, block_rows: int) -> TreeMatrix:
        """Return the matrix of all rows of X, filled block by block."""
        n = len(self.column_weights)
        H = np.empty((n, X.shape[0]), dtype).T
        for rows in _blocks(X, block_rows):
            self.fill(_take(X, rows), H[rows])
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

    def matrices(self, X: Any, dtype: npt.DTypeLike, block_rows: int = BLOCK_ROWS) -> Iterator[TreeMatrix]:
        """Yield the matrices of consecutive blocks of rows of X."""
        X = self.check(X)
        return (self.matrix(_take(X, rows), dtype, block_rows) for rows in _blocks(X, block_rows))

    def check(self, X: Any) -> Any:
        """Return X as something with a shape and rows, or say which columns are wrong."""
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        if len(X.shape) != 2:
            raise ValueError(f"X must have two dimensions, got shape {tuple(X.shape)}.")
        if X.shape[0] == 0:
            raise ValueError("X has no rows.")
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} columns, but the model was fitted with {self.n_features}.")
        if self.needs_table and not hasattr(X, "columns") and X.dtype.kind != "O":
            raise TypeError(
                f"X is a {type(X).__name__}, but the model was fitted on a table with categorical columns; "
                "give a table with the same columns."
            )
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else self.feature_names
        # LightGBM stores blanks as underscores
        if self.feature_names is not None and _no_blanks(names) != _no_blanks(self.feature_names):
            raise ValueError(
                f"X has columns {names}, but the model was fitted with {self.feature_names} in this order."
            )
        return X


def tree_matrix(model: Any, X: Any, *, dtype: npt.DTypeLike = np.float32, block_rows: int = BLOCK_ROWS) -> TreeMatrix:
    """Compute what each tree of a fitted ensemble predicts for each row.

    The leaves are found by the library's own native code (one call per block of rows) and their values are gathered;
    nothing loops over rows in Python. If the model stopped early, the trees are those that its own ``predict`` uses.

    Parameters
    ----------
    model : object
        A fitted model of a supported library, of a registered one, or one that defines ``__tree_ensemble__``.
    X : array-like or data frame of shape (n, d)
        Rows, with the columns the model was fitted with.
    dtype : dtype, default=float32
        Precision of H. XGBoost's leaves are float32; the other libraries' are float64.
    block_rows : int, default=8192
        Rows per native call. Peak memory is the result, n * T * K * itemsize bytes, plus at most
        block_rows * T * K * 24 bytes while a block is computed.

    Returns
    -------
    TreeMatrix
        ``H``, ``weights`` and ``intercept`` with ``H @ weights + intercept`` equal to the model's margin.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model has not been fitted.
    TypeError
        If the model is of no supported kind, or X is an array where the model knows categories of a table.
    ValueError
        If X has other columns than the model was fitted with, or the model is not a sum of constant leaves (linear
        boosters, linear trees, a row-dependent ``init``).

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
    return ensemble.matrix(ensemble.check(X), dtype, positive_integer("block_rows", block_rows))


def iter_tree_matrix(
    model: Any, X: Any, *, dtype: npt.DTypeLike = np.float32, block_rows: int = BLOCK_ROWS
) -> Iterator[TreeMatrix]:
    """Yield :func:`tree_matrix` for consecutive blocks of rows, in bounded memory.

    Parameters
    ----------
    model, X, dtype
        As for :func:`tree_matrix`.
    block_rows : int, default=8192
        Rows of a block (the last may be shorter). Peak memory is block_rows * T * K * (itemsize + 24) bytes,
        whatever the number of rows of X.

    Yields
    ------
    TreeMatrix
        Of the next rows; all but ``H`` is the same in every block.
    """
    yield from read_ensemble(model).matrices(X, dtype, positive_integer("block_rows", block_rows))


def positive_integer(name: str, value: Any) -> int:
    """Check a number of rows or trees."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
    return int(value)


def _no_blanks(names: list[str] | None) -> list[str]:
    return [re.sub(r"\s", "_", name) for name in names or []]


def _blocks(X: Any, size: int) -> Iterator[slice]:
    n = X.shape[0]
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _take(X: Any, rows: slice) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def gather(values: list[FloatArray]) -> Callable[[Any, FloatArray], None]:
    """Return a function that replaces leaf numbers (b, T) by leaf values; values[t] has shape (leaves, K)."""
    K = values[0].shape[1]
    tables = [[np.ascontiguousarray(table[:, k]) for k in range(K)] for table in values]
    cast = {np.dtype(np.float32): [[v.astype(np.float32) for v in columns] for columns in tables]}

    def fill(leaves: Any, out: FloatArray) -> None:
        leaves = leaves.astype(np.intp)
        for t, columns in enumerate(cast.get(out.dtype, tables)):
            for k, table in enumerate(columns):
                # "clip" only because it writes straight into out; a library's own leaf numbers are in range
                table.take(leaves[:, t], out=out[:, t * K + k], mode="clip")

    return fill
