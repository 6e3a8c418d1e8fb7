"""The estimators with their defaults on real tables, next to four libraries: ``scboost-lab realdata``.

Nine sets with categorical columns, missing values, many classes and real targets; two more experiments compare two
ways to keep the history of many classes, and strengths of the projection for what the study on two classes does not
cover (``--strength``). Rows go to ``<out>/<experiment>.csv``, the page is made from them.
"""

import argparse
import csv
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost._arrays import FloatArray
from scboost.boosting.history import History, Projection
from scboost.boosting.loop import boost, start
from scboost.boosting.training import Rows, Training
from scboost.estimators.base import SCBoostClassifier, SCBoostRegressor
from scboost_lab.datasets import DATA_DIR_VARIABLE, DataError, resolve_data_dir
from scboost_lab.protocol import SEED, ResultFile, StorageError, Task, run_tasks, write_provenance

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
SCBOOST = "scboost"
METHODS = (SCBOOST, "XGBoost", "LightGBM", "CatBoost", "HistGradientBoosting")
ROUNDS = 100
MOST_ROWS = 10_000
FOLDS = 5
# Small enough for two fits of 26 classes; the same rows for both histories.
HISTORY_ROWS = 3_000
HISTORY_FOLDS = 3
HISTORIES = ("by class", "joint")
# Said explicitly, so that the rows keep their meaning when defaults change.
HISTORY_PARAMS: dict[str, Any] = {"max_depth": 6, "max_leaves": None, "projection_strength": 0.5, "colsample": 1.0}
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
LOWER_IS_BETTER = {"log_loss", "RMSE", "MAE"}

Array = NDArray[Any]


@lru_cache(maxsize=1)
def table(name: str, data_dir: str, most_rows: int) -> tuple[Any, Array]:
    """Features as a pandas table and the target, of a random part of the rows if there are too many."""
    import pandas as pd

    path = Path(data_dir) / f"{name}.parquet"
    if not path.is_file():
        raise DataError(f"{name}: there is no {path.name} in {data_dir!r}")
    frame = pd.read_parquet(path)
    if len(frame) > most_rows:
        frame = frame.sample(most_rows, random_state=SEED)
    return frame.drop(columns="target").reset_index(drop=True), frame["target"].to_numpy()


def split(kind: str, y: Array, n_folds: int, fold: int) -> tuple[Array, Array]:
    """Row numbers of the training and the test part of a fold, stratified where there are classes."""
    from sklearn.model_selection import KFold, StratifiedKFold

    cutter: Any = KFold if kind == "regression" else StratifiedKFold
    folds = cutter(n_folds, shuffle=True, random_state=SEED).split(np.zeros((len(y), 1)), y)
    return next(islice(folds, fold, None))  # type: ignore[no-any-return]


def make(method: str, *, regression: bool, categorical: Sequence[str]) -> Any:
    """One method with its defaults, 100 rounds and one thread; categorical columns as it takes them natively."""
    common: dict[str, Any] = {"random_state": SEED}
    if method == SCBOOST:
        cls: Any = SCBoostRegressor if regression else SCBoostClassifier
        return cls(n_estimators=ROUNDS, n_jobs=1, **common)
    if method == "XGBoost":
        import xgboost as xgb

        cls = xgb.XGBRegressor if regression else xgb.XGBClassifier
        return cls(n_estimators=ROUNDS, n_jobs=1, enable_categorical=True, tree_method="hist", **common)
    if method == "LightGBM":
        import lightgbm as lgb

        cls = lgb.LGBMRegressor if regression else lgb.LGBMClassifier
        return cls(n_estimators=ROUNDS, n_jobs=1, verbose=-1, **common)
    if method == "CatBoost":
        import catboost

        cls = catboost.CatBoostRegressor if regression else catboost.CatBoostClassifier
        own = {"verbose": False, "allow_writing_files": False, "cat_features": list(categorical)}
        return cls(iterations=ROUNDS, thread_count=1, **own, **common)
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    cls = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return cls(max_iter=ROUNDS, categorical_features="from_dtype", **common)


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


