"""Columns that look like identifiers: features that tell the samples apart instead of describing them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost._data.encoder import Encoder
from scboost._data.tables import Series, as_table, numbers

FEWEST_SAMPLES = 100
_MOSTLY = 0.95  # share of distinct values
_FEWEST_REPETITIONS = 7.0  # expected number: none by chance has a probability below exp(-7), 0.1 %
_FIRST = 1000  # samples that show most integer features to repeat themselves


class IdentifierWarning(UserWarning):
    """A feature looks like an identifier."""


def strings_identify(n_distinct: int, n_samples: int) -> bool:
    """Whether almost every sample has a string of its own."""
    return n_samples >= FEWEST_SAMPLES and n_distinct > _MOSTLY * n_samples


def integers_identify(values: IntArray | FloatArray) -> bool:
    """Whether integers are all different where measured ones would repeat.

    Among n integers from a range of R, about n^2 / 2R pairs are equal if they are drawn independently, more if some
    are more frequent than others. Row numbers and most IDs have none, in any order; quantities from a wide range, such
    as populations, may have none by chance and do not count.
    """
    n = len(values)
    if n < FEWEST_SAMPLES or len(np.unique(values[:_FIRST])) < min(n, _FIRST):
        return False
    size = float(values.max()) - float(values.min()) + 1
    return n * (n - 1) / (2 * size) > _FEWEST_REPETITIONS and len(np.unique(values)) == n


def warn_of_identifiers(X: object, encoder: Encoder) -> None:
    """Warn of each named column of a training set that looks like an identifier.

    Parameters
    ----------
    X : array-like or table of shape (n, d)
        The training set.
    encoder : Encoder
        What was learned from it.
    """
    if encoder.feature_names is None:
        return
    for name, what in _identifiers(X, encoder):
        warnings.warn(
            f"Column {name!r} has {what}, like an ID: it tells the samples apart but does not predict new ones. Leave "
            f"it out, in pandas X.drop(columns=[{name!r}]), unless its value or order matters.",
            IdentifierWarning,
            stacklevel=5,
        )


def _identifiers(X: object, encoder: Encoder) -> Iterator[tuple[Hashable, str]]:
    table = as_table(X)
    if table is None or table.n_rows < FEWEST_SAMPLES:
        return
    categories = encoder.categories or (None,) * encoder.n_features
    for (name, column), kind, known in zip(table, encoder.column_kinds, categories, strict=True):
        if kind == "category" and strings_identify(len(known or ()), table.n_rows):
            yield name, f"{len(known or ()):,} different strings in {table.n_rows:,} samples"
        elif kind == "number" and _has_integers(column) and integers_identify(numbers(column)):
            yield name, f"a different integer in each of the {table.n_rows:,} samples"


def _has_integers(column: Series) -> bool:
    """Whether a column has an integer type and no missing value."""
    if isinstance(column, np.ndarray) or not column.dtype.is_integer():
        return False
    return column.null_count() == 0
