"""What pruning costs: trees kept against AUC, log-loss and prediction time, for five libraries.

Every row of ``results/pruning.csv`` is one treatment of one fitted model. A data set, capped at `ROW_CAP` rows, is cut
into rows to fit on (half), rows for the weights (a quarter) and rows to score on (a quarter), anew for each repeat.
Treatments that need no weights are also fitted on the rows for the weights: a user without pruning would use them.
"""

import argparse
import hashlib
import json
import shlex
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from scboost import SCBoostClassifier
from scboost.plotting import plot_report, plot_trees_kept
from scboost.redundancy import prune, redundancy_report, reweight, tree_matrix
from scboost.weighting import nonnegative_weights
from scboost_lab.datasets import DATA_DIR_VARIABLE, DataError, resolve_data_dir
from scboost_lab.protocol import SCORES, ResultFile, Row, StorageError, Task, run_tasks, scores, write_provenance
from scboost_lab.study import load_set

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

SETS = ("credit_g", "qsar_biodeg", "jasmine", "phoneme", "kc1", "sylvine", "spambase", "elevators")
CHOSEN_ON = ("credit_g", "qsar_biodeg", "phoneme", "kc1", "sylvine", "spambase")
"""Sets on which the defaults of `prune` were chosen, with other cuts and row caps."""
LIBRARIES = ("XGBoost", "LightGBM", "CatBoost", "RandomForest", "SCBoost")
N_TREES = 100
SIZES = (50, 25, 10)
ROW_CAP = 3000
COLUMN_CAP = 200
N_REPEATS = 2
TIMED_ROWS = 20_000
NEW = "new model, more rows, of"
TREATMENTS = (
    "all trees",
    "all trees, more rows",
    "re-weighted",
    *(f"{name} {k}" for k in SIZES for name in ("pruned to", "lasso to", "first", "new model of", NEW)),
    "LassoCV",
)
BY_SET = ("all trees", "pruned to 25", "first 25", "new model of 25", f"{NEW} 25")
COLUMNS = (
    *SCORES,
    "trees",
    "predict_ms",
    "select_seconds",
    "effective_rank",
    "redundancy",
    "disagreement",
    "q_statistic",
)


def make(library: str, n_trees: int, seed: int) -> Any:
    """Return an unfitted model: the library's defaults, except 100 trees and learning rate 0.1.

    A model with fewer trees learns faster in proportion, up to 0.5. CatBoost and SCBoost choose their own rates.
    """
    rate = min(0.5, 0.1 * N_TREES / n_trees)
    if library == "XGBoost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=n_trees, learning_rate=rate, n_jobs=1, random_state=seed)
    if library == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=n_trees, learning_rate=rate, n_jobs=1, random_state=seed, verbose=-1)
    if library == "CatBoost":
        from catboost import CatBoostClassifier

        return CatBoostClassifier(
            iterations=n_trees, thread_count=1, random_seed=seed, verbose=0, allow_writing_files=False
        )
    if library == "RandomForest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(n_estimators=n_trees, n_jobs=1, random_state=seed)
    return SCBoostClassifier(n_estimators=n_trees, n_jobs=1, random_state=seed)


@lru_cache(maxsize=1)
def rows_of(dataset: str, data_dir: str, repeat: int) -> tuple[Array, Labels, Array, Labels, Array, Labels]:
    """Return X and y of the rows to fit, to weigh and to score; missing values become column medians."""
    from sklearn.model_selection import train_test_split

    X, y = load_set(dataset, data_dir, ROW_CAP, COLUMN_CAP)
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, test_size=0.5, stratify=y, random_state=repeat)
    X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=repeat)
    return X_fit, y_fit, X_val, y_val, X_test, y_test


@lru_cache(maxsize=1)
def fitted(dataset: str, data_dir: str, repeat: int, library: str) -> Any:
    """Return the model that is pruned."""
    X, y, *_ = rows_of(dataset, data_dir, repeat)
    return make(library, N_TREES, repeat).fit(X, y)