def scores(kind: str, y: Array, model: Any, X: Any) -> dict[str, float]:
    """Scores of a fitted model on test rows, and the time that the predictions took."""
    from sklearn import metrics

    begin = time.perf_counter()
    if kind == "regression":
        prediction = model.predict(X)
        seconds = time.perf_counter() - begin
        return {
            "RMSE": float(metrics.root_mean_squared_error(y, prediction)),
            "MAE": float(metrics.mean_absolute_error(y, prediction)),
            "R2": float(metrics.r2_score(y, prediction)),
            "predict_seconds": round(seconds, 4),
        }
    probability = np.asarray(model.predict_proba(X), dtype=np.float64)
    seconds = time.perf_counter() - begin
    probability /= probability.sum(axis=1, keepdims=True)  # float32 rows do not sum to one
    values = {
        "log_loss": float(metrics.log_loss(y, probability, labels=model.classes_)),
        "ACC": float(np.mean(np.asarray(model.classes_)[probability.argmax(axis=1)] == y)),
        "predict_seconds": round(seconds, 4),
    }
    if kind == "two classes":
        values["AUC"] = float(metrics.roc_auc_score(y, probability[:, 1]))
    return values


def compare(task: Task, data_dir: str) -> Mapping[str, float]:
    """One fold of one method on one set."""
    X, y = table(task.dataset, data_dir, MOST_ROWS)
    kind = KINDS[task.dataset]
    train, test = split(kind, y, FOLDS, task.fold)
    X = presented(X, task.method)
    model = make(task.method, regression=kind == "regression", categorical=categorical_columns(X))
    begin = time.perf_counter()
    model.fit(X.iloc[train], y[train])
    seconds = time.perf_counter() - begin
    return {**scores(kind, y[test], model, X.iloc[test]), "fit_seconds": round(seconds, 4)}


class JointHistoryClassifier(SCBoostClassifier):
    """Many classes with one history: the residuals of all classes are projected together, as one long vector."""

    def _grow(self, rows: Rows, loss: Any, seed: int, **_: Any) -> Training:
        dials = self._dials(rows, seed)
        engine = self._engine(rows, loss.n_outputs)
        y = rows.y.astype(engine.dtype)
        prior = loss.initial_score(y, None)
        state = start(loss, y, None, dials, engine, prior, self.n_estimators)
        shared = History(loss.n_outputs * len(y), dials.memory or self.n_estimators, engine.dtype)
        parts = _Parts(shared, loss.n_outputs)
        state.histories = [_Part(parts, k) for k in range(loss.n_outputs)]  # type: ignore[misc]
        training = Training(self._new_ensemble(prior, loss), state)
        for done in islice(boost(state, loss, y, None, dials, engine), self.n_estimators):
            training.ensemble.append(done.learners, dials.eta)
            training.record(done)
        return training


class _Parts:
    """What the parts of a joint history share."""

    def __init__(self, history: History, n_outputs: int) -> None:
        self.history, self.n_outputs = history, n_outputs
        self.projection: Projection | None = None
        self.grown: list[FloatArray] = []


class _Part:
    """One class's view of a joint history: the loop projects and appends class by class, in order."""

    def __init__(self, parts: _Parts, k: int) -> None:
        self._parts, self._k = parts, k

    def project(
        self, r: FloatArray, *, alpha: float, gamma: float, curvature: FloatArray | None, out: FloatArray
    ) -> Projection:
        """Project all classes when the first one asks, and hand out this one's part."""
        K = self._parts.n_outputs
        if self._k == 0:
            metric = None if curvature is None else _all_classes(curvature, K)
            self._parts.projection = self._parts.history.project(
                _all_classes(r, K), alpha=alpha, gamma=gamma, curvature=metric
            )
        projection = self._parts.projection
        if projection is None:
            raise RuntimeError("the classes are no longer projected in order")
        out[:] = projection.innovation.reshape(K, -1)[self._k]
        return projection

    def append(self, h: FloatArray) -> None:
        """Remember the trees of a round once the last class's is there."""
        self._parts.grown.append(h)
        if self._k == self._parts.n_outputs - 1:
            self._parts.history.append(np.concatenate(self._parts.grown))
            self._parts.grown = []


