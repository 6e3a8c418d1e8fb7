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
