"""The table of the README, written from the committed results of the study."""

from __future__ import annotations

from pathlib import Path

from scboost_bench.study import ALL, OURS, RIVALS
from scboost_bench.study_page import average, grid, mean_ranks, means, read

BEGIN, END = "<!-- headline: begin -->", "<!-- headline: end -->"
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


def update(text: str, results: Path) -> str:
    """Put the table between its marks in a text."""
    before, _, rest = text.partition(BEGIN)
    if END not in rest:
        raise ValueError(f"the text has no {BEGIN} ... {END}")
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{table(results)}\n{END}{after}"


def main() -> int:
    """Rewrite README.md in the current folder."""
    readme = Path("README.md")
    readme.write_text(update(readme.read_text(), Path("results/study")))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
