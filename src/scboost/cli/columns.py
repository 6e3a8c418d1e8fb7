"""Columns of a training table that deserve a second look: constant, ID-like or nearly numeric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scboost._data.identifiers import integers_identify, is_number, strings_identify
from scboost.cli.tables import is_category, pyarrow
from scboost.cli.text import decimal_comma

_LEAST_ROWS = 50
_MOSTLY = 0.95  # share of rows


def suspicious_columns(X: Any) -> Iterator[str]:
    """Yield a warning for each feature of a pyarrow.Table that is probably not what the user wants.

    Parameters
    ----------
    X : pyarrow.Table
        The features.

    Yields
    ------
    str
        What is odd about a column, and the option that helps.
    """
    types = pyarrow().types
    for name, column in zip(X.schema.names, X.columns, strict=True):
        present = column.drop_null()
        n, distinct = len(present), present.unique()
        if len(distinct) <= 1 and not column.null_count:
            yield f"column {name!r} is constant: leave it out with --ignore {name!r}"
        elif n < _LEAST_ROWS:
            continue
        elif is_category(column.type):
            yield from _about_text(name, present, distinct)
        elif types.is_integer(column.type) and not column.null_count and integers_identify(column.to_numpy()):
            yield (
                f"column {name!r} has a different integer in each row, like an ID or a row number: leave it out with "
                f"--ignore {name!r} unless the order matters"
            )


def _about_text(name: str, present: Any, distinct: Any) -> Iterator[str]:
    texts = distinct.cast(pyarrow().string()).to_pylist()
    with_comma = [text for text in texts if decimal_comma(text)]
    if len(with_comma) > _MOSTLY * sum(not text.isdigit() for text in texts):
        yield (
            f"column {name!r} has values such as {with_comma[0]!r} and is read as categorical: use --decimal , if the "
            "comma is the decimal point"
        )
        return
    others = [text for text in texts if not is_number(text)]
    if others and len(texts) - len(others) > max(10, len(others)):
        counts = {entry["values"]: entry["counts"] for entry in present.value_counts().to_pylist()}
        n_others = sum(counts[text] for text in others)
        if n_others <= (1 - _MOSTLY) * len(present):
            share, shown = 1 - n_others / len(present), ", ".join(map(repr, others[:3]))
            yield (
                f"column {name!r} is {share:.1%} numeric, but has {shown} in {n_others:,} row"
                f"{'s' if n_others > 1 else ''} and is read as categorical: use --missing {others[0]!r} to read it "
                "as a missing number"
            )
            return
    if strings_identify(len(texts), len(present)):
        yield (
            f"column {name!r} has {len(texts):,} different values in {len(present):,} rows, like an ID or free text: "
            f"leave it out with --ignore {name!r}"
        )
