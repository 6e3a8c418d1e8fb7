"""Result files that survive interruption, folds, scores and marks."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import wilcoxon

from scboost_lab import baselines, protocol
from scboost_lab.datasets import DataError
from scboost_lab.protocol import (
    KEY,
    SCORE_COLUMNS,
    NotInstalledError,
    ResultFile,
    StorageError,
    Task,
    folds,
    run_tasks,
    scores,
    versions,
    wilcoxon_mark,
    write_provenance,
)

TASKS = [Task(d, m, f) for d in ("A", "B") for m in ("x", "y") for f in range(3)]


def value(task):
    """A value that depends on the task alone, as a fit with a fixed seed does."""
    return {"ACC": len(task.dataset + task.method) + task.fold / 7}


def quiet(_):
    pass


def result_file(tmp_path, name="r.csv"):
    return ResultFile(tmp_path / name, ("ACC",))


def test_an_interrupted_run_gives_the_rows_of_an_uninterrupted_one(tmp_path):
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


def test_processes_give_the_same_rows(tmp_path):
    alone = run_tasks(TASKS, value, result_file(tmp_path, "a.csv"), progress=quiet)
    assert run_tasks(TASKS, value, result_file(tmp_path, "b.csv"), jobs=2, progress=quiet) == alone


def test_what_fails_is_said_in_its_row_and_the_rest_runs(tmp_path):
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
    results = result_file(tmp_path)
    real = protocol.os.fsync
    written = []

    def fsync(descriptor):
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(protocol.os, "fsync", fsync)
    with pytest.raises(StorageError, match=r"r\.csv \(No space left on device\); the folds finished before are kept"):
        run_tasks(TASKS, value, results, progress=quiet)
    monkeypatch.setattr(protocol.os, "fsync", real)
    assert len(results.rows()) >= 3
    assert [row["status"] for row in run_tasks(TASKS, value, results, progress=quiet)] == ["ok"] * len(TASKS)


def test_a_directory_that_cannot_be_written_is_said_before_any_work(tmp_path):
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


def test_progress_says_what_is_left(tmp_path):
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


def test_provenance_is_added_run_by_run(tmp_path):
    path = tmp_path / "table1.csv"
    for command in ("first", "second"):
        write_provenance(path, command=command, data={"A": "openml:1"}, extra={"jobs": 1})
    runs = json.loads((tmp_path / "table1.json").read_text())["runs"]
    assert [run["command"] for run in runs] == ["first", "second"]
    assert runs[0]["versions"] == versions()
    assert versions()["numpy"] == np.__version__


def test_a_missing_package_names_itself(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(NotInstalledError, match="LGBM needs the package lightgbm"):
        baselines.make("LGBM", 42)
    with pytest.raises(ValueError, match=r"unknown method 'GP'; known: RF, ADA"):
        baselines.make("GP", 42)


def test_the_baselines_have_the_papers_settings():
    for method in baselines.BASELINES:
        params = baselines.make(method, 42).get_params()
        assert params["n_estimators"] == 100
        if method != "NGB":  # turns its seed into a generator
            assert params["random_state"] == 42


def test_the_columns_of_a_score_file():
    header = ResultFile(Path("x.csv"), SCORE_COLUMNS).header
    assert header == [*KEY, "ACC", "F1", "AUC", "log_loss", "fit_seconds", "predict_seconds", "status"]
