"""The experiments on a made-up set that takes QSAR's place, and the page made from known result files."""

import csv
import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from scboost import SCBoostClassifier
from scboost_lab import cli, datasets, experiments, reproduce, reproduction_page, reproduction_tables
from scboost_lab.datasets import content_checksum
from scboost_lab.experiments import (
    ALL_ROWS,
    DISTINCT,
    DRAWN,
    EXPERIMENTS,
    OVER,
    SIGN,
    SMOTE,
    SMOTE_INSIDE,
    TEST_WEIGHTS,
    TRAINING_ROWS,
    TRAINING_SIGN,
    UNDER,
    values_that_differ,
    without_zeros,
)
from scboost_lab.models import BASELINES, SCBOOST, SCBOOST_DEFAULT, SCBOOST_PAPER, make
from scboost_lab.reproduce import run
from scboost_lab.reproduction_page import write_page
from scboost_lab.reproduction_tables import paper, section
from scboost_lab.results import KEY, Results, StorageError
from scboost_lab.runner import Task
from scboost_lab.scoring import SCORE_COLUMNS

N, POSITIVE = 120, 30


def main(words):
    return cli.main(["reproduce", *words])


@pytest.fixture
def data_dir(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4)).round(3)
    y = np.zeros(N, dtype=np.int64)
    y[np.argsort(X[:, 0] + rng.normal(size=N) / 2)[-POSITIVE:]] = 1
    columns = list("abcd")
    entry = replace(
        datasets.REGISTRY["QSAR"],
        n_rows=N,
        n_columns=4,
        n_positive=POSITIVE,
        checksum=content_checksum(columns, X, y),
    )
    monkeypatch.setitem(datasets.REGISTRY, "QSAR", entry)
    directory = tmp_path / "data"
    directory.mkdir()
    pd.DataFrame(X, columns=columns).assign(target=y).to_parquet(directory / "qsar_biodeg.parquet")
    return str(directory)


@pytest.fixture
def fits(monkeypatch):
    """Record what each fit sees instead of fitting."""
    seen = []

    def record(model, X, y, X_test, y_test):
        seen.append((X, y, X_test, y_test))
        return dict.fromkeys(SCORE_COLUMNS, 0.5)

    monkeypatch.setattr(experiments, "fit_and_score", record)
    return seen


def rows_of(X):
    return {tuple(row) for row in X}


def test_every_table_and_figure_of_the_paper_has_an_experiment():
    figures = {"noise", "learning_rate", "spectrum", "depth"}
    assert {"table1", "table2", "table3", "table4", "complexity", *figures} <= set(EXPERIMENTS)
    assert set(reproduction_tables.SECTIONS) == {*EXPERIMENTS, "timing"}


def test_table1_runs_resumes_and_leaves_its_provenance(data_dir, tmp_path):
    arguments = {"data_dir": data_dir, "datasets": ["QSAR"], "methods": ["RF", SCBOOST]}
    first = run("table1", tmp_path, n_folds=1, command="first", **arguments)
    both = run("table1", tmp_path, n_folds=2, command="second", **arguments)
    assert [row["status"] for row in both] == ["ok"] * 4
    assert first[0] in both
    assert all(0.5 < float(row["AUC"]) <= 1 for row in both)
    runs = json.loads((tmp_path / "table1.json").read_text())["runs"]
    assert [r["command"] for r in runs] == ["first", "second"]
    assert runs[0]["data"]["QSAR"].startswith("parquet:qsar_biodeg sha256:")
    assert runs[0][SCBOOST]["n_estimators"] == 100
    assert data_dir not in (tmp_path / "table1.json").read_text()


def test_results_are_replaced_on_request(data_dir, tmp_path, fits):
    arguments = {"data_dir": data_dir, "datasets": ["QSAR"], "methods": ["RF", "ADA"], "n_folds": 1}
    run("table1", tmp_path, **arguments)
    run("table1", tmp_path, **arguments)
    assert len(fits) == 2
    run("table1", tmp_path, **{**arguments, "methods": ["RF"]}, again=True)
    assert len(fits) == 3
    assert len(Results(tmp_path / "table1.csv").rows) == 2


