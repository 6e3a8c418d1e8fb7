"""Checkpoints: resumed to every bit, refused where they do not fit, and never the end of a fit."""

import copy
import io
import os
import subprocess
import sys
import zipfile
from unittest import mock

import numpy as np
import pytest
import xgboost as xgb
from sklearn.tree import DecisionTreeRegressor

from data_makers import FAST, real_target, three_classes, two_classes
from scboost import Checkpoint, SCBoostClassifier, SCBoostRegressor
from scboost._estimators import model_file
from scboost._model import atomic, file
from scboost._model import checkpoint as checkpoint_file

pd = pytest.importorskip("pandas")


def coloured(n=300):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=n), "colour": pd.Categorical(rng.choice(list("abcdef"), size=n))})
    return table, np.where((table["x"] > 0) ^ table["colour"].isin(["a", "d"]), "yes", "no")


def weighted():
    X, y = real_target()
    return X, y, np.random.default_rng(1).integers(1, 5, size=len(y)).astype(float)


TWELVE_ROUNDS = {**FAST, "n_estimators": 12}
CASES = {
    "binary": (SCBoostClassifier, {}, two_classes()),
    "classes": (SCBoostClassifier, {"memory": "all"}, three_classes()),
    "categories": (SCBoostClassifier, {"class_weight": "balanced"}, coloured()),
    "weights": (SCBoostRegressor, {"subsample": 0.6}, weighted()),
    "all directions": (SCBoostRegressor, {"memory": "all", "energy_threshold": 1.0}, real_target()),
    "no projection": (SCBoostRegressor, {"projection_strength": 0.0}, real_target()),
    "drawn": (SCBoostRegressor, {"random_state": np.random.RandomState(3), "early_stopping": True}, real_target()),
}


def fit(case, **params):
    cls, own, data = CASES[case]
    return cls(**copy.deepcopy({**TWELVE_ROUNDS, **own}), **params).fit(*data)


@pytest.mark.parametrize("case", CASES)
def test_resumed_fit_is_bit_identical(case, tmp_path):
    checkpoint = Checkpoint(tmp_path / "model", every=5)
    whole = fit(case, callbacks=[checkpoint])
    resumed = checkpoint.load()
    assert resumed.n_estimators_ == 10
    data = CASES[case][2]
    resumed.fit(*data)
    scores = [m.predict_proba(data[0]) if hasattr(m, "predict_proba") else m.predict(data[0]) for m in (resumed, whole)]
    np.testing.assert_array_equal(*scores)
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    np.testing.assert_equal(resumed.training_log_, whole.training_log_)


def test_resumed_fit_joins_the_fold_models_of_the_uninterrupted_fit(tmp_path):
    X, y = two_classes()
    checkpoint = Checkpoint(tmp_path / "model", every=5)
    settings = {
        "random_state": 0,
        "n_jobs": 1,
        "n_iter_no_change": 8,
        "cv": 3,
        "max_depth": 3,
        "tree_shape": "depth-wise",
    }
    whole = SCBoostClassifier(callbacks=[checkpoint], **settings).fit(X, y)
    members = whole.__fitted_model__().members
    assert len(members) == 3
    resumed = checkpoint.load()
    assert 0 < resumed.n_estimators_ < whole.n_estimators_ - sum(members)
    assert resumed.__fitted_model__().members == ()
    resumed.fit(X, y)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    assert resumed.__fitted_model__().members == members
    np.testing.assert_array_equal(resumed.prediction_uncertainty(X), whole.prediction_uncertainty(X))


def test_resumed_fit_stops_early_where_the_uninterrupted_fit_does(tmp_path):
    X, y = two_classes()
    rows = {"X": X[:200], "y": y[:200], "X_val": X[200:], "y_val": y[200:]}
    checkpoint = Checkpoint(tmp_path / "model", every=7)
    model = SCBoostClassifier(learning_rate=0.5, n_iter_no_change=3, n_jobs=1, random_state=0, callbacks=[checkpoint])
    whole = model.fit(**rows).decision_function(X)
    assert len(model.training_log_["loss"]) < 50
    resumed = checkpoint.load().fit(**rows)
    np.testing.assert_array_equal(resumed.decision_function(X), whole)
    np.testing.assert_equal(resumed.training_log_, model.training_log_)