def _all_classes(row: FloatArray, n_outputs: int) -> FloatArray:
    """Values of all classes, one class after the other, from a view of the first one's."""
    whole = row.base
    if whole is None or whole.shape != (n_outputs, len(row)):
        raise RuntimeError("the vector of a class is no longer a row of the matrix of all classes")
    return np.asarray(whole.ravel())


def compare_histories(task: Task, data_dir: str) -> Mapping[str, float]:
    """One fold of the classifier with one of the two kinds of history."""
    X, y = table(task.dataset, data_dir, HISTORY_ROWS)
    train, test = split("many classes", y, HISTORY_FOLDS, task.fold)
    cls = JointHistoryClassifier if task.setting == "joint" else SCBoostClassifier
    model = cls(n_estimators=ROUNDS, n_jobs=1, random_state=SEED, **HISTORY_PARAMS)
    begin = time.perf_counter()
    model.fit(X.iloc[train], y[train])
    seconds = time.perf_counter() - begin
    return {**scores("many classes", y[test], model, X.iloc[test]), "fit_seconds": round(seconds, 4)}


def _strength_setting(shape: str, gamma: float) -> str:
    return f"{shape}, gamma {gamma:g}"


def compare_strengths(task: Task, data_dir: str) -> Mapping[str, float]:
    """One fold of scboost with one shape of tree and one strength of the projection, the rest as by default."""
    kind = STRENGTH_KINDS[task.dataset]
    params: dict[str, Any] = {
        _strength_setting(shape, gamma): {**SHAPES[shape], "projection_strength": gamma, "colsample": 1.0}
        for shape in STRENGTH_SHAPES[kind]
        for gamma in STRENGTHS
    }[task.setting]
    X, y = table(task.dataset, data_dir, STRENGTH_ROWS[kind])
    train, test = split(kind, y, STRENGTH_FOLDS, task.fold)
    X = presented(X, SCBOOST)
    model = make(SCBOOST, regression=kind == "regression", categorical=()).set_params(**params)
    begin = time.perf_counter()
    model.fit(X.iloc[train], y[train])
    seconds = time.perf_counter() - begin
    return {**scores(kind, y[test], model, X.iloc[test]), "fit_seconds": round(seconds, 4)}


def experiments() -> dict[str, tuple[list[Task], Callable[..., Mapping[str, float]]]]:
    """Return the folds of each experiment, and the function that runs one."""
    many = [name for name, kind in KINDS.items() if kind == "many classes"]
    return {
        "realdata": (
            [Task(name, method, fold) for name in KINDS for method in METHODS for fold in range(FOLDS)],
            compare,
        ),
        "class_history": (
            [
                Task(name, SCBOOST, fold, setting)
                for name in many
                for setting in HISTORIES
                for fold in range(HISTORY_FOLDS)
            ],
            compare_histories,
        ),
        "strength": (
            [
                Task(name, SCBOOST, fold, _strength_setting(shape, gamma))
                for name, kind in STRENGTH_KINDS.items()
                for shape in STRENGTH_SHAPES[kind]
                for gamma in STRENGTHS
                for fold in range(STRENGTH_FOLDS)
            ],
            compare_strengths,
        ),
    }


def run(
    out: Path,
    data_dir: str,
    *,
    names: Sequence[str] = ("class_history", "realdata"),
    jobs: int = 1,
    again: Sequence[str] = (),
    command: str = "",
) -> None:
    """Run the folds that are not done yet and append a row for each.

    Parameters
    ----------
    out : Path
        Directory of the result files.
    data_dir : str
        Directory of the Parquet files.
    names : sequence of str
        Which experiments.
    jobs : int
        Processes; each fit uses one thread.
    again : sequence of str
        Methods to run again, replacing their rows.
    command : str
        What the provenance file says made the rows.
    """
    for name in names:
        tasks, work = experiments()[name]
        results = ResultFile(out / f"{name}.csv", COLUMNS)
        stale = [task for task in tasks if task.method in again]
        bound = partial(work, data_dir=data_dir)
        if stale:
            run_tasks(stale, bound, results, jobs=jobs, again=True)
        run_tasks(tasks, bound, results, jobs=jobs)
        most: Any = {"realdata": MOST_ROWS, "class_history": HISTORY_ROWS, "strength": STRENGTH_ROWS}[name]
        write_provenance(results.path, command=command, data={}, extra={"rounds": ROUNDS, "rows at most": most})


