"""Model files in other versions of XGBoost: predictions must be those of scboost, or the version must refuse.

``python tools/compat_files.py --output results/reliability/compat_files.json PYTHON...`` saves one model of each kind,
also compressed ones, in both formats, and has every interpreter given load the files with its own XGBoost; scboost is
not needed there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from figures import described, finish
from scboost import SCBoostClassifier, SCBoostRegressor, compress, encode_features

# Run by the other interpreter: its XGBoost reads the file, and writes its predictions or its error.
READER = """
import json, sys
import numpy as np, xgboost as xgb
answers = {"version": xgb.__version__, "found": {}}
for case in json.load(open(sys.argv[1])):
    try:
        booster = xgb.Booster({"nthread": 1}, model_file=case["file"])
        X = np.load(case["X"])
        types = case["types"]
        matrix = xgb.DMatrix(X, feature_types=types, enable_categorical=types is not None, nthread=1)
        margin = booster.predict(matrix, output_margin=True, validate_features=False)
        value = booster.predict(matrix, validate_features=False)
        answers["found"][case["name"]] = [np.asarray(a, dtype=float).ravel().tolist() for a in (margin, value)]
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        answers["found"][case["name"]] = f"{type(error).__name__}: {lines[0][:200] if lines else ''}"
print(json.dumps(answers))
"""


def models() -> dict[str, tuple[Any, Any]]:
    """Fit one model of each kind; return it with samples to predict."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)).astype(np.float32)
    f = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=400)
    missing = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    colour = rng.choice(["red", "green", "blue", "grey", "pink"], size=400)
    table = pd.DataFrame({"x": missing[:, 0], "colour": pd.Categorical(colour), "z": X[:, 1]})
    few: dict[str, Any] = {"n_estimators": 12, "n_jobs": 1, "random_state": 0}
    made = {
        "binary": (SCBoostClassifier(**few), X, f > 1),
        "binary, rare class": (SCBoostClassifier(**few), X, f > np.sort(f)[-6]),
        "binary, common class": (SCBoostClassifier(**few), X, f > np.sort(f)[4]),
        "regression, large mean": (SCBoostRegressor(**few), X, 1e5 + f),
        "regression": (SCBoostRegressor(**few), X, f + 84),
        "6 classes": (SCBoostClassifier(**few), X, np.digitize(f, [-2, -1, 0, 0.5, 2])),
        "Poisson": (SCBoostRegressor(loss="poisson", **few), X, rng.poisson(np.exp(f / 2 + 4)).astype(float)),
        "gamma": (SCBoostRegressor(loss="gamma", **few), X, np.exp(f)),
        "one quantile": (SCBoostRegressor(loss="quantile", quantile=0.9, **few), X, f + 84),
        "quantiles": (SCBoostRegressor(loss="quantile", quantile=[0.1, 0.5, 0.9], **few), X, f + 84),
        "missing values": (SCBoostClassifier(**few), missing, f > 0),
        "no trees": (SCBoostRegressor(n_estimators=5, early_stopping=True, n_jobs=1), X[:60], rng.normal(size=60) + 50),
        "categories, one-vs-rest": (
            SCBoostRegressor(**few),
            table,
            f + 3 * (table["colour"] == "red").to_numpy(),
        ),
        "categories, subsets": (
            SCBoostRegressor(categorical_splits="subset", **few),
            table,
            f + 3 * table["colour"].isin(["red", "pink"]).to_numpy(),
        ),
    }
    found = {name: (model.fit(rows, y), rows) for name, (model, rows, y) in made.items()}
    teachers = {
        "compressed, binary": found["binary"],
        "compressed, 3 classes": (SCBoostClassifier(**few).fit(X, np.digitize(f, [-0.5, 0.5])), X),
        "compressed, regression": found["regression"],
        "compressed, missing values": found["missing values"],
        "compressed, missing values in 3 classes": (
            SCBoostClassifier(**few).fit(missing, np.digitize(f, [-0.5, 0.5])),
            missing,
        ),
        "compressed, categories": found["categories, subsets"],
    }
    small: dict[str, Any] = {"max_trees": 6, "max_leaves": 16, "n_synthetic": 500, "n_jobs": 1, "random_state": 0}
    return found | {name: (compress(teacher, rows, **small).model, rows) for name, (teacher, rows) in teachers.items()}


