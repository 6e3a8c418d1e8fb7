"""Model files of every kind predict in plain XGBoost what scboost predicts; other versions are tested by the tool."""

import sys

import compat_files


def test_the_installed_version_reads_every_kind(tmp_path):
    found = compat_files.run([sys.executable], tmp_path)
    assert len(found) == 1
    outcomes = {
        name: {file["outcome"] for file in files.values()} for name, files in next(iter(found.values())).items()
    }
    assert len(outcomes) > 10
    kinds = {"binary", "3 classes", "regression", "missing values", "missing values in 3 classes", "categories"}
    assert {f"compressed, {kind}" for kind in kinds} <= set(outcomes)
    assert all(outcome == {"same"} for outcome in outcomes.values()), outcomes


def test_compressed_models_with_categories_and_missing_values_use_both():
    """Other models would not test how compact files store sets of categories and default directions."""
    models = compat_files.models()
    for name in ("missing values", "missing values in 3 classes", "categories"):
        model, _ = models[f"compressed, {name}"]
        fitted = model.__fitted_model__()
        assert fitted.is_compressed
        tables = model.get_booster().trees_to_dataframe()
        splits = tables[tables["Feature"] != "Leaf"]
        if name == "categories":
            assert splits["Category"].notna().any()
        else:
            assert (splits["Missing"] == splits["Yes"]).any()
            assert (splits["Missing"] == splits["No"]).any()


def test_another_prediction_would_be_found():
    assert compat_files.compare([[0.0], [0.5]], [0.0], [0.5])["outcome"] == "same"
    assert compat_files.compare([[0.0], [0.6]], [0.0], [0.5])["outcome"] == "wrong"
    assert compat_files.compare([[0.0, 1.0], [0.5]], [0.0], [0.5])["outcome"] == "wrong"
    assert compat_files.compare("XGBoostError: no", [0.0], [0.5])["outcome"] == "refused"
