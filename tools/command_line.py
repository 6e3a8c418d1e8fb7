"""Write docs/command_line.md: the commands, and a session that is run as it is printed."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

from sklearn.datasets import load_breast_cancer

from scboost.cli import main

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "command_line.md"
MEMORY = ROOT / "results" / "cli_memory.json"
TEMPLATE = Path(__file__).with_name("command_line_page.md")

_SESSION = (
    "scboost train train.csv --target malignant -o model.json --param random_state=0",
    "scboost evaluate model.json test.csv",
    "scboost predict model.json test.csv -o predicted.csv --proba",
    "head -n 3 predicted.csv",
    "scboost compress model.json train.csv --certify test.csv --max-trees 20 -o small.json",
    "scboost evaluate small.json test.csv",
    "scboost report small.json test.csv -o report.html",
    "scboost export small.json --to sql --table patients --keep id -o small.sql",
    """python -c "import pandas, xgboost
rows = xgboost.DMatrix(pandas.read_csv('test.csv').drop(columns='malignant'))
print(xgboost.Booster(model_file='model.json').predict(rows)[:2].tolist())\"""",
)


def write_data(folder: Path) -> None:
    """Write the two files of the session."""
    table = load_breast_cancer(as_frame=True).frame
    table = table.assign(malignant=table.pop("target").map({0: "yes", 1: "no"})).iloc[:, [0, 1, 2, 3, 20, 21, 27, -1]]
    table[:400].to_csv(folder / "train.csv", index=False)
    table[400:].to_csv(folder / "test.csv", index=False)


def _output_of(command: str) -> str:
    words = shlex.split(command)
    if words[0] != "scboost":
        words[0] = sys.executable if words[0] == "python" else words[0]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout
    with redirect_stdout(io.StringIO()) as shown:
        code = main(words[1:])
    if code:
        raise RuntimeError(f"{command} ended with exit code {code}")
    return shown.getvalue()


def page() -> str:
    """Return the text of the page, with what the commands print."""
    before = Path.cwd()
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        os.chdir(folder)
        try:
            parts = [f"$ {command}\n{_output_of(command)}" for command in _SESSION]
        finally:
            os.chdir(before)
    return TEMPLATE.read_text().format(session="".join(parts), memory=_memory())


def _memory() -> str:
    result = json.loads(MEMORY.read_text())
    lines = [f"| {r['format']} | {r['rows']:,} | {r['file_MiB']:,} | {r['peak_MiB']:,.0f} |" for r in result["runs"]]
    return "\n".join(
        [
            "## Memory",
            "",
            "`predict` and `evaluate` read a file in chunks: what `predict` needs does not grow with it (`evaluate`",
            f"keeps targets and predictions). Measured by `{result['made_by']}` ({result['model']}, 10 columns,",
            f"`{result['command']}`):",
            "",
            "| format | rows | file, MiB | peak memory, MiB |",
            "|---|---|---|---|",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page())
