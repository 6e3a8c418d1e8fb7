"""Every committed result names the command of this repository that makes it, and something quotes it."""

import io
import json
import os
import re
from pathlib import Path

import pytest

import command_line
import distributed_page
import reliability_page
from scboost_lab import benchmarks, default_page, guide, pruning, reproduction_page, speed, writeup
from scboost_lab.cli import COMMANDS

ROOT = Path(__file__).parents[2]
FILES = sorted(path for path in (ROOT / "results").rglob("*") if path.is_file())
TOOLS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tools").glob("*.py")}


def commands(record):
    """The commands that a record names; those of its runs if there are several."""
    runs = record.get("runs", []) if isinstance(record, dict) else []
    found = [run["command"] for run in runs if "command" in run]
    return found or ([record["command"]] if isinstance(record, dict) and "command" in record else [])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_command_of_the_repository_makes_the_file(path):
    record = path.with_suffix(".json")
    assert record.is_file(), "its record is missing"
    given = commands(json.loads(record.read_text(encoding="utf-8")))
    named = [command for command in given if command.startswith(("scboost-lab ", "python "))]  # not what was measured
    for command in named:
        program, name = command.split()[:2]
        if program == "python":
            assert (ROOT / name).is_file(), command
        else:
            assert name in COMMANDS, command
    # A tool may write a file without naming its command; then the tool names the file.
    assert named or any(path.name in text for text in TOOLS.values())


def test_every_command_of_the_lab_is_a_module_with_arguments_and_main():
    folder = ROOT / "lab" / "src" / "scboost_lab"
    for name in COMMANDS:
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        assert re.search(r"^def arguments\(", text, re.MULTILINE), name
        assert re.search(r"^def main\(", text, re.MULTILINE), name


def pages():
    """Make every generated document; the results are read on the way."""
    results = ROOT / "results"
    default_page.page_text(results / "default")
    pruning.page_text(results / "pruning.csv")
    reproduction_page.page_text(results / "reproduction")
    speed.page_text(results / "speed")
    benchmarks.page_text(results)
    benchmarks.compression_text(results)
    writeup.page_text(results)
    for name in guide.PAGES:
        guide.update((ROOT / "docs" / "guide" / f"{name}.md").read_text(encoding="utf-8"), name, results)
    reliability_page.page()
    distributed_page.page()
    command_line._memory()


def test_every_file_is_quoted_by_a_generated_document_or_by_name(monkeypatch):
    opened = set()

    def spy(name):
        real = getattr(io, name)

        def read(file, *args, **kwargs):
            opened.add(os.fspath(file) if isinstance(file, str | os.PathLike) else "")
            return real(file, *args, **kwargs)

        return read

    monkeypatch.setattr(io, "open", spy("open"))
    monkeypatch.setattr("builtins.open", io.open)
    pages()
    read = {Path(path).resolve() for path in opened if path}
    quoting = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.py"), ROOT / "CONTRIBUTING.md"]
    text = "".join(path.read_text(encoding="utf-8") for path in quoting)
    for path in FILES:
        same = {path, path.with_suffix(".csv"), path.with_suffix(".json")}
        named = any(each.relative_to(ROOT).as_posix() in text for each in same)
        assert same & read or named, f"nothing quotes {path.relative_to(ROOT)}: delete it, and what makes it"
