"""The table and the speed of the README, written from the committed results."""

from __future__ import annotations

from pathlib import Path

from scboost_lab.bench import WIDE, Results
from scboost_lab.study import ALL, OURS, RIVALS
from scboost_lab.study_page import average, grid, mean_ranks, means, read

BEGIN, END = "<!-- headline: begin -->", "<!-- headline: end -->"
SPEED_BEGIN, SPEED_END = "  <!-- speed: begin -->", "  <!-- speed: end -->"
PLAIN = f"{OURS} gamma=0"
NAMES = {
    OURS: "**SCBoost**",
    PLAIN: "SCBoost without projection",
    "CAT": "CatBoost",
    "LGBM": "LightGBM",
    "XGB": "XGBoost",
    "HGB": "HistGradientBoosting",
    "RF": "random forest",
    "GBDT": "GradientBoosting",
    "ADA": "AdaBoost",
    "NGB": "NGBoost",
}
MEASURES = (("log_loss", "log-loss", -1), ("AUC", "AUC", 1), ("ACC", "accuracy", 1), ("F1", "F1", 1))


def table(results: Path) -> str:
    """Markdown table: mean over the sets and, in brackets, mean rank among the nine methods, by log-loss."""
    rows = read(results / "peers.csv")
    methods = [OURS, *RIVALS]
    columns = {}
    for measure, _, sign in MEASURES:
        by_set = means(rows, measure)
        ranks = mean_ranks(by_set, methods, ALL, sign)
        columns[measure] = {m: (average(by_set, m, ALL), ranks.get(m)) for m in (*methods, PLAIN)}
    body = []
    for method in sorted((*methods, PLAIN), key=lambda m: columns["log_loss"][m][0]):
        cells = [columns[measure][method] for measure, _, _ in MEASURES]
        body.append([NAMES[method], *(f"{v:.4f}" if r is None else f"{v:.4f} ({r:.1f})" for v, r in cells)])
    return grid(["", *(name for _, name, _ in MEASURES)], body)


def speed(results: Path) -> str:
    """Say how long fits and predictions take against XGBoost's: smallest and largest ratio on one and two threads."""
    bench = Results(results / "bench.csv")
    shapes = bench.shapes()
    wide = [shape for shape in shapes if shape[1] >= WIDE]
    small, *large = [shape for shape in shapes if shape[1] < WIDE]

    def span(field: str, chosen: list[tuple[int, int]]) -> str:
        found = [ratio for t in (1, 2) for ratio in bench.ratios(field, "SCBoost", "XGBoost", chosen, t)]
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


def main() -> int:
    """Rewrite README.md in the current folder."""
    readme = Path("README.md")
    text = update(readme.read_text(), Path("results/study"))
    readme.write_text(update_speed(text, Path("results/speed")))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
