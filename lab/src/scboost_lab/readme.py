"""The table and the speed of the README, written from the committed results."""

from __future__ import annotations

import argparse
from pathlib import Path

from scboost_lab.bench import KEY, PROFILE_KEY, WIDE
from scboost_lab.bench_page import cpu_ratio, profiled_shapes, ratios, shapes_of
from scboost_lab.default_methods import ALL, AT_OWN, DEFAULT, N_FOLDS
from scboost_lab.default_results import StudyResults
from scboost_lab.results import Results

BEGIN, END = "<!-- headline: begin -->", "<!-- headline: end -->"
SPEED_BEGIN, SPEED_END = "  <!-- speed: begin -->", "  <!-- speed: end -->"


def table(results: Path) -> str:
    """Markdown table: mean over the sets and, in brackets, mean rank among the libraries at their own defaults."""
    study = StudyResults(results)
    folds = study.folds((DEFAULT, *AT_OWN), ALL)
    return f"{study.leaders((DEFAULT,), AT_OWN)}\n\nFolds of each set: {folds} of {N_FOLDS}."


def speed(results: Path) -> str:
    """Return the smallest and largest ratios of fit and prediction times to XGBoost."""
    bench, profiles = Results(results / "bench.csv", KEY), Results(results / "profile.csv", PROFILE_KEY)
    shapes = profiled_shapes(profiles)

    def span(ratios: list[float]) -> str:
        return " to ".join(dict.fromkeys(f"{ratio:.1f}" for ratio in (min(ratios), max(ratios))))

    def fits(chosen: list[tuple[int, int]]) -> str:
        return span([cpu_ratio(profiles, shape) for shape in chosen])

    wide = [shape for shape in shapes if shape[1] >= WIDE]
    large = [shape for shape in shapes if shape[0] >= 100_000]
    small = [shape for shape in shapes if shape not in (*wide, *large)]
    parts = (
        f"{fits(wide)} on wide data",
        f"{fits(large)} on {large[0][0]:,} samples and more",
        f"{fits(small)} on fewer samples, where a tree takes milliseconds",
    )
    predictions = [
        r for t in (1, 2) for r in ratios(bench, "predict_seconds", "SCBoost", "XGBoost", shapes_of(bench), t)
    ]
    return f"  CPU time of a fit relative to XGBoost: {'; '.join(parts)}.\n  Prediction: {span(predictions)}."


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
