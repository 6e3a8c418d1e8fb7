"""A user's program under strict type checkers: it passes as written, and planted mistakes are reported."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "typing" / "user_script.py"

# Strict, but scikit-learn has no stubs.
PYRIGHT = {"typeCheckingMode": "strict", "reportMissingTypeStubs": False, "reportUnusedExpression": False}

# A statement that a type checker must reject, and what its message contains.
MISTAKES = {
    "classifier.fit(X, y, weights=None)": "weights",
    'SCBoostClassifier(engine="fast")': "fast",
    'SCBoostRegressor(n_estimators="many")': "many",
    "SCBoostRegressor(max_tree=5)": "max_tree",
    "label: str = classifier.predict_proba(X)": "str",
    "single: npt.NDArray[np.float32] = regressor.predict(X)": "32",
    'load_model("model.ubj", losses=None)': "losses",
    "rounds: str = regressor.n_estimators_": "str",
    "small.certificate.confidnce": "confidnce",
    "learn_weights(X, y, loss=SquaredLoss(), pull=0.1)": "pull",
    "Batches(make_batches)": "folder",
    'Checkpoint("path", every="ten")': "every",
}
# Scikit-learn is not typed: for mypy its base classes, and so the estimators, could be anything.
MISTAKES_FOR_PYRIGHT = {
    "foreign: SCBoostClassifier = compress(object(), X).model": "SCBoostRegressor",
    "native: SCBoostClassifier = in_xgboost.model": "XGB",
    "classifier.predict_prob(X)": "predict_prob",
    "text: str = classifier.fit(X, y)": "SCBoostClassifier",
    "regression: SCBoostRegressor = small.model": "SCBoostClassifier",
    'name: str = load_model("model.ubj")': "Estimator",
    "SCBoostClassifier(**defaults.parameters(0.2, SCBoostClassifier))": "float",
}
# Types that mypy must know; it would accept their assignment to anything.
REVEALED = {
    "classifier.fit(X, y)": "SCBoostClassifier",
    "regressor.set_params(n_estimators=3).fit(X, y)": "SCBoostRegressor",
    "small.model": "SCBoostClassifier",
    'load_model("model.ubj")': "SCBoostClassifier",
    "classifier.predict_proba(X)": "float64",
}


def errors_of(
    command: list[str], mistakes: dict[str, str], folder: Path, revealed: dict[str, str] | None = None
) -> list[str]:
    """Run a type checker on the script with mistakes at its end; return the lines of its output with errors."""
    lines = SCRIPT.read_text().splitlines()
    shown = [f"reveal_type({expression})" for expression in revealed or {}]
    (folder / "script.py").write_text("\n".join([*lines, *mistakes, *shown]) + "\n")
    done = subprocess.run([*command, "script.py"], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    errors = [line for line in done.stdout.splitlines() if re.search(r"\.py:\d+:.*error", line)]
    places = [int(re.search(r"\.py:(\d+):", line)[1]) for line in errors]
    assert not [line for line, place in zip(errors, places, strict=True) if place <= len(lines)], done.stdout
    for number, (statement, named) in enumerate(mistakes.items(), start=len(lines) + 1):
        found = [line for line, place in zip(errors, places, strict=True) if place == number]
        assert any(named in line for line in found), (statement, done.stdout)
    for number, named in enumerate((revealed or {}).values(), start=len(lines) + len(mistakes) + 1):
        (note,) = [line for line in done.stdout.splitlines() if f".py:{number}: note: Revealed type" in line]
        assert named in note, note
    return errors


def test_the_user_script_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(SCRIPT))
    assert (tmp_path / "model.ubj").exists()


@pytest.mark.slow
def test_mypy_strict_accepts_a_user_script_and_reports_planted_mistakes(tmp_path):
    pytest.importorskip("mypy")
    options = ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    errors = errors_of([sys.executable, "-m", "mypy", *options], MISTAKES, tmp_path, REVEALED)
    assert len(errors) == len(MISTAKES)


def test_pyright_strict_accepts_a_user_script_and_reports_planted_mistakes(tmp_path):
    pytest.importorskip("basedpyright")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    errors_of(command, {**MISTAKES, **MISTAKES_FOR_PYRIGHT}, tmp_path)
