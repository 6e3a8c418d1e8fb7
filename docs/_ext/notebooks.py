"""A link at the end of every executed page to download it as a notebook."""

from __future__ import annotations

from sphinx.application import Sphinx

_EXECUTED = "---\nfile_format: mystnb\n"


def _add_link(_app: Sphinx, docname: str, source: list[str]) -> None:
    if source[0].startswith(_EXECUTED) and "nb-download" not in source[0]:
        name = docname.rpartition("/")[2]
        source[0] += f"\n{{nb-download}}`Download this page as a notebook <{name}.ipynb>`\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the link when the source of a page is read."""
    app.connect("source-read", _add_link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
