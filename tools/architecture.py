"""Make the generated parts of ``docs/architecture.md``: the picture of the import graph and the tables of sizes.

``python tools/architecture.py``, in a clone of the repository: the sizes of 0.1.0 are read from its history.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import textwrap
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import import_graph

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "figures" / "import_graph.svg"

FIRST_VERSION = "9f3f1d3"  # the last commit of 0.1.0's layout

COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#777777", "#222222")


@dataclass(frozen=True)
class Size:
    """What is counted in a source.

    Attributes
    ----------
    lines : int
        All lines.
    code : int
        Lines with code: without docstrings, comments and blank lines.
    longest : int
        Lines with code of the longest function; 0 without functions.
    longest_name : str
        Its name.
    suppressions : int
        Comments that silence a linter or type checker.
    """

    lines: int
    code: int
    longest: int
    longest_name: str
    suppressions: int


def measure(source: str) -> Size:
    """Count the lines of one module."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    blank = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    code: set[int] = set()
    suppressions = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            suppressions += bool(re.match(r"#\s*(noqa|type:\s*ignore)", token.string))
        elif token.type not in blank:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= docstrings
    functions = [
        (len(code.intersection(range(node.lineno, (node.end_lineno or 0) + 1))), node.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    longest, name = max(functions, default=(0, ""))
    return Size(len(source.splitlines()), len(code), longest, name, suppressions)


def sizes_now() -> dict[str, Size]:
    """Measure each module of the library, by its path below the package."""
    root = import_graph.SOURCES
    return {
        path.relative_to(root).as_posix(): measure(path.read_text(encoding="utf-8"))
        for path in sorted(root.rglob("*.py"))
    }


def sizes_then() -> dict[str, Size]:
    """Measure each module of the library of the first version, from the repository's history."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S607

    folder = "src/scboost/"
    names = git("ls-tree", "-r", "--name-only", FIRST_VERSION, folder).split()
    return {
        name.removeprefix(folder): measure(git("show", f"{FIRST_VERSION}:{name}"))
        for name in names
        if name.endswith(".py")
    }


def module_table(sizes: Mapping[str, Size]) -> str:
    """Write the table of one layout's modules, the sum last."""
    lines = ["| module | lines | with code |", "|---|---|---|"]
    lines += [f"| `{name}` | {size.lines:,} | {size.code:,} |" for name, size in sizes.items() if size.code]
    lines.append(f"| sum | {sum(s.lines for s in sizes.values()):,} | {sum(s.code for s in sizes.values()):,} |")
    return "\n".join(lines)


def summary_table(then: Mapping[str, Size], now: Mapping[str, Size]) -> str:
    """Compare two layouts in a few figures."""

    def column(sizes: Mapping[str, Size]) -> list[str]:
        largest = max(sizes, key=lambda name: sizes[name].code)
        longest = max(sizes, key=lambda name: sizes[name].longest)
        return [
            str(sum(size.code > 0 for size in sizes.values())),
            f"{sum(size.lines for size in sizes.values()):,}",
            f"{sum(size.code for size in sizes.values()):,}",
            f"{sizes[largest].code:,} (`{largest}`)",
            f"{sizes[longest].longest} (`{sizes[longest].longest_name}` in `{longest}`)",
            str(sum(size.suppressions for size in sizes.values())),
        ]

    rows = (
        "modules",
        "lines",
        "lines with code",
        "largest module, lines with code",
        "longest function, lines with code",
        "suppressions (`noqa`, `type: ignore`)",
    )
    lines = ["|  | 0.1.0 | now |", "|---|---|---|"]
    lines += [f"| {name} | {a} | {b} |" for name, a, b in zip(rows, column(then), column(now), strict=True)]
    return "\n".join(lines)


def picture(modules: Iterable[str], imports: list[import_graph.Import]) -> str:
    """Draw the layers, the highest at the top, with an arrow from each to those it imports.

    Parameters
    ----------
    modules : iterable of str
        Names of the modules, as ``import_graph.read`` gives them.
    imports : list of Import
        Their imports.

    Returns
    -------
    str
        An SVG document; each arrow is titled ``"importing imports imported"``.
    """
    names = sorted(filter(None, modules))
    layers = [
        layer for layer in reversed(import_graph.LAYERS) if any(name.partition(".")[0] == layer for name in names)
    ]
    edges = import_graph.layer_edges(imports)
    left, width, height, gap = 10, 520, 88, 22
    top = {layer: 10 + i * (height + gap) for i, layer in enumerate(layers)}
    body = []
    # Every arrow has an end of its own on the right side of each box.
    ends: dict[tuple[str, tuple[str, str]], float] = {}
    for layer in layers:
        touching = sorted((e for e in edges if layer in e), key=lambda e: (e[0] == layer, -top[e[0]], -top[e[1]]))
        for i, edge in enumerate(touching):
            ends[layer, edge] = top[layer] + height * (i + 1) / (len(touching) + 1)
    for edge in edges:
        importing, imported = edge
        start, end = ends[importing, edge], ends[imported, edge]
        colour = COLOURS[layers.index(importing) % len(COLOURS)]
        x = left + width
        bend = x + 40 + 0.47 * abs(end - start)
        body.append(
            f'<path d="M{x} {start:.0f} C{bend:.0f} {start:.0f} {bend:.0f} {end:.0f} {x + 3} {end:.0f}" fill="none" '
            f'stroke="{colour}" stroke-width="1.6" marker-end="url(#arrow)">'
            f"<title>{importing} imports {imported}</title></path>"
        )
    for i, layer in enumerate(layers):
        inside = [name.partition(".")[2] for name in names if name.startswith(f"{layer}.")]
        outside = {
            found.imported.partition(".")[0]
            for found in imports
            if found.importing_layer == layer and not found.for_types
        }
        outside -= {*sys.stdlib_module_names, import_graph.PACKAGE}
        y, colour = top[layer], COLOURS[i % len(COLOURS)]
        box = f'x="{left}" y="{y}" width="{width}" height="{height}" rx="6"'
        known = escape(", ".join(sorted(outside)))
        body += [
            f'<rect {box} fill="white" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{left + 12}" y="{y + 22}" font-weight="bold" font-size="15">{escape(layer)}</text>',
            *(
                f'<text x="{left + 12}" y="{y + 42 + 16 * row}" font-size="12">{escape(line)}</text>'
                for row, line in enumerate(textwrap.wrap(", ".join(inside), 78))
            ),
            f'<text x="{left + 12}" y="{y + 78}" font-size="11" fill="#777777">{known}</text>',
        ]
    total_height = 10 + len(layers) * (height + gap)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {total_height}" font-family="sans-serif">\n'
        '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L10 5L0 10z" fill="context-stroke"/></marker></defs>\n'
        f'<rect width="900" height="{total_height}" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def arrows(svg: str) -> set[str]:
    """Read the titles of a picture's arrows."""
    return set(re.findall(r"<title>(\S+ imports \S+)</title>", svg))


def fill(page: str, name: str, content: str) -> str:
    """Replace what stands between a page's comments ``name: begin`` and ``name: end``."""
    part = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    filled, count = part.subn(lambda found: f"{found[1]}{content}\n{found[2]}", page)
    if count != 1:
        raise ValueError(f"the page has {count} parts named {name!r} instead of 1")
    return filled


def main() -> None:
    """Write the picture and the page's tables anew."""
    PICTURE.write_text(picture(*import_graph.read()), encoding="utf-8")
    now, then = sizes_now(), sizes_then()
    page = PAGE.read_text(encoding="utf-8")
    page = fill(page, "summary", summary_table(then, now))
    page = fill(page, "modules then", module_table(then))
    page = fill(page, "modules now", module_table(now))
    PAGE.write_text(page, encoding="utf-8")
    print(summary_table(then, now))


if __name__ == "__main__":
    main()
