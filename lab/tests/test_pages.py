"""Generated documents match the committed results and name their version."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from scboost_lab import (
    benchmarks,
    default_page,
    guide,
    pruning,
    readme,
    reproduction_page,
    reproduction_tables,
    speed,
    writeup,
)
from scboost_lab.page import VERSION_LINE, fill, sections, template

ROOT = Path(__file__).parents[2]
PAGES = {
    "default": (default_page.page_text, "default"),
    "redundancy": (pruning.page_text, "pruning.csv"),
    "reproduction": (reproduction_page.page_text, "reproduction"),
    "speed": (speed.page_text, "speed"),
}


def records(source):
    """The JSON files beside the results of a page."""
    return [source.with_suffix(".json")] if source.suffix else sorted(source.glob("*.json"))


@pytest.mark.parametrize("name", PAGES)
def test_the_document_is_made_from_the_committed_results(name):
    text, source = PAGES[name]
    assert (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") == text(ROOT / "results" / source)


@pytest.mark.parametrize("name", PAGES)
def test_the_document_names_the_version_of_its_results(name):
    said = VERSION_LINE.findall((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"))
    assert len(said) == 1
    runs = [run for path in records(ROOT / "results" / PAGES[name][1]) for run in json.loads(path.read_text())["runs"]]
    assert set(re.findall(r"scboost (\S+?)[;.]?(?= |$)", said[0])) <= {run["versions"]["scboost"] for run in runs}


@pytest.mark.parametrize("name", PAGES)
def test_results_of_another_version_make_another_document(name, tmp_path):
    text, source = PAGES[name]
    results = ROOT / "results" / source
    copied = tmp_path / results.name
    if results.is_dir():
        shutil.copytree(results, copied)
    else:
        shutil.copy(results, copied)
        shutil.copy(results.with_suffix(".json"), tmp_path)
    for path in records(copied):
        content = json.loads(path.read_text())
        for run in content["runs"]:
            run["versions"]["scboost"] = "9.9"
        path.write_text(json.dumps(content))
    changed = text(copied)
    assert VERSION_LINE.findall(changed) == ["scboost 9.9"]
    assert changed != (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def test_the_page_of_benchmarks_is_made_from_the_committed_results(tmp_path):
    assert (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == benchmarks.page_text(ROOT / "results")
    compression = (ROOT / "docs" / "compression.md").read_text(encoding="utf-8")
    assert compression == benchmarks.compression_text(ROOT / "results")
    benchmarks.draw(ROOT / "results", tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text(encoding="utf-8").count("SCBoost best") == 1


def test_the_write_up_is_made_from_the_committed_results():
    text = (ROOT / "docs" / "writeup.md").read_text(encoding="utf-8")
    assert text == writeup.page_text(ROOT / "results"), "run `scboost-lab writeup`"
    assert len(text.split()) < 3000  # six pages


def test_the_readmes_table_is_that_of_the_results():
    text = (ROOT / "README.md").read_text()
    assert readme.update(text, ROOT / "results" / "default") == text
    assert readme.update_speed(text, ROOT / "results" / "speed") == text
    example = "```python\nprint(1 + 1)\n```\n\n```text\nold\n```\n\n```text\nother\n```\n"
    assert readme.run_example(example) == example.replace("old", "2")
    with pytest.raises(ValueError, match="headline: begin"):
        readme.update("nothing", ROOT / "results" / "default")


@pytest.mark.parametrize("name", guide.PAGES)
def test_the_guides_tables_are_those_of_the_results(name):
    text = (ROOT / "docs" / "guide" / f"{name}.md").read_text()
    assert guide.update(text, name, ROOT / "results") == text


def test_the_coverage_on_the_page_is_the_mean_over_data_sets():
    rows = pd.read_csv(ROOT / "results" / "uncertainty" / "coverage.csv")
    rows = rows[(rows["status"] == "ok") & rows["dataset"].str.endswith("_reg")]
    means = rows.groupby(["method", "dataset"])["coverage_80"].mean().groupby("method").mean()
    text = (ROOT / "docs" / "guide" / "uncertainty.md").read_text()
    line = next(line for line in text.splitlines() if line.startswith("| regression intervals"))
    for method in means.index:
        assert f"| {means[method]:.3f} /".replace("0.", ".") in line


def test_placeholders_and_values_must_match():
    assert fill("{a} {b.real:.1f} {c[x y]}", a=1, b=2.0, c={"x y": 3}) == "1 2.0 3"
    with pytest.raises(ValueError, match="or the reverse: b"):
        fill("{a} {b}", a=1)
    with pytest.raises(ValueError, match="or the reverse: c"):
        fill("{a}", a=1, c=2)


def test_every_section_of_the_reproduction_has_a_template():
    assert list(sections(template("reproduction"))) == ["", *reproduction_tables.SECTIONS]
