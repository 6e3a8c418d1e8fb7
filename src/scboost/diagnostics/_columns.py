"""Features of samples in any form: their values for summaries, and samples that combine values of several samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse

from scboost._arrays import FloatArray, IntArray
from scboost._data.tables import as_table, factorize, kind_of, numbers
from scboost.diagnostics._tree_matrix import take_samples


@dataclass(frozen=True)
class Feature:
    """Values of one feature.

    Attributes
    ----------
    kind : {"numeric", "categorical", "other"}
        "other" are values that are neither, such as dates; they have no values here.
    data : ndarray of shape (n_samples,)
        Numbers, or positions among the categories; NaN if missing.
    categories : list of str
        Empty for numeric features.
    """

    kind: Literal["numeric", "categorical", "other"]
    data: FloatArray
    categories: list[str]

    def text(self, i: int) -> str:
        """Return the value of sample i as text."""
        value = self.data[i]
        if np.isnan(value):
            return "other" if self.kind == "other" else "missing"
        return self.categories[int(value)] if self.categories else f"{value:.6g}"


def read_feature(X: Any, j: int) -> Feature:
    """Return the values of feature j of an array, sparse matrix or table."""
    is_sparse: bool = sparse.issparse(X)
    if is_sparse:
        return Feature("numeric", np.asarray(X[:, [j]].toarray(), np.float64).ravel(), [])
    table = as_table(X)
    if table is None:
        return _of_array(np.asarray(X)[:, j])
    name, column = table.names[j], table.columns[j]
    try:
        kind = kind_of(name, column)
    except TypeError:
        return Feature("other", np.full(table.n_rows, np.nan), [])
    if kind == "empty":
        return Feature("numeric", np.full(table.n_rows, np.nan), [])
    if kind == "date":
        return Feature("other", np.full(table.n_rows, np.nan), [])
    if kind == "number":
        return Feature("numeric", numbers(column), [])
    levels, codes = factorize(column)
    return Feature("categorical", np.where(codes < 0, np.nan, codes), [str(level) for level in levels])


def _of_array(values: npt.NDArray[Any]) -> Feature:
    try:
        return Feature("numeric", values.astype(np.float64), [])
    except (TypeError, ValueError):
        missing = np.array([value is None or value != value for value in values])  # noqa: PLR0124 - NaN
        levels, codes = np.unique(np.array([str(value) for value in values]), return_inverse=True)
        return Feature("categorical", np.where(missing, np.nan, codes), [str(level) for level in levels])


def can_compose(X: Any) -> bool:
    """Return whether :func:`compose` supports the type of X; sparse matrices are not."""
    return isinstance(X, np.ndarray) or hasattr(X, "iloc") or nw.dependencies.is_into_dataframe(X)


def compose(X: Any, rows: IntArray, sources: Mapping[int, IntArray]) -> Any:
    """Return samples that take the values of some features from other samples.

    Parameters
    ----------
    X : ndarray or table of shape (n, d)
    rows : ndarray of shape (m,)
        Samples of X that provide all other features.
    sources : mapping of int to ndarray of shape (m,)
        For some features, the samples of X that provide their values.

    Returns
    -------
    ndarray or table of shape (m, d)
    """
    new = take_samples(X, rows)
    if isinstance(X, np.ndarray):
        for j, source in sources.items():
            new[:, j] = X[source, j]
        return new
    if hasattr(X, "iloc"):  # pandas, whose column names may repeat
        new = new.reset_index(drop=True)
        for j, source in sources.items():
            new.isetitem(j, X.iloc[:, j].array[source])
        return new
    table = nw.from_native(X, eager_only=True)
    names = table.columns
    moved = [table[names[j]][source.tolist()].alias(names[j]) for j, source in sources.items()]
    return nw.from_native(new, eager_only=True).with_columns(*moved).to_native()
