"""What pruning costs: trees kept against AUC, log-loss and prediction time, for five libraries.

Every row of ``results/pruning.csv`` is one treatment of one fitted model. A data set, capped at `ROW_CAP` rows, is cut
into rows to fit on (half), rows for the weights (a quarter) and rows to score on (a quarter), anew for each repeat.
Treatments that need no weights are also fitted on the rows for the weights: a user without pruning would use them.
"""

import argparse
import hashlib
import shlex
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from scboost.diagnostics import prune, redundancy_report, reweight, tree_matrix
from scboost.plotting import plot_report, plot_trees_kept
from scboost.weighting import nonnegative_weights
from scboost_lab.datasets import DATA_DIR_VARIABLE, matrix, require_data_dir
from scboost_lab.models import make
from scboost_lab.page import fill, made_with, number, table, template, write
from scboost_lab.results import Results, Row
from scboost_lab.runner import Experiment, Task, Values
from scboost_lab.scoring import SCORES, scores

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

SETS = ("credit_g", "qsar_biodeg", "jasmine", "phoneme", "kc1", "sylvine", "spambase", "elevators")
CHOSEN_ON = ("credit_g", "qsar_biodeg", "phoneme", "kc1", "sylvine", "spambase")
"""Sets on which the defaults of `prune` were chosen, with other cuts and row caps."""
LIBRARIES = {"XGBoost": "XGB", "LightGBM": "LGBM", "CatBoost": "CAT", "RandomForest": "RF", "SCBoost": "SCBoost"}
"""Names in the file, and in the factory."""
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


def unfitted(library: str, n_trees: int, seed: int) -> Any:
    """Return a model with the library's defaults, except 100 trees and learning rate 0.1.

    A model with fewer trees learns faster in proportion, up to 0.5. CatBoost and SCBoost choose their own rates.
    """
    rate: dict[str, Any] = (
        {"learning_rate": min(0.5, 0.1 * N_TREES / n_trees)} if library in {"XGBoost", "LightGBM"} else {}
    )
    return make(LIBRARIES[library], seed, n_estimators=n_trees, **rate)


@lru_cache(maxsize=1)
def rows_of(dataset: str, data_dir: str, repeat: int) -> tuple[Array, Labels, Array, Labels, Array, Labels]:
    """Return X and y of the rows to fit, to weigh and to score; missing values become column medians."""
    from sklearn.model_selection import train_test_split

    X, y = matrix(dataset, data_dir, ROW_CAP, COLUMN_CAP)
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, test_size=0.5, stratify=y, random_state=repeat)
    X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=repeat)
    return X_fit, y_fit, X_val, y_val, X_test, y_test


@lru_cache(maxsize=1)
def fitted(dataset: str, data_dir: str, repeat: int, library: str) -> Any:
    """Return the model that is pruned."""
    X, y, *_ = rows_of(dataset, data_dir, repeat)
    return unfitted(library, N_TREES, repeat).fit(X, y)


