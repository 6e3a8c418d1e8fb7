"""The recipes for mlflow run as they are written, and what comes back predicts the same."""

import numpy as np
import pytest

import scboost
from data_makers import coloured, real_target, three_classes
from scboost import SCBoostClassifier, SCBoostRegressor
from test_guide import DOCS, blocks

mlflow = pytest.importorskip("mlflow")
pytest.importorskip("skops")
pytestmark = pytest.mark.filterwarnings("ignore")  # mlflow's own


@pytest.mark.parametrize(
    ("cls", "params", "make"),
    [
        (SCBoostClassifier, {}, three_classes),
        (SCBoostClassifier, {"weighting": "nonnegative"}, coloured),
        (SCBoostRegressor, {"loss": "poisson"}, lambda: (real_target()[0], np.abs(real_target()[1]))),
    ],
    ids=["classes", "categories and weights", "counts"],
)
def test_the_recipes_of_the_page(cls, params, make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database would need more packages
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    X, y = make()
    model = cls(n_estimators=5, n_jobs=1, random_state=0, **params).fit(X, y)
    (recipe,) = [code for _, code in blocks(DOCS / "saving.md") if code.startswith("import mlflow")]
    names = {"model": model, "scboost": scboost}
    exec(recipe, names)  # noqa: S102 - our own page
    assert all(kind.startswith("scboost.") or kind == "builtins.frozenset" for kind in names["types"])

    def predicted(given):
        return given.predict_proba(X) if hasattr(given, "predict_proba") else given.predict(X)

    np.testing.assert_array_equal(predicted(names["estimator"]), predicted(model))
    np.testing.assert_array_equal(predicted(names["from_file"]), predicted(model))
    np.testing.assert_allclose(predicted(names["native"]), predicted(model), rtol=1e-5, atol=1e-6)


def test_the_callback_logs_parameters_and_every_tenth_round(tmp_path, monkeypatch):
    from scboost.mlflow import LogRounds

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    X, y = three_classes()
    with mlflow.start_run() as run:
        model = SCBoostClassifier(n_estimators=25, early_stopping=True, n_jobs=1, callbacks=[LogRounds(every=10)])
        model.fit(X, y)
    stored = mlflow.get_run(run.info.run_id)
    assert stored.data.params["n_estimators"] == "25"
    assert "callbacks" not in stored.data.params
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "validation_loss")
    assert [point.step for point in history] == [10, 20]
    logged = [point.value for point in history]
    np.testing.assert_array_equal(logged, np.asarray(model.training_log_["validation_loss"])[[9, 19]])


def test_the_callback_refuses_a_period_below_one():
    from scboost.mlflow import LogRounds

    with pytest.raises(ValueError, match="every must be at least 1, got 0"):
        LogRounds(every=0)