# --- the page -------------------------------------------------------------------------------------------------------

Values = dict[tuple[str, str, str], dict[str, list[float]]]


def _read(path: Path) -> Values:
    """Values of every column by (dataset, method, setting), in the order of the folds, so that they can be paired."""
    values: Values = {}
    with path.open(newline="", encoding="utf-8") as stream:
        for row in sorted(csv.DictReader(stream), key=lambda row: int(row["fold"])):  # processes finish in any order
            if row["status"] == "ok":
                cell = values.setdefault((row["dataset"], row["method"], row["setting"]), {})
                for column in COLUMNS:
                    if row[column]:
                        cell.setdefault(column, []).append(float(row[column]))
    return values


def _digits(values: Sequence[float] | FloatArray) -> int:
    """Digits after the point that show four significant ones of the largest value, at most four."""
    return int(np.clip(3 - np.floor(np.log10(np.nanmax(np.abs(values)))), 0, 4))


def _comparison(values: Values) -> str:
    lines = [
        f"| set | score | {' | '.join(METHODS)} | scboost against the best other |",
        "|---|---|" + "---|" * (len(METHODS) + 1),
    ]
    for name, kind in KINDS.items():
        for metric in SHOWN[kind]:
            means = [float(np.mean(values[name, method, ""][metric])) for method in METHODS]
            sign = -1 if metric in LOWER_IS_BETTER else 1
            order = sorted(range(len(METHODS)), key=lambda i, m=means, s=sign: -s * m[i])  # type: ignore[misc]
            digits = _digits(means)
            cells = [f"**{m:.{digits}f}**" if i == order[0] else f"{m:.{digits}f}" for i, m in enumerate(means)]
            rival = order[0] or order[1]
            ours, theirs = (
                np.array(values[name, SCBOOST, ""][metric]),
                np.array(values[name, METHODS[rival], ""][metric]),
            )
            wins = int(np.sum(sign * (ours - theirs) > 0))
            gain = sign * (means[0] - means[rival])
            share = f" ({gain / abs(means[rival]):+.1%})" if metric in LOWER_IS_BETTER else ""
            verdict = f"{gain:+.{digits}f}{share} {METHODS[rival]}, better in {wins} of {len(ours)} folds"
            lines.append(f"| {name if metric == SHOWN[kind][0] else ''} | {metric} | {' | '.join(cells)} | {verdict} |")
    return "\n".join(lines)


def _times(values: Values) -> str:
    lines = [f"| set | {' | '.join(METHODS)} |", "|---|" + "---|" * len(METHODS)]
    for name in KINDS:
        seconds = [f"{np.median(values[name, method, '']['fit_seconds']):.2f}" for method in METHODS]
        lines.append(f"| {name} | {' | '.join(seconds)} |")
    return "\n".join(lines)


def _summary(values: Values) -> str:
    """Mean rank and number of first places on the first score of each set, and the losses."""
    ranks: list[list[float]] = []
    losses = []
    for name, kind in KINDS.items():
        metric = SHOWN[kind][0]
        means = np.array([np.mean(values[name, method, ""][metric]) for method in METHODS])
        ranks.append((np.argsort(np.argsort(means)) + 1).tolist())
        best = int(np.argmin(means))
        if best:
            losses.append(f"{name} by {(means[0] - means[best]) / means[best]:.1%} to {METHODS[best]}")
    mean = np.mean(ranks, axis=0)
    first = np.sum(np.array(ranks) == 1, axis=0)
    lines = ["| | mean rank | first places |", "|---|---|---|"]
    lines += [f"| {m} | {r:.2f} | {n} |" for m, r, n in zip(METHODS, mean, first, strict=True)]
    lost = "; ".join(losses) if losses else "nowhere"
    return "\n".join(lines) + f"\n\nOn log-loss or RMSE, scboost is behind: {lost}."


