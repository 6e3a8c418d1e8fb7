"""The table and the speed of the README, written from the committed results."""

from __future__ import annotations

import argparse
from pathlib import Path

from scboost_lab.bench import KEY, WIDE, ratios, shapes_of
from scboost_lab.default_page import Page
from scboost_lab.default_study import AT_OWN, DEFAULT, N_FOLDS
from scboost_lab.results import Results
from scboost_lab.study import ALL

BEGIN, END = "<!-- headline: begin -->", "<!-- headline: end -->"
SPEED_BEGIN, SPEED_END = "  <!-- speed: begin -->", "  <!-- speed: end -->"


def table(results: Path) -> str:
    """Markdown table: mean over the sets and, in brackets, mean rank among the libraries at their own defaults."""
    page = Page(results)
    folds = page.folds((DEFAULT, *AT_OWN), ALL)
    return f"{page.leaders((DEFAULT,), AT_OWN)}\n\nFolds of each set: {folds} of {N_FOLDS}."


def speed(results: Path) -> str:
    """Say how long fits and predictions take against XGBoost's: smallest and largest ratio on one and two threads."""
    bench = Results(results / "bench.csv", KEY)
    shapes = shapes_of(bench)
    wide = [shape for shape in shapes if shape[1] >= WIDE]
    small, *large = [shape for shape in shapes if shape[1] < WIDE]

    def span(field: str, chosen: list[tuple[int, int]]) -> str:
        found = [ratio for t in (1, 2) for ratio in ratios(bench, field, "SCBoost", "XGBoost", chosen, t)]
        return f"{min(found):.1f} to {max(found):.1f}"

    fits = (
        f"{span('fit_seconds', wide)} on wide data",
        f"{span('fit_seconds', large)} on {large[0][0]:,} narrow rows and more",
        f"{span('fit_seconds', [small])} on {small[0]:,}, where a tree takes milliseconds",
    )
    return f"  Fit time over XGBoost's: {'; '.join(fits)}.\n  Prediction: {span('predict_seconds', shapes)}."


def update(text: str, results: Path) -> str:
    """Put the table between its marks in a text."""
    return _fill(text, BEGIN, END, table(results))


def update_speed(text: str, results: Path) -> str:
    """Put the sentence about speed between its marks in a text."""
    return _fill(text, SPEED_BEGIN, SPEED_END, speed(results))


def _fill(text: str, begin: str, end: str, content: str) -> str:
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
    """Rewrite the README's table and sentence."""
    text = update(args.readme.read_text(encoding="utf-8"), args.results / "default")
    args.readme.write_text(update_speed(text, args.results / "speed"), encoding="utf-8")
    return 0