def treat(task: Task, data_dir: str) -> dict[str, float | int | str]:
    """Score one treatment: the work of one row."""
    X_fit, y_fit, X_val, y_val, X_test, y_test = rows_of(task.dataset, data_dir, task.fold)
    model = fitted(task.dataset, data_dir, task.fold, task.method)
    name, _, size = task.setting.rpartition(" ") if task.setting[-1].isdigit() else (task.setting, "", "0")
    k = int(size)
    extra: dict[str, float | int | str] = {}
    start = time.perf_counter()
    if name == "new model of":
        model = make(task.method, k, task.fold).fit(X_fit, y_fit)
    elif name in {"all trees, more rows", NEW}:
        model = make(task.method, k or N_TREES, task.fold)
        model.fit(np.vstack([X_fit, X_val]), np.r_[y_fit, y_val])
    elif name == "re-weighted":
        model = reweight(model, X_val, y_val).model
        extra["select_seconds"] = time.perf_counter() - start
    elif name in {"pruned to", "lasso to"}:
        model = prune(model, X_val, y_val, max_trees=k, selection="lasso" if name == "lasso to" else "backward").model
        extra["select_seconds"] = time.perf_counter() - start
    elif name == "first":
        return {**scores(y_test, _first(model, X_test, k)), "trees": k}
    elif name == "LassoCV":
        probability, trees = _lasso_cv(model, X_val, y_val, X_test)
        return {**scores(y_test, probability), "trees": trees}
    else:
        report = redundancy_report(model, X_test, y_test)
        extra["effective_rank"] = report.effective_rank
        extra["redundancy"] = report.redundancy
        extra["disagreement"] = report.disagreement
        extra["q_statistic"] = report.q_statistic
    n_trees = tree_matrix(model, X_test[:1]).n_trees
    return {
        **scores(y_test, _softened(model.predict_proba(X_test)[:, 1])),
        "trees": n_trees,
        "predict_ms": _predict_ms(model, X_test),
        **extra,
    }


def _softened(probability: Array) -> Array:
    """Keep half a vote away from 0 and 1: the unanimous rows of a forest would make its log-loss infinite."""
    return np.clip(probability, 0.5 / N_TREES, 1 - 0.5 / N_TREES)


def _first(model: Any, X: Array, k: int) -> Array:
    trees = tree_matrix(model, X)
    F = trees.H[:, :k] @ trees.column_weights[:k]
    if trees.average:
        return _softened(F / trees.column_weights[:k].sum())
    return _softened(np.asarray(special.expit(F + trees.intercept)))


