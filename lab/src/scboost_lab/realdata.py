"""The estimators with their defaults on real tables, next to four libraries: ``scboost-lab realdata``.

Nine sets with categorical columns, missing values, many classes and real targets; two more experiments compare two
ways to keep the history of many classes, and strengths of the projection for what the study on two classes does not
cover (``--strength``). Rows go to ``<out>/<experiment>.csv``, the page is made from them.
"""

import argparse
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost import SCBoostClassifier
from scboost._arrays import FloatArray
from scboost_lab.datasets import DATA_DIR_VARIABLE, SEED, require_data_dir, table
from scboost_lab.models import HGB, SCBOOST, make
from scboost_lab.page import fill, made_with, template, write
from scboost_lab.page import table as markdown
from scboost_lab.results import Results
from scboost_lab.runner import Experiment, Task, Values
from scboost_lab.scoring import HIGHER_IS_BETTER, folds, timed
from scboost_lab.variants import JointHistoryClassifier

KINDS = {
    "adult_train": "two classes",
    "sick": "two classes",
    "credit_g": "two classes",
    "satimage": "many classes",
    "segment": "many classes",
    "letter_26class": "many classes",
    "california_housing_reg": "regression",
    "diamonds_reg": "regression",
    "cpu_act_reg": "regression",
}
OURS = "scboost"
METHODS = {OURS: SCBOOST, "XGBoost": "XGB", "LightGBM": "LGBM", "CatBoost": "CAT", "HistGradientBoosting": HGB}
"""Names in the files, and in the factory."""
ROUNDS = 100
MOST_ROWS = 10_000
FOLDS = 5
# Small enough for two fits of 26 classes; the same rows for both histories.
HISTORY_ROWS = 3_000
HISTORY_FOLDS = 3
HISTORIES = ("by class", "joint")
# Said explicitly, so that the rows keep their meaning when defaults change.
HISTORY_PARAMS: dict[str, Any] = {
    "max_depth": 6,
    "max_leaves": None,
    "projection_strength": 0.5,
    "colsample_bytree": 1.0,
}
STRENGTH_KINDS = {
    **{name: kind for name, kind in KINDS.items() if kind != "two classes"},
    "elevators_reg": "regression",
    "pol_reg": "regression",
}
STRENGTH_ROWS = {"regression": 6_000, "many classes": 3_000}
STRENGTH_FOLDS = 3
STRENGTHS = (0.0, 0.5, 0.7)
SHAPES: dict[str, dict[str, int | None]] = {
    "depth 6": {"max_depth": 6, "max_leaves": None},
    "31 leaves": {"max_depth": None, "max_leaves": 31},
}
STRENGTH_SHAPES = {"regression": tuple(SHAPES), "many classes": ("depth 6",)}  # leaves: too slow for 26 classes
COLUMNS = ("log_loss", "ACC", "AUC", "RMSE", "MAE", "R2", "fit_seconds", "predict_seconds")
SHOWN = {
    "two classes": ("log_loss", "AUC", "ACC"),
    "many classes": ("log_loss", "ACC"),
    "regression": ("RMSE", "MAE", "R2"),
}

Array = NDArray[Any]


def categorical_columns(X: Any) -> list[str]:
    """Names of the columns that are not numbers."""
    return [str(name) for name in X.columns if X[name].dtype.kind not in "biuf"]


def presented(X: Any, method: str) -> Any:
    """Return the table with its categorical columns in the form that a method asks for."""
    if method == "HistGradientBoosting":  # fails on a column without any value
        X = X.dropna(axis="columns", how="all")
    columns = categorical_columns(X)
    if method == "CatBoost":  # takes texts, and none of them may be missing
        return X.assign(**{c: X[c].astype(object).where(X[c].notna(), "missing").astype(str) for c in columns})
    return X.assign(**{c: X[c].astype("category") for c in columns})


