"""``scboost-lab demo``: SCBoost and the installed peers on embedded data, as a table and a figure."""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scboost import redundancy_report
from scboost.estimators.progress import Progress
from scboost.redundancy import RedundancyReport
from scboost_lab.models import HGB, LIBRARIES, SCBOOST, make
from scboost_lab.runner import NotInstalledError
from scboost_lab.scoring import folds, scores, timed

Array = npt.NDArray[np.float64]
PLAIN = "SCBoost, no projection"
METHODS = (SCBOOST, PLAIN, "XGB", "LGBM", "CAT", HGB, "RF")
N_FOLDS = 3


class Result(NamedTuple):
    """Means over the test folds of one method on one data set."""

    data: str
    method: str
    accuracy: float
    auc: float
    log_loss: float
    fit_seconds: float
    n_trees: int
    redundancy: float


def data_sets() -> dict[str, tuple[Array, Array]]:
    """Two sets that scikit-learn ships, and one made like Madelon: few informative columns among much noise."""
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification

    X, y = load_digits(return_X_y=True)
    hard = make_classification(
        n_samples=1500,
        n_features=80,
        n_informative=8,
        n_redundant=12,
        n_clusters_per_class=8,
        flip_y=0.05,
        random_state=0,
    )
    return {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits, 5-9 against 0-4": (X, (y >= 5).astype(np.float64)),
        "Madelon-like": hard,
    }


def name_of(method: str) -> str:
    """Name of a method in the table."""
    return LIBRARIES[method].name if method in LIBRARIES else method


def make_model(method: str) -> Any:
    """Make an unfitted model: 100 trees, one thread, otherwise defaults."""
    return make(SCBOOST, 0, projection_strength=0) if method == PLAIN else make(method, 0)


