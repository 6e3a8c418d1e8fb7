"""The columns of X in a model file: categories, their order, and the parts of dates."""

from __future__ import annotations

from typing import Any

from scboost._data.dates import PARTS, Parts
from scboost._data.encoder import Encoder
from scboost._data.model_features import ORDER, Categories, column_names
from scboost._model.packing import require


def pack_columns(encoder: Encoder) -> Any:
    """Return what a file stores of an encoder; None if all columns are numeric."""
    if encoder.categories is None and encoder.dates is None:
        return None
    known = encoder.categories or (None,) * encoder.n_features
    categories = [None if texts is None else list(texts) for texts in known]
    packed: dict[str, Any] = {"categories": categories, "whole": sorted(encoder.integer_categories)}
    if encoder.ordinal:
        packed["ordinal"] = sorted(encoder.ordinal)
    if encoder.dates is not None:
        packed["dates"] = [None if parts is None else list(parts) for parts in encoder.dates]
    return packed


def unpack_columns(stored: Any, d: int, names: tuple[str, ...] | None) -> Encoder:
    """Return the encoder that :func:`pack_columns` has stored, after checking it.

    Parameters
    ----------
    stored : dict
        Untrusted.
    d : int
        Number of features of the native model.
    names : tuple of str or None
        Their names, which those of the columns follow from.
    """
    categories = _checked_categories(stored["categories"])
    n, whole, ordinal = len(categories), stored["whole"], stored.get("ordinal", [])
    for positions in (whole, ordinal):
        require(all(type(j) is int and 0 <= j < n for j in positions), "a column of numbers does not exist")
    dates = _checked_dates(stored["dates"], n) if "dates" in stored else None
    for j, texts in enumerate(categories):
        require(texts is None or dates is None or dates[j] is None, f"column {j} has both categories and dates")
        require(texts is not None or j not in ordinal, f"column {j} has an order without categories")
    has_categories = any(texts is not None for texts in categories)
    require(has_categories or dates is not None, "there are column tables without categories")
    parts = [(ORDER,) if j in ordinal else None if dates is None else dates[j] for j in range(n)]
    n_features = sum(1 if own is None else len(own) for own in parts)
    require(n_features == d, f"its columns have {n_features} features, the native model has {d}")
    encoder = Encoder(
        n,
        None if names is None else column_names(names, parts),
        categories if has_categories else None,
        frozenset(whole),
        ordinal=frozenset(ordinal),
        dates=dates,
    )
    require(encoder.features.names == names, "its columns are not those of the native model")
    return encoder


def _checked_categories(stored: Any) -> Categories:
    categories: list[tuple[str, ...] | None] = []
    for texts in stored:
        require(texts is None or isinstance(texts, list), "categories are not a list")
        if texts is not None:
            require(all(isinstance(text, str) for text in texts), "a category is not a text")
            require(len(set(texts)) == len(texts), "a category comes twice")
        categories.append(None if texts is None else tuple(texts))
    return tuple(categories)


def _checked_dates(stored: Any, n: int) -> tuple[Parts | None, ...]:
    require(isinstance(stored, list) and len(stored) == n, f"there are not dates of {n} columns")
    for parts in stored:
        is_known = parts is None or (isinstance(parts, list) and [p for p in PARTS if p in parts] == parts)
        require(is_known and parts != [], f"the parts of a date are {parts!r:.80}")
    require(any(stored), "there are column tables without dates")
    return tuple(None if parts is None else tuple(parts) for parts in stored)