def expected(model: Any, X: Any) -> tuple[list[float], list[float], Any]:
    """Raw scores, predictions as XGBoost's objective returns them, and the matrix that it reads."""
    encoded = encode_features(model, X)
    scores = model._raw_scores(X).T  # noqa: SLF001
    booster = model.get_booster()
    if isinstance(model, SCBoostClassifier):
        p = model.predict_proba(X)
        value = p[:, 1] if p.shape[1] == 2 else p
    else:
        value = (
            np.exp(scores)
            if json.loads(booster.save_config())["learner"]["objective"]["name"] == "count:poisson"
            else scores
        )
    return scores.ravel().tolist(), np.asarray(value, dtype=float).ravel().tolist(), encoded


def compare(found: Any, margin: list[float], value: list[float]) -> dict[str, Any]:
    """Outcome of one file in one version."""
    if isinstance(found, str):
        return {"outcome": "refused", "error": found}
    a, b = (np.asarray(numbers) for numbers in found)
    if a.shape != np.shape(margin) or b.shape != np.shape(value):
        return {"outcome": "wrong", "error": f"{a.size} and {b.size} numbers for {len(margin)} and {len(value)}"}
    off = [
        float(np.abs(x - y).max() / max(1, np.abs(y).max())) for x, y in ((a, np.array(margin)), (b, np.array(value)))
    ]
    return {"outcome": "same" if max(off) < 1e-5 else "wrong", "largest difference": float(f"{max(off):.2e}")}


def run(pythons: list[str], folder: Path) -> dict[str, Any]:
    """Save all models, read them with every interpreter, and return what came out, by version and kind."""
    cases: list[dict[str, Any]] = []
    wanted: dict[str, tuple[list[float], list[float]]] = {}
    for name, (model, X) in models().items():
        margin, value, encoded = expected(model, X)
        wanted[name] = margin, value
        np.save(folder / f"{len(cases)}.npy", encoded)
        types = model.get_booster().feature_types
        for ending in ("json", "ubj"):
            file = folder / f"{len(cases)}.{ending}"
            model.save_model(file)
            cases.append(
                {
                    "name": f"{name}|{ending}",
                    "file": str(file),
                    "X": str(folder / f"{len(wanted) * 2 - 2}.npy"),
                    "types": types,
                }
            )
    (folder / "cases.json").write_text(json.dumps(cases))
    found: dict[str, Any] = {}
    for python in pythons:
        command = [python, "-W", "ignore", "-c", READER, str(folder / "cases.json")]
        environment = {"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise RuntimeError(f"{python} ended with {done.returncode}: {done.stderr[-2000:]}")
        answers = json.loads(done.stdout.splitlines()[-1])
        rows = found.setdefault(answers["version"], {})
        for case in cases:
            name, ending = case["name"].split("|")
            rows.setdefault(name, {})[ending] = compare(answers["found"][case["name"]], *wanted[name])
    return found


def oldest(found: dict[str, Any]) -> dict[str, str]:
    """Oldest version tried that reads each kind, in both formats."""
    names = next(iter(found.values()))
    reading = {
        name: [v for v in found if all(entry["outcome"] == "same" for entry in found[v][name].values())]
        for name in names
    }
    return {
        name: min(versions, key=lambda v: [int(n) for n in v.split(".")], default="none")
        for name, versions in reading.items()
    }


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="interpreters, each with one XGBoost")
    parser.add_argument("--output", type=Path, help="where to write the figures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(given.pythons, Path(folder))
    outcomes = [entry["outcome"] for rows in found.values() for files in rows.values() for entry in files.values()]
    figures = {
        "files": len(outcomes),
        "same": outcomes.count("same"),
        "refused": outcomes.count("refused"),
        "violations": outcomes.count("wrong"),
        "oldest version that predicts the same": oldest(found),
        "by version": found,
    }
    return finish(described("python tools/compat_files.py PYTHON...", figures), given.output)


if __name__ == "__main__":
    sys.exit(main())
