"""Documents from templates: the prose is in ``pages/*.md``, the numbers come from result files."""

import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from scboost_lab.results import Results, storage

VERSION_LINE = re.compile(r"^The numbers of this page were made with (.*)\.$", re.MULTILINE)


def template(name: str) -> str:
    """Read a template of this package."""
    return files("scboost_lab").joinpath("pages", f"{name}.md").read_text(encoding="utf-8")


def fill(text: str, **values: Any) -> str:
    """Put values into a template; each placeholder must have a value, and each value a placeholder.

    Placeholders are those of `str.format`: ``{loss.p:.3f}`` is an attribute, ``{change[gamma=0]}`` an item.

    Examples
    --------
    >>> fill("{n:,} rows", n=1000)
    '1,000 rows'
    """
    wanted = {re.split(r"[.\[]", name)[0] for _, name, _, _ in Formatter().parse(text) if name}
    if wanted != set(values):
        raise ValueError(f"placeholders without a value or the reverse: {', '.join(sorted(wanted ^ set(values)))}")
    return text.format(**values)


def sections(text: str) -> dict[str, str]:
    """Cut a template at its lines ``<!-- section: NAME -->``; what stands before the first has the name ``""``."""
    first, *rest = re.split(r"^<!-- section: (\w+) -->\n", text, flags=re.MULTILINE)
    return {"": first, **dict(zip(rest[::2], rest[1::2], strict=True))}


def made_with(*results: Results) -> str:
    """Return a sentence on the versions of scboost behind a page, by file and method where they differ."""
    by_version: dict[str, list[str]] = {}
    for each in results:
        if each.rows:
            by_version.setdefault(_versions(each), []).append(f"`{each.name}`")
    if len(by_version) > 1:
        found = "; ".join(f"{version} ({', '.join(names)})" for version, names in by_version.items())
    else:
        found = next(iter(by_version), "nothing yet")
    return f"The numbers of this page were made with {found}."


def _versions(results: Results) -> str:
    """Return the versions behind a file, by method where they differ."""
    columns: dict[str, list[str]] = {}
    for method in dict.fromkeys(row.get("method", "") for row in results.rows):
        if method.lower().startswith("scboost"):
            versions = " and ".join(f"scboost {version}" for version in results.scboost_versions(method))
            columns.setdefault(versions, []).append(f"`{method}`")
    if len(columns) > 1:
        return ", ".join(f"{versions} for {' and '.join(methods)}" for versions, methods in columns.items())
    return " and ".join(f"scboost {version}" for version in results.scboost_versions())


def write(page: Path, text: str) -> None:
    """Write a page, making its folder."""
    with storage(page, "the result files are complete"):
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table, without a line break at its end.

    Examples
    --------
    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def number(value: float, digits: int = 4, missing: str = "-") -> str:
    """Write a number with digits after the point."""
    return missing if np.isnan(value) else f"{value:.{digits}f}"