def test_missing_baselines_and_data_sets_are_recorded_and_the_rest_runs(data_dir, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    arguments = {"data_dir": data_dir, "datasets": ["QSAR", "OVA_Uterus"], "methods": ["LGBM", "RF"], "n_folds": 1}
    rows = run("table1", tmp_path, **arguments)
    assert {(row["dataset"], row["method"]): row["status"].split(":")[0] for row in rows} == {
        ("QSAR", "LGBM"): "not installed",
        ("QSAR", "RF"): "ok",
        ("OVA_Uterus", "LGBM"): "not installed",
        ("OVA_Uterus", "RF"): "no data",
    }
    text = section("table1", tmp_path)
    assert "LGBM needs the package lightgbm" in text
    assert "from OpenML only" in text


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_noise_flips_that_many_training_labels_and_no_test_label(data_dir, fits, noise):
    task = Task("QSAR", "RF", 3)
    experiments.label_noise(task, {"noise": noise}, data_dir)
    experiments.defaults(task, {}, data_dir)
    (X, noisy, _, y_test), (X_clean, clean, _, y_test_clean) = fits
    assert np.sum(noisy != clean) == round(noise * len(clean))
    assert X.tolist() == X_clean.tolist()
    assert y_test.tolist() == y_test_clean.tolist()


def test_only_the_leaky_protocols_pass_test_samples_to_the_fit(data_dir, fits):
    task = Task("QSAR", "RF", 0)
    experiments.defaults(task, {}, data_dir)
    settings = (TRAINING_ROWS, UNDER, OVER, DRAWN)
    for setting in settings:
        experiments.leaky(task, EXPERIMENTS["protocols"].settings[setting], data_dir)
    honest, all_rows, under, over, drawn = (len(rows_of(X) & rows_of(X_test)) for X, _, X_test, _ in fits)
    assert honest == under == 0
    assert all_rows == len(fits[1][2])
    assert over > 0
    assert drawn > 0
    assert [len(X) + len(X_test) for X, _, X_test, _ in fits[2:]] == [2 * POSITIVE, 2 * (N - POSITIVE), 2 * POSITIVE]
    assert all(y_test.mean() == 0.5 for *_, y_test in fits[2:])
    experiments.leaky(Task("QSAR", "RF", 1), EXPERIMENTS["protocols"].settings[DRAWN], data_dir)
    assert rows_of(np.vstack([fits[4][0], fits[4][2]])) != rows_of(np.vstack([fits[5][0], fits[5][2]]))


def test_smote_interpolates_samples_of_the_minority_class():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.repeat([1, 0], [12, 48])
    filled, labels = datasets.smote(X, y, seed=1, n_neighbors=3)
    assert filled[:60].tolist() == X.tolist()
    assert labels.tolist() == [*y, *[1] * 36]
    ends = X[:12]
    directions = ends[:, None] - ends
    for point in filled[60:]:
        to_ends = ends - point
        between = np.einsum("id,jd->ij", to_ends, to_ends) < 0
        across = to_ends[:, None, 0] * directions[..., 1] - to_ends[:, None, 1] * directions[..., 0]
        assert np.any(between & (np.abs(across) < 1e-12))


def test_smote_and_duplicates_change_only_their_part_of_the_protocol(data_dir, fits):
    task, settings = Task("QSAR", "RF", 0), EXPERIMENTS["protocols"].settings
    for setting in (SMOTE, SMOTE_INSIDE, DISTINCT):
        experiments.leaky(task, settings[setting], data_dir)
    experiments.defaults(task, {}, data_dir)
    before, inside, distinct, honest = fits
    assert [len(X) + len(X_test) for X, _, X_test, _ in (before, distinct)] == [2 * (N - POSITIVE), N]
    assert inside[1].mean() == before[3].mean() == 0.5
    assert inside[2].tolist() == honest[2].tolist()
    assert rows_of(inside[0]) > rows_of(honest[0])


def test_duplicated_samples_are_removed(fits, monkeypatch):
    X, y = np.repeat(np.arange(40.0), 2)[:, None], np.repeat([0, 1], 40)
    monkeypatch.setattr(experiments, "prepared", lambda *_: datasets.Dataset("QSAR", X, y, "", ""))
    experiments.leaky(Task("QSAR", "RF", 0), EXPERIMENTS["protocols"].settings[DISTINCT], None)
    ((X_train, _, X_test, _),) = fits
    assert len(X_train) + len(X_test) == 40
    assert rows_of(X_train) | rows_of(X_test) == rows_of(X)


def test_labels_leak_only_where_the_protocol_says(data_dir, monkeypatch):
    seen = []
    monkeypatch.setattr(experiments, "fit_and_score", lambda *rows, **given: seen.append((rows[1:], given)) or {})
    task = Task("QSAR", SCBOOST_PAPER, 0)
    experiments.defaults(task, {}, data_dir)
    for setting in (TEST_WEIGHTS, ALL_ROWS, SIGN, TRAINING_SIGN):
        experiments.leaky(task, EXPERIMENTS["protocols"].settings[setting], data_dir)
    (honest, none), (weights, given), (everything, _), (sign, _), (training_sign, _) = seen
    assert not none
    assert all(np.array_equal(a, b) for a, b in zip(weights, honest, strict=True))
    assert np.array_equal(given["X_val"], honest[2])
    assert np.array_equal(given["y_val"], honest[3])
    assert np.array_equal(everything[0], honest[0])
    assert rows_of(everything[2]) == rows_of(honest[0]) | rows_of(honest[2])
    for X, y in (sign[:2], sign[2:], training_sign[:2]):
        assert np.array_equal(X[:, -1] > 0, y == 1)
    assert np.isnan(training_sign[2][:, -1]).all()


def test_the_literal_algorithm_reports_its_collapse(data_dir, tmp_path):
    (row,) = run("collapse", tmp_path, data_dir=data_dir, datasets=["QSAR"], n_folds=1)
    energy = [float(v) for v in row["energy_kept"].split()]
    assert row["status"] == "ok"
    assert len(energy) == 100
    assert energy[0] == 1.0
    assert 0 <= min(energy) <= max(energy) <= 1.0
    assert 1 <= int(row["trees_kept_0.1"]) <= 100
    assert float(row["F_largest"]) <= 1.0
    assert float(row["gap"]) < 1e-6


def test_trials_after_an_interruption_are_those_of_an_uninterrupted_run(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "make", lambda method, seed, **params: params)

    def score(model, *fold):
        return dict.fromkeys(SCORE_COLUMNS, 1 / (1 + abs(model["n_estimators"] - 120)))

    monkeypatch.setattr(experiments, "fit_and_score", score)
    arguments = {"data_dir": data_dir, "datasets": ["QSAR"], "methods": ["RF", "ADA"]}
    whole = run("table2", tmp_path / "a", trials=13, **arguments)
    run("table2", tmp_path / "b", trials=11, **arguments)
    parts = run("table2", tmp_path / "b", trials=13, **arguments)
    assert whole == parts
    params = [json.loads(row["params"]) for row in whole if row["method"] == "RF"]
    assert len({p["n_estimators"] for p in params}) > 5
    assert all(50 <= p["n_estimators"] <= 200 and 3 <= p["max_depth"] <= 8 for p in params)


def test_ngboost_learns_the_same_from_a_table_without_its_zeros():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)) * (rng.random((200, 6)) < 0.2)
    y = (X[:, 0] + X[:, 1] + rng.normal(size=200) / 3 > 0).astype(np.int64)
    short = without_zeros(X)
    assert short.nnz == np.count_nonzero(X) < X.size / 4
    assert isinstance(without_zeros(X + 1), np.ndarray)
    whole, sparse = (make("NGB", 0, n_estimators=20).fit(table, y).predict_proba(X) for table in (X, short))
    np.testing.assert_allclose(sparse, whole, atol=1e-9)


