"""Categories of columns: the texts by which they are the same in every table library, and their codes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from scboost._arrays import Float64Array, IntArray
from scboost._data.model_features import Categories
from scboost._data.tables import Kind, Table, factorize, ordered_levels


def learn_categories(table: Table, kinds: Sequence[Kind]) -> tuple[Categories, frozenset[int]]:
    """Return the categories of each column in the order of their codes, and the columns whose categories are integers.

    Unordered categories are those seen, sorted; ordered ones are all that the column declares, in their order.
    """
    categories: list[tuple[str, ...] | None] = []
    integer = set()
    for j, ((name, column), kind) in enumerate(zip(table, kinds, strict=True)):
        if kind not in {"category", "ordinal"}:
            categories.append(None)
            continue
        if kind == "ordinal":
            used = ordered_levels(column)
            texts = texts_of(name, used)
        else:
            levels, codes = factorize(column)
            seen, every = np.unique(codes[codes >= 0]), texts_of(name, levels)
            used, texts = [levels[i] for i in seen], sorted(every[i] for i in seen)
        for text in texts:
            check_unicode(text, f"The category {text!r} of column {name!r}")
        categories.append(tuple(texts))
        if used and all(_is_integer(level) for level in used):
            integer.add(j)
    return tuple(categories), frozenset(integer)


def codes_of(name: Hashable, levels: list[Any], positions: IntArray, codes: Mapping[str, int]) -> Float64Array:
    """Return the code of each row of a factorized column; NaN if it is missing or its category is unknown."""
    table = np.array([codes.get(text, np.nan) for text in texts_of(name, levels)] + [np.nan])
    return np.asarray(table[positions])  # a missing value has position -1, the last entry


def texts_of(name: Hashable, levels: list[Any]) -> list[str]:
    """Text of each category of a column, by which categories are the same in every table library."""
    by_text: dict[str, Any] = {}
    for level in levels:
        other = by_text.setdefault(_text(level), level)
        if other is not level:
            raise ValueError(
                f"Column {name!r} has the categories {other!r} and {level!r}, which are both written {_text(level)!r}; "
                "use one type for all categories of a column."
            )
    return list(by_text)


def _text(value: Any) -> str:
    """Text of a category; 1.0 is 1, because a missing value turns integers into floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def check_unicode(text: str, what: str) -> None:
    """Reject halves of surrogate pairs, which no file, table library or language of an export can hold."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{what} is not valid Unicode: it has a lone surrogate, as undecodable bytes give; rename it.")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and -(2**63) <= int(value) < 2**63
