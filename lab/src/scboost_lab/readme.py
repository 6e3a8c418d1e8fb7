"""The README: the output of its example, and the table and the speed from the committed results."""

from __future__ import annotations

import argparse
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

from scboost_lab.default_methods import ALL, AT_OWN, DEFAULT, N_FOLDS
from scboost_lab.default_results import StudyResults
from scboost_lab.results import Results
from scboost_lab.speed import N_ROUNDS, OURS, WORKLOADS, ratio, seconds

BEGIN, END = "<!-- headline: begin -->", "<!-- headline: end -->"
SPEED_BEGIN, SPEED_END = "  <!-- speed: begin -->", "  <!-- speed: end -->"


def table(results: Path) -> str:
    """Markdown table: mean over the sets and, in brackets, mean rank among the libraries at their own defaults."""
    study = StudyResults(results)
    folds = study.folds((DEFAULT, *AT_OWN), ALL)
    return f"{study.leaders((DEFAULT,), AT_OWN)}\n\nFolds of each set: {folds} of {N_FOLDS}."


def speed(results: Path) -> str:
    """Return the smallest and largest ratios of fit times to XGBoost, and the time of a small default fit."""
    found = Results(results / "speed.csv")
    ratios = [ratio(found, name, "XGBoost") for name, load in WORKLOADS.items() if load.what == "rounds"]
    predictions = ratio(found, "predictions of 500 trees, 100,000 x 30", "XGBoost")
    small = seconds(found, "default, 284 x 30", OURS)
    return (
        f"  {N_ROUNDS} rounds take {min(ratios):.1f} to {max(ratios):.1f} times the CPU time of XGBoost, predictions "
        f"{predictions:.1f} times.\n  A default fit on 284 samples, with its cross-validation, takes {small:.1f} s."
    )


def run_example(text: str) -> str:
    """Run the first Python block of a text, and put what it prints into the ``text`` block after it."""
    code = re.search(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    if code is None:
        raise ValueError("the text has no block of Python")
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(code[1], "README.md", "exec"), {"__name__": "README"})  # noqa: S102 - our own page
    before, after = text[: code.end()], text[code.end() :]
    pattern = re.compile(r"^```text\n.*?^```$", re.DOTALL | re.MULTILINE)
    return before + pattern.sub(lambda _: f"```text\n{printed.getvalue()}```", after, count=1)


def update(text: str, results: Path) -> str:
    """Put the table between its marks in a text."""
    return replace_between(text, BEGIN, END, table(results))


def update_speed(text: str, results: Path) -> str:
    """Put the sentence about speed between its marks in a text."""
    return replace_between(text, SPEED_BEGIN, SPEED_END, speed(results))


def replace_between(text: str, begin: str, end: str, content: str) -> str:
    """Replace what stands between two marks in a text."""
    before, _, rest = text.partition(begin)
    if end not in rest:
        raise ValueError(f"the text has no {begin} ... {end}")
    after = rest.partition(end)[2]
    return f"{before}{begin}\n{content}\n{end}{after}"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab readme``."""
    parser.add_argument("--readme", type=Path, default=Path("README.md"))
    parser.add_argument("--results", type=Path, default=Path("results"), help="directory of the result files")


def main(args: argparse.Namespace) -> int:
    """Rewrite the README's output, table and sentence."""
    text = update(run_example(args.readme.read_text(encoding="utf-8")), args.results / "default")
    args.readme.write_text(update_speed(text, args.results / "speed"), encoding="utf-8")
    return 0
