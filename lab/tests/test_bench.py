"""The benchmark, the demo and the command line."""

import json
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from scboost_lab import bench, bench_page, bench_profile, cli, demo
from scboost_lab.models import make
from scboost_lab.results import ResultFile, Results
from scboost_lab.runner import NotInstalledError


def test_exponent_of_a_power_law():
    x = [10.0, 20.0, 80.0]
    assert bench_page.exponent(x, [3 * v**1.7 for v in x]) == pytest.approx(1.7)


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
    monkeypatch.setattr(bench, "METHODS", dict(list(bench.METHODS.items())[:2]))
    monkeypatch.setattr(bench, "N_ROUNDS", 3)
    monkeypatch.setattr(bench, "import_seconds", lambda: 0.1)
    bench.predictions.cache_clear()
    return bench.run(tmp_path, ((200, 6),), (1,), 2, only="shapes")


def test_a_second_run_repeats_no_measurement(tmp_path, monkeypatch):
    calls = []
    first = fake_run(tmp_path, monkeypatch, calls)
    # runs alternate between the methods
    assert [c[0] for c in calls[:4]] == ["XGBoost", "SCBoost"] * 2
    assert calls[4:] == [("XGBoost", "SCBoost", 200, 1)] * 2
    second = fake_run(tmp_path, monkeypatch, calls)
    assert len(calls) == 6
    assert second.rows == first.rows


def file_of(folder, rows):
    """A result file of measurements."""
    file = ResultFile(folder / "bench.csv", bench.COLUMNS, bench.KEY)
    file.start()
    for row in rows:
        file.append({**row, "status": "ok"})
    return Results(file.path, bench.KEY)


def test_ratios_are_of_medians_to_xgboost_at_equal_threads(tmp_path):
    key = {"kind": "shape", "rows": 200, "columns": 6, "rounds": 100, "threads": 1}
    rows = [
        {**key, "method": method, "repeat": i, "fit_seconds": seconds + more}
        for i, seconds in enumerate((1.0, 2.0, 9.0))
        for method, more in (("XGBoost", 0), ("SCBoost", 1))
    ]
    rows.append({**key, "threads": 2, "method": "XGBoost", "repeat": 0, "fit_seconds": 100.0})
    lines = bench_page.ratio_table(file_of(tmp_path, rows), "fit_seconds", 1).splitlines()
    assert next(line for line in lines if line.startswith("| SCBoost |")) == "| SCBoost | 1.50 |"


def test_profile_accounts_for_the_whole_fit_and_leaves_no_trace(tmp_path, monkeypatch):
    from scboost._runtime.threads import Threads

    before = Threads.map_blocks
    monkeypatch.setattr(bench_profile, "CV_SHAPE", (300, 5))
    rows = bench_profile.profile(tmp_path, ((400, 6),))
    assert Threads.map_blocks is before
    for row in rows:
        parts = {name: float(row[name]) for name in (*bench.PARTS, "the rest")}
        ours = row["method"].startswith("SCBoost")
        assert all(seconds > 0 for part, seconds in parts.items() if ours or part in ("binning", "tree growth"))
        assert ours or parts["row blocks"] == parts["reading back"] == 0
        assert sum(parts.values()) == pytest.approx(float(row["seconds"]), abs=1e-3)
        most = 32 if row["method"] in ("XGBoost, depth 5", "SCBoost, paper form") else 64
        assert 2 <= float(row["leaves"]) <= most
    assert Results(tmp_path / "profile.csv", bench.PROFILE_KEY).rows == rows
    assert {row["method"] for row in rows} == {*bench.BASES, *bench.BASES.values()}


def test_many_cores_divide_everything_but_the_serial_part(tmp_path):
    file = ResultFile(tmp_path / "profile.csv", ("leaves", "seconds", *bench.PARTS, "the rest"), bench.PROFILE_KEY)
    file.start()
    for method, parts in {"SCBoost": (16, 32, 16, 3, 1), "XGBoost": (16, 32, 0, 0, 1)}.items():
        times = dict(zip((*bench.PARTS, "the rest"), parts, strict=True))
        for n in (1000, 1_000_000):
            key = {"method": method, "rows": n, "columns": 20, "repeat": 0}
            file.append({**key, **times, "leaves": 9, "seconds": sum(parts), "status": "ok"})
    few, many = bench_page.cores_table(Results(file.path, bench.PROFILE_KEY)).splitlines()[-2:]
    # 4 of 52 seconds of rounds are serial; 68 / 49, 4 + 64 / 16 over 1 + 48 / 16
    assert many.startswith("| 1,000,000 x 20 | 7.7 % | 68.00 s, 1.39 |")
    assert "| 8.00 s, 2.00 |" in many
    # Few rows stay on one thread: 20 of 52, 20 + 48 / 16 over the same
    assert few.startswith("| 1,000 x 20 | 38.5 % | 68.00 s, 1.39 |")
    assert "| 23.00 s, 5.75 |" in few