def _histories(values: Values) -> str:
    lines = ["| set | log-loss by class | joint | ACC by class | joint |", "|---|" + "---|" * 4]
    for name, kind in KINDS.items():
        if kind == "many classes":
            means = [np.mean(values[name, SCBOOST, s][metric]) for metric in SHOWN[kind] for s in HISTORIES]
            lines.append(f"| {name} | {' | '.join(f'{mean:.4f}' for mean in means)} |")
    return "\n".join(lines)


def _strengths(values: Values) -> str:
    """Mean scores by set and setting, and by task the geometric mean of the changes against the classifier's."""
    settings = [_strength_setting(shape, gamma) for shape in SHAPES for gamma in STRENGTHS]
    reference = settings.index(_strength_setting("depth 6", 0.5))
    lines = [f"| set | score | {' | '.join(settings)} |", "|---|---|" + "---|" * len(settings)]
    changes: dict[str, list[FloatArray]] = {}
    for name, kind in STRENGTH_KINDS.items():
        metric = SHOWN[kind][0]
        cells = [values.get((name, SCBOOST, setting), {}).get(metric, [np.nan]) for setting in settings]
        means = np.array([np.mean(cell) for cell in cells])
        changes.setdefault(kind, []).append(np.log(means / means[reference]))
        digits = max(4, int(2 - np.floor(np.log10(np.nanmin(means))))) if np.nanmin(means) < 1 else _digits(means)
        best = np.nanargmin(means)
        shown = ["" if np.isnan(m) else f"{m:.{digits}f}" for m in means]
        shown[best] = f"**{shown[best]}**"
        lines.append(f"| {name} | {metric} | {' | '.join(shown)} |")
    for kind, logs in changes.items():
        mean = np.expm1(np.mean(logs, axis=0))
        shown = ["" if np.isnan(m) else f"{m:+.1%}" for m in mean]
        lines.append(f"| {kind} | change | {' | '.join(shown)} |")
    return "\n".join(lines)


def _verdict(values: Values) -> str:
    """Say why the regressor has defaults of its own and many classes have not."""
    old, strong, leaves = (
        _strength_setting(*choice) for choice in (("depth 6", 0.5), ("depth 6", 0.7), ("31 leaves", 0.7))
    )

    def count(kind: str, setting: str) -> str:
        metric = SHOWN[kind][0]
        pairs = [
            (np.array(values[name, SCBOOST, setting][metric]), np.array(values[name, SCBOOST, old][metric]))
            for name, its_kind in STRENGTH_KINDS.items()
            if its_kind == kind
        ]
        wins = [ours.mean() < theirs.mean() for ours, theirs in pairs]
        changes = np.array([np.log(ours.mean() / theirs.mean()) for ours, theirs in pairs])
        folds = np.concatenate([ours < theirs for ours, theirs in pairs])
        rest = np.delete(changes, np.argmin(changes))
        return (
            f"{np.expm1(changes.mean()):+.1%} ({np.expm1(rest.mean()):+.1%} without the set that gains most), better "
            f"on {sum(wins)} of {len(wins)} sets and in {folds.sum()} of {len(folds)} folds"
        )

    return (
        f"For regression, 31 leaves with gamma 0.7 change the RMSE by {count('regression', leaves)}: these are the "
        "regressor's defaults, chosen on these folds, so that the gain elsewhere may be smaller. For many classes, "
        f"gamma 0.7 changes the log-loss by {count('many classes', strong)}: "
        "too little for a default of their own."
    )


def _provenance(path: Path) -> str:
    newest = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["runs"][-1]
    versions = ", ".join(f"{name} {version}" for name, version in newest["versions"].items())
    return f"Made by `{newest['command']}` on {newest['date'][:10]} with Python {newest['python']}, {versions}."


