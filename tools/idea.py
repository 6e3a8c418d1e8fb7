"""Draw ``docs/figures/idea.svg``, the picture of the README: what is removed from a residual, and what that does.

``python tools/idea.py``. The right half is measured: two models that differ in nothing but the projection.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("svg")
from matplotlib import pyplot as plt
from sklearn.datasets import make_classification

from scboost import SCBoostClassifier, redundancy_report

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "idea.svg"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"
N_ROUNDS, RATE = 100, 0.1
WINDOW = 10


def arrow(ax: Any, start: tuple[float, float], end: tuple[float, float], colour: str, *, dashed: bool = False) -> None:
    """Draw an arrow."""
    style = {"arrowstyle": "-|>", "color": colour, "lw": 2.2, "mutation_scale": 18, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops={**style, "ls": "--" if dashed else "-"})


def draw_idea(ax: Any) -> None:
    """Draw the gradient, its historical component and the innovation."""
    ax.plot([-0.1, 1.15], [0, 0], color=GREY, lw=6, alpha=0.35, solid_capstyle="round")
    arrow(ax, (0, 0), (0.85, 0.72), GREY)
    arrow(ax, (0, 0), (0.83, 0.0), ORANGE, dashed=True)
    arrow(ax, (0, 0), (0.36, 0.72), BLUE)
    ax.plot([0.85, 0.85], [0.72, 0.0], color=GREY, lw=1, ls=":")
    ax.plot([0.36, 0.85], [0.72, 0.72], color=GREY, lw=1, ls=":")
    ax.text(0.87, 0.75, "gradient", color=GREY, va="bottom", ha="center")
    text = "historical component\n(span of the latest trees): partly removed"
    ax.text(0.5, -0.06, text, color=ORANGE, va="top", ha="center")
    ax.text(0.3, 0.78, "innovation: the next tree's\nsplits are chosen on this", color=BLUE, va="bottom", ha="center")
    ax.set(xlim=(-0.15, 1.2), ylim=(-0.32, 1.05), title="The idea")
    ax.axis("off")


def draw_effect(ax: Any) -> None:
    """Measure two models on held-out samples, and draw the redundancy of their trees."""
    X, y = make_classification(6000, 20, n_informative=8, flip_y=0.05, random_state=0)
    rounds = np.arange(1, N_ROUNDS + 1)
    for name, strength, colour, style in (("without projection", 0.0, GREY, "--"), ("with projection", 0.5, BLUE, "-")):
        model = SCBoostClassifier(
            n_estimators=N_ROUNDS, learning_rate=RATE, projection_strength=strength, exploration=0, random_state=0
        )
        report = redundancy_report(model.fit(X[:2000], y[:2000]), X[2000:])
        smooth = np.convolve(report.redundancy_ratio, np.ones(WINDOW) / WINDOW, mode="valid")
        label = f"{name}: mean {report.redundancy:.2f}"
        ax.plot(rounds[WINDOW - 1 :], smooth, color=colour, ls=style, lw=2, label=label)
    ax.set(
        xlabel="round",
        ylabel="share of a tree in the span\nof earlier trees",
        ylim=(0, 1),
        title=f"Its effect: {N_ROUNDS} rounds, learning rate {RATE}",
    )
    ax.legend(frameon=False, loc="upper right")
    ax.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Draw the picture."""
    mpl.rcParams.update({"svg.hashsalt": "scboost", "svg.fonttype": "path", "font.size": 12})
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", width_ratios=[1, 1.2])
    draw_idea(axes[0])
    draw_effect(axes[1])
    figure.savefig(PICTURE, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
