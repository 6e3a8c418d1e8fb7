"""Generate parts of ``docs/architecture.md``: the picture of the layers and the table of sizes.

``python tools/architecture.py``, in a clone of the repository: the sizes before the redesign are read from its history.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import import_graph

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "figures" / "import_graph.svg"

BEFORE = "47c5d1a"  # the last commit before the redesign

# Layers that a reader sees as one, from top to bottom, and what they are for.
TIERS = (
    (
        "Interfaces",
        ("__main__", "cli", "spark", "dask", "mlflow", "onnx", "tuning"),
        "command line, Spark, Dask, other tools",
    ),
    ("Estimators", ("_estimators", "_compress"), "scikit-learn classes, parameters, callbacks; compression"),
    ("Models", ("_model", "plotting", "diagnostics", "reference"), "fitted model, files, exports; inspection"),
    ("Method", ("weighting", "losses", "_core"), "specification, selection, boosting loop, projection, losses"),
    ("Trees", ("_engine", "_model.format", "_xgboost"), "engines that grow trees; trees as data"),
    ("Data", ("_data",), "tables, encoding, folds, batches"),
    (
        "Runtime",
        ("_runtime", "_engine.native.passes", "_arrays", "defaults", "_version"),
        "communicator, threads, storage, compiled passes",
    ),
)
COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#777777")


@dataclass(frozen=True)
class Size:
    """Metrics of a source file: lines, lines of code, the longest function, suppressions, parameters typed Any."""

    lines: int
    code: int
    longest: int
    longest_name: str
    suppressions: int
    untyped: int
    context_variables: int


def measure(source: str) -> Size:
    """Count the lines of one module; code is without docstrings, comments and blank lines."""
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
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = [(len(code & set(range(f.lineno, (f.end_lineno or 0) + 1))), f.name) for f in functions]
    longest, name = max(lengths, default=(0, ""))
    arguments = [a for f in functions for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)]
    models = [a for a in arguments if a.arg in {"estimator", "model"} and a.annotation is not None]
    untyped = sum(ast.unparse(a.annotation) == "Any" for a in models if a.annotation is not None)
    return Size(len(source.splitlines()), len(code), longest, name, suppressions, untyped, source.count("ContextVar("))


def sizes_now() -> dict[str, Size]:
    """Measure each module of the library, by its path below the package."""
    root = import_graph.SOURCES
    paths = sorted(root.rglob("*.py"))
    return {path.relative_to(root).as_posix(): measure(path.read_text(encoding="utf-8")) for path in paths}


def sizes_before() -> dict[str, Size]:
    """Measure each module of the library before the redesign, from the repository's history."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S607

    names = [name for name in git("ls-tree", "-r", "--name-only", BEFORE, "src/scboost/").split() if name[-3:] == ".py"]
    return {name.removeprefix("src/scboost/"): measure(git("show", f"{BEFORE}:{name}")) for name in names}


def summary_table(before: Mapping[str, Size], now: Mapping[str, Size]) -> str:
    """Compare two layouts in a few figures."""

    def column(sizes: Mapping[str, Size]) -> list[str]:
        largest = max(sizes, key=lambda name: sizes[name].code)
        longest = max(sizes, key=lambda name: sizes[name].longest)
        return [
            str(sum(size.code > 0 for size in sizes.values())),
            f"{sum(size.code for size in sizes.values()):,}",
            f"{sizes[largest].code:,} (`{largest}`)",
            f"{sizes[longest].longest} (`{sizes[longest].longest_name}`)",
            str(sum(size.suppressions for size in sizes.values())),
            str(sum(size.untyped for size in sizes.values())),
            str(sum(size.context_variables for size in sizes.values())),
        ]

    rows = (
        "modules",
        "lines of code",
        "largest module, lines of code",
        "longest function, lines of code",
        "suppressions (`noqa`, `type: ignore`)",
        "parameters `estimator` and `model` typed `Any`",
        "context variables",
    )
    lines = ["|  | before the redesign | now |", "|---|---|---|"]
    lines += [f"| {name} | {a} | {b} |" for name, a, b in zip(rows, column(before), column(now), strict=True)]
    return "\n".join(lines)


def picture() -> str:
    """Draw the tiers, the highest at the top, as an SVG document."""
    body = []
    for i, ((title, layers, purpose), colour) in enumerate(zip(TIERS, COLOURS, strict=True)):
        y = 10 + 62 * i
        body += [
            f'<rect x="10" y="{y}" width="620" height="52" rx="6" fill="white" stroke="{colour}" stroke-width="2"/>',
            f'<text x="24" y="{y + 22}" font-weight="bold" font-size="15">{escape(title)}</text>',
            f'<text x="140" y="{y + 22}" font-size="13">{escape(purpose)}</text>',
            f'<text x="140" y="{y + 41}" font-size="12" fill="#777777">{escape(", ".join(layers))}</text>',
        ]
    height = 20 + 62 * len(TIERS)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" font-family="sans-serif">\n'
        f'<rect width="640" height="{height}" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def fill(page: str, name: str, content: str) -> str:
    """Replace the text between the comments ``name: begin`` and ``name: end`` of a page."""
    part = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    filled, count = part.subn(lambda found: f"{found[1]}{content}\n{found[2]}", page)
    if count != 1:
        raise ValueError(f"the page has {count} parts named {name!r} instead of 1")
    return filled


def main() -> None:
    """Regenerate the picture and the table."""
    PICTURE.write_text(picture(), encoding="utf-8")
    table = summary_table(sizes_before(), sizes_now())
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), "summary", table), encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
