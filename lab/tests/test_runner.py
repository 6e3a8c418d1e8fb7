"""Result files that survive interruption, folds, scores and marks."""

import errno
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import wilcoxon

from scboost_lab import models, results
from scboost_lab.comparisons import signed_rank_p, wilcoxon_mark
from scboost_lab.datasets import DataError
from scboost_lab.page import made_with
from scboost_lab.results import KEY, ResultFile, Results, StorageError, versions
from scboost_lab.runner import NotInstalledError, Task, run_tasks
from scboost_lab.scoring import SCORE_COLUMNS, flip, folds, scores

TASKS = [Task(d, m, f) for d in ("A", "B") for m in ("x", "y") for f in range(3)]


def value(task):
    """A value that depends on the task alone, as a fit with a fixed seed does."""
    return {"ACC": len(task.dataset + task.method) + task.fold / 7}


def quiet(_):
    pass


def result_file(tmp_path, name="r.csv"):
    return ResultFile(tmp_path / name, ("ACC",))


def test_an_interrupted_run_gives_the_results_of_an_uninterrupted_one(tmp_path):
    whole = run_tasks(TASKS, value, result_file(tmp_path, "whole.csv"), progress=quiet)
    calls = []

    def stopped(task):
        calls.append(task)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return value(task)

    parts = result_file(tmp_path, "parts.csv")
    with pytest.raises(KeyboardInterrupt):
        run_tasks(TASKS, stopped, parts, progress=quiet)
    assert len(parts.rows()) == 4
    ran_again = []

    def counted(task):
        ran_again.append(task)
        return value(task)

    assert run_tasks(TASKS, counted, parts, progress=quiet) == whole
    assert ran_again == TASKS[4:]
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_key_that_two_runs_wrote_counts_once(tmp_path):
    results = result_file(tmp_path)
    whole = run_tasks(TASKS, value, results, progress=quiet)
    last = results.path.read_text().splitlines(keepends=True)[-1]
    results.path.write_text(results.path.read_text() + last)
    assert results.rows() == whole
    assert run_tasks(TASKS, value, results, progress=quiet) == whole


@pytest.mark.parametrize("cut", [1, 7, 12])
def test_a_line_cut_off_by_a_kill_is_run_again(tmp_path, cut):
    results = result_file(tmp_path)
    whole = run_tasks(TASKS, value, results, progress=quiet)
    results.path.write_bytes(results.path.read_bytes()[:-cut])
    assert len(results.rows()) == len(TASKS) - 1
    assert run_tasks(TASKS, value, results, progress=quiet) == whole


def test_processes_give_the_same_results(tmp_path):
    alone = run_tasks(TASKS, value, result_file(tmp_path, "a.csv"), progress=quiet)
    assert run_tasks(TASKS, value, result_file(tmp_path, "b.csv"), jobs=2, progress=quiet) == alone


def test_failures_are_recorded_and_the_rest_runs(tmp_path):
    def work(task):
        if task.method == "x" and task.dataset == "A":
            raise NotInstalledError("x needs the package xlib")
        if task.dataset == "B" and task.method == "y":
            raise DataError("B cannot be had")
        if task.fold == 2:
            raise ZeroDivisionError("no\nrows")
        return value(task)

    results = result_file(tmp_path)
    rows = run_tasks(TASKS, work, results, progress=quiet)
    by_status = {row["status"] for row in rows}
    assert by_status == {
        "ok",
        "not installed: x needs the package xlib",
        "no data: B cannot be had",
        "failed: ZeroDivisionError: no rows",
    }
    assert {row["ACC"] for row in rows if row["status"] != "ok"} == {""}
    # what failed is tried again, what is done is not
    again = run_tasks(TASKS, value, results, progress=quiet)
    assert {row["status"] for row in again} == {"ok"}
    assert len(results.rows()) == len(TASKS)


