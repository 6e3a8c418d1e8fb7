"""Checks of an installed wheel that need nothing but its dependencies: no compiler, no XGBoost, no pytest.

``python tools/installed_wheel.py`` trains, predicts, saves, loads, explains, prunes, compresses and reports with the
native engine, and prints what is installed besides scikit-learn and its dependencies.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import scboost
from scboost._engine.native import is_available


def check_models(folder: Path) -> None:
    """Do with models of two and three classes and of a number what most users do."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=400)
    targets = (score > 0).astype(int), np.array(["a", "b", "c"])[np.digitize(score, [-1, 1])], score
    for number, y in enumerate(targets):
        cls = scboost.SCBoostRegressor if y.dtype.kind == "f" else scboost.SCBoostClassifier
        model = cls(n_estimators=30).fit(X[:300], y[:300])
        assert model.engine_ == "native"
        assert model.score(X[:300], y[:300]) > 0.7, model.score(X[:300], y[:300])
        predicted = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
        path = folder / f"model{number}.ubj"
        model.save_model(path)
        again = scboost.load_model(path)
        found = again.predict_proba(X) if hasattr(again, "predict_proba") else again.predict(X)
        assert np.array_equal(predicted, found)
        contributions = np.asarray(model.shap_values(X))
        assert np.isfinite(contributions).all()
        pruned = scboost.prune(model, X[300:], y[300:], max_trees=10)
        assert pruned.model.predict(X).shape == y.shape
        small = model.compress(X[:300], y[:300], max_trees=10).model
        assert small.predict(X).shape == y.shape
        report = scboost.report(model, X[300:], y[300:])
        assert report.save(folder / f"card{number}.md").read_text(encoding="utf-8")
        assert report.to_dict()["scores"]


def check_threads() -> None:
    """Results do not depend on threads, neither on those of a fit nor on fits side by side."""
    X = np.random.default_rng(1).normal(size=(2000, 5))

    def fit(n_jobs: int) -> bytes:
        model = scboost.SCBoostRegressor(n_estimators=10, n_jobs=n_jobs).fit(X, X[:, 0] * X[:, 1])
        return bytes(np.asarray(model.predict(X)).tobytes())

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(fit, [1, 2, 1, 4]))) == 1


def sizes() -> dict[str, int]:
    """Return the bytes of each installed distribution, without those that pip or Python compiled later."""
    found = {}
    for distribution in importlib.metadata.distributions():
        files = [Path(str(file.locate())) for file in distribution.files or [] if file.suffix != ".pyc"]
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        found[name] = sum(path.stat().st_size for path in files if path.is_file())
    return found


def required_by(name: str) -> set[str]:
    """Return the names of a distribution and of what it requires, such as narwhals from scikit-learn 1.9 on."""
    requirements = importlib.metadata.requires(name) or []
    direct = {re.split(r"[^\w.-]", text)[0] for text in requirements if "extra ==" not in text}
    return {name}.union(*(required_by(other) for other in direct))


def check_abi() -> None:
    """Check that a wheel for several versions of Python has kernels that all of them find."""
    files = importlib.metadata.files("scboost") or []
    tags = "".join(file.read_text() for file in files if file.name == "WHEEL")
    kernels = [file.name for file in files if file.name.startswith("_native.") and file.suffix in {".so", ".pyd"}]
    assert "-abi3-" not in tags or kernels in (["_native.abi3.so"], ["_native.pyd"]), kernels


def main() -> None:
    """Run the checks."""
    check_abi()
    assert is_available(), "the wheel has no compiled kernels for this version of Python"
    assert importlib.metadata.version("scboost") == scboost.__version__
    with tempfile.TemporaryDirectory() as folder:
        check_models(Path(folder))
    check_threads()
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        print("without the global interpreter lock")
    print("XGBoost:", "installed" if importlib.util.find_spec("xgboost") else "absent")
    theirs = {"pip", "setuptools", *required_by("scikit-learn")}
    ours = {name: size for name, size in sorted(sizes().items()) if name not in theirs}
    print(*(f"{name} {size / 1e6:.2f} MB" for name, size in ours.items()), sep=", ")
    print(f"in all {sum(ours.values()) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
