"""The blocks of the page on other tools run as they are written: `make test-tools`."""

import re

import numpy as np
import pandas as pd
import pytest

from scboost import SCBoostClassifier
from test_guide import DOCS

TEXT = (DOCS / "guide" / "other_tools.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```\{code-block\} python\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = {part.splitlines()[0]: found[1] for part in TEXT.split("\n## ") if (found := BLOCK.search(part))}
pytestmark = pytest.mark.filterwarnings("ignore")  # their own


def few(*args, **params):
    return SCBoostClassifier(*args, **{"n_estimators": 3, "n_jobs": 1, **params})


def run(title, **names):
    exec(BLOCKS[title].replace("SCBoostClassifier(", "few("), names := {"few": few, **names})  # noqa: S102 - our own page
    return names


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"text": rng.choice([f"city {i}" for i in range(60)], 300), "colour": rng.choice(["r", "b"], 300)}
    )
    frame["x"] = rng.normal(size=300)
    return frame, ((frame.colour == "r") ^ (frame.x > 0)).to_numpy()


def test_skrub():
    skrub = pytest.importorskip("skrub")
    X, y = table()
    pipeline = run("skrub")["pipeline"]
    pipeline[-1].set_params(n_estimators=30)
    assert pipeline.fit(X, y).score(X, y) > 0.95
    assert pipeline[-1].categorical_splits_ in {"one-vs-rest", "subset"}
    assert type(skrub.tabular_pipeline(few())[1]).__name__ == "SquashingScaler"  # why the page exists


def test_ray():
    ray = pytest.importorskip("ray")
    X, y = table()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        scores = run("Ray", X=X[["x", "colour"]], y=y)["scores"]
    finally:
        ray.shutdown()
    from sklearn.model_selection import cross_val_score

    np.testing.assert_array_equal(scores, cross_val_score(few(), X[["x", "colour"]], y))


def test_ibis():
    ibis = pytest.importorskip("ibis")
    X, y = table()
    expected = few().fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(few().fit(ibis.memtable(X), y).predict_proba(ibis.memtable(X)), expected)


def test_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    X, y = table()
    run("mlflow", X=X, y=y)
    assert len(mlflow.search_runs(output_format="list")) == 1