def test_resumed_fit_of_a_median_has_the_same_intercept(tmp_path):
    X, y = real_target()
    checkpoint = Checkpoint(tmp_path / "model", every=5)
    params = {
        "loss": "absolute_error",
        "learning_rate": 0.5,
        "n_iter_no_change": 2,
        "n_jobs": 1,
        "random_state": 0,
        "max_depth": None,
    }
    model = SCBoostRegressor(**params, callbacks=[checkpoint]).fit(X, y)
    assert abs(model.intercept_[0] - np.median(y)) > 1e-3  # estimated on held-out samples
    np.testing.assert_array_equal(checkpoint.load().fit(X, y).predict(X), model.predict(X))


def test_the_file_holds_plain_arrays_and_a_model(tmp_path):
    path = tmp_path / "model"
    model = fit("binary", callbacks=[Checkpoint(path, every=12)])
    content = path.read_bytes().split(b"\n", 2)[2]
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        document = file.parse(arrays["model"].tobytes())
        assert {"F", "H0", "G0", "about", "model"} == set(arrays.files)
    np.testing.assert_array_equal(
        model_file.from_document(document).predict_proba(CASES["binary"][2][0]),
        model.predict_proba(CASES["binary"][2][0]),
    )
    assert b"pickle" not in content


def test_checkpoint_size_grows_with_rounds_done_not_with_memory(tmp_path):
    short, long = tmp_path / "short", tmp_path / "long"
    fit("classes", callbacks=[Checkpoint(short, every=12)])
    cls, own, data = CASES["classes"]
    stop = lambda model: model.n_estimators_ == 12  # noqa: E731
    cls(**{**TWELVE_ROUNDS, **own, "n_estimators": 1000}, callbacks=[Checkpoint(long, every=12), stop]).fit(*data)
    assert abs(long.stat().st_size - short.stat().st_size) < 1000


def test_every_flipped_bit_of_a_checkpoint_is_detected(tmp_path):
    path = tmp_path / "model"
    fit("binary", callbacks=[Checkpoint(path, every=6)])
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in [*range(25), *rng.choice(len(data), 275, replace=False)]:
        broken = bytearray(data)
        broken[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"checkpoint '.*model' (is corrupt|was written by a newer)"):
            Checkpoint(path).load()
    for size in (0, 10, 50, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match="is corrupt"):
            Checkpoint(path).load()


def test_pickled_checkpoints_are_rejected(tmp_path):
    import pickle

    path = tmp_path / "model"
    path.write_bytes(pickle.dumps(fit("binary")))
    with pytest.raises(ValueError, match="is corrupt or not a checkpoint"):
        Checkpoint(path).load()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda X, y: (X + 1e-3 * (np.arange(len(X)) == 7)[:, None], y), "X has changed"),
        (lambda X, y: (X[:, ::-1], y), "X has changed"),
        (lambda X, y: (X[::-1], y[::-1]), "X and y have changed"),
        (lambda X, y: (X, 1 - y), "y has changed"),
        (lambda X, y: (X[:, :3], y), "features"),
    ],
)
def test_other_data_are_rejected_and_the_checkpoint_is_kept(change, named, tmp_path):
    path = tmp_path / "model"
    X, y = two_classes()
    SCBoostClassifier(**TWELVE_ROUNDS, callbacks=[Checkpoint(path, every=5)]).fit(X, y)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=named):
        Checkpoint(path, every=1).load().fit(*change(X, y))
    assert path.read_bytes() == before


def test_other_parameters_are_refused(tmp_path):
    checkpoint = Checkpoint(tmp_path / "model", every=5)
    fit("binary", callbacks=[checkpoint])
    with pytest.raises(ValueError, match=r"reg_lambda=7.0 was 3.0"):
        checkpoint.load().set_params(reg_lambda=7.0).fit(*CASES["binary"][2])


def test_another_version_of_xgboost_needs_other_versions(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path / "model", every=5)
    whole = fit("binary", callbacks=[checkpoint], engine="xgboost")
    now = xgb.__version__
    monkeypatch.setattr(xgb, "__version__", "3.9.0")
    with pytest.raises(ValueError, match=f"was written with XGBoost {now}; the installed version is 3.9.0"):
        checkpoint.load()
    resumed = checkpoint.load(other_versions=True).fit(*CASES["binary"][2])
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)


