"""Every block of Python in the guide and on the first pages runs, page by page, as a reader would paste it."""

import re
import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted([*DOCS.glob("guide/*.md"), DOCS / "start.md", DOCS.parent / "README.md"])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return [(text[: found.start(1)].count("\n"), found[1]) for found in BLOCK.finditer(text)]


def test_the_guide_has_a_page_for_each_entry_of_its_index_and_code_on_each():
    index = (DOCS / "guide" / "index.md").read_text(encoding="utf-8")
    listed = re.search(r"maxdepth: 1\n\n(.*?)```", index, re.DOTALL)[1].split()
    pages = {page.stem for page in DOCS.glob("guide/*.md")} - {"index"}
    assert set(listed) == pages
    assert all(blocks(DOCS / "guide" / f"{name}.md") for name in listed)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # Spark's cross-validation leaves its threads to it
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_the_code_of_the_page_runs(page, tmp_path, monkeypatch):
    if page.stem == "spark":
        pytest.importorskip("pyspark")
        if shutil.which("java") is None:
            pytest.skip("Spark needs a Java runtime")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": page.stem}
    for line, code in blocks(page):
        exec(compile("\n" * line + code, str(page), "exec"), namespace)  # noqa: S102 - our own pages