def render(out: Path, page: Path) -> None:
    """Write the page from the result files.

    Parameters
    ----------
    out : Path
        Directory of the result files.
    page : Path
        Markdown file to write.
    """
    values = _read(out / "realdata.csv")
    histories = _read(out / "class_history.csv")
    strengths = _read(out / "strength.csv") if (out / "strength.csv").exists() else {}
    settings = ", ".join(f"{name}={value}" for name, value in HISTORY_PARAMS.items())
    text = f"""# Real data

Every estimator with its defaults, {ROUNDS} rounds and one thread, on sets with categorical columns and missing values
(adult_train, sick, credit_g), many classes (satimage 6, segment 7, letter_26class 26) and real targets. Categorical
columns are given in the form that each library takes natively; HistGradientBoosting gets sick without the column that
has no value at all, on which it fails. Sets with more than {MOST_ROWS:,} rows are cut to a random {MOST_ROWS:,}. Scores
are means over {FOLDS} folds (seed {SEED}); the best one is bold. These sets were also used in development: the
automatic learning rate for many classes was chosen with satimage, segment and letter_26class in view, the shape of the
regressor's trees and its strength with the three sets with real targets (below), so that there the other libraries'
defaults meet defaults that have seen the data.

{_comparison(values)}

Over the nine sets, by the first score of each:

{_summary(values)}

Seconds of one fit (median over folds, on a shared machine under changing load: orders of magnitude only):

{_times(values)}

{_provenance(out / "realdata.csv")}

## One history for each class, or one for all?

With K classes a round grows K trees. Their residuals can be projected class by class, each on the latest trees of its
own class, or jointly: the K n residuals as one vector, on the latest rounds as vectors of the same length. Means over
{HISTORY_FOLDS} folds of {HISTORY_ROWS:,} rows at most:

{_histories(histories)}

The two are close, and neither leads on every score; the library keeps a history for each class, which projects what
that class has already explained and needs no vectors of K n entries. Both ran with {settings}.

{_provenance(out / "class_history.csv")}
"""
    if strengths:
        text += f"""
## How strong a projection, beyond two classes?

The classifier's defaults (depth 6, strength gamma 0.5) were chosen on sets with two classes. Means over
{STRENGTH_FOLDS} folds of {STRENGTH_ROWS["regression"]:,} rows at most, or {STRENGTH_ROWS["many classes"]:,} for many
classes, where trees of 31 leaves were not tried; the last two lines are geometric means of the changes against the
classifier's defaults:

{_strengths(strengths)}

{_verdict(strengths)}

{_provenance(out / "strength.csv")}
"""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")


# --- the command ----------------------------------------------------------------------------------------------------


def add_parser(subparsers: Any) -> None:
    """Add ``scboost-lab realdata``."""
    parser = subparsers.add_parser(
        "realdata",
        help="compare the defaults with other libraries on real tables",
        description="Compare the defaults with other libraries on nine real tables. A run that is stopped goes on "
        "where it was.",
    )
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("scboost-realdata"), help="directory of the result files")
    parser.add_argument("--page", type=Path, help="where the page goes (default: <out>/realdata.md)")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--again", nargs="+", default=(), metavar="METHOD", choices=METHODS, help="run these again")
    parser.add_argument("--strength", action="store_true", help="run the strengths of the projection instead")
    parser.add_argument("--only-page", action="store_true", help="only write the page from the result files")
    parser.set_defaults(func=_command)


def _command(args: argparse.Namespace) -> int:
    try:
        if not args.only_page:
            names = ("strength",) if args.strength else ("class_history", "realdata")
            flag = " --strength" if args.strength else ""
            command = f"scboost-lab realdata{flag} --data-dir DATA --out {args.out.as_posix()}"
            run(args.out, _directory(args.data_dir), names=names, jobs=args.jobs, again=args.again, command=command)
        page = args.page or args.out / "realdata.md"
        render(args.out, page)
        print(f"wrote {page}")
    except (DataError, StorageError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _directory(given: str | None) -> str:
    directory = resolve_data_dir(given)
    if directory is None:
        raise DataError(f"these sets are read from Parquet files: give --data-dir or set {DATA_DIR_VARIABLE}")
    return str(directory)
