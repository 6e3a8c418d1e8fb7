"""What is published: the wheel and the sdist build, install where nothing else is, and carry what they need."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import scboost
from scboost import _xgboost

ROOT = Path(__file__).parents[1]


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # noqa: S603 - our own command
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Build the sdist, and the wheel from the sdist: paths of both."""
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)])
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="session")
def unpacked(built, tmp_path_factory):
    """Unpack the sdist: the folder of the sources."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built[0]) as archive:
        archive.extractall(folder, filter="data")
    (inside,) = folder.iterdir()
    return inside


@pytest.mark.slow
def test_the_wheel_contains_the_library_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as wheel:
        names = wheel.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"scboost", f"scboost-{scboost.__version__}.dist-info"}
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "scboost").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".so", ".pyd"}
    }
    sources = {name for name in sources if not name.startswith("scboost/_engine/native/src/")}
    kernels = {name for name in names if name.startswith("scboost/_engine/native/_native.") and name[-4:] != ".pyi"}
    assert {name for name in names if name.startswith("scboost/")} == sources | kernels
    assert "scboost/py.typed" in sources


@pytest.mark.slow
def test_the_sdist_contains_the_repository(unpacked):
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone of the repository")
    tracked = [Path(name) for name in run(["git", "ls-files"], cwd=ROOT).splitlines()]
    ours = {path for path in tracked if path.parts[0] not in {".ci", ".github"} and (ROOT / path).is_file()}
    theirs = {path.relative_to(unpacked) for path in unpacked.rglob("*") if path.is_file()}
    assert not ours - theirs


@pytest.mark.slow
def test_the_tests_of_the_sdist_collect_and_pass(unpacked):
    pytest.importorskip("optuna", reason="the lab's tests need the lab's dependencies")
    paths = os.pathsep.join([str(unpacked / "src"), str(unpacked / "lab" / "src")])
    options = {"cwd": unpacked, "env": {**os.environ, "PYTHONPATH": paths}}
    pytest_here = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    assert re.search(r"\d{3,} tests collected", run([*pytest_here, "--collect-only"], **options))
    # Identities of the method, and a document checked against its results.
    document = "lab/tests/test_pages.py::test_the_readmes_table_is_that_of_the_results"
    part = ["tests/test_history.py", "tests/test_loss.py", document]
    assert " passed" in run([*pytest_here, *part], **options)


def empty_environment(folder):
    """Make an environment with nothing but pip: its Python, and the command that installs."""
    run([sys.executable, "-m", "venv", str(folder / "empty")])
    python = str(folder / "empty" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    reachable = [*pip, "download", "--quiet", "--no-deps", "--dest", str(folder), "threadpoolctl"]
    if subprocess.run(reachable, capture_output=True, check=False).returncode:  # noqa: S603 - our own command
        pytest.skip("no package index can be reached")
    return python, [*pip, "install", "--quiet", "--no-compile"]


def test_the_wheel_for_later_versions_of_python_has_the_stable_abi():
    """nanobind builds for one version, without a word, unless CMake looks for the module of the stable ABI."""
    assert 'wheel.py-api = "cp312"' in (ROOT / "pyproject.toml").read_text()
    cmake = (ROOT / "CMakeLists.txt").read_text()
    assert re.search(r"^find_package\(Python .*Development\.SABIModule", cmake, re.MULTILINE)
    assert re.search(r"^nanobind_add_module\(_native STABLE_ABI", cmake, re.MULTILINE)


@pytest.mark.slow
def test_the_wheel_needs_neither_a_compiler_nor_xgboost(built, tmp_path):
    if "-none-any" in built[1].name:
        pytest.skip("there is no compiler to build the wheel with")
    python, install = empty_environment(tmp_path)
    run([*install, "--only-binary", ":all:", str(built[1])])
    alone = {"PATH": str(Path(python).parent), "OMP_NUM_THREADS": "2"}
    if sys.platform == "win32":
        alone["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    shown = run([python, "-W", "error", str(ROOT / "tools" / "installed_wheel.py")], cwd=tmp_path, env=alone)
    assert "XGBoost: absent" in shown
    size = float(re.search(r"in all (\S+) MB", shown)[1])
    assert size < 3 + 2.5 * ("narwhals" in shown), shown  # scikit-learn brings narwhals along from 1.9 on


SMALL_FIT = """
import importlib.metadata, sys
import numpy as np, scboost
X = np.random.default_rng(0).normal(size=(200, 3))
y = (X[:, 0] + X[:, 1] > 0).astype(int)
model = scboost.SCBoostClassifier(n_estimators=20, n_jobs=1).fit(X, y)
assert model.score(X, y) > 0.9, model.score(X, y)
assert abs(scboost.SCBoostRegressor(n_estimators=5, n_jobs=1).fit(X, X[:, 0]).predict(X)).max() < 10
assert scboost.redundancy_report(model, X, y).n_trees == 20
assert importlib.metadata.version("scboost") == scboost.__version__
installed = {d.name.lower().replace("_", "-") for d in importlib.metadata.distributions()}
print(*sorted(installed - {"pip", "setuptools"}))
"""


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(built, tmp_path):
    python, install = empty_environment(tmp_path)
    run([*install, f"{built[1]}[cpu]"])
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    installed = run([python, "-W", "error", "-c", SMALL_FIT], cwd=tmp_path, env=outside).split()
    # What a user gets along with the library: its own dependencies, and theirs.
    assert {"scboost", "numpy", "scipy", "scikit-learn", "threadpoolctl"} <= set(installed)
    assert not {"matplotlib", "pandas", "lightgbm", "catboost", "scboost-lab", "pytest"} & set(installed)


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
def test_pre_commit_runs_the_linters_of_the_dev_extra(tool):
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    (hook,) = re.findall(rf"{tool}[^\n]*\n\s+rev: v(\S+)", hooks)
    assert f'"{tool}=={hook}"' in (ROOT / "pyproject.toml").read_text()


def test_the_citation_has_the_version_of_the_package():
    assert f"\nversion: {scboost.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_version_matrix_tests_the_lowest_versions_of_pyproject():
    pytest.importorskip("tomllib", reason="tools/compat.py needs Python 3.11")
    import compat

    everything, newest, *others = compat.environments("3.13")
    lowest = compat.pins(everything)
    assert {"numpy==1.26", "scikit-learn==1.6", "threadpoolctl==3.1"} <= set(lowest)
    assert all("==" in pin for pin in lowest if pin not in everything.limits)
    assert not any("==" in pin for pin in compat.pins(newest))
    one = next(environment for environment in others if environment.name == "scikit-learn-lowest")
    assert [pin for pin in compat.pins(one) if "==" in pin] == ["scikit-learn==1.6"]
    assert all((ROOT / name).is_file() for name in compat.FAST)
    newer = {environment.name: environment.python for environment in compat.environments("3.14")}
    assert newer["newest"] == "3.14"
    assert newer["xgboost-lowest"] == newer["scikit-learn-lowest"] == newer["python-3.13"] == "3.13"


def test_the_versions_of_xgboost_are_those_that_the_library_takes():
    lowest, too_high = (
        ".".join(map(str, bound)).removesuffix(".0.0") for bound in (_xgboost._LOWEST, _xgboost._TOO_HIGH)
    )
    extras = re.findall(r'"xgboost(?:-cpu)?([<>=][^;"]*)[;"]', (ROOT / "pyproject.toml").read_text())
    assert extras == [f">={lowest},<{too_high}"] * 3
