"""``scboost-lab demo``: SCBoost and the installed peers on embedded data, at equal terms and at their defaults.

Two tables, the pruning of a model of another library, and a page about that model. Where SCBoost is not the best, a
line says so.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scboost import prune, redundancy_report, report, tree_matrix
from scboost._runtime.progress import Progress
from scboost_lab.models import HGB, LIBRARIES, SCBOOST, make
from scboost_lab.runner import NotInstalledError
from scboost_lab.scoring import folds, scores, timed

Array = npt.NDArray[np.float64]
N_FOLDS = 2
ROUNDS, RATE = 100, 0.1

EQUAL = f"equal terms: {ROUNDS} rounds, learning rate {RATE}"
DEFAULTS = "each library's own defaults"
PLAIN = "SCBoost, plain boosting"
TERMS: dict[str, tuple[str, ...]] = {
    EQUAL: (SCBOOST, PLAIN, "XGB", "LGBM", "CAT", HGB),
    DEFAULTS: (SCBOOST, "XGB", "LGBM", "CAT", HGB, "RF"),
}
OWN_ROUNDS: dict[str, Any] = {SCBOOST: "auto", "CAT": 1000}
"""Rounds by default, where they are not 100."""


class Result(NamedTuple):
    """Means over the test folds of one method on one data set."""

    terms: str
    data: str
    method: str
    log_loss: float
    auc: float
    accuracy: float
    redundancy: float
    n_trees: int
    fit_seconds: float


class Column(NamedTuple):
    """A column of the tables in which there is a best value."""

    field: str
    title: str
    higher_is_better: bool


COLUMNS = (
    Column("log_loss", "log-loss", higher_is_better=False),
    Column("auc", "AUC", higher_is_better=True),
    Column("accuracy", "accuracy", higher_is_better=True),
)
# Redundancy can be compared where learning rate and rounds are equal, and only there.
REDUNDANCY = Column("redundancy", "redundancy", higher_is_better=False)


def columns(terms: str) -> tuple[Column, ...]:
    """Columns of a table in which methods can be compared."""
    return (*COLUMNS, REDUNDANCY) if terms == EQUAL else COLUMNS


def data_sets() -> dict[str, tuple[Array, Array]]:
    """Two sets that scikit-learn ships, and one made like Madelon: few informative columns among much noise."""
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification

    X, y = load_digits(return_X_y=True)
    hard = make_classification(
        n_samples=1200,
        n_features=50,
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


def make_model(method: str, terms: str) -> Any:
    """Make an unfitted model with one thread."""
    if terms == DEFAULTS:
        return make(method, 0, n_estimators=OWN_ROUNDS.get(method, ROUNDS))
    if method == PLAIN:
        return make(SCBOOST, 0, n_estimators=ROUNDS, learning_rate=RATE, projection_strength=0, exploration=0)
    return make(method, 0, n_estimators=ROUNDS, learning_rate=RATE)


def trees_of(model: Any, X: Array, terms: str) -> tuple[float, int]:
    """Measure redundancy, where it can be compared, and count the trees."""
    if terms != EQUAL:
        return float("nan"), tree_matrix(model, X[:1]).n_trees
    with warnings.catch_warnings():
        # A line under the table says it of all methods.
        warnings.filterwarnings("ignore", ".* samples are too few for", UserWarning)
        found = redundancy_report(model, X)
    return found.redundancy, found.n_trees


def evaluate(terms: str, data: str, X: Array, y: Array, method: str, step: Callable[[], None]) -> Result | None:
    """Cross-validate one method; None if its package is not installed."""
    from threadpoolctl import threadpool_limits

    found = []
    for train, test in folds(y, 0, N_FOLDS):
        try:
            model = make_model(method, terms)
        except NotInstalledError:
            return None
        with threadpool_limits(1):
            probability, seconds = timed(model, X[train], y[train], X[test])
        score = scores(y[test].astype(np.int64), probability[:, 1])
        redundancy, n_trees = trees_of(model, X[test], terms)
        found.append([score["log_loss"], score["AUC"], score["ACC"], redundancy, n_trees, seconds["fit_seconds"]])
        step()
    loss, auc, accuracy, redundancy, trees, fit_seconds = np.mean(found, axis=0)
    return Result(terms, data, method, loss, auc, accuracy, redundancy, round(trees), fit_seconds)


def best(rows: list[Result], column: Column) -> float:
    """Return the best value of a column."""
    return float((max if column.higher_is_better else min)(getattr(row, column.field) for row in rows))


def table(results: list[Result]) -> str:
    """Format the results of one comparison, the best of each column and data set marked with a star."""
    lines = []
    for data in dict.fromkeys(row.data for row in results):
        rows = [row for row in results if row.data == data]
        compared = columns(rows[0].terms)
        titles = "".join(f"{column.title:>12}" for column in compared)
        lines += ["", f"  {data:<26}{titles}{'trees':>8}{'fit s':>8}"]
        for row in rows:
            cells = []
            for column in compared:
                value = getattr(row, column.field)
                cells.append(f"{value:>11.4f}{'*' if value == best(rows, column) else ' '}")
            lines.append(f"  {name_of(row.method):<26}{''.join(cells)}{row.n_trees:>8}{row.fit_seconds:>8.2f}")
    return "\n".join(lines)


def summary(results: list[Result]) -> str:
    """Summarize where SCBoost is better than the other libraries and where it is not the best."""
    by_data = {data: [row for row in results if row.data == data] for data in dict.fromkeys(r.data for r in results)}
    others = [method for method in dict.fromkeys(row.method for row in results) if method != SCBOOST]
    own = {data: next(row for row in rows if row.method == SCBOOST) for data, rows in by_data.items()}
    lines, winners = [], []
    compared = columns(results[0].terms)
    for column in (c for c in compared if c in {COLUMNS[0], REDUNDANCY}):
        won = {
            other: sum(
                getattr(own[data], column.field) < getattr(row, column.field)
                for data, rows in by_data.items()
                for row in rows
                if row.method == other
            )
            for other in others
        }
        counts = ", ".join(f"{name_of(other)} {n}" for other, n in won.items())
        lines.append(f"SCBoost has lower {column.title} than, of {len(by_data)} sets: {counts}.")
    for data, rows in by_data.items():
        for column in compared:
            top = best(rows, column)
            if getattr(own[data], column.field) != top:
                winners.append(next(name_of(row.method) for row in rows if getattr(row, column.field) == top))
    n = len(by_data) * len(compared)
    names = ", ".join(f"{name} {winners.count(name)}" for name in dict.fromkeys(winners))
    where = f"It is not the best in {len(winners)} of {n} columns; the best there: {names}."
    lines.append(where if winners else f"It is the best in all {n} columns.")
    return "\n".join(f"  {line}" for line in lines)


def compare(sets: dict[str, tuple[Array, Array]]) -> tuple[list[Result], set[str]]:
    """Evaluate every method on every set on both terms; return the results and what is not installed."""
    results, missing = [], set()
    with Progress(sum(map(len, TERMS.values())) * len(sets) * N_FOLDS, "fitting") as progress:
        for terms, methods in TERMS.items():
            for data, (X, y) in sets.items():
                for method in methods:
                    note = f"{data}: {name_of(method)}"
                    found = evaluate(terms, data, X, y, method, lambda note=note: progress.step(note))  # type: ignore[misc]
                    if found is None:
                        missing.add(name_of(method))
                    else:
                        results.append(found)
    return results, missing


def prune_and_report(X: Array, y: Array, path: Path) -> str:
    """Prune a model of XGBoost to a tenth of its trees, and write a page about it."""
    from sklearn.metrics import log_loss
    from sklearn.model_selection import train_test_split

    X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=0.4, stratify=y, random_state=0)
    X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0)
    n_trees, kept = 300, 30
    model = make("XGB", 0, n_estimators=n_trees, learning_rate=0.05).fit(X_train, y_train)
    small = prune(model, X_val, y_val, max_trees=kept).model
    first = model.predict_proba(X_test, iteration_range=(0, kept))
    lines = [
        f"  {name:<26}log-loss {log_loss(y_test, p):.4f}   accuracy {np.mean((p[:, 1] > 0.5) == y_test):.4f}"
        for name, p in (
            (f"all {n_trees} trees", model.predict_proba(X_test)),
            (f"its first {kept}", first),
            (f"prune(..., max_trees={kept})", small.predict_proba(X_test)),
        )
    ]
    saved = report(model, X_test, y_test, X_train=X_train, y_train=y_train).save(path)
    return "\n".join([*lines, "", f"A page about this model, to open in a browser: {saved}"])


def run(output: Path) -> list[Result]:
    """Compare, prune and report; print all of it. The page is the only file written."""
    start = time.perf_counter()
    sets = data_sets()
    results, missing = compare(sets)
    for i, terms in enumerate(TERMS, 1):
        rows = [row for row in results if row.terms == terms]
        print(f"\n{i}. At {terms} ({N_FOLDS}-fold means on test rows, one thread, * = best)")
        print(table(rows))
        print(f"\n{summary(rows)}")
    print(
        "\n  redundancy: mean share of a tree's variance, on test rows, in the span of the trees before it (0 new, 1\n"
        "  repeated). It depends on learning rate and rounds, so it is compared where these are equal. On n rows,\n"
        "  chance alone gives T unrelated trees (T - 1) / (2 (n - 1))."
    )
    if missing:
        print(f"  not installed, left out: {', '.join(sorted(missing))}")
    print("\n3. An XGBoost model of 300 trees, pruned to a tenth (digits; trees chosen and scored on different rows)\n")
    output.mkdir(parents=True, exist_ok=True)
    print(prune_and_report(*sets["digits, 5-9 against 0-4"], output / "report.html"))
    print(f"\n{time.perf_counter() - start:.0f} seconds")
    return results


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab demo``."""
    parser.add_argument("--output", type=Path, default=Path("scboost-demo"), help="folder of the page (%(default)s)")


def main(args: argparse.Namespace) -> int:
    """Run the demo."""
    run(args.output)
    return 0
