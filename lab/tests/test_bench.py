"""The benchmark, the demo and the command line."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scboost_lab import bench, cli, demo, headline


def test_exponent_of_a_power_law():
    x = [10.0, 20.0, 80.0]
    assert bench.exponent(x, [3 * v**1.7 for v in x]) == pytest.approx(1.7)


@pytest.mark.parametrize("text", ["13000", "axb", "50x16", "1000x3", "10x10x10"])
def test_shapes_that_are_none(text):
    with pytest.raises(bench.argparse.ArgumentTypeError, match=text):
        bench._shape(text)


def test_shapes_are_read():
    assert bench._shape("13_000x16") == (13_000, 16)


def fake_run(tmp_path, monkeypatch, calls):
    def time_fit(method, X, y, rounds, threads, rate=None):
        calls.append((method, len(X), rounds, threads))
        return len(calls) / 10

    def time_predictions(models, X, threads):
        calls.append((*models, len(X), threads))
        return dict.fromkeys(models, 0.5)

    monkeypatch.setattr(bench, "time_fit", time_fit)
    monkeypatch.setattr(bench, "time_predictions", time_predictions)
    monkeypatch.setattr(bench, "METHODS", ("XGBoost", "SCBoost"))
    monkeypatch.setattr(bench, "N_ROUNDS", 3)
    return bench.run(tmp_path, ((200, 6),), (1,), 2, only_shapes=True)


def test_a_second_run_measures_nothing_again(tmp_path, monkeypatch):
    calls = []
    first = fake_run(tmp_path, monkeypatch, calls)
    # runs alternate between the methods
    assert [c[0] for c in calls[:4]] == ["XGBoost", "SCBoost"] * 2
    assert calls[4:] == [("XGBoost", "SCBoost", 200, 1)] * 2
    second = fake_run(tmp_path, monkeypatch, calls)
    assert len(calls) == 6
    assert second.rows == first.rows


def test_ratios_are_of_medians_to_xgboost_at_equal_threads(tmp_path, monkeypatch):
    results = bench.Results(tmp_path / "bench.csv")
    key = {"kind": "shape", "rows": 200, "columns": 6, "rounds": 100, "threads": 1}
    for i, seconds in enumerate((1.0, 2.0, 9.0)):
        results.add(method="XGBoost", repeat=i, fit_seconds=seconds, **key)
        results.add(method="SCBoost", repeat=i, fit_seconds=seconds + 1, **key)
    results.add(**{**key, "threads": 2}, method="XGBoost", repeat=0, fit_seconds=100.0)
    row = next(line for line in bench.ratio_table(results, "fit_seconds", 1) if line.startswith("| SCBoost |"))
    assert row == "| SCBoost | 1.50 |"


def test_profile_accounts_for_the_whole_fit_and_leaves_no_trace(tmp_path):
    from scboost.boosting.history import History

    before = History.project
    rows = bench.profile(tmp_path, ((300, 6),))
    assert History.project is before
    for row in rows:
        parts = {name: row[name] for name in ("binning", "tree growth", "leaf assignment", "projection", "the rest")}
        ours = row["method"].startswith("SCBoost")
        assert all(seconds > 0 for part, seconds in parts.items() if ours or part in ("binning", "tree growth"))
        assert ours or parts["leaf assignment"] == parts["projection"] == 0
        assert sum(parts.values()) == pytest.approx(row["seconds"], abs=1e-3)
        assert 2 <= row["leaves"] <= (32 if row["method"] in ("XGBoost, depth 5", "SCBoost, paper form") else 64)
    with (tmp_path / "profile.csv").open(newline="") as file:
        assert [row["method"] for row in csv.DictReader(file)] == [row["method"] for row in rows]
    assert {row["method"] for row in rows} == {*bench.BASES, *bench.BASES.values()}


def test_short_actions_are_timed_many_times(monkeypatch):
    clock = iter(float(t) for t in (0, 1, 10, 14, 20, 22, 30, 33))  # four actions of 1, 4, 2 and 3 seconds
    monkeypatch.setattr(bench, "SHORT", 9)
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(clock))
    assert bench.median_seconds(lambda: None) == 2.5


def test_predictions_take_turns_and_are_those_of_the_models(monkeypatch):
    X, y = bench.make_data(300, 6)
    models = {method: bench.make_model(method, 300, 3, 2).fit(X, y) for method in bench.METHODS}
    expected = {method: model.predict_proba(X) for method, model in models.items()}
    seen = []
    predict = bench.predict

    def record(model, X, threads):
        seen.append((model, len(X)))
        return predict(model, X, threads)

    monkeypatch.setattr(bench, "predict", record)
    monkeypatch.setattr(bench, "SHORT", 1e-9)
    assert list(bench.time_predictions(models, X, 1)) == list(models)
    assert seen == [(model, 2) for model in models.values()] + [(model, 300) for model in models.values()]
    for method, model in models.items():
        np.testing.assert_array_equal(predict(model, X, 1), expected[method])


def test_the_tree_matrix_is_timed_for_every_library():
    for method in (*bench.METHODS, "RandomForest"):
        predict, matrix = bench.time_matrix(method, 300, 6, 1)
        assert predict > 0
        assert matrix > 0


def test_peers_have_the_shape_of_our_default():
    ours = bench.make_model("SCBoost", 1000, 50, 1)
    peer = bench.make_model("XGBoost", 1000, 50, 1)
    assert peer.max_leaves == (ours.max_leaves or 0)
    assert peer.colsample_bytree == ours.colsample
    assert peer.reg_lambda == ours.reg_lambda
    with pytest.raises(ValueError, match="unknown method 'other'"):
        bench.make_model("other", 10, 1, 1)


def test_the_page_is_made_from_the_results(tmp_path):
    results = bench.Results(tmp_path / "bench.csv")
    for method, factor in (("XGBoost", 1.0), ("SCBoost", 1.2), ("SCBoost, paper form", 1.5), ("XGBoost, depth 5", 1.0)):
        own = {"method": method, "threads": 1, "repeat": 0, "columns": 16}
        results.add(kind="shape", rows=200, rounds=100, fit_seconds=factor, **own)
        results.add(kind="predict", rows=200, rounds=100, predict_seconds=1.0, **own)
        for n in (10, 100):
            results.add(kind="rows", rows=n, rounds=50, fit_seconds=factor * n, **own)
        for T in (400, 800):
            results.add(kind="rounds", rows=10, rounds=T, fit_seconds=factor * T**2, **own)
        for T in (50, 200):
            results.add(
                kind="memory", rows=200_000, rounds=T, peak_bytes=200_000 * T * (8 if factor == 1.5 else 4), **own
            )
        results.add(kind="trees", rows=100_000, rounds=100, predict_seconds=0.25, matrix_seconds=factor, **own)
    info = {
        "command": "scboost bench",
        "date": "2026-01-01",
        "machine": "m",
        "versions": {"numpy": "2"},
        "import_seconds": 0.4,
    }
    (tmp_path / "bench.json").write_text(json.dumps(info))
    bench.page(results, tmp_path, tmp_path / "docs")
    text = (tmp_path / "docs" / "speed.md").read_text()
    assert "| fit / XGBoost, 200 x 16 | at most 1.4 | 1.20 |" in text
    assert "| predict / XGBoost, 200 x 16 | at most 1.05 | 1.00 |" in text
    assert "| 800 rounds / 400 rounds | at most 2.1 | 4.00 (short) | |" in text
    assert "| paper form: bytes per row and round remembered | at most 4 | 4.00 | |" in text
    assert "above `import xgboost` | at most 0.3 | 0.40 (short) | |" in text
    assert "| SCBoost | 1.00 | 2.00 | 4.00 |" in text  # linear in rows, quadratic in rounds
    assert "| SCBoost, paper form | 76 MB | 305 MB | 4.00 |" in text  # 8 bytes, of which XGBoost's are 4
    assert "| SCBoost | 0.250 s | 4.80 |  |  |" in text
    assert (tmp_path / "docs" / "figures" / "speed.png").stat().st_size > 1000


def test_the_literal_algorithm_is_scaled_up_to_all_rounds(monkeypatch):
    ticks = iter([0.0, 2.0])
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr("scboost_lab.literal.fit_literal", lambda *_, **__: None)
    assert bench.time_literal(*bench.make_data(200, 6), rounds=10) == 20.0


def test_the_demo_prints_a_table_and_draws_a_figure(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    y = (X[:, 0] + 0.5 * rng.normal(size=150) > 0).astype(float)
    monkeypatch.setattr(demo, "data_sets", lambda: {"digits, 5-9 against 0-4": (X, y)})
    monkeypatch.setattr(demo, "METHODS", ("SCBoost", demo.PLAIN, "XGB", "LGBM"))
    monkeypatch.setattr("scboost_lab.baselines.METHODS", {k: v for k, v in demo_methods().items() if k != "LGBM"})

    def missing(seed, **_):
        raise ImportError(name="lightgbm")

    monkeypatch.setitem(__import__("scboost_lab.baselines").baselines.METHODS, "LGBM", missing)
    results = demo.run(tmp_path)
    out = capsys.readouterr().out
    assert [r.method for r in results] == ["SCBoost", demo.PLAIN, "XGB"]
    assert all(r.n_trees == 100 and 0 < r.redundancy < 1 and r.auc > 0.7 for r in results)
    assert "not installed, left out: LightGBM" in out
    assert str(tmp_path) in out
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def demo_methods():
    from scboost_lab.baselines import METHODS

    return METHODS


def test_every_command_explains_itself(capsys):
    for command in cli.COMMANDS:
        with pytest.raises(SystemExit) as stop:
            cli.main([command, "--help"])
        assert stop.value.code == 0
        assert "usage: scboost-lab " + command in capsys.readouterr().out


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["bench", "--shapes", "3x"]])
def test_wrong_commands_end_with_code_2(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(argv)
    assert stop.value.code == 2
    assert "usage: scboost-lab" in capsys.readouterr().err


def test_an_interrupt_is_not_a_traceback(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", interrupted)
    assert cli.main(["demo"]) == 130
    assert "finished results are kept" in capsys.readouterr().err


def test_the_readmes_table_is_that_of_the_results():
    root = Path(__file__).parents[2]
    text = (root / "README.md").read_text()
    assert headline.update(text, root / "results" / "study") == text
    assert headline.update_speed(text, root / "results" / "speed") == text
    with pytest.raises(ValueError, match="headline: begin"):
        headline.update("nothing", root / "results" / "study")


def test_a_closed_pipe_is_not_a_traceback():
    command = f"{sys.executable} -m scboost_lab.cli datasets | true"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)  # noqa: S603
    assert "Traceback" not in done.stderr