def test_the_largest_shape_is_measured_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "SCALE_SHAPE", (300, 6))
    monkeypatch.setattr(bench, "SCALE_ROUNDS", 2)
    monkeypatch.setattr(bench, "import_seconds", lambda: 0.1)
    results = bench.run(tmp_path, threads=(1,), repeat=1, only="scale")
    assert [row["method"] for row in results.rows] == ["XGBoost", "SCBoost", "LightGBM"]
    assert all(float(row["fit_seconds"]) > 0 and row["status"] == "ok" for row in results.rows)
    lines = bench_page.scale_table(results).splitlines()
    assert lines[2].startswith("| XGBoost |")
    assert "| 1.00 |" in lines[2]


def test_short_actions_are_timed_many_times(monkeypatch):
    clock = iter(float(t) for t in (0, 1, 10, 14, 20, 22, 30, 33))  # four actions of 1, 4, 2 and 3 seconds
    monkeypatch.setattr(bench, "SHORT", 9)
    monkeypatch.setattr(bench.time, "process_time", lambda: next(clock))
    assert bench.median_seconds(lambda: None, 1) == 2.5


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


def test_a_cross_validation_fits_every_split(monkeypatch):
    monkeypatch.setattr(bench, "CV_FITS", 3)
    fitted = []
    make_model = bench.make_model

    def record(method, n, rounds, threads):
        fitted.append((method, n, rounds, threads))
        return make_model(method, n, rounds, threads)

    monkeypatch.setattr(bench, "make_model", record)
    assert bench.time_cross_validation("XGBoost", 200, 6, 2) > 0
    assert fitted == [("XGBoost", 200, 2, 1)] * 3


def test_other_libraries_use_the_tree_shape_of_our_default():
    ours = bench.make_model("SCBoost", 1000, 50, 1)
    peer = bench.make_model("XGBoost", 1000, 50, 1)
    assert peer.max_leaves == (ours.max_leaves or 0)
    assert peer.colsample_bytree == ours.colsample_bytree
    assert peer.reg_lambda == ours.reg_lambda
    with pytest.raises(ValueError, match="unknown method 'other'"):
        bench.make_model("other", 10, 1, 1)


def test_the_page_is_made_from_the_results(tmp_path):
    rows = []
    for method, factor in (("XGBoost", 1.0), ("SCBoost", 1.2), ("SCBoost, paper form", 1.5), ("XGBoost, depth 5", 1.0)):
        own = {"method": method, "threads": 1, "repeat": 0, "columns": 16}
        rows.append({"kind": "shape", "rows": 200, "rounds": 100, "fit_seconds": factor, **own})
        rows.append({"kind": "predict", "rows": 200, "rounds": 100, "predict_seconds": 1.0, **own})
        rows += [{"kind": "rows", "rows": n, "rounds": 50, "fit_seconds": factor * n, **own} for n in (10, 100)]
        rows += [{"kind": "rounds", "rows": 10, "rounds": T, "fit_seconds": factor * T**2, **own} for T in (400, 800)]
        for T in (50, 200):
            peak = 200_000 * T * (8 if factor == 1.5 else 4)
            rows.append({"kind": "memory", "rows": 200_000, "rounds": T, "peak_bytes": peak, **own})
        peak = 1_000_000 * (factor * 100)
        rows.append({"kind": "memory", "rows": 1_000_000, "rounds": bench.PEAK_ROUNDS, "peak_bytes": peak, **own})
        rows.append({"kind": "cv", "rows": 1_000, "rounds": 100, "fit_seconds": factor, **own})
        times = {"predict_seconds": 0.25, "matrix_seconds": factor}
        rows.append({"kind": "trees", "rows": 100_000, "rounds": 100, **times, **own})
    file_of(tmp_path, rows)
    made = {"command": "scboost-lab bench", "date": "2026-01-01", "machine": "m", "import_seconds": 0.4}
    runs = [{**made, "python": "3", "versions": {"scboost": "0.0.7"}}]
    (tmp_path / "bench.json").write_text(json.dumps({"runs": runs}))
    words = ["--page-only", "--threads", "1", "--output", str(tmp_path), "--docs", str(tmp_path / "docs")]
    assert cli.main(["bench", *words]) == 0
    text = (tmp_path / "docs" / "speed.md").read_text()
    assert "The numbers of this page were made with scboost 0.0.7." in text
    assert "| fit / XGBoost, 200 x 16 | at most 1.4 | 1.20 |" in text
    assert "| predict / XGBoost, 200 x 16 | at most 1.05 | 1.00 |" in text
    assert "| 800 rounds / 400 rounds | at most 2.1 | 4.00 (short) |  |" in text
    assert "| 200 fits / XGBoost, 1,000 x 20 | at most 2 | 1.20 |  |" in text
    assert "| paper form / XGBoost, depth 5, 200 x 16 | at most 1.5 | 1.50 |" in text
    assert "| bytes a row above XGBoost's peak, 1,000,000 x 30 | at most 40 | 20 |  |" in text
    assert "| paper form: bytes per row and round remembered | at most 4 | 4.00 |  |" in text
    assert "above `import xgboost` | at most 0.3 | 0.40 (short) |  |" in text
    assert "| SCBoost | 1.00 | 2.00 | 4.00 |" in text  # linear in rows, quadratic in rounds
    assert "| SCBoost, paper form | 76 MB | 305 MB | 4.00 |" in text  # 8 bytes, of which XGBoost's are 4
    assert "| SCBoost | 0.250 s | 4.80 |  |  |" in text
    assert (tmp_path / "docs" / "figures" / "speed.png").stat().st_size > 1000