def scores(kind: str, y: Array, prediction: Array, classes: Array | None) -> dict[str, float]:
    """Score predictions of a real target, or probabilities of the classes."""
    from sklearn import metrics

    if classes is None:
        return {
            "RMSE": float(metrics.root_mean_squared_error(y, prediction)),
            "MAE": float(metrics.mean_absolute_error(y, prediction)),
            "R2": float(metrics.r2_score(y, prediction)),
        }
    probability = prediction / prediction.sum(axis=1, keepdims=True)  # float32 rows do not sum to one
    values = {
        "log_loss": float(metrics.log_loss(y, probability, labels=classes)),
        "ACC": float(np.mean(classes[probability.argmax(axis=1)] == y)),
    }
    if kind == "two classes":
        values["AUC"] = float(metrics.roc_auc_score(y, probability[:, 1]))
    return values


def fit_fold(task: Task, model: Any, kind: str, X: Any, y: Array, n_folds: int) -> Values:
    """Fit one fold and score it."""
    classes = kind != "regression"
    train, test = folds(y, SEED, n_folds, stratified=classes)[task.fold]
    how = "predict_proba" if classes else "predict"
    prediction, seconds = timed(model, X.iloc[train], y[train], X.iloc[test], how)
    found = scores(kind, y[test], prediction, np.asarray(model.classes_) if classes else None)
    return {**found, **seconds}