def treat(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """Score one treatment: the work of one row."""
    directory = require_data_dir(data_dir)
    X_fit, y_fit, X_val, y_val, X_test, y_test = rows_of(task.dataset, directory, task.fold)
    model = fitted(task.dataset, directory, task.fold, task.method)
    name, k = params["name"], params["trees"]
    extra: dict[str, float | int | str] = {}
    start = time.perf_counter()
    if name == "new model of":
        model = unfitted(task.method, k, task.fold).fit(X_fit, y_fit)
    elif name in {"all trees, more rows", NEW}:
        model = unfitted(task.method, k or N_TREES, task.fold)
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
    scale = nonnegative_weights(lasso.predict(H_val)[:, None], y_val, ridge=1e-3)
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


def _parameters(treatment: str) -> dict[str, Any]:
    """Name of a treatment without its number of trees, and that number (0 where it has none)."""
    name, _, size = treatment.rpartition(" ") if treatment[-1].isdigit() else (treatment, "", "0")
    return {"name": name, "trees": int(size)}


EXPERIMENT = Experiment(
    "pruning",
    treat,
    COLUMNS,
    SETS,
    tuple(LIBRARIES),
    {treatment: _parameters(treatment) for treatment in TREATMENTS},
    N_REPEATS,
)


def run(
    out: Path,
    data_dir: str | None = None,
    *,
    sets: Sequence[str] = SETS,
    libraries: Sequence[str] = tuple(LIBRARIES),
    repeats: int = N_REPEATS,
    command: str = "",
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
    command : str
        What the record beside the file says made the rows.
    """
    directory = require_data_dir(data_dir)
    experiment = replace(EXPERIMENT, n_folds=repeats)
    caps = {"row_cap": ROW_CAP, "column_cap": COLUMN_CAP, "repeats": repeats, "trees": N_TREES}

    def data() -> dict[str, str]:
        return {name: _checksum(Path(directory) / f"{name}.parquet") for name in sets}

    with experiment.file(out).recorded(command, data=data, **caps):
        return experiment.run(out, experiment.tasks(sets, libraries), directory)


def _checksum(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "absent"
    return f"parquet:{path.stem} sha256:{digest[:16]}"


# --- the page --------------------------------------------------------------------------------------------------


def _redundancy(results: Results, libraries: Sequence[str]) -> str:
    columns = {"effective_rank": 1, "redundancy": 3, "disagreement": 3, "q_statistic": 3}
    lines = [
        [m, *(number(results.mean(c, method=m, setting="all trees"), d, "") for c, d in columns.items())]
        for m in libraries
    ]
    return table(["library", "effective rank", "redundancy", "disagreement", "Q-statistic"], lines)


def _by_library(results: Results, libraries: Sequence[str]) -> str:
    columns = {"trees": 0, "AUC": 4, "log_loss": 4, "ACC": 4, "predict_ms": 1}
    header = ["", "trees", "AUC", "log-loss", "accuracy", "predict 20,000 rows, ms"]
    blocks = []
    for library in libraries:
        lines = [
            [t, *(number(results.mean(c, method=library, setting=t), d, "") for c, d in columns.items())]
            for t in TREATMENTS
        ]
        blocks.append(f"### {library}\n\n{table(header, lines)}")
    return "\n\n".join(blocks)


def _by_set(results: Results, sets: Sequence[str], libraries: Sequence[str]) -> str:
    lines = []
    for dataset, library in product(sets, libraries):
        cells = []
        for setting in BY_SET:
            chosen = {"dataset": dataset, "method": library, "setting": setting}
            cells.append(" / ".join(number(results.mean(c, **chosen)) for c in ("AUC", "log_loss")))
        lines.append([dataset, library, *cells])
    return table(["set", "library", *BY_SET], lines)


def _verdict(results: Results, sets: Sequence[str], libraries: Sequence[str], other: str, size: int) -> str:
    """Return a sentence that compares pruning to a size with another method."""
    names = [f"{library} on {dataset}" for dataset, library in product(sets, libraries)]
    auc, loss = (
        [
            results.mean(column, dataset=d, method=m, setting=f"pruned to {size}")
            - results.mean(column, dataset=d, method=m, setting=other)
            for d, m in product(sets, libraries)
        ]
        for column in ("AUC", "log_loss")
    )
    worst = int(np.argmin(auc))
    return (
        f"- Pruned to {size} against *{other}*: AUC {np.mean(auc):+.4f} on average (worst {auc[worst]:+.4f}, "
        f"{names[worst]}; better in {sum(d > 0 for d in auc)} of {len(auc)} pairs of set and library), log-loss "
        f"{np.mean(loss):+.4f} (lower in {sum(d < 0 for d in loss)} of {len(loss)})."
    )


def draw(results: Results, folder: Path) -> None:
    """Draw what pruning costs, from the rows, and one report as an example, of models fitted here.

    Parameters
    ----------
    results : Results
    folder : Path
        Where `pruning.png` and `redundancy_report.png` go.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    folder.mkdir(parents=True, exist_ok=True)
    ways = {"pruned": "pruned to", "lasso": "lasso to", "first": "first", "new model": "new model of"}
    ways["new model, more rows"] = NEW
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for ax, column, measure in zip(axes, ("AUC", "log_loss"), ("AUC", "log-loss"), strict=True):
        full = results.mean(column, setting="all trees")
        changes = {
            name: (SIZES, [results.mean(column, setting=f"{way} {k}") - full for k in SIZES])
            for name, way in ways.items()
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
        redundancy_report(unfitted(library, N_TREES, 0).fit(X_fit, y_fit), X_test, y_test)
        for library in ("XGBoost", "SCBoost")
    ]
    figure = plot_report(*reports)
    figure.savefig(folder / "redundancy_report.png", dpi=80)
    plt.close(figure)


def page_text(source: Path) -> str:
    """Write the page from the result file."""
    results = Results(source)
    sets = [name for name in SETS if results.select(dataset=name)]
    libraries = [name for name in LIBRARIES if results.select(method=name)]
    fresh = [name for name in sets if name not in CHOSEN_ON]
    made = results.runs[-1]
    return fill(
        template("redundancy"),
        versions=made_with(results),
        n_sets=len(sets),
        sets=", ".join(sets),
        row_cap=made["row_cap"],
        repeats=made["repeats"],
        trees=N_TREES,
        lowest=0.5 / N_TREES,
        highest=1 - 0.5 / N_TREES,
        redundancy=_redundancy(results, libraries),
        verdicts="\n".join(
            _verdict(results, sets, libraries, other, size)
            for size in (25, 10)
            for other in ("all trees", f"first {size}", f"new model of {size}", f"{NEW} {size}")
        ),
        chosen_on=", ".join(CHOSEN_ON),
        fresh=", ".join(fresh) or "none here",
        fresh_verdicts="\n".join(
            _verdict(results, fresh, libraries, other, 25) for other in ("all trees", "first 25", f"{NEW} 25") if fresh
        ),
        by_library=_by_library(results, libraries),
        by_set=_by_set(results, sets, libraries),
        made=results.made_by(),
        select_seconds=results.mean("select_seconds", setting="pruned to 25"),
        failed=len(results.failed),
    )


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab pruning``."""
    parser.description = "Measure redundancy and pruning on real data. An interrupted run is resumed."
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("results/pruning.csv"), help="the result file")
    parser.add_argument("--page", type=Path, default=Path("docs/redundancy.md"), help="where the page goes")
    parser.add_argument("--page-only", action="store_true", help="only render the page")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--libraries", nargs="+", default=tuple(LIBRARIES), choices=LIBRARIES, metavar="NAME")
    parser.add_argument("--repeats", type=int, default=N_REPEATS)


def main(args: argparse.Namespace) -> int:
    """Run the experiment and write the page with its pictures."""
    chosen: dict[str, Any] = {"sets": args.sets, "libraries": args.libraries, "repeats": args.repeats}
    if not args.page_only:
        words = ["--sets", *args.sets, "--libraries", *args.libraries, "--repeats", str(args.repeats)]
        run(args.out, args.data_dir, **chosen, command=shlex.join(["scboost-lab", "pruning", *words]))
    draw(Results(args.out), args.page.parent / "figures")
    write(args.page, page_text(args.out))
    print(f"wrote {args.page}")
    return 0
