"""The study of speed: what is timed, and the ratios on the page."""

import csv
import json

import pytest

from scboost_lab import speed
from scboost_lab.results import Results
from scboost_lab.runner import Task


def write_results(folder, factor):
    """Results in which we take a factor of the others' time."""
    with (folder / "speed.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["dataset", "method", "setting", "fold", "seed", *speed.COLUMNS, "status"])
        writer.writeheader()
        for name, load in speed.WORKLOADS.items():
            for method in load.methods:
                for fold, noise in enumerate((0.9, 1.0, 5.0)):
                    time = noise * (factor if method == speed.OURS else 1.0)
                    row = {"dataset": name, "method": method, "setting": "", "fold": fold, "seed": 42, "status": "ok"}
                    writer.writerow({**row, "cpu_seconds": time, "wall_seconds": 2 * time})
    ran = {speed.OURS: dict.fromkeys(speed.WORKLOADS, 3)}
    run = {"versions": {"scboost": "1.2"}, "python": "3", "command": "test", "date": "2026-01-01", "ran": ran}
    (folder / "speed.json").write_text(json.dumps({"runs": [run]}))


@pytest.mark.parametrize("factor", [0.25, 3.0])
def test_ratios_are_those_of_medians_and_missed_targets_are_marked(factor, tmp_path):
    write_results(tmp_path, factor)
    results = Results(tmp_path / "speed.csv")
    assert speed.ratio(results, "284 x 30", "XGBoost") == pytest.approx(factor)
    text = speed.page_text(tmp_path)
    assert f"{factor:.2f} of XGBoost" in text
    assert ("missed" in text) == (factor > 1)


@pytest.mark.parametrize("name", ["284 x 30", "500 predictions of one sample"])
@pytest.mark.parametrize("method", ["SCBoost", "XGBoost"])
def test_a_workload_takes_time(name, method):
    assert speed.run_one(Task(name, method, 0), {}, None)["cpu_seconds"] > 0


def test_methods_have_trees_of_one_size():
    X, y = speed.data(1_000, 20, 2)
    depths = [speed.estimator(m, "rounds", 20).get_params()["max_depth"] for m in speed.WORKLOADS["1,000 x 20"].methods]
    assert set(depths) == {6}
    assert X.shape == (1_000, 20)
    assert set(y) == {0, 1}