def _lasso_cv(model: Any, X_val: Array, y_val: Labels, X_test: Array) -> tuple[Array, int]:
    """Regress the labels on the trees; one factor and a shift lead from there to log-odds."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LassoCV

    H_val, H_test = tree_matrix(model, X_val).H, tree_matrix(model, X_test).H
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # at the smallest penalties, which it does not choose
        lasso = LassoCV(cv=5, n_jobs=1, random_state=0).fit(H_val, y_val)
    scale = nonnegative_weights(lasso.predict(H_val)[:, None], y_val, pull=1e-3)
    F = lasso.predict(H_test) * scale.weights[0] + scale.intercept
    return _softened(np.asarray(special.expit(F))), int(np.count_nonzero(lasso.coef_))


def _predict_ms(model: Any, X: Array) -> float:
    """Return the shortest of five times to predict 20,000 rows, in milliseconds."""
    rows = np.resize(np.arange(len(X)), TIMED_ROWS)
    block = np.ascontiguousarray(X[rows])
    times = []
    for _ in range(5):
        start = time.perf_counter()
        model.predict_proba(block)
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def run(
    out: Path,
    data_dir: str | None = None,
    *,
    sets: Sequence[str] = SETS,
    libraries: Sequence[str] = LIBRARIES,
    repeats: int = N_REPEATS,
) -> list[Row]:
    """Run what is not in the file yet; return the rows.

    Parameters
    ----------
    out : Path
        The CSV file; how it was made goes to a JSON file of the same stem.
    data_dir : str, optional
        Directory of Parquet files; the environment variable SCBOOST_DATA_DIR otherwise.
    sets, libraries : sequence of str
    repeats : int
    """
    directory = resolve_data_dir(data_dir)
    if directory is None:
        raise DataError(f"give --data-dir or set {DATA_DIR_VARIABLE}: the sets are Parquet files")
    tasks = [
        Task(dataset, library, repeat, setting)
        for repeat in range(repeats)
        for dataset in sets
        for library in libraries
        for setting in TREATMENTS
    ]
    rows = run_tasks(tasks, partial(treat, data_dir=str(directory)), ResultFile(out, COLUMNS))
    write_provenance(
        out,
        command=shlex.join(["scboost-lab", *sys.argv[1:]]),
        data={name: _checksum(directory / f"{name}.parquet") for name in sets},
        extra={"row_cap": ROW_CAP, "column_cap": COLUMN_CAP, "repeats": repeats, "trees": N_TREES},
    )
    return rows


def _checksum(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "absent"
    return f"parquet:{path.stem} sha256:{digest[:16]}"


# --- the page --------------------------------------------------------------------------------------------------


class _Table:
    """Means of a column over chosen rows."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = [row for row in rows if row["status"] == "ok"]

    def values(self, column: str, **chosen: str) -> list[float]:
        return [
            float(row[column])
            for row in self.rows
            if row[column] and all(row[name] == value for name, value in chosen.items())
        ]

    def mean(self, column: str, **chosen: str) -> float:
        values = self.values(column, **chosen)
        return float(np.mean(values)) if values else float("nan")


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(value: float, digits: int) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def _treatments(table: _Table, library: str) -> list[str]:
    lines = [
        f"### {library}",
        "",
        _cells("", "trees", "AUC", "log-loss", "accuracy", "predict 20,000 rows, ms"),
        "|---|---|---|---|---|---|",
    ]
    for treatment in TREATMENTS:
        chosen = {"method": library, "setting": treatment}
        numbers = [table.mean(column, **chosen) for column in ("trees", "AUC", "log_loss", "ACC", "predict_ms")]
        digits = (0, 4, 4, 4, 1)
        cells = (_number(x, d) for x, d in zip(numbers, digits, strict=True))
        lines.append(_cells(treatment, *cells))
    return [*lines, ""]


def _by_set(table: _Table, sets: Sequence[str], libraries: Sequence[str]) -> list[str]:
    lines = [
        _cells("set", "library", *BY_SET),
        "|---|---|" + "---|" * len(BY_SET),
    ]
    for dataset in sets:
        for library in libraries:
            cells = []
            for setting in BY_SET:
                chosen = {"dataset": dataset, "method": library, "setting": setting}
                cells.append(f"{table.mean('AUC', **chosen):.4f} / {table.mean('log_loss', **chosen):.4f}")
            lines.append(_cells(dataset, library, *cells))
    return [*lines, ""]


def _verdict(table: _Table, sets: Sequence[str], libraries: Sequence[str], other: str, size: int) -> str:
    """Say in a sentence what pruning to a size costs against another treatment."""
    auc, loss, names = [], [], []
    for dataset in sets:
        for library in libraries:
            pruned = {"dataset": dataset, "method": library, "setting": f"pruned to {size}"}
            against = {"dataset": dataset, "method": library, "setting": other}
            auc.append(table.mean("AUC", **pruned) - table.mean("AUC", **against))
            loss.append(table.mean("log_loss", **pruned) - table.mean("log_loss", **against))
            names.append(f"{library} on {dataset}")
    worst = int(np.argmin(auc))
    return (
        f"- Pruned to {size} against *{other}*: AUC {np.mean(auc):+.4f} on average (worst {auc[worst]:+.4f}, "
        f"{names[worst]}; better in {sum(d > 0 for d in auc)} of {len(auc)} pairs of set and library), log-loss "
        f"{np.mean(loss):+.4f} (lower in {sum(d < 0 for d in loss)} of {len(loss)})."
    )