def measure(model: Any, X: Array) -> RedundancyReport:
    """Measure redundancy, without the warning about few rows: the table's last line says it of all methods."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* rows are few for", UserWarning)
        return redundancy_report(model, X)


def evaluate(data: str, X: Array, y: Array, method: str, step: Callable[[], None]) -> Result | None:
    """Cross-validate one method; None if its package is not installed."""
    from threadpoolctl import threadpool_limits

    found = []
    for train, test in folds(y, 0, N_FOLDS):
        try:
            model = make_model(method)
        except NotInstalledError:
            return None
        with threadpool_limits(1):
            probability, seconds = timed(model, X[train], y[train], X[test])
        score = scores(y[test].astype(np.int64), probability[:, 1])
        report = measure(model, X[test])
        values = [score[name] for name in ("ACC", "AUC", "log_loss")]
        found.append([*values, seconds["fit_seconds"], report.n_trees, report.redundancy])
        step()
    accuracy, auc, loss, fit_seconds, n_trees, redundancy = np.mean(found, axis=0)
    return Result(data, method, accuracy, auc, loss, fit_seconds, round(n_trees), redundancy)


def table(results: list[Result]) -> str:
    """Format the results, best figure of each column and data set marked with a star."""
    lines = []
    for data in dict.fromkeys(r.data for r in results):
        rows = [r for r in results if r.data == data]
        best = {
            "accuracy": max(r.accuracy for r in rows),
            "auc": max(r.auc for r in rows),
            "log_loss": min(r.log_loss for r in rows),
            "redundancy": min(r.redundancy for r in rows),
        }
        lines += [
            "",
            f"{data} ({N_FOLDS}-fold means on test rows, * = best)",
            f"  {'':<24}{'accuracy':>10}{'AUC':>10}{'log-loss':>10}{'fit s':>8}{'trees':>7}{'redundancy':>12}",
        ]
        for r in rows:
            figures = [
                f"{getattr(r, name):.4f}{'*' if getattr(r, name) == best[name] else ' '}"
                for name in ("accuracy", "auc", "log_loss")
            ]
            redundancy = f"{r.redundancy:.3f}{'*' if r.redundancy == best['redundancy'] else ' '}"
            lines.append(
                f"  {name_of(r.method):<24}"
                + "".join(f"{f:>10}" for f in figures)
                + f"{r.fit_seconds:>8.2f}{r.n_trees:>7}{redundancy:>12}"
            )
    lines += [
        "",
        "redundancy: mean share of a tree's test predictions that earlier trees already span (0 new, 1 repeated);",
        "on n test rows, chance alone gives T unrelated trees (T - 1) / (2 (n - 1))",
    ]
    return "\n".join(lines)


def figure(path: Path, X: Array, y: Array) -> None:
    """Draw what projection changes: test loss by number of trees, spectrum, and what was removed each round."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from sklearn.metrics import log_loss
    from sklearn.model_selection import train_test_split

    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    models = {name: make_model(name).fit(X_train, y_train) for name in ("SCBoost", PLAIN)}
    peer = make_model("XGB").fit(X_train, y_train)
    colours = {"SCBoost": "C0", PLAIN: "C1", "XGBoost": "C2"}
    figure_, axes = plt.subplots(1, 3, figsize=(13.5, 4.2), layout="constrained")

    for name, model in models.items():
        losses = [log_loss(y_test, p[:, 1]) for p in model.staged_predict_proba(X_test)]
        axes[0].plot(np.arange(1, len(losses) + 1), losses, color=colours[name], label=name)
    rounds = range(1, 101)
    losses = [log_loss(y_test, peer.predict_proba(X_test, iteration_range=(0, t))[:, 1]) for t in rounds]
    axes[0].plot(rounds, losses, color=colours["XGBoost"], label="XGBoost")
    axes[0].set(title="Loss on test rows", xlabel="trees", ylabel="log-loss")
    axes[0].legend(frameon=False)

    for name, model in {**models, "XGBoost": peer}.items():
        report = measure(model, X_test)
        label = f"{name}: effective rank {report.effective_rank:.0f}"
        axes[1].plot(np.arange(1, report.n_trees + 1), report.spectrum, color=colours[name], label=label)
    axes[1].set(
        title="How different the trees are", xlabel="component", ylabel="singular value / largest", yscale="log"
    )
    axes[1].set_ylim(bottom=1e-3)
    axes[1].legend(frameon=False)

    log = models["SCBoost"].training_log_
    axes[2].plot(log["round"], log["energy_removed"], color="C0")
    axes[2].set(
        title="What the latest trees had already said",
        xlabel="round",
        ylabel="share of the residual in their span",
        ylim=(0, None),
    )
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    figure_.suptitle("Digits 5-9 against 0-4, 40 % of the rows for testing")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure_.savefig(path, dpi=150)
    plt.close(figure_)


def run(output: Path) -> list[Result]:
    """Evaluate every method on every set, print the table, draw the figure."""
    if importlib.util.find_spec("matplotlib") is None:
        raise NotInstalledError("the demo draws a figure and needs matplotlib: pip install 'scboost[plot]'")
    sets = data_sets()
    results = []
    missing = set()
    with Progress(len(sets) * len(METHODS) * N_FOLDS, "fitting") as progress:
        for data, (X, y) in sets.items():
            for method in METHODS:
                note = f"{data}: {name_of(method)}"
                result = evaluate(data, X, y, method, lambda note=note: progress.step(note))  # type: ignore[misc]
                if result is None:
                    missing.add(name_of(method))
                else:
                    results.append(result)
    print(table(results))
    if missing:
        print(f"not installed, left out: {', '.join(sorted(missing))}")
    path = output / "demo.png"
    figure(path, *sets["digits, 5-9 against 0-4"])
    print(f"figure: {path.resolve()}")
    return results


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab demo``."""
    parser.add_argument("--output", type=Path, default=Path("scboost-demo"), help="folder of the figure (%(default)s)")


def main(args: argparse.Namespace) -> int:
    """Run the demo."""
    run(args.output)
    return 0
