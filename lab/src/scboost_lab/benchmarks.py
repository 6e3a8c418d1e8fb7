"""``docs/benchmarks.md``: the main results on one screen, with a chart; ``docs/compression.md``: compressed models."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scboost_lab.comparisons import average
from scboost_lab.compress_summary import best, summary, variants
from scboost_lab.default_methods import ALL, AT_OWN, BEST, CHIMERA, DEFAULT, FAST, N_FOLDS
from scboost_lab.default_results import StudyResults
from scboost_lab.page import fill, made_with, table, template, write
from scboost_lab.results import Results

METHODS = (DEFAULT, BEST, FAST, *AT_OWN)
FRONTIER = {
    "XGBoost": {20: "XGBoost 20", 50: "XGBoost 50", 100: "XGBoost 100"},
    "LightGBM": {20: "LightGBM 20"},
    "CatBoost": {20: "CatBoost 20"},
}
"""Methods of the study of compression by library and number of trees, each at its best learning rate."""
_COLORS = {DEFAULT: "#c0392b", "XGBoost": "#2471a3", "LightGBM": "#1e8449", "CatBoost": "#b7950b"}
_Curves = Mapping[str, Mapping[int, float]]


class Compression:
    """Log-loss of compressed models and of short boosted models, over the sets on which all were run.

    Parameters
    ----------
    directory : Path
        Directory of the result files.
    """

    def __init__(self, directory: Path) -> None:
        self.students, self.peers = Results(directory / "students.csv"), Results(directory / "peers.csv")
        rows = {setting: self._compressed(setting, "log_loss") for setting in ("20 trees", "50 trees")}
        rivals = {
            (library, n): {name: self._peer(method, name) for name in ALL}
            for library, methods in FRONTIER.items()
            for n, method in methods.items()
        }
        found = [*rows.values(), *rivals.values()]
        self.sets = [name for name in ALL if not any(np.isnan(values[name]) for values in found)]
        self.n_folds = min(len(self.students.select(dataset=name, setting="20 trees")) for name in self.sets)
        teacher = self._compressed("20 trees", "teacher_log_loss")
        self.teacher_trees = float(np.mean([self._compressed("20 trees", "teacher_trees")[s] for s in self.sets]))
        self.curves: _Curves = {
            DEFAULT: {20: self._mean(rows["20 trees"]), 50: self._mean(rows["50 trees"])},
            **{lib: {n: self._mean(rivals[lib, n]) for n in methods} for lib, methods in FRONTIER.items()},
        }
        self.teacher = self._mean(teacher)
        self.better_than_xgboost = float(
            np.mean([rows["20 trees"][name] < rivals["XGBoost", 100][name] for name in self.sets])
        )

    def _compressed(self, setting: str, column: str) -> dict[str, float]:
        where = {"setting": setting, "method": "SCBoost"}
        return {name: self.students.mean(column, dataset=name, **where) for name in ALL}

    def _peer(self, method: str, name: str) -> float:
        where = {"dataset": name, "setting": "20 trees", "method": "SCBoost"}
        return best(self.peers, method, name, "log_loss", [int(row["fold"]) for row in self.students.select(**where)])

    def _mean(self, values: Mapping[str, float]) -> float:
        return float(np.mean([values[name] for name in self.sets]))


def own_table(study: StudyResults) -> str:
    """Make the table of the main results, sorted by log-loss."""
    found = {name: study.means(name, METHODS, ALL) for name in ("log_loss", "AUC", "ACC", "cpu_seconds", "n_trees")}
    rated = study.rated(DEFAULT, METHODS[1:], ALL)
    rows = []
    for method in sorted(METHODS, key=lambda m: average(found["log_loss"], m, ALL)):
        loss, auc, accuracy, seconds, trees = (average(values, method, ALL) for values in found.values())
        wins = study.against(DEFAULT, method)
        against = "" if method == DEFAULT else f"{wins.wins} of {wins.n}"
        name = f"**{method}**" if method in {DEFAULT, BEST, FAST} else method
        ratings = f"{rated[method][0]:.0f} [{rated[method][1]:.0f}, {rated[method][2]:.0f}]"
        rows.append(
            [name, ratings, f"{loss:.4f}", f"{auc:.4f}", f"{accuracy:.4f}", f"{seconds:.1f}", f"{trees:.0f}", against]
        )
    return table(["", "Elo", "log-loss", "AUC", "accuracy", "CPU seconds", "rounds", "default better on"], rows)


def page_text(results: Path) -> str:
    """Write the page from the directory of all results."""
    study, compressed = StudyResults(results / "default"), Compression(results / "compress")
    losses = study.means("log_loss", METHODS, ALL)
    seconds = study.means("cpu_seconds", METHODS, ALL)
    mean = {m: average(losses, m, ALL) for m in METHODS}
    catboost, chimera = study.against(DEFAULT, "CatBoost"), study.against(DEFAULT, CHIMERA)
    return fill(
        template("benchmarks"),
        versions=made_with(*study.results.values(), compressed.students),
        n_sets=len(ALL),
        n_folds=study.folds(METHODS, ALL),
        of_folds=N_FOLDS,
        default_loss=mean[DEFAULT],
        xgboost_loss=mean["XGBoost"],
        lightgbm_loss=mean["LightGBM"],
        catboost_loss=mean["CatBoost"],
        against_catboost=f"{catboost.wins} of {catboost.n}",
        cpu_catboost=study.cpu_ratio(DEFAULT, "CatBoost"),
        against_chimera=f"{chimera.wins} of {chimera.n}",
        cpu_chimera=study.cpu_ratio(DEFAULT, CHIMERA),
        behind_chimera=study.behind(DEFAULT, CHIMERA),
        slower=average(seconds, DEFAULT, ALL) / average(seconds, "XGBoost", ALL),
        compressed_sets=len(compressed.sets),
        teacher_trees=compressed.teacher_trees,
        teacher_loss=compressed.teacher,
        small_loss=compressed.curves[DEFAULT][20],
        xgboost_100=compressed.curves["XGBoost"][100],
        better_than_xgboost=compressed.better_than_xgboost,
        main=own_table(study),
        behind=study.behind(DEFAULT, "CatBoost"),
    )


def compression_text(results: Path) -> str:
    """Write the page on compressed models from the directory of all results."""
    found = Compression(results / "compress")
    return fill(
        template("compression"),
        versions=made_with(found.students),
        n_sets=len(found.sets),
        loss_20=found.curves[DEFAULT][20],
        loss_50=found.curves[DEFAULT][50],
        teacher_trees=found.teacher_trees,
        teacher_loss=found.teacher,
        xgboost_20=found.curves["XGBoost"][20],
        xgboost_100=found.curves["XGBoost"][100],
        better_than_xgboost=found.better_than_xgboost,
        compressed_folds=f"{found.n_folds} of {N_FOLDS}",
        compress_targets=summary(results / "compress"),
        compress_variants_20=variants(results / "compress", 20),
        compress_variants_50=variants(results / "compress", 50),
    )


def draw(results: Path, path: Path) -> None:
    """Draw log-loss against CPU seconds at defaults, and against the number of trees."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    study, compressed = StudyResults(results / "default"), Compression(results / "compress")
    with plt.rc_context({"svg.hashsalt": "scboost", "font.size": 9}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        _draw_times(left, study)
        _draw_frontier(right, compressed)
        for ax in (left, right):
            ax.spines[["top", "right"]].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None}, facecolor="white")
        plt.close(figure)