def test_a_trial_stops_if_its_folds_are_significantly_below_the_best(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "make", lambda method, seed, **params: params)
    accuracies = {}

    def score(model, *fold):
        rng = np.random.default_rng([model["n_estimators"], len(accuracies.setdefault(str(model), []))])
        accuracies[str(model)].append(np.clip(0.5 + model["max_depth"] / 20 + rng.normal() / 50, 0, 1))
        return dict.fromkeys(SCORE_COLUMNS, accuracies[str(model)][-1])

    monkeypatch.setattr(experiments, "fit_and_score", score)
    rows = run("table2", tmp_path, data_dir=data_dir, datasets=["QSAR"], methods=["RF"], trials=12)
    best = [0.0] * 10
    for row in rows:
        found = [float(v) for v in row["ACC_folds"].split()]
        n = int(row["folds_run"])
        assert len(found) == n
        assert row["stopped"] == str(int(n < 10))
        if n < 10:
            lower = [f - b for f, b in zip(found, best, strict=False)]
            assert wilcoxon(lower, alternative="less").pvalue < 0.1
            assert wilcoxon(lower[:-1], alternative="less").pvalue >= 0.1 or sum(found[:-1]) / (n - 1) >= sum(best) / 10
        elif float(row["ACC"]) > sum(best) / 10:
            best = found
    assert 0 < sum(row["stopped"] == "1" for row in rows) < len(rows)
    assert max(rows, key=lambda row: float(row["ACC"]))["stopped"] == "0"