def test_full_disk_warns_and_the_fit_continues(tmp_path):
    path = tmp_path / "model"
    fit("binary", callbacks=[Checkpoint(path, every=12)])
    before = path.read_bytes()
    full = OSError(28, "No space left on device")
    with mock.patch.object(atomic.os, "fsync", side_effect=full), pytest.warns(RuntimeWarning) as warned:
        model = fit("binary", callbacks=[Checkpoint(path, every=6)])
    assert [("after round 6" in str(w.message), "after round 12" in str(w.message)) for w in warned] == [
        (True, False),
        (False, True),
    ]
    assert "No space left" in str(warned[0].message)
    np.testing.assert_array_equal(model.weights_, fit("binary").weights_)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of the shell")
def test_file_size_limit_warns_and_the_fit_continues(tmp_path):
    code = """
import resource, signal, sys, warnings
import numpy as np
from scboost import Checkpoint, SCBoostRegressor
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
X = np.random.default_rng(0).normal(size=(200, 3))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = SCBoostRegressor(n_estimators=6, n_jobs=1, callbacks=[Checkpoint(sys.argv[1], every=3)]).fit(X, X[:, 0])
print(model.n_estimators_, len(caught), "could not be written" in str(caught[0].message))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "model")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603 - our own code
    assert done.stdout.split() == ["6", "2", "True"], done.stderr
    assert list(tmp_path.iterdir()) == []


def test_removed_folder_warns_and_the_fit_continues(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    leave = lambda model: model.n_estimators_ == 1 and folder.rmdir()  # noqa: E731
    with pytest.warns(RuntimeWarning, match="could not be written after round 7"):
        fit("binary", callbacks=[leave, Checkpoint(folder / "model", every=7)])


def test_impossible_checkpoints_raise_before_the_first_round(tmp_path):
    rounds = []
    with pytest.raises(FileNotFoundError, match=r"folder of the checkpoint '.*missing.model' does not exist"):
        fit("binary", callbacks=[rounds.append, Checkpoint(tmp_path / "missing" / "model")])
    X, y = two_classes()
    model = SCBoostClassifier.from_paper(
        estimator=DecisionTreeRegressor(max_depth=2), callbacks=[rounds.append, Checkpoint(tmp_path / "model")]
    )
    with pytest.raises(ValueError, match=r"cannot store estimator=DecisionTreeRegressor"):
        model.fit(X, y)
    model = SCBoostClassifier(weighting="simplex", callbacks=[rounds.append, Checkpoint(tmp_path / "model")])
    with pytest.raises(ValueError, match=r"weighting='simplex' with n_estimators='auto'.*set n_estimators to a number"):
        model.fit(X, y)
    assert rounds == []


@pytest.mark.parametrize("every", [0, -1, 1.5, "3", True, None])
def test_every_must_be_an_integer(every, tmp_path):
    with pytest.raises(ValueError, match=r"every=.* must be an integer of at least 1"):
        Checkpoint(tmp_path / "model", every=every)


def test_a_symbolic_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "model", tmp_path / "link"
    link.symlink_to(target)
    fit("binary", callbacks=[Checkpoint(link, every=6)])
    assert link.is_symlink()
    assert [p.name for p in (tmp_path / "real").iterdir()] == ["model"]
    assert Checkpoint(link).load().n_estimators_ == 12


def test_checkpoint_contains_no_uninitialized_memory(tmp_path):
    """Unused rows of the history once contained uninitialized memory."""
    marker = b"these bytes are left in memory"
    junk = [np.frombuffer(marker * 20000, np.uint8).copy() for _ in range(50)]
    del junk
    path = tmp_path / "model"
    fit("classes", callbacks=[Checkpoint(path, every=6)])
    assert marker not in path.read_bytes()
    assert zipfile.ZipFile(io.BytesIO(path.read_bytes().split(b"\n", 2)[2])).testzip() is None
    assert checkpoint_file._FIRST_LINE == b"scboost checkpoint 1\n"
