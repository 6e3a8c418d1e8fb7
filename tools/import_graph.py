"""Which module of the library imports which: read from the sources, without running them.

Imports inside functions and under ``TYPE_CHECKING`` are read like those at the top of a file: what a module knows
does not depend on when it learns it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "scboost"
SOURCES = Path(__file__).parents[1] / "src" / PACKAGE

# A module may import those of its own layer and of the layers before it.
LAYERS = (
    "_version",
    "defaults",
    "_arrays",
    "_engine.native.passes",
    "_runtime",
    "_data",
    "_xgboost",
    "_model.format",
    "_engine",
    "_core",
    "losses",
    "weighting",
    "reference",
    "diagnostics",
    "plotting",
    "_model",
    "_compress",
    "_estimators",
    "dask",
    "spark",
    "mlflow",
    "onnx",
    "tuning",
    "cli",
    "__main__",
)

# Trees as data, which engines produce and the rest of the package stores and checks.
FORMAT = (
    "atomic",
    "check",
    "check_lightgbm",
    "check_xgboost",
    "compact",
    "document",
    "json_text",
    "structure",
    "ubjson",
)

# These use the public names of the package itself, which no layer below may import.
ABOVE_THE_PACKAGE = ("cli", "__main__")


@dataclass(frozen=True)
class Import:
    """One import statement's name, as found in the sources.

    Attributes
    ----------
    importer : str
        The module with the statement, without the package's name: ``"_core.loop"``; empty for the package itself.
    imported : str
        Full name of the module imported: ``"scboost._core.losses"``, ``"numpy"``.
    line : int
        Line of the statement.
    for_types : bool
        True under ``if TYPE_CHECKING``: only type checkers follow it.
    """

    importer: str
    imported: str
    line: int
    for_types: bool

    @property
    def importing_layer(self) -> str:
        """Layer of the module with the statement; empty for the package itself."""
        return layer_of(self.importer)

    @property
    def imported_layer(self) -> str | None:
        """Layer imported; empty for the package itself, None for another package."""
        package, _, inside = self.imported.partition(".")
        return layer_of(inside) if package == PACKAGE else None

    def __str__(self) -> str:
        return f"{self.importer or PACKAGE}:{self.line} imports {self.imported}"


def layer_of(module: str) -> str:
    """Give the layer of a module, named without the package."""
    first, _, rest = module.partition(".")
    if module in ("_engine.native.passes", "_engine.native._native"):
        return "_engine.native.passes"
    return "_model.format" if first == "_model" and rest.partition(".")[0] in FORMAT else first


def module_name(path: Path, root: Path) -> str:
    """Give the dotted name of a file in the package: ``"_core.loop"``, ``"_core"``, or empty for the package itself."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _statements(node: ast.AST, *, for_types: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Give every import below a node, and whether it stands under ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, for_types
        elif isinstance(child, ast.If) and ast.unparse(child.test).rpartition(".")[2] == "TYPE_CHECKING":
            yield from _statements(ast.Module(child.body, []), for_types=True)
            yield from _statements(ast.Module(child.orelse, []), for_types=for_types)
        else:
            yield from _statements(child, for_types=for_types)


def read(root: Path = SOURCES) -> tuple[list[str], list[Import]]:
    """Read every module of the package.

    Parameters
    ----------
    root : Path
        Folder of the package.

    Returns
    -------
    modules : list of str
        Names of the modules, without the package's; the package itself has an empty name.
    imports : list of Import
        One entry for each name imported, in the order of the sources.
    """
    paths = {module_name(path, root): path for path in sorted(root.rglob("*.py"))}
    full_names = {f"{PACKAGE}.{name}".rstrip(".") for name in paths}
    found = []
    for name, path in paths.items():
        is_package = path.name == "__init__.py"
        folder = [PACKAGE, *filter(None, name.split("."))][: None if is_package else -1]
        for statement, for_types in _statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(statement, ast.Import):
                targets = [alias.name for alias in statement.names]
            else:
                base = folder[: len(folder) - statement.level + 1] if statement.level else []
                source = ".".join([*base, *filter(None, [statement.module])])
                # `from scboost._model import ubjson` imports the module of that name; other names are things in it.
                inner = [f"{source}.{alias.name}" for alias in statement.names]
                targets = sorted({target if target in full_names else source for target in inner})
            found += [Import(name, target, statement.lineno, for_types) for target in targets]
    return list(paths), found


def violations(imports: list[Import]) -> list[Import]:
    """Give the imports of a layer that comes later, or of the package itself, which imports all of them."""
    rank = {layer: i for i, layer in enumerate(LAYERS)}
    above = len(LAYERS)
    return [
        found
        for found in imports
        if found.importer
        and found.imported_layer is not None
        and rank.get(found.imported_layer, above) > rank.get(found.importing_layer, above)
        and not (found.imported_layer == "" and found.importing_layer in ABOVE_THE_PACKAGE)
    ]


def layer_edges(imports: list[Import]) -> list[tuple[str, str]]:
    """Give the pairs (importing layer, imported layer), each once; those of the package itself are left out."""
    order = {layer: i for i, layer in enumerate(LAYERS)}
    edges = {(found.importing_layer, found.imported_layer) for found in imports if found.importer}
    return sorted(
        ((a, b) for a, b in edges if b and a != b),
        key=lambda edge: tuple(order.get(layer, len(order)) for layer in edge),
    )