@pytest.mark.parametrize("name", ["table3", "spectrum", "depth"])
def test_the_measures_of_the_learners(data_dir, tmp_path, monkeypatch, name):
    small = replace(EXPERIMENTS[name], datasets=("QSAR",))
    monkeypatch.setitem(EXPERIMENTS, name, small)
    rows = run(name, tmp_path, data_dir=data_dir, n_folds=1)
    assert {row["status"] for row in rows} == {"ok"}
    for row in rows:
        if name == "table3" and int(row["learners"]) > 1:  # a perfect first tree leaves nothing to a second
            assert 0 <= float(row["Dis"]) <= 0.51
            assert 0 <= float(row["differ"]) <= 1 - 1 / float(row["learners"])
            assert (row["staged_differ"] == "") == (row["method"] in ("RF", "ADA"))
            assert row["staged_differ"] == "" or 0 <= float(row["staged_differ"]) <= 0.5  # of two classes
            assert -1 <= float(row["Q-s"]) <= 1
        if name == "spectrum":
            s = [float(v) for v in row["singular_values"].split()]
            assert s[0] == 1.0
            assert s == sorted(s, reverse=True)
    assert "QSAR" in section(name, tmp_path) or name == "depth"


def test_complexity_times_the_svds(tmp_path, monkeypatch):
    settings = {"n=200 T=5": {"n": 200, "T": 5}}
    monkeypatch.setitem(EXPERIMENTS, "complexity", replace(EXPERIMENTS["complexity"], settings=settings))
    rows = run("complexity", tmp_path, n_folds=1)
    assert {row["status"] for row in rows} == {"ok"}
    assert all(float(row["fit_seconds"]) > 0 for row in rows)
    assert [row["svd_seconds"] != "" for row in rows] == [row["method"] == "literal" for row in rows]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table9"], "unknown experiment 'table9'; known: table1"),
        (["table1", "--datasets", "iris"], "unknown dataset 'iris'; known: Madelon"),
        (["table1", "--methods", "SVM"], "unknown method 'SVM'; known: RF"),
        (["table1", "--folds", "11"], "--folds must be between 1 and 10, got 11"),
        (["table1", "--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["table1", "--data-dir", "no/such/place"], "--data-dir is 'no/such/place', which is not a directory"),
        (["table4", "--datasets", "Letter"], "nothing to do for Table 4: ablation: it has the datasets Jasmine"),
    ],
)
def test_invalid_arguments_are_reported_before_any_work(words, message, tmp_path, capsys):
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert f"error: {message}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_command_runs_prints_and_renders(data_dir, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--data-dir", data_dir, "--out", str(out), "--datasets", "QSAR", "--methods", "RF"]
    assert main(["table1", "timing", *words, "--folds", "1"]) == 0
    printed = capsys.readouterr().out
    assert "## Table 1" in printed
    assert "## Wall-clock table" in printed
    assert main(["page", "--out", str(out), "--page", str(tmp_path / "page.md")]) == 0
    assert "# Reproduction of the paper" in (tmp_path / "page.md").read_text()
    command = json.loads((out / "table1.json").read_text())["runs"][0]["command"]
    assert command == "scboost-lab reproduce table1 --datasets QSAR --methods RF --folds 1"