def test_a_full_disk_keeps_the_finished_folds(tmp_path, monkeypatch):
    file = result_file(tmp_path)
    real = results.os.fsync
    written = []

    def fsync(descriptor):
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(results.os, "fsync", fsync)
    with pytest.raises(StorageError, match=r"r\.csv \(No space left on device\); the folds finished before are kept"):
        run_tasks(TASKS, value, file, progress=quiet)
    monkeypatch.setattr(results.os, "fsync", real)
    assert len(file.rows()) >= 3
    assert [row["status"] for row in run_tasks(TASKS, value, file, progress=quiet)] == ["ok"] * len(TASKS)


def test_unwritable_directories_are_reported_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")

    def never(task):
        raise AssertionError

    with pytest.raises(StorageError, match="nothing was run"):
        run_tasks(TASKS, never, ResultFile(tmp_path / "file" / "r.csv", ("ACC",)), progress=quiet)


def test_a_file_with_other_columns_is_not_touched(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(StorageError, match="has other columns"):
        run_tasks(TASKS, value, result_file(tmp_path), progress=quiet)
    assert path.read_text() == "a,b\n1,2\n"


def test_jobs_must_be_positive(tmp_path):
    with pytest.raises(ValueError, match="jobs must be at least 1, got 0"):
        run_tasks(TASKS, value, result_file(tmp_path), jobs=0)


def test_progress_shows_the_remaining_work(tmp_path):
    lines = []
    run_tasks(TASKS, value, result_file(tmp_path), progress=lines.append)
    assert lines[0] == "r.csv: 0 of 12 folds are there, 12 to run"
    assert lines[1].startswith("[1/12] A x fold 0: ")
    assert lines[-1].endswith("about 0 min 00 s left")


def test_folds_are_stratified_disjoint_and_fixed():
    y = np.array([0] * 70 + [1] * 30)
    cut = folds(y)
    assert [test.tolist() for _, test in cut] == [test.tolist() for _, test in folds(y)]
    assert sorted(np.concatenate([test for _, test in cut]).tolist()) == list(range(100))
    for train, test in cut:
        assert not set(train) & set(test)
        assert y[test].sum() == 3


def test_scores_count_class_one():
    y, p = np.array([1, 1, 1, 0]), np.array([0.9, 0.8, 0.1, 0.2])
    assert scores(y, p)["F1"] == pytest.approx(2 * 1.0 * (2 / 3) / (1 + 2 / 3))
    assert scores(1 - y, 1 - p)["F1"] == pytest.approx(2 * 0.5 * 1.0 / 1.5)
    assert scores(y, p)["AUC"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3, 0.5, 2.0])
def test_marks_are_those_of_scipys_test(shift):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=10), rng.normal(size=10) + shift
    p = wilcoxon(a, b).pvalue
    assert wilcoxon_mark(a, b) == ("**" if p < 0.01 else "*" if p < 0.05 else "")


@pytest.mark.parametrize("seed", range(5))
def test_the_signed_rank_test_is_scipys_with_ties_and_zeros_too(seed):
    d = np.random.default_rng(seed).integers(-2, 4, size=8).astype(float)
    assert signed_rank_p(d) == pytest.approx(wilcoxon(d).pvalue)


def test_each_run_records_how_its_results_were_made(tmp_path):
    file = result_file(tmp_path)
    for command, n in (("first", 4), ("nothing to do", 4), ("second", 12)):
        with file.recorded(command, data=lambda: {"A": "openml:1"}, jobs=1):
            run_tasks(TASKS[:n], value, file, progress=quiet)
    first, second = json.loads((tmp_path / "r.json").read_text())["runs"]
    assert (first["command"], second["command"]) == ("first", "second")
    assert first["ran"] == {"x": {"A": 3}, "y": {"A": 1}}
    assert second["ran"] == {"y": {"A": 2, "B": 3}, "x": {"B": 3}}
    assert first["data"] == {"A": "openml:1"}
    assert first["jobs"] == 1
    assert first["versions"] == versions()
    assert versions()["numpy"] == np.__version__


