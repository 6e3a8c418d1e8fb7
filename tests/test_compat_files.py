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
    assert all(outcome == {"same"} for outcome in outcomes.values()), outcomes


def test_another_prediction_would_be_found():
    assert compat_files.compare([[0.0], [0.5]], [0.0], [0.5])["outcome"] == "same"
    assert compat_files.compare([[0.0], [0.6]], [0.0], [0.5])["outcome"] == "wrong"
    assert compat_files.compare([[0.0, 1.0], [0.5]], [0.0], [0.5])["outcome"] == "wrong"
    assert compat_files.compare("XGBoostError: no", [0.0], [0.5])["outcome"] == "refused"