def _draw_times(ax: Any, study: StudyResults) -> None:
    losses, seconds = (study.means(name, METHODS, ALL) for name in ("log_loss", "cpu_seconds"))
    for method in METHODS:
        x, y = average(seconds, method, ALL), average(losses, method, ALL)
        color = _COLORS.get(method, _COLORS[DEFAULT] if method in {BEST, FAST} else "#5d6d7e")
        ax.plot(x, y, "o", color=color)
        left = method in {DEFAULT, "LightGBM"}  # the labels of their neighbours are on the right
        place = {"xytext": (-6, -3) if left else (6, -3), "ha": "right" if left else "left"}
        ax.annotate(method, (x, y), textcoords="offset points", fontsize=8, color=color, **place)
    ax.set(xscale="log", xlabel="CPU seconds of a fit", ylabel="test log-loss")
    ax.set_title(f"At defaults, mean of {len(ALL)} data sets", fontsize=9, loc="left")
    ax.margins(x=0.3)


def _draw_frontier(ax: Any, compressed: Compression) -> None:
    for name, curve in compressed.curves.items():
        label = "SCBoost, compressed" if name == DEFAULT else f"{name}, best learning rate"
        ax.plot(list(curve), list(curve.values()), "o-", color=_COLORS[name], label=label)
    x, y = compressed.teacher_trees, compressed.teacher
    ax.plot(x, y, "*", ms=11, color=_COLORS[DEFAULT], label="SCBoost before compression")
    ax.set(xscale="log", xlabel="trees", ylabel="test log-loss", xticks=[20, 50, 100, 200, 500])
    ax.set_xticklabels(["20", "50", "100", "200", "500"])
    ax.minorticks_off()
    ax.set_title(f"By number of trees, mean of {len(compressed.sets)} data sets", fontsize=9, loc="left")
    ax.legend(frameon=False, fontsize=8)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab benchmarks``."""
    parser.add_argument("--results", type=Path, default=Path("results"), help="directory of the result files")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="directory of the page (%(default)s)")


def main(args: argparse.Namespace) -> int:
    """Write the pages and their chart."""
    write(args.docs / "benchmarks.md", page_text(args.results))
    write(args.docs / "compression.md", compression_text(args.results))
    draw(args.results, args.docs / "figures" / "benchmarks.svg")
    return 0
