"""Parameters of the estimators in the groups of docs/parameters.md, which also orders the pages of the API."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

_PAGE = Path(__file__).parents[1] / "parameters.md"
_FIRST = "Essentials"


def groups() -> dict[str, str]:
    """Return the group of each parameter: the heading above its row in the tables of the page."""
    heading, found = _FIRST, {}
    for line in _PAGE.read_text(encoding="utf-8").split("\n"):
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("| `"):
            found |= dict.fromkeys(re.findall(r"`(\w+)`", line.split("|")[1]), heading)
    return found


def _group(app: Sphinx, doctree: nodes.document) -> None:
    if not re.fullmatch(r"api/generated/scboost\.SCBoost\w+", app.env.docname):
        return
    known = groups()
    for field in list(doctree.findall(nodes.field)):
        name, body = field.children
        lists = [child for child in body.children if isinstance(child, nodes.definition_list)]
        if name.astext() != "Parameters" or len(lists) != 1 or len(lists[0]) < len(known) // 2:
            continue  # the parameters of a method
        ordered: dict[str, nodes.definition_list] = {group: nodes.definition_list() for group in known.values()}
        for item in list(lists[0].children):
            parameter = re.match(r"\w+", item.astext())
            ordered[known.get(parameter[0] if parameter else "", _FIRST)].append(item)
        body.clear()
        for group, items in ordered.items():
            if items.children:
                body += nodes.paragraph("", group, classes=["parameter-group"])
                body += items


def setup(app: Sphinx) -> dict[str, bool]:
    """Group the parameters once a page has been read."""
    app.connect("doctree-read", _group)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
