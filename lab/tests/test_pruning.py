"""The pruning experiment: it runs, resumes, and renders its page."""

import re

import pandas as pd
import pytest

from data_makers import two_classes
from scboost_lab import cli, pruning


@pytest.mark.filterwarnings("ignore:.* samples are too few for")  # a set of 200 rows keeps the test fast
def test_the_experiment_runs_resumes_and_renders(tmp_path, monkeypatch):
    X, y = two_classes(n=200, d=6)
    pd.DataFrame(X, columns=list("abcdef")).assign(target=y).to_parquet(tmp_path / "phoneme.parquet")
    monkeypatch.setattr(pruning, "TIMED_ROWS", 100)
    out, page = tmp_path / "pruning.csv", tmp_path / "redundancy.md"
    chosen = {"sets": ["phoneme"], "libraries": ["XGBoost"], "repeats": 1}
    rows = pruning.run(out, str(tmp_path), **chosen)
    assert [row["setting"] for row in rows] == list(pruning.TREATMENTS)
    assert {row["status"] for row in rows} == {"ok"}
    trees = {row["setting"]: int(row["trees"]) for row in rows}
    assert trees["pruned to 25"] <= 25
    assert trees["new model of 10"] == 10
    before = out.read_bytes()
    assert pruning.run(out, str(tmp_path), **chosen) == rows
    assert out.read_bytes() == before
    assert cli.main(["pruning", "--page-only", "--out", str(out), "--page", str(page)]) == 0
    assert "Pruned to 25 against *all trees*" in page.read_text()
    pictures = re.findall(r"\((figures/.*?)\)", page.read_text())
    assert len(pictures) == 2
    assert all((tmp_path / picture).stat().st_size > 10_000 for picture in pictures)
