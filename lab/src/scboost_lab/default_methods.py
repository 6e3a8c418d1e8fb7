"""The data sets and the methods of the study of the default, and how each library is told what to do."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost_lab import full_size, outside
from scboost_lab.models import HGB, SCBOOST, make
from scboost_lab.runner import NotInstalledError

# Two halves, fixed before any result was seen; both have small, large, categorical, wide and unbalanced sets.
DEVELOPMENT = (
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
CONFIRMATION = (
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
ALL = (*DEVELOPMENT, *CONFIRMATION)
LABEL_NOISE_SETS = ("sylvine", "elevators", "covertype_50k_bin", "spambase", "phoneme", "pol")
MULTICLASS = ("satimage", "segment", "letter_26class")
REGRESSION = ("california_housing_reg", "cpu_act_reg", "diamonds_reg", "elevators_reg", "pol_reg")
SETS = (*ALL, *REGRESSION, *MULTICLASS)
OUTSIDE = tuple(outside.TABLES)
FULL_SIZE = tuple(full_size.TABLES)
SLOWEST = "letter_26class"
ROW_CAP = 10_000
COLUMN_CAP = 200
N_FOLDS = 5
PATIENCE = 300  # rounds without improvement after which the tuned defaults stop
QUANTILES = (0.05, 0.5, 0.95)
NOISE_LEVELS = (0.1, 0.2, 0.3)
Array = NDArray[Any]


@dataclass(frozen=True)
class Method:
    """One method of the study: a library and its parameters.

    Attributes
    ----------
    library : str
        A key of `models.LIBRARIES`.
    params : mapping
        What differs from the library's own defaults.
    regression : mapping or None
        The same for regression; None if it does not differ.
    stops : bool
        Whether it stops early, `PATIENCE` rounds after the best one, on a validation set of 20 % of the samples.
    measured : bool
        Whether the redundancy of its trees is measured on the first fold.
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
ALL_FEATURES, DEEP = "SCBoost, all features", "SCBoost, deep trees"
DEEP_SUBSETS = f"{DEEP}, subset splits"
NO_PROJECTION, NO_EXPLORATION = f"{ALL_FEATURES}, no projection", f"{ALL_FEATURES}, no exploration"
PLAIN, LONG = "plain boosting", "SCBoost, 1,000 rounds"
OURS: dict[str, Method] = {
    DEFAULT: Method(SCBOOST, {"engine": "native"}, measured=True),
    FAST: Method(SCBOOST, {"preset": "fast"}, measured=True),
    PLAIN: Method(SCBOOST, {"n_estimators": 100, "exploration": 0.0, "projection_strength": 0.0}, measured=True),
    DEEP: Method(SCBOOST, {"max_depth": 6}, {"max_depth": None}),
    ALL_FEATURES: Method(SCBOOST, {"feature_selection": False}, measured=True),
    NO_PROJECTION: Method(SCBOOST, {"feature_selection": False, "projection_strength": 0.0}, measured=True),
    NO_EXPLORATION: Method(SCBOOST, {"feature_selection": False, "exploration": 0.0}, measured=True),
    BEST: Method(SCBOOST, {"preset": "best"}),
}
EVERYWHERE = (DEFAULT, DEEP, ALL_FEATURES, FAST)
"""Variants of SCBoost that are run on every data set; the others only on the binary ones."""
AT_100 = ("CatBoost, 100 rounds", "LightGBM", "XGBoost", "HistGradientBoosting", "random forest", "GradientBoosting")
CHIMERA = "ChimeraBoost"
AT_OWN = ("CatBoost", CHIMERA, *AT_100[1:])
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
    CHIMERA: Method("CHIMERA", {"n_estimators": 2000}),
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
SHORT_XGB = tuple(f"XGBoost, 20 rounds, learning rate {rate}" for rate in SHORT_RATES)
LARGE_RATES = (0.1, 0.2, 0.3, 0.5)
LARGE_RATE_METHODS: dict[str, Method] = {
    **{
        f"SCBoost, learning rate {rate}": Method(SCBOOST, {"learning_rate": rate}, measured=True)
        for rate in LARGE_RATES
    },
    "SCBoost, learning rate 0.3, projection 1": Method(
        SCBOOST, {"learning_rate": 0.3, "projection_strength": 1.0}, measured=True
    ),
}
"""Learning rates above that of the default; the number of rounds is still selected by cross-validation."""
METHODS: dict[str, Method] = {
    **OURS,
    **LARGE_RATE_METHODS,
    **PEERS,
    DEEP_SUBSETS: Method(SCBOOST, {"categorical_splits": "subset", "max_depth": 6}),
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
"""Regression losses, and the methods that support them."""
HUBER_DELTA = 0.1  # delta of the Huber loss, in standard deviations of the target


def regression_loss(library: str, loss: str, number: float) -> dict[str, Any]:
    """Parameters that make a library minimize a regression loss.

    Parameters
    ----------
    library : str
        A key of `models.LIBRARIES`.
    loss : {"quantile", "absolute", "Huber", "Poisson"}
    number : float
        The quantile, or delta of the Huber loss in units of the target.

    Examples
    --------
    >>> regression_loss("CAT", "Huber", 2.0)
    {'loss_function': 'Huber:delta=2.0'}
    """
    arguments: dict[str, dict[str, dict[str, Any]]] = {
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
    return arguments[loss][library]


def mean_loss(loss: str, delta: float, y: Array, prediction: Array) -> float:
    """Mean of a loss; see `regression_loss`. For Poisson it is the deviance.

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
        See `task_of`.
    names : sequence of str
        Names of the categorical features.
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
    if method.library in {"CAT", "CHIMERA"}:
        settings["cat_features"] = list(names)
    if method.library == "CHIMERA":
        _compile_chimeraboost()
    if method.stops and method.library != "LGBM":
        settings["early_stopping_rounds"] = PATIENCE
    if method.stops and method.library == "XGB":
        settings["eval_metric"] = {"regression": "rmse", "multiclass": "mlogloss"}.get(kind, "logloss")
    return make(method.library, seed, regression=regression, **settings)


@cache
def _compile_chimeraboost() -> None:
    """Compile ChimeraBoost's kernels, which is not part of the time of a fit."""
    try:
        chimeraboost: Any = import_module("chimeraboost")
    except ImportError as error:
        raise NotInstalledError("CHIMERA needs the package chimeraboost") from error
    chimeraboost.warmup()


def fit(model: Any, method: Method, X: Any, y: Array, *, stratified: bool, seed: int) -> None:
    """Fit; early stopping uses a validation set of 20 % of the samples."""
    if not method.stops:
        model.fit(X, y)
        return
    from sklearn.model_selection import train_test_split

    stratify = y if stratified else None
    train, held_out = train_test_split(np.arange(len(y)), test_size=0.2, stratify=stratify, random_state=seed)
    validation: dict[str, Any] = {"eval_set": [(X.iloc[held_out], y[held_out])]}
    if method.library == "LGBM":
        from lightgbm import early_stopping

        validation["callbacks"] = [early_stopping(PATIENCE, verbose=False)]
    elif method.library == "XGB":
        validation["verbose"] = False
    with warnings.catch_warnings():  # renamed in LightGBM 4.7; 4.5 only knows this name
        warnings.filterwarnings("ignore", "The argument 'eval_set' is deprecated")
        model.fit(X.iloc[train], y[train], **validation)


def n_rounds(model: Any, method: Method) -> float:
    """Return the number of boosting rounds that predictions use; with K classes a round grows K trees."""
    if method.library == "XGB" and method.stops:
        return float(model.best_iteration + 1)
    if method.library == "LGBM" and method.stops:
        return float(model.best_iteration_)
    name = {"CAT": "tree_count_", "CHIMERA": "best_iteration_", HGB: "n_iter_", SCBOOST: "n_estimators_"}.get(
        method.library, "n_estimators"
    )
    return float(getattr(model, name))


def task_of(name: str) -> str:
    """Return the task of a data set: "regression", "multiclass" or "binary"."""
    if name in FULL_SIZE:
        return full_size.TABLES[name].task
    return "regression" if name in REGRESSION else "multiclass" if name in MULTICLASS else "binary"