def draw(table: _Table, folder: Path) -> None:
    """Draw what pruning costs, from the table, and one report as an example, of models fitted here.

    Parameters
    ----------
    table : _Table
    folder : Path
        Where `pruning.png` and `redundancy_report.png` go.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for ax, column, measure in zip(axes, ("AUC", "log_loss"), ("AUC", "log-loss"), strict=True):
        full = table.mean(column, setting="all trees")
        changes = {
            name: (SIZES, [table.mean(column, setting=f"{way} {k}") - full for k in SIZES])
            for name, way in {
                "pruned": "pruned to",
                "lasso": "lasso to",
                "first": "first",
                "new model": "new model of",
                "new model, more rows": NEW,
            }.items()
        }
        plot_trees_kept(changes, score_name=f"{measure} against all trees", ax=ax)
        ax.axhline(0, color="0.35", lw=0.8, ls=":")
    axes[0].set(title="Area under the curve: higher is better", xlim=(0, 60))
    axes[1].set(title="Log-loss: lower is better", xlim=(0, 60))
    axes[0].get_legend().remove()
    axes[1].legend(frameon=False, fontsize=9)
    figure.savefig(folder / "pruning.png", dpi=110)
    plt.close(figure)

    X, y = load_breast_cancer(return_X_y=True)
    X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    reports = [
        redundancy_report(make(library, N_TREES, 0).fit(X_fit, y_fit), X_test, y_test)
        for library in ("XGBoost", "SCBoost")
    ]
    figure = plot_report(*reports)
    figure.savefig(folder / "redundancy_report.png", dpi=80)
    plt.close(figure)


def render(source: Path, page: Path) -> None:
    """Write the page and its pictures from the result file.

    Parameters
    ----------
    source : Path
        The CSV file of :func:`run`.
    page : Path
    """
    rows = ResultFile(source, COLUMNS).rows()
    table = _Table(rows)
    sets = [name for name in SETS if table.values("AUC", dataset=name)]
    libraries = [name for name in LIBRARIES if table.values("AUC", method=name)]
    failed = [row for row in rows if row["status"] != "ok"]
    made = json.loads(source.with_suffix(".json").read_text(encoding="utf-8"))["runs"][-1]
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    lines = [
        "# How redundant are the trees, and what does pruning cost?",
        "",
        f"Generated from `{source.name}` ({len(table.rows)} rows) by `scboost-lab pruning`; do not edit.",
        "",
        f"{len(sets)} binary data sets ({', '.join(sets)})",
        f"of at most {made['row_cap']} rows, {made['repeats']} random cuts each: half of the rows to fit, a quarter",
        f"for the weights, a quarter to score. {N_TREES} trees, defaults of each library, learning rate 0.1 for",
        "XGBoost and LightGBM. One thread. Every number is on rows that neither the model nor the weights have seen.",
        f"Probabilities are clipped to [{0.5 / N_TREES}, {1 - 0.5 / N_TREES}].",
        "",
        "## Redundancy",
        "",
        "Means over sets, measured on the rows to score. *Effective rank* is the number of equally strong directions",
        f"among the {N_TREES} trees; *redundancy* the share of a tree that lies in the span of the trees before it;",
        "*disagreement* the share of rows on which two trees vote differently.",
        "",
        _cells("library", "effective rank", "redundancy", "disagreement", "Q-statistic"),
        "|---|---|---|---|---|",
    ]
    for library in libraries:
        chosen = {"method": library, "setting": "all trees"}
        lines.append(
            _cells(
                library,
                _number(table.mean("effective_rank", **chosen), 1),
                _number(table.mean("redundancy", **chosen), 3),
                _number(table.mean("disagreement", **chosen), 3),
                _number(table.mean("q_statistic", **chosen), 3),
            )
        )
    lines += [
        "",
        "`redundancy_report(model, X, y)` tells these and more of a single model, `plot_report` draws them. Here",
        "XGBoost's default with learning rate 0.1 on half of scikit-learn's breast cancer data, SCBoost's beside it:",
        "",
        "![Report](figures/redundancy_report.png)",
        "",
        "## What pruning costs",
        "",
        "Means over sets and libraries, against the model with all its trees; what the names mean stands below.",
        "",
        "![Pruning](figures/pruning.png)",
        "",
    ]
    lines += [
        _verdict(table, sets, libraries, other, size)
        for size in (25, 10)
        for other in ("all trees", f"first {size}", f"new model of {size}", f"{NEW} {size}")
    ]
    fresh = [name for name in sets if name not in CHOSEN_ON]
    if fresh:
        lines += [
            "",
            f"The defaults of `prune` were chosen on {', '.join(CHOSEN_ON)}, with other cuts. On the other sets alone",
            f"({', '.join(fresh)}):",
            "",
            *(_verdict(table, fresh, libraries, other, 25) for other in ("all trees", "first 25", f"{NEW} 25")),
        ]
    lines += [
        "",
        "*All trees* is the model that is pruned. *First k* is plain truncation. *New model of k* is fitted on the",
        "same rows with k trees and a learning rate 100 / k times as large (at most 0.5). *More rows* means fitted on",
        "the rows for the weights as well: without pruning there is no need to hold them out. *Re-weighted* is",
        "`reweight`; *pruned to* and *lasso to* are `prune` with its two selections. *LassoCV* regresses the labels",
        "on the trees of the model and chooses its own number of trees.",
        "",
        "## By library",
        "",
    ]
    for library in libraries:
        lines += _treatments(table, library)
    lines += ["## By set: a quarter of the trees, AUC / log-loss", ""]
    lines += _by_set(table, sets, libraries)
    lines += [
        "## How this was made",
        "",
        f"`{made['command']}`, {made['date'][:10]}, Python {made['python']}: {versions}.",
        f"Choosing 25 of {N_TREES} trees took {table.mean('select_seconds', setting='pruned to 25'):.2f} s on average.",
        "Pruned forests are predicted by a thin Python wrapper, the others by their own library. The times are from a",
        "machine that did other work as well: compare them within a library only.",
    ]
    if failed:
        lines += ["", f"{len(failed)} rows failed and are not counted; the file says why."]
    draw(table, page.parent / "figures")
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _command(args: argparse.Namespace) -> int:
    try:
        if not args.page_only:
            run(args.out, args.data_dir, sets=args.sets, libraries=args.libraries, repeats=args.repeats)
        render(args.out, args.page)
    except (DataError, StorageError, FileNotFoundError) as error:
        print(f"scboost-lab pruning: {error}", file=sys.stderr)
        return 1
    print(f"{args.page} is written")
    return 0


def add_parser(subparsers: Any) -> None:
    """Add ``scboost-lab pruning``."""
    parser = subparsers.add_parser(
        "pruning",
        help="measure redundancy and pruning on real data",
        description="Measure redundancy and pruning on real data. A run that is stopped goes on where it was.",
    )
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("results/pruning.csv"), help="the result file")
    parser.add_argument("--page", type=Path, default=Path("docs/redundancy.md"), help="where the page goes")
    parser.add_argument("--page-only", action="store_true", help="only render the page")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES, choices=LIBRARIES, metavar="NAME")
    parser.add_argument("--repeats", type=int, default=N_REPEATS)
    parser.set_defaults(func=_command)
