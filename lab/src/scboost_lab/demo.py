"""``scboost-lab demo``: a real table, five libraries at their defaults, a compressed model and a report."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scboost import compress, report
from scboost_lab import outside
from scboost_lab.default_study import categorical_columns, native_categories
from scboost_lab.models import HGB, LIBRARIES, SCBOOST, make
from scboost_lab.runner import NotInstalledError

TABLE = "credit_data"
METHODS: dict[str, dict[str, Any]] = {
    SCBOOST: {"n_estimators": "auto"},
    "CAT": {"n_estimators": 1000},
    "XGB": {"enable_categorical": True},
    "LGBM": {},
    HGB: {"categorical_features": "from_dtype"},
}
"""Settings with which each library is at its own default and uses categories natively."""
TEACHER_TREES, SMALL_TREES = 300, 20
BAR = 34
"""Characters of the longest bar of the chart."""


class Split(NamedTuple):
    """Training and test samples."""

    X: Any
    X_test: Any
    y: npt.NDArray[Any]
    y_test: npt.NDArray[Any]


class Result(NamedTuple):
    """One library on the test samples."""

    name: str
    log_loss: float
    seconds: float


def load() -> Split:
    """Read the table and hold out a quarter of it."""
    from sklearn.model_selection import train_test_split

    X, y = outside.load(TABLE)
    return Split(*train_test_split(X, y, stratify=y, test_size=0.25, random_state=0))


def evaluate(method: str, data: Split) -> Result | None:
    """Fit a library at its default; None if its package is not installed."""
    from sklearn.metrics import log_loss
    from threadpoolctl import threadpool_limits

    name = LIBRARIES[method].name
    settings = dict(METHODS[method])
    if method == "CAT":
        settings["cat_features"] = categorical_columns(data.X)
    try:
        model = make(method, 0, **settings)
    except NotInstalledError:
        return None
    X, X_test = (native_categories(table, name) for table in (data.X, data.X_test))
    start = time.perf_counter()
    with threadpool_limits(1):
        model.fit(X, data.y)
    seconds = time.perf_counter() - start
    return Result(name, float(log_loss(data.y_test, model.predict_proba(X_test))), seconds)


def table(results: list[Result]) -> str:
    """Format the results by log-loss, with bars that start at the best value.

    Examples
    --------
    >>> print(table([Result("b", 0.5, 1.0), Result("a", 0.4, 2.0)]))
      library                 log-loss   fit seconds
      a                         0.4000          2.00
      b                         0.5000          1.00   ##################################
    """
    ordered = sorted(results, key=lambda row: row.log_loss)
    best, worst = ordered[0].log_loss, ordered[-1].log_loss
    lines = [f"  {'library':<22}{'log-loss':>10}{'fit seconds':>14}"]
    for row in ordered:
        bar = "#" * round(BAR * (row.log_loss - best) / max(worst - best, 1e-12))
        lines.append(f"  {row.name:<22}{row.log_loss:>10.4f}{row.seconds:>14.2f}   {bar}".rstrip())
    return "\n".join(lines)


def draw(results: list[Result], path: Path) -> None:
    """Save log-loss against fit seconds as a picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for row in results:
        color = "#c0392b" if row.name == SCBOOST else "#5d6d7e"
        ax.plot(row.seconds, row.log_loss, "o", color=color)
        ax.annotate(row.name, (row.seconds, row.log_loss), xytext=(5, 4), textcoords="offset points", color=color)
    ax.set(xscale="log", xlabel="fit seconds, one thread", ylabel="test log-loss", title="Defaults of five libraries")
    ax.margins(x=0.2, y=0.1)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def compressed(data: Split, path: Path) -> str:
    """Compress a model of XGBoost, and write a report of it."""
    teacher = make("XGB", 0, n_estimators=TEACHER_TREES, learning_rate=0.05, enable_categorical=True)
    teacher.fit(data.X, data.y)
    start = time.perf_counter()
    small = compress(
        teacher, data.X, max_trees=SMALL_TREES, X_certify=data.X_test, y_certify=data.y_test, random_state=0
    )
    seconds = time.perf_counter() - start
    report(teacher, data.X_test, data.y_test, X_train=data.X, y_train=data.y).save(path)
    return "\n".join(f"  {line}" for line in [*str(small).splitlines(), f"{seconds:.1f} seconds"])


def run(output: Path) -> list[Result]:
    """Compare, compress and report; print all of it. Return the results of the libraries."""
    start = time.perf_counter()
    data = load()
    categories, missing = len(categorical_columns(data.X)), int(np.sum(data.X.isna().to_numpy()))
    print(
        f"Loan applications, repaid or not: {len(data.X):,} training and {len(data.X_test):,} test samples,\n"
        f"{data.X.shape[1]} features, {categories} of them categorical, {missing} missing values; used as they are."
    )
    print("\n1. Five libraries at their defaults (lower log-loss is better; bars: excess over the best)\n", flush=True)
    results, absent = [], []
    for method in METHODS:
        found = evaluate(method, data)
        if found is None:
            absent.append(LIBRARIES[method].name)
        else:
            results.append(found)
    print(table(results))
    if absent:
        print(f"  not installed: {', '.join(absent)}")
    print(f"\n2. An XGBoost model of {TEACHER_TREES} trees, compressed to {SMALL_TREES}\n", flush=True)
    output.mkdir(parents=True, exist_ok=True)
    print(compressed(data, output / "report.html"))
    draw(results, output / "defaults.png")
    print("\n3. Files to open\n")
    print(f"  report of the XGBoost model: {(output / 'report.html').resolve()}")
    print(f"  chart of the defaults:       {(output / 'defaults.png').resolve()}")
    print(f"\n{time.perf_counter() - start:.0f} seconds")
    return results


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab demo``."""
    parser.add_argument("--output", type=Path, default=Path("scboost-demo"), help="folder of the files (%(default)s)")


def main(args: argparse.Namespace) -> int:
    """Run the demo."""
    run(args.output)
    return 0