def compare(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """One fold of one method on one set; categorical columns as the method takes them natively."""
    X, y = table(task.dataset, require_data_dir(data_dir), MOST_ROWS)
    kind = KINDS[task.dataset]
    X = presented(X, task.method)
    native: dict[str, dict[str, Any]] = {
        "XGBoost": {"enable_categorical": True, "tree_method": "hist"},
        "CatBoost": {"cat_features": categorical_columns(X)},
        "HistGradientBoosting": {"categorical_features": "from_dtype"},
    }
    common: dict[str, Any] = {"n_estimators": ROUNDS, "regression": kind == "regression"}
    model = make(METHODS[task.method], SEED, **common, **native.get(task.method, {}), **params)
    return fit_fold(task, model, kind, X, y, FOLDS)


def compare_histories(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """One fold of the classifier with one of the two kinds of history."""
    X, y = table(task.dataset, require_data_dir(data_dir), HISTORY_ROWS)
    model = params["cls"](n_estimators=ROUNDS, n_jobs=1, random_state=SEED, **HISTORY_PARAMS)
    return fit_fold(task, model, "many classes", X, y, HISTORY_FOLDS)


def _strength_setting(shape: str, gamma: float) -> str:
    return f"{shape}, gamma {gamma:g}"


def compare_strengths(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """One fold of scboost with one shape of tree and one strength of the projection, the rest as by default."""
    kind = STRENGTH_KINDS[task.dataset]
    X, y = table(task.dataset, require_data_dir(data_dir), STRENGTH_ROWS[kind])
    model = make(SCBOOST, SEED, n_estimators=ROUNDS, regression=kind == "regression", **params)
    return fit_fold(task, model, kind, presented(X, OURS), y, STRENGTH_FOLDS)


EXPERIMENTS = {
    "class_history": Experiment(
        "one history for each class, or one for all",
        compare_histories,
        COLUMNS,
        tuple(name for name, kind in KINDS.items() if kind == "many classes"),
        (OURS,),
        dict(zip(HISTORIES, ({"cls": SCBoostClassifier}, {"cls": JointHistoryClassifier}), strict=True)),
        HISTORY_FOLDS,
    ),
    "realdata": Experiment(
        "the defaults on real tables", compare, COLUMNS, tuple(KINDS), tuple(METHODS), n_folds=FOLDS
    ),
    "strength": Experiment(
        "strengths of the projection",
        compare_strengths,
        COLUMNS,
        tuple(STRENGTH_KINDS),
        (OURS,),
        {
            _strength_setting(shape, gamma): {**SHAPES[shape], "projection_strength": gamma, "colsample_bytree": 1.0}
            for shape, gamma in product(SHAPES, STRENGTHS)
        },
        STRENGTH_FOLDS,
        wanted=lambda name, _, setting: setting.startswith(STRENGTH_SHAPES[STRENGTH_KINDS[name]]),
    ),
}


def run(name: str, out: Path, data_dir: str, *, jobs: int = 1, again: Sequence[str] = (), command: str = "") -> None:
    """Run the folds of an experiment that are not done yet, and those of the methods to run again."""
    experiment, path = EXPERIMENTS[name], out / f"{name}.csv"
    with experiment.file(path).recorded(command, rounds=ROUNDS):
        if set(again) & set(experiment.methods):
            experiment.run(path, experiment.tasks(methods=again), data_dir, jobs=jobs, again=True)
        experiment.run(path, experiment.tasks(), data_dir, jobs=jobs)


# --- the page -------------------------------------------------------------------------------------------------------


def _digits(values: Sequence[float] | FloatArray) -> int:
    """Digits after the point that show four significant ones of the largest value, at most four."""
    return int(np.clip(3 - np.floor(np.log10(np.nanmax(np.abs(values)))), 0, 4))


def _means(results: Results, name: str, metric: str) -> list[float]:
    """Mean score of each method on a set."""
    return [float(np.mean(results.values(metric, dataset=name, method=method))) for method in METHODS]


def _comparison(results: Results) -> str:
    lines = []
    names = list(METHODS)
    for name, kind in KINDS.items():
        for metric in SHOWN[kind]:
            means, sign = _means(results, name, metric), HIGHER_IS_BETTER[metric]
            order = sorted(range(len(names)), key=lambda i, m=means, s=sign: -s * m[i])  # type: ignore[misc]
            digits = _digits(means)
            cells = [f"**{m:.{digits}f}**" if i == order[0] else f"{m:.{digits}f}" for i, m in enumerate(means)]
            rival = order[0] or order[1]
            ours, theirs = (np.array(results.values(metric, dataset=name, method=m)) for m in (OURS, names[rival]))
            wins = int(np.sum(sign * (ours - theirs) > 0))
            gain = sign * (means[0] - means[rival])
            share = f" ({gain / abs(means[rival]):+.1%})" if sign < 0 else ""
            verdict = f"{gain:+.{digits}f}{share} {names[rival]}, better in {wins} of {len(ours)} folds"
            lines.append([name if metric == SHOWN[kind][0] else "", metric, *cells, verdict])
    return markdown(["set", "score", *names, "scboost against the best other"], lines)


def _times(results: Results) -> str:
    lines = [[d, *(f"{results.median('fit_seconds', dataset=d, method=m):.2f}" for m in METHODS)] for d in KINDS]
    return markdown(["set", *METHODS], lines)


def _ranks(results: Results) -> dict[str, str]:
    """Mean rank and number of first places on the first score of each set, and the losses."""
    ranks: list[list[float]] = []
    losses = []
    names = list(METHODS)
    for name, kind in KINDS.items():
        means = np.array(_means(results, name, SHOWN[kind][0]))
        ranks.append((np.argsort(np.argsort(means)) + 1).tolist())
        best = int(np.argmin(means))
        if best:
            losses.append(f"{name} by {(means[0] - means[best]) / means[best]:.1%} to {names[best]}")
    first = np.sum(np.array(ranks) == 1, axis=0)
    lines = [[m, f"{r:.2f}", f"{n}"] for m, r, n in zip(names, np.mean(ranks, axis=0), first, strict=True)]
    return {"ranks": markdown(["", "mean rank", "first places"], lines), "behind": "; ".join(losses) or "nowhere"}


def _histories(results: Results) -> str:
    lines = [
        [
            name,
            *(
                f"{results.mean(metric, dataset=name, setting=setting):.4f}"
                for metric in SHOWN["many classes"]
                for setting in HISTORIES
            ),
        ]
        for name, kind in KINDS.items()
        if kind == "many classes"
    ]
    return markdown(["set", "log-loss by class", "joint", "ACC by class", "joint"], lines)


def _strengths(results: Results) -> str:
    """Mean scores by set and setting, and by task the geometric mean of the changes against the classifier's."""
    settings = [_strength_setting(shape, gamma) for shape in SHAPES for gamma in STRENGTHS]
    reference = settings.index(_strength_setting("depth 6", 0.5))
    lines = []
    changes: dict[str, list[FloatArray]] = {}
    for name, kind in STRENGTH_KINDS.items():
        metric = SHOWN[kind][0]
        cells = [results.values(metric, dataset=name, setting=setting) or [np.nan] for setting in settings]
        means = np.array([np.mean(cell) for cell in cells])
        changes.setdefault(kind, []).append(np.log(means / means[reference]))
        digits = max(4, int(2 - np.floor(np.log10(np.nanmin(means))))) if np.nanmin(means) < 1 else _digits(means)
        best = np.nanargmin(means)
        shown = ["" if np.isnan(m) else f"{m:.{digits}f}" for m in means]
        shown[best] = f"**{shown[best]}**"
        lines.append([name, metric, *shown])
    for kind, logs in changes.items():
        mean = np.expm1(np.mean(logs, axis=0))
        lines.append([kind, "change", *("" if np.isnan(m) else f"{m:+.1%}" for m in mean)])
    return markdown(["set", "score", *settings], lines)


def _change(results: Results, kind: str, setting: str) -> str:
    """Say how much better a setting is than the classifier's defaults."""
    old, metric = _strength_setting("depth 6", 0.5), SHOWN[kind][0]
    pairs = [
        tuple(np.array(results.values(metric, dataset=name, setting=s)) for s in (setting, old))
        for name, its_kind in STRENGTH_KINDS.items()
        if its_kind == kind
    ]
    wins = [ours.mean() < theirs.mean() for ours, theirs in pairs]
    changes = np.array([np.log(ours.mean() / theirs.mean()) for ours, theirs in pairs])
    fold_wins = np.concatenate([ours < theirs for ours, theirs in pairs])
    rest = np.delete(changes, np.argmin(changes))
    return (
        f"{np.expm1(changes.mean()):+.1%} ({np.expm1(rest.mean()):+.1%} without the set that gains most), better "
        f"on {sum(wins)} of {len(wins)} sets and in {fold_wins.sum()} of {len(fold_wins)} folds"
    )


def page_text(out: Path) -> str:
    """Write the page from the result files in a directory."""
    results, histories, strengths = (Results(out / f"{name}.csv") for name in ("realdata", "class_history", "strength"))
    return fill(
        template("realdata"),
        versions=made_with(results, histories, strengths),
        rounds=ROUNDS,
        most_rows=MOST_ROWS,
        folds=FOLDS,
        seed=SEED,
        comparison=_comparison(results),
        **_ranks(results),
        times=_times(results),
        made=results.made_by(),
        history_folds=HISTORY_FOLDS,
        history_rows=HISTORY_ROWS,
        histories=_histories(histories),
        history_made=histories.made_by(),
        strength_folds=STRENGTH_FOLDS,
        regression_rows=STRENGTH_ROWS["regression"],
        classes_rows=STRENGTH_ROWS["many classes"],
        strengths=_strengths(strengths),
        leaves_change=_change(strengths, "regression", _strength_setting("31 leaves", 0.7)),
        classes_change=_change(strengths, "many classes", _strength_setting("depth 6", 0.7)),
        strength_made=strengths.made_by(),
    )


# --- the command ----------------------------------------------------------------------------------------------------


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab realdata``."""
    parser.description = "Compare the defaults with other libraries on nine real tables. A stopped run goes on."
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("scboost-realdata"), help="directory of the result files")
    parser.add_argument("--page", type=Path, help="where the page goes (default: <out>/realdata.md)")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--again", nargs="+", default=(), metavar="METHOD", choices=METHODS, help="run these again")
    parser.add_argument("--strength", action="store_true", help="run only the strengths of the projection")
    parser.add_argument("--page-only", action="store_true", help="only write the page from the result files")


def main(args: argparse.Namespace) -> int:
    """Run the experiments and write the page."""
    if not args.page_only:
        flag = " --strength" if args.strength else ""
        command = f"scboost-lab realdata{flag} --data-dir DATA --out {args.out.as_posix()}"
        for name in ("strength",) if args.strength else EXPERIMENTS:
            run(name, args.out, require_data_dir(args.data_dir), jobs=args.jobs, again=args.again, command=command)
    page = args.page or args.out / "realdata.md"
    write(page, page_text(args.out))
    print(f"wrote {page}")
    return 0
