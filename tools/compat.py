"""Run the tests on the lowest and newest supported versions, each set in a virtual environment of its own.

``make compat`` runs every environment below, prints a table and writes ``results/reliability/compat.json`` after each;
those that passed at this commit are not run again. ``python tools/compat.py --only lowest newest`` runs some of them
and replaces their entries, ``--full`` runs more tests at both ends. The lowest versions are read from
``pyproject.toml``: the range that is promised is the range that is tested.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as ET

import tomllib

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "results" / "reliability" / "compat.json"
FOLDER = ROOT / ".compat"

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
TOOLS = frozenset({"mypy", "ruff", "scipy-stubs"})  # they check the sources, whatever versions these run on
SHOWN = ("xgboost-cpu", "scikit-learn", "numpy", "scipy", "pandas", "polars", "pyarrow", "lightgbm", "catboost")

# What depends most on versions of others: XGBoost's trees, scikit-learn's interface, tables, readers of foreign models.
FAST = (
    "tests/test_package.py",
    "tests/test_engine.py",
    "tests/test_ensemble.py",
    "tests/test_document.py",
    "tests/test_model_file.py",
    "tests/test_columns.py",
    "tests/test_treematrix.py",
    "tests/test_reweight.py",
    "tests/test_multiclass.py",
    "tests/test_stopping.py",
)
# What these tests need, or skip without.
NEEDED = frozenset({*SHOWN, "xgboost", "threadpoolctl", "hypothesis", "pytest"})


@dataclass(frozen=True)
class Environment:
    """A set of versions to test.

    Attributes
    ----------
    name : str
        Name of the virtual environment and of its row in the table.
    python : str
        Version of Python, as ``"3.12"``.
    lowest : frozenset of str or None
        Distributions held at the lowest version that ``pyproject.toml`` allows, None for all of them; the others are
        the newest that go with these.
    limits : tuple of str
        Requirements that hold another library back, for a reason said beside it.
    tests : {"all", "library", "fast"}
        All tests, those of the library without the lab's, or the part of these in ``FAST``.
    """

    name: str
    python: str
    lowest: frozenset[str] | None = frozenset()
    limits: tuple[str, ...] = ()
    tests: Literal["all", "library", "fast"] = "fast"


def environments(newest_python: str, *, full: bool = False) -> list[Environment]:
    """List what is tested, the two ends of the range first, if `full` with more tests."""
    ends = [
        # Versions are promised for the library, not for the lab. Matplotlib 3.8 uses what pyparsing 3.3 deprecates.
        Environment("lowest", PYTHONS[0], lowest=None, limits=("pyparsing<3.3",), tests="library" if full else "fast"),
        Environment("newest", newest_python, tests="all" if full else "fast"),
    ]
    pythons = [Environment(f"python-{version}", version) for version in PYTHONS if version != newest_python]
    held_back = min(newest_python, "3.13")  # the last for which NumPy 2.2 and SciPy 1.15 were built
    # An old library with new ones around it; Python 3.12 is the last for which NumPy 1.26 and pandas 2.2.0 were built.
    single = [
        # XGBoost 3.1 itself reads no categorical columns of pandas 3 and saves no wrapper under scikit-learn 1.8.
        Environment(
            "xgboost-lowest",
            held_back,
            frozenset({"xgboost-cpu", "xgboost"}),
            limits=("pandas<3", "scikit-learn<1.8", "numpy<2.3", "scipy<1.16"),
        ),
        # scikit-learn 1.6 uses what later versions of SciPy and NumPy have taken away.
        Environment("scikit-learn-lowest", held_back, frozenset({"scikit-learn"}), limits=("numpy<2.3", "scipy<1.16")),
        # The newest pyarrow needs NumPy 2, which its metadata does not say.
        Environment("numpy-lowest", "3.12", frozenset({"numpy", "pyarrow"})),
        Environment("tables-lowest", "3.12", frozenset({"pandas", "polars", "pyarrow"})),
    ]
    return [*ends, *pythons, *single]


def interpreter(version: str) -> str | None:
    """Find an interpreter of a version among the running one, those on the path and those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [sys.executable, shutil.which(f"python{version}")]
    candidates += [str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python"))]
    for candidate in filter(None, candidates):
        ask = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        if subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip() == version:
            return candidate
    return None


def requirements(environment: Environment) -> dict[str, str]:
    """Read what the tests of an environment need: the fast ones, all of the library's, or the lab's, too.

    The lab's peers hold some libraries back (one of them allows no pandas 3), so only the run of all tests has them.

    Returns
    -------
    dict of str to str
        The requirement of each distribution, without its marker: ``{"numpy": "numpy>=1.26"}``.
    """
    library = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = library["optional-dependencies"]
    xgboost = extras["cpu"][1 if sys.platform == "darwin" else 0]
    listed = [*library["dependencies"], xgboost, *extras["plot"], *extras["dev"]]
    if environment.tests == "all":
        lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        listed += lab["dependencies"]
    found: dict[str, str] = {}
    for entry in listed:
        requirement = entry.partition(";")[0].strip()
        name = re.split(r"[\[<>=!~ ]", requirement, maxsplit=1)[0]
        wanted = name in NEEDED if environment.tests == "fast" else name not in TOOLS
        if wanted and not name.startswith("scboost"):
            found.setdefault(name, requirement)
    return found


def pins(environment: Environment) -> list[str]:
    """Write the requirements of an environment: ``>=`` becomes ``==`` for what is held at its lowest version."""
    needed = requirements(environment)
    held = needed.keys() if environment.lowest is None else environment.lowest
    pinned = [
        requirement.replace(">=", "==").partition(",")[0] if name in held else requirement
        for name, requirement in needed.items()
    ]
    return [*pinned, *environment.limits]


def prepare(environment: Environment, python: str) -> Path:
    """Make the virtual environment anew, with the library, and the lab, from their sources; return its interpreter."""
    folder = FOLDER / environment.name
    subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
    own = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip = [str(own), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    ours = ["-e", str(ROOT), *(["-e", str(ROOT / "lab")] if environment.tests == "all" else [])]
    subprocess.run([*pip, *pins(environment), *ours], check=True)
    return own


def installed(python: Path) -> dict[str, str]:
    """List the distributions of an environment and their versions."""
    listing = [str(python), "-m", "pip", "list", "--format=json", "--disable-pip-version-check"]
    done = subprocess.run(listing, capture_output=True, text=True, check=True)
    return {entry["name"].lower(): entry["version"] for entry in json.loads(done.stdout)}


def outcomes(report: Path) -> Iterator[tuple[str, str]]:
    """Read pytest's report: the name of each test and one of passed, skipped, failed, error."""
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it a moment ago
        kinds = [child.tag for child in case if child.tag in {"failure", "error", "skipped"}]
        outcome = {"failure": "failed"}.get(kinds[0], kinds[0]) if kinds else "passed"
        yield f"{case.get('classname')}::{case.get('name')}", outcome


def commit() -> str:
    """Name the commit that is tested; empty where the sources are no clone."""
    at = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(at, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def run(environment: Environment, python: str) -> dict[str, Any]:
    """Test one environment.

    Parameters
    ----------
    environment : Environment
        What to install and which tests to run.
    python : str
        Interpreter of its version.

    Returns
    -------
    dict
        The versions installed, the numbers of tests by outcome and the names of those that did not pass.
    """
    own = prepare(environment, python)
    report = FOLDER / f"{environment.name}.xml"
    report.unlink(missing_ok=True)
    files = {"all": (), "library": ("tests", "src"), "fast": FAST}[environment.tests]
    variables = {**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    variables.pop("PYTHONPATH", None)
    command = [str(own), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *files]
    start = time.monotonic()
    with (FOLDER / f"{environment.name}.log").open("w", encoding="utf-8") as log:
        code = subprocess.run(command, cwd=ROOT, env=variables, stdout=log, stderr=log, check=False).returncode
    if not report.is_file():
        raise SystemExit(f"pytest ended with code {code} in environment {environment.name}: see {log.name}")
    results = list(outcomes(report))
    versions = installed(own)
    not_passed = sorted(name for name, outcome in results if outcome in {"failed", "error"})
    if code and not not_passed:
        raise SystemExit(f"pytest ended with code {code} in environment {environment.name}: see {log.name}")
    counts = {kind: sum(outcome == kind for _, outcome in results) for kind in ("passed", "skipped", "failed", "error")}
    return {
        "environment": environment.name,
        "python": environment.python,
        "tests": environment.tests,
        "date": dt.datetime.now(tz=dt.timezone.utc).date().isoformat(),
        "platform": platform.platform(terse=True),
        "commit": commit(),
        "versions": {
            name: versions[name] for name in ("scboost", *sorted(requirements(environment))) if name in versions
        },
        **counts,
        "minutes": round((time.monotonic() - start) / 60, 1),
        "not passed": not_passed,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Write the results as a Markdown table."""
    lines = [["environment", "Python", *SHOWN, "tests", "passed", "skipped", "failed"]]
    lines.append(["---"] * len(lines[0]))
    for row in rows:
        shown = [row["versions"].get(name, "") for name in SHOWN]
        failed = row["failed"] + row["error"]
        lines.append(
            [
                row["environment"],
                row["python"],
                *shown,
                row["tests"],
                *map(str, (row["passed"], row["skipped"], failed)),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Run the environments asked for, one after the other."""
    found = {version: interpreter(version) for version in PYTHONS}
    missing = [version for version, python in found.items() if python is None]
    had = [version for version in PYTHONS if version not in missing]
    if not had:
        raise SystemExit(f"no interpreter of Python {', '.join(PYTHONS)} was found")
    names = [environment.name for environment in environments(had[-1])]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=names, help="environments to run; default: those not passed yet")
    parser.add_argument("--full", action="store_true", help="all tests in the first two environments")
    given = parser.parse_args()
    known = environments(had[-1], full=given.full)
    FOLDER.mkdir(exist_ok=True)
    kept = json.loads(RESULT.read_text(encoding="utf-8"))["environments"] if RESULT.is_file() else []
    rows = {row["environment"]: row for row in kept}
    ran = []
    for environment in known:
        python = found[environment.python]
        if environment.name not in (given.only or names):
            continue
        if given.only is None and _has_passed(rows.get(environment.name), environment):
            print(f"{environment.name}: passed at this commit before")
            continue
        if python is None:
            print(f"{environment.name}: Python {environment.python} is not installed here")
            continue
        print(f"{environment.name}: Python {environment.python}, {environment.tests} tests", flush=True)
        rows[environment.name] = run(environment, python)
        ran.append(environment.name)
        order = [e.name for e in known if e.name in rows]
        written = {
            "command": "python tools/compat.py",
            "Python versions not found": missing,
            "environments": [rows[name] for name in order],
        }
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(table([rows[name] for name in ran]))
    for name in ran:
        print(*(f"{name}: {test}" for test in rows[name]["not passed"]), sep="\n")
    if missing:
        print(f"Python versions not found here: {', '.join(missing)}")
    if any(row["not passed"] for row in rows.values()):
        raise SystemExit(1)


def _has_passed(row: dict[str, Any] | None, environment: Environment) -> bool:
    at = commit()
    return bool(row and at and row["commit"] == at and row["tests"] == environment.tests and not row["not passed"])


if __name__ == "__main__":
    main()