def test_an_interrupted_run_is_recorded(tmp_path):
    file = result_file(tmp_path)

    def stopped(task):
        if task.fold == 2:
            raise KeyboardInterrupt
        return value(task)

    with pytest.raises(KeyboardInterrupt), file.recorded("stopped"):
        run_tasks(TASKS, stopped, file, progress=quiet)
    (run,) = json.loads((tmp_path / "r.json").read_text())["runs"]
    assert run["ran"] == {"x": {"A": 2}}


def run_with_version(monkeypatch, file, version, tasks, work=value):
    monkeypatch.setattr(results, "versions", lambda: {"scboost": version})
    with file.recorded("command"):
        run_tasks(tasks, work, file, again=True, progress=quiet)


def test_results_have_the_version_of_the_run_that_wrote_them(tmp_path, monkeypatch):
    file = result_file(tmp_path)
    ours = [Task(d, "SCBoost", f) for d in ("A", "B") for f in range(3)]
    run_with_version(monkeypatch, file, "1", [*TASKS, *ours])
    assert Results(file.path).scboost_versions() == ["1"]
    run_with_version(monkeypatch, file, "2", TASKS, lambda task: {"ACC": -1.0})  # other methods are not scboost's
    assert Results(file.path).scboost_versions() == ["1"]
    run_with_version(monkeypatch, file, "3", ours[:4], lambda task: {"ACC": 3.0})  # all of A, one fold of B
    assert Results(file.path).scboost_versions() == ["1", "3"]
    run_with_version(monkeypatch, file, "4", ours, lambda task: {"ACC": 4.0})
    assert Results(file.path).scboost_versions() == ["4"]
    run_with_version(monkeypatch, file, "5", [replace(task, method="SCBoost-paper") for task in ours])
    found = made_with(Results(file.path))
    assert found == "The numbers of this page were made with scboost 4 for `SCBoost`, scboost 5 for `SCBoost-paper`."


def test_results_are_read_by_cell(tmp_path):
    file = result_file(tmp_path)
    run_tasks(TASKS[::-1], value, file, progress=quiet)
    read = Results(file.path)
    assert read.values("ACC", dataset="A", method="x") == pytest.approx([2.0, 2 + 1 / 7, 2 + 2 / 7], rel=1e-5)
    assert read.mean("ACC", dataset="B") == pytest.approx(2 + 1 / 7, rel=1e-5)
    assert np.isnan(read.mean("ACC", dataset="C"))
    assert read.distinct("dataset") == ["B", "A"]
    assert read.distinct("method", dataset="A") == ["y", "x"]
    assert Results(tmp_path / "absent.csv").rows == []


def test_flipped_labels():
    y = np.repeat([0, 1], 50)
    assert (flip(y, 0.2, np.random.default_rng(1)) != y).sum() == 20
    np.testing.assert_array_equal(flip(y, 0.0, np.random.default_rng(1)), y)


def test_a_missing_package_names_itself(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(NotInstalledError, match="LGBM needs the package lightgbm"):
        models.make("LGBM", 42)
    with pytest.raises(ValueError, match=r"unknown method 'GP'; known: RF, ADA"):
        models.make("GP", 42)


def test_the_baselines_have_the_papers_settings():
    for method in models.BASELINES:
        params = models.make(method, 42).get_params()
        assert params["n_estimators"] == 100
        if method != "NGB":  # turns its seed into a generator
            assert params["random_state"] == 42


def test_the_columns_of_a_score_file():
    header = ResultFile(Path("x.csv"), SCORE_COLUMNS).header
    assert header == [*KEY, "ACC", "F1", "AUC", "log_loss", "fit_seconds", "predict_seconds", "status"]


def test_a_page_names_one_or_two_commands_and_of_many_the_last(tmp_path):
    file = result_file(tmp_path)

    def said(*commands):
        for fold, command in enumerate(commands):
            with file.recorded(command):
                run_tasks([Task("A", "x", fold)], value, file, progress=quiet)
        return Results(file.path).made_by()

    assert "made by `lab a` and `lab b` with Python" in said("lab a", "lab b")
    many = said("lab a", "lab b", "lab c", "lab a")
    assert "`r.csv`: 4 rows, " in many
    assert "in `r.json`), the last of them by `lab a` with Python" in many
    assert "lab b" not in many
