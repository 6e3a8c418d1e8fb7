"""Columns that are probably not what the user means: identifiers, and dates or numbers that are stored as strings."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Hashable, Iterator

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost._data.encoder import Encoder
from scboost._data.tables import Series, as_table, numbers

FEWEST_SAMPLES = 100
_MOSTLY = 0.95  # share of distinct values
_FEWEST_REPETITIONS = 7.0  # expected number: none by chance has a probability below exp(-7), 0.1 %
_FIRST = 1000  # samples that show most integer features to repeat themselves
_LEAST_NUMBERS = 10  # distinct strings that are numbers
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")


class IdentifierWarning(UserWarning):
    """A feature looks like an identifier, or like dates or numbers that are stored as strings."""


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
    """Warn of each named column of a training set that looks like an identifier, or has dates or numbers as strings.

    Parameters
    ----------
    X : array-like or table of shape (n, d)
        The training set.
    encoder : Encoder
        What was learned from it.
    """
    if encoder.feature_names is None:
        return
    for name, what in _suspicious(X, encoder):
        warnings.warn(f"Column {name!r} has {what}", IdentifierWarning, stacklevel=5)


def _suspicious(X: object, encoder: Encoder) -> Iterator[tuple[Hashable, str]]:
    table = as_table(X)
    if table is None or table.n_rows < FEWEST_SAMPLES:
        return
    categories = encoder.categories or (None,) * encoder.n_features
    for (name, column), kind, known in zip(table, encoder.column_kinds, categories, strict=True):
        texts = [text for text in known or () if isinstance(text, str)] if kind == "category" else []
        stored = _dates_or_numbers(name, texts)
        if stored:
            yield name, stored
        elif kind == "category" and strings_identify(len(known or ()), table.n_rows):
            yield name, f"{len(known or ()):,} different strings in {table.n_rows:,} samples{_like_an_id(name)}"
        elif kind == "number" and _has_integers(column) and integers_identify(numbers(column)):
            yield name, f"a different integer in each of the {table.n_rows:,} samples{_like_an_id(name)}"


def _like_an_id(name: Hashable) -> str:
    return (
        f", like an ID: it tells the samples apart but does not predict new ones. Leave it out, in pandas "
        f"X.drop(columns=[{name!r}]), unless its value or order matters."
    )


def _dates_or_numbers(name: Hashable, texts: Collection[str]) -> str:
    """Return what to do with strings that are all dates, or all numbers but for a few; empty for other strings."""
    if len(texts) > 1 and all(map(_DATE.fullmatch, texts)):
        return (
            f"dates as strings, which are read as categories: convert them, in pandas X[{name!r}] = "
            f"pd.to_datetime(X[{name!r}]), to use the year, month, weekday and so on."
        )
    others = [text for text in texts if not is_number(text)]
    if others and len(texts) - len(others) > max(_LEAST_NUMBERS, len(others) * _MOSTLY / (1 - _MOSTLY)):
        return (
            f"numbers as strings because of {', '.join(map(repr, others[:3]))}, and is read as categorical: convert "
            f"it, in pandas X[{name!r}] = pd.to_numeric(X[{name!r}], errors='coerce'); other values become missing."
        )
    return ""


def is_number(text: str) -> bool:
    """Whether a string is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _has_integers(column: Series) -> bool:
    """Whether a column has an integer type and no missing value."""
    if isinstance(column, np.ndarray) or not column.dtype.is_integer():
        return False
    return column.null_count() == 0
