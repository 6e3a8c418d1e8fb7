"""The study of the default: input of each method, resuming, and the page generated from the results."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification, make_regression
from sklearn.metrics import log_loss, mean_pinball_loss

from scboost_lab import cli, default_methods, default_page, default_study
from scboost_lab.comparisons import Standing
from scboost_lab.datasets import capped, matrix
from scboost_lab.default_methods import (
    ALL,
    AT_OWN,
    BEST,
    CONFIRMATION,
    DEFAULT,
    DEVELOPMENT,
    LABEL_NOISE_SETS,
    METHODS,
    PEERS,
    TUNED,
)
from scboost_lab.default_results import StudyResults, common_folds
from scboost_lab.default_study import PARTS, Task
from scboost_lab.default_targets import targets_table
from scboost_lab.results import KEY

pd = pytest.importorskip("pandas")

ROWS = 300


@pytest.fixture(autouse=True)
def _fresh_tables():
    default_study.load.cache_clear()


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """A set with categories and missing values, one with three classes and one with a real target."""
    directory = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X, y = make_classification(ROWS, 5, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(5)])
    frame["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], ROWS))
    frame["empty"] = np.nan
    frame.loc[::7, "x0"] = np.nan
    frame.assign(target=y).to_parquet(directory / "credit_g.parquet")
    X, y = make_classification(ROWS, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    pd.DataFrame(X).add_prefix("x").assign(target=y + 1).to_parquet(directory / "segment.parquet")
    X, y = make_regression(ROWS, 4, noise=5.0, random_state=0)
    pd.DataFrame(X).add_prefix("x").assign(target=y).to_parquet(directory / "cpu_act_reg.parquet")
    return str(directory)


@pytest.mark.parametrize("method", [m for m in PEERS if m != "CatBoost"])
@pytest.mark.parametrize("name", ["credit_g", "segment", "cpu_act_reg"])
def test_every_peer_fits_every_kind_of_set(method, name, data_dir, monkeypatch):
    monkeypatch.setattr(default_methods, "PATIENCE", 5)
    found = default_study.run_fold(Task(name, method, 0), {}, data_dir)
    score = found["R2"] if name == "cpu_act_reg" else found["AUC"]
    assert score > 0.6
    assert found["cpu_seconds"] > 0
    assert set(found) <= set(default_study.COLUMNS)
    if METHODS[method].stops or method == "ChimeraBoost":  # which stops by itself
        assert 1 <= found["n_trees"] < 1000
    else:
        assert found["n_trees"] == 100
    assert ("effective_rank" in found) == (METHODS[method].measured and name != "segment")


def test_scores_of_two_classes_against_their_definitions(data_dir):
    X, y = default_study.load("credit_g", data_dir)
    train, test = default_study.folds(y, default_study.SEED, default_study.N_FOLDS)[1]
    method = METHODS["LightGBM"]
    model = default_methods.estimator(method, "binary", ["colour"], seed=1)
    X = default_study.encoded(X, method)
    p = model.fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
    found = default_study.run_fold(Task("credit_g", "LightGBM", 1), {}, data_dir)
    assert found["log_loss"] == pytest.approx(log_loss(y[test], p))
    assert found["ACC"] == pytest.approx(np.mean((p[:, 1] > 0.5) == y[test]))


def test_a_quantile_is_scored_by_its_pinball_loss(data_dir):
    params = {"quantile": 0.95}
    found = default_study.run_fold(Task("cpu_act_reg", "LightGBM", 0, "quantile=0.95"), params, data_dir)
    X, y = default_study.load("cpu_act_reg", data_dir)
    train, test = default_study.folds(y, default_study.SEED, default_study.N_FOLDS, stratified=False)[0]
    loss = default_methods.regression_loss("LGBM", "quantile", 0.95)
    model = default_methods.estimator(METHODS["LightGBM"], "regression", [], seed=0, **loss)
    prediction = model.fit(X.iloc[train], y[train]).predict(X.iloc[test])
    assert found["pinball"] == pytest.approx(mean_pinball_loss(y[test], prediction, alpha=0.95))
    assert found["below"] == pytest.approx(np.mean(y[test] <= prediction))


@pytest.mark.parametrize(("loss", "best"), [("absolute", 2.0), ("Huber", 3.5), ("Poisson", 13 / 3)])
@pytest.mark.parametrize("name", default_methods.WITH_QUANTILES)
def test_every_library_minimizes_the_requested_loss(name, loss, best):
    if name not in default_methods.LOSSES[loss]:
        pytest.skip("it does not have this loss")
    X = pd.DataFrame({"x": np.repeat([0.0, 1.0], 450)})
    y = np.tile([1.0, 2.0, 10.0], 300) + X["x"].to_numpy()  # at Huber's best, 2.5 + 1.5 on one side, 4 on the other
    told = default_methods.regression_loss(METHODS[name].library, loss, 4.0)
    model = default_methods.estimator(METHODS[name], "regression", [], seed=0, **told)
    prediction = model.fit(X, y).predict(X)
    least = default_methods.mean_loss(loss, 4.0, y, best + X["x"].to_numpy())
    assert default_methods.mean_loss(loss, 4.0, y, prediction) < 1.05 * least


@pytest.mark.parametrize("library", ["LGBM", "XGB", "HGB", "CAT", "SCBoost"])
def test_every_library_estimates_the_requested_quantile(library):
    name = next(m for m in default_methods.WITH_QUANTILES if METHODS[m].library == library)
    y = np.random.default_rng(0).normal(size=800)
    X = pd.DataFrame({"x": np.repeat([0.0, 1.0], len(y) // 2)})
    loss = default_methods.regression_loss(library, "quantile", 0.9)
    model = default_methods.estimator(METHODS[name], "regression", [], seed=0, **loss)
    assert np.mean(y <= model.fit(X, y).predict(X)) == pytest.approx(0.9, abs=0.03)


def test_categories_are_given_as_each_library_takes_them(data_dir):
    X, _ = default_study.load("credit_g", data_dir)
    texts = default_study.encoded(X, METHODS["CatBoost"])["colour"]
    assert set(texts) == {"red", "green", "blue"}
    numbers = default_study.encoded(X, METHODS["random forest"])["colour"]
    assert numbers.tolist() == X["colour"].map({"blue": 0, "green": 1, "red": 2}).tolist()
    assert default_study.encoded(X, METHODS["XGBoost"])["colour"].dtype.name == "category"
    assert "empty" not in default_study.encoded(X, METHODS["HistGradientBoosting"])


def test_the_halves_split_the_sets_without_overlap():
    assert not set(DEVELOPMENT) & set(CONFIRMATION)
    assert len(DEVELOPMENT) == len(CONFIRMATION) == 9
    assert len(set(ALL)) == 18


def test_caps_draw_the_same_samples_from_tables_and_arrays(tmp_path):
    X, y = make_classification(90, 12, random_state=0)
    frame = pd.DataFrame(X).add_prefix("x")
    frame.assign(target=y).to_parquet(tmp_path / "some.parquet")
    found, target = capped(frame, y, 40, 7)
    numbers, labels = matrix("some", str(tmp_path), 40, 7)
    np.testing.assert_array_equal(found.to_numpy(), numbers)
    np.testing.assert_array_equal(target, labels)
    assert found.shape == (40, 7)


def test_all_sets_have_a_fold_before_the_next_begins():
    for name, experiment in PARTS.items():
        tasks = default_study.in_order(name, experiment.tasks())
        assert sorted(t.key for t in tasks) == sorted(t.key for t in experiment.tasks())
        assert [t.fold for t in tasks] == sorted(t.fold for t in tasks)


def test_an_interrupted_study_resumes(data_dir, tmp_path, capsys):
    words = ["default_study", "peers", "--data-dir", data_dir, "--out", str(tmp_path), "--sets", "credit_g"]
    assert cli.main([*words, "--methods", "LightGBM", "--folds", "1"]) == 0
    first = (tmp_path / "peers.csv").read_text()
    assert cli.main([*words, "--methods", "LightGBM", "XGBoost", "--folds", "1"]) == 0
    assert (tmp_path / "peers.csv").read_text().startswith(first)
    assert "1 of 2 folds are there" in capsys.readouterr().err


def test_without_data_the_error_names_the_missing_argument(monkeypatch, capsys):
    monkeypatch.delenv("SCBOOST_DATA_DIR", raising=False)
    assert cli.main(["default_study", "peers"]) == 2
    assert "--data-dir" in capsys.readouterr().err


def test_sets_and_methods_that_are_no_part_of_the_study_are_refused(data_dir, tmp_path, capsys):
    words = ["default_study", "noise", "--data-dir", data_dir, "--out", str(tmp_path / "out")]
    for option, wrong in (("--sets", "../../x"), ("--methods", "SVM")):
        with pytest.raises(SystemExit) as stop:
            cli.main([*words, option, wrong])
        assert stop.value.code == 2
        assert f"{option}: invalid choice: '{wrong}' (choose from " in capsys.readouterr().err
    assert cli.main([*words, "--sets", "credit_g"]) == 2
    assert "nothing to do for label noise" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


CELLS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("de"), st.sampled_from("012")), unique=True)


@given(CELLS)
def test_only_folds_that_all_have_are_compared(cells):
    rows = [dict(zip(("method", "dataset", "fold"), cell, strict=True)) for cell in cells]
    found = common_folds(rows, "ab", "de")
    for row in rows:
        complete = all((m, d, row["fold"]) in cells for m in "ab" for d in "de")
        assert (row in found) == complete


def test_a_place_counts_the_better_ones():
    standing = Standing("b", {"a": 1.5, "b": 2.0, "c": 2.5})
    assert (standing.place, standing.best_other, standing.best_other_rank) == (2, "a", 1.5)


def write_results(directory, better):
    """Rows of every part in which our methods are better than the others, and `BEST` than the default, by `better`."""
    rng = np.random.default_rng(0)
    for name, experiment in PARTS.items():
        directory.mkdir(exist_ok=True)
        with (directory / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, experiment.file(directory / "x").header, restval="")
            writer.writeheader()
            for task in experiment.tasks(n_folds=1):
                ours = task.method.startswith("SCBoost")
                noise = 0.01 * rng.random()
                loss = 0.5 - better * (ours + 0.5 * (task.method == BEST)) + noise
                row = dict(zip(KEY, task.key, strict=True))
                row |= {
                    "log_loss": loss,
                    "RMSE": loss,
                    "pinball": loss,
                    "test_loss": loss,
                    "cpu_seconds": 1 + 7 * (not ours),
                }
                row |= {"AUC": 1 - loss, "ACC": 1 - loss, "F1": 1 - loss, "n_trees": 100 if ours else 1000}
                row |= {"effective_rank": 50 + 400 * better * ours, "redundancy": 0.5 - better * ours}
                row |= {"learning_rate": 0.05 if task.method == DEFAULT else 0.01}
                row |= {"below": 0.95 if task.setting.endswith("0.95") else 0.05, "status": "ok"}
                writer.writerow({k: v for k, v in row.items() if k in writer.fieldnames})


@pytest.mark.parametrize("better", [0.1, -0.1])
def test_targets_are_met_if_and_only_if_scboost_is_better(better, tmp_path):
    write_results(tmp_path, better)
    study = StudyResults(tmp_path)
    judged = [row for row in targets_table(study).splitlines() if " met" in row or "**not met**" in row]
    if better > 0:
        assert not [
            row for row in judged if "not met" in row and "20 rounds" not in row and "n_estimators=1000" not in row
        ]
    else:
        met = [row for row in judged if "not met" not in row]
        assert all(
            any(w in row for w in ("CPU ", "rounds | at most as many", "cover", "n_estimators=1000")) for row in met
        )
    standing = study.standing(DEFAULT, AT_OWN, "log_loss", "confirmation")
    assert standing.place == (1 if better > 0 else len(AT_OWN) + 1)
    assert study.against(BEST, "CatBoost").wins == (len(ALL) if better > 0 else 0)
    assert study.cpu_ratio(DEFAULT, "CatBoost") == pytest.approx(0.125)
    assert set(study.label_noise(0.1)[DEFAULT]) == set(LABEL_NOISE_SETS)
    text = default_page.page_text(tmp_path)
    assert "{" not in text
    assert all(method in text for method in TUNED)