def test_all_skips_experiments_without_selected_data_sets(data_dir, tmp_path, capsys, fits):
    out = tmp_path / "out"
    words = ["--data-dir", data_dir, "--out", str(out), "--datasets", "QSAR", "--methods", "RF"]
    assert main(["all", *words, "--folds", "1", "--trials", "1"]) == 0
    captured = capsys.readouterr()
    assert "skipped: nothing to do for Table 4" in captured.err
    assert f"wrote {out / 'reproduction.md'}" in captured.out
    assert {path.stem for path in out.glob("*.csv")} == {"table1", "table2", "protocols"}


def test_quick_is_small():
    class Args:
        datasets = None
        quick = True

    chosen = reproduce._chosen_datasets(Args, EXPERIMENTS["table1"])
    assert set(chosen) == {"QSAR", "Jasmine", "Creditcard"}


def test_a_full_disk_is_reported_and_the_folds_are_kept(data_dir, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    words = ["table1", "--data-dir", data_dir, "--out", str(out), "--datasets", "QSAR", "--methods", "RF"]
    assert main([*words, "--folds", "1"]) == 0

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scboost_lab.results.os.fsync", full)
    assert main([*words, "--folds", "2"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert Results(out / "table1.csv").values("ACC", dataset="QSAR", method="RF")


def write(path, columns, rows):
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*KEY, *columns, "status"], restval="")
        writer.writeheader()
        writer.writerows({"seed": 42, "setting": "", "status": "ok", **row} for row in rows)


def test_the_papers_tables_are_complete():
    sizes = {"table1": 10 * 3 * 8, "table2": 5 * 3 * 8, "table3": 3 * 3 * 8, "table4": 3 * 3 * 3, "timing": 5 * 8}
    assert {name: len(paper(name)) for name in sizes} == sizes
    assert paper("table1")["Madelon", "SCBoost", "ACC"] == 0.9396


def test_every_cell_shows_ours_the_papers_and_the_difference(tmp_path):
    rows = [
        {"dataset": "Madelon", "method": m, "fold": f, "ACC": 0.70 + 0.01 * f, "F1": 0.5, "AUC": 0.6, "log_loss": 0.4}
        for m in ("RF", SCBOOST_PAPER, SCBOOST)
        for f in range(10)
    ]
    write(tmp_path / "table1.csv", SCORE_COLUMNS, rows)
    text = section("table1", tmp_path)
    assert "| RF | 0.7450# | 0.7150 | +0.0300 | 0.5000# | 0.7210 | -0.2210 |" in text
    assert f"| {SCBOOST_PAPER} | 0.7450# | 0.9396 | -0.1946 |" in text
    assert f"| {SCBOOST} | 0.7450 | - | - |" in text


def test_the_default_column_selects_its_rounds_and_is_otherwise_untouched():
    model, untouched = make(SCBOOST_DEFAULT, 42, n_estimators=7), SCBoostClassifier(random_state=42)
    assert model.get_params() == {**untouched.get_params(), "n_jobs": 1}
    assert SCBOOST_DEFAULT in EXPERIMENTS["table1"].methods
    assert not any(SCBOOST_DEFAULT in EXPERIMENTS[name].methods for name in EXPERIMENTS if name != "table1")


def test_the_default_is_counted_as_higher_only_above_the_best_tuned_baseline(tmp_path):
    tuned = {"Jasmine": {"RF": (0.80, 0.90), "XGB": (0.82, 0.85)}, "Madelon": {"RF": (0.70, 0.70), "XGB": (0.6, 0.8)}}
    rows = [
        {"dataset": d, "method": m, "fold": trial, "ACC": acc - 0.1 * trial, "AUC": auc + 0.05 * trial, "F1": 0.5}
        | {f"{k}_folds": "0.5 0.6" for k in ("ACC", "F1", "AUC")}
        | {"params": "{}", "folds_run": 10, "stopped": 0}
        for d, of_set in tuned.items()
        for m, (acc, auc) in of_set.items()
        for trial in range(2)  # the second has the higher AUC, but accuracy selects
    ]
    write(tmp_path / "table2.csv", EXPERIMENTS["table2"].columns, rows)
    ours = [
        {"dataset": d, "method": SCBOOST_DEFAULT, "fold": 0, "ACC": acc, "AUC": auc, "F1": 0.5, "log_loss": 0.4}
        for d, acc, auc in (("Jasmine", 0.81, 0.91), ("Madelon", 0.65, 0.79))
    ]
    write(tmp_path / "table1.csv", SCORE_COLUMNS, ours)
    text = section("table2", tmp_path)
    assert "| Jasmine | 0.8200 XGB | - | 0.8100 | 0.9000 RF | - | 0.9100 |" in text
    assert "higher on 0 of 2 sets, its AUC on 1 of 2" in " ".join(text.split())


def test_the_exponents_of_a_known_law_are_found(tmp_path):
    rows = [
        {"dataset": "synthetic", "method": "literal", "fold": f, "setting": f"n={n} T={T}"}
        | {"fit_seconds": 1e-9 * n * T**3 * (1 + f), "svd_seconds": 1e-9 * n**2 * T}
        for n, T in [(100, 10), (200, 10), (400, 20), (400, 40), (800, 10)]
        for f in range(2)
    ]
    write(tmp_path / "complexity.csv", ("fit_seconds", "svd_seconds"), rows)
    results = Results(tmp_path / "complexity.csv")
    assert reproduction_tables.exponents(results, "literal", "fit_seconds") == pytest.approx((1, 3))
    assert reproduction_tables.exponents(results, "literal", "svd_seconds") == pytest.approx((2, 1))


def test_missing_results_and_unwritable_pages_are_reported(tmp_path):
    write_page(tmp_path, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert text.count("Not run.") >= 8
    assert "nan" not in text
    with pytest.raises(StorageError, match="the result files are complete"):
        write_page(tmp_path, tmp_path / "page.md" / "below" / "page.md")


def test_the_tuned_table_prints_its_number_of_trials(tmp_path):
    folds = " ".join(["0.8"] * 10)
    rows = [
        {
            "dataset": "QSAR",
            "method": m,
            "fold": f,
            "ACC": 0.8 + 0.01 * f,
            "F1": 0.8,
            "AUC": 0.8,
            "params": '{"max_depth": 3}',
            "stopped": int(f == 1),
        }
        | {f"{metric}_folds": folds for metric in ("ACC", "F1", "AUC")}
        for m, n in (("RF", 4), ("ADA", 2))
        for f in range(n)
    ]
    write(tmp_path / "table2.csv", EXPERIMENTS["table2"].columns, rows)
    text = section("table2", tmp_path)
    assert "**QSAR, 0 to 4 trials a cell, 2 of 6 stopped early** (the paper: 50)" in text
    assert "| RF | 4 | 1 | 0.8300 |" in text
    assert "| max_depth 3 |" in text
    assert "| GBDT | not run |" in text
    assert len(BASELINES) == 7


def test_values_that_differ_count_each_learner_with_itself():
    rng = np.random.default_rng(0)
    assert values_that_differ(rng.normal(size=(7, 100))) == pytest.approx(0.99)
    assert values_that_differ(np.ones((7, 100))) == 0
    H = rng.integers(0, 3, size=(11, 6)).astype(float)
    assert values_that_differ(H) == pytest.approx(np.mean(H[:, :, None] != H[:, None, :]))


def test_two_rows_of_the_printed_diversity_table_are_the_same():
    printed = paper("table3")
    of = {m: {(d, s): v for (d, method, s), v in printed.items() if method == m} for m in ("XGB", "LGBM", "CAT")}
    assert len(of["XGB"]) == 9
    assert of["XGB"] == of["LGBM"] != of["CAT"]


def test_the_printed_accuracies_of_scene_are_counts_among_twice_its_positives():
    rounding = 0.5e-4
    assert reproduction_page._from_whole("Scene", 862) <= 862 * rounding
    assert reproduction_page._from_whole("Scene", 2407) > 2407 * rounding