def test_without_the_resource_module_memory_is_reported_as_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.setattr(bench.importlib.util, "find_spec", lambda name: None)
    chosen = {m.what for m in bench.measurements(("XGBoost",), ((200, 6),), (1,), 1, only="")}
    assert chosen == {"shape", "predict", "rows", "rounds", "cv", "trees"}
    assert "memory is not measured: this requires Linux" in capsys.readouterr().err


def test_the_literal_algorithm_is_scaled_up_to_all_rounds(monkeypatch):
    ticks = iter([0.0, 2.0])
    monkeypatch.setattr(bench.time, "process_time", lambda: next(ticks))
    monkeypatch.setattr("scboost_lab.literal.fit_literal", lambda *_, **__: None)
    assert bench.time_literal(*bench.make_data(200, 6), rounds=10) == 20.0


def test_the_demo_compares_libraries_and_writes_its_results(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    X["kind"] = pd.Categorical(rng.choice(["x", "y", None], 300))
    y = (X["a"] + (X["kind"] == "x") > 0).to_numpy().astype(int)
    monkeypatch.setattr(demo, "load", lambda: demo.Split(X[:200], X[200:], y[:200], y[200:]))
    monkeypatch.setitem(demo.METHODS, "SCBoost", {"n_estimators": 20})
    monkeypatch.setitem(demo.METHODS, "CAT", {"n_estimators": 20})
    monkeypatch.setattr(demo, "TEACHER_TREES", 30)

    def without_lightgbm(method, seed, **params):
        if method == "LGBM":
            raise NotInstalledError("LGBM needs the package lightgbm")
        return make(method, seed, **params)

    monkeypatch.setattr(demo, "make", without_lightgbm)
    monkeypatch.chdir(tmp_path)
    results = demo.run(tmp_path / "out")
    out = capsys.readouterr().out
    assert [row.name for row in results] == ["SCBoost", "CatBoost", "XGBoost", "HistGradientBoosting"]
    assert "not installed: LightGBM" in out
    assert "SCBoostClassifier: 20 trees" in out
    assert "samples like these get the same label" in out
    written = sorted(path.name for path in tmp_path.rglob("*"))
    assert written == ["defaults.png", "out", "report.html"]
    assert all(str(tmp_path / "out" / name) in out for name in ("report.html", "defaults.png"))


def test_only_the_command_that_is_run_is_imported():
    code = "from scboost_lab import cli; import sys; cli.main(['datasets', 'QSAR']); print(*sys.modules, sep=chr(10))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    loaded = set(done.stdout.split())
    assert "scboost_lab.datasets" in loaded
    assert not loaded & {f"scboost_lab.{name}" for name in cli.COMMANDS if name != "datasets"}
    assert not loaded & {"matplotlib", "xgboost", "resource", "scboost"}


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


def unexpected(*_):
    raise AssertionError("the signal was not handled")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupts_and_signals_print_no_traceback(monkeypatch, capsys, number):
    previous = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(demo, "run", lambda *_: signal.raise_signal(number))
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, unexpected)
        assert cli.main(["demo"]) == 130
        assert signal.getsignal(signal.SIGTERM) is unexpected
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)
    assert "finished results are kept" in capsys.readouterr().err


def test_a_closed_pipe_prints_no_traceback():
    command = f"{sys.executable} -m scboost_lab.cli datasets | true"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)  # noqa: S603
    assert "Traceback" not in done.stderr
