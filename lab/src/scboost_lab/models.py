"""The one factory of models: every library under one name, with the same words for rounds, threads and seed.

100 trees (except for `SCBOOST_DEFAULT`), one thread, everything else at its package's default. A package is imported
when its model is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from scboost_lab.runner import NotInstalledError

N_ESTIMATORS = 100


@dataclass(frozen=True)
class Library:
    """Where a method is found and how it calls things.

    Attributes
    ----------
    name : str
        Its name in tables.
    module, classifier : str
    regressor : str
        Empty where no experiment uses it.
    rounds, threads : str
        Names of the parameters; empty where there is none, or where the method selects the rounds itself.
    fixed : mapping
        Parameters that keep it quiet.
    """

    name: str
    module: str
    classifier: str
    regressor: str = ""
    rounds: str = "n_estimators"
    threads: str = "n_jobs"
    fixed: Mapping[str, Any] = field(default_factory=dict)


SCBOOST_PAPER, SCBOOST, SCBOOST_DEFAULT, HGB = "SCBoost-paper", "SCBoost", "SCBoost-default", "HGB"
LIBRARIES: dict[str, Library] = {
    "RF": Library("random forest", "sklearn.ensemble", "RandomForestClassifier", "RandomForestRegressor"),
    "ADA": Library("AdaBoost", "sklearn.ensemble", "AdaBoostClassifier", threads=""),
    "GBDT": Library(
        "GradientBoosting", "sklearn.ensemble", "GradientBoostingClassifier", "GradientBoostingRegressor", threads=""
    ),
    "XGB": Library("XGBoost", "xgboost", "XGBClassifier", "XGBRegressor"),
    "LGBM": Library("LightGBM", "lightgbm", "LGBMClassifier", "LGBMRegressor", fixed={"verbose": -1}),
    "CAT": Library(
        "CatBoost",
        "catboost",
        "CatBoostClassifier",
        "CatBoostRegressor",
        threads="thread_count",
        fixed={"verbose": 0, "allow_writing_files": False},
    ),
    "CHIMERA": Library(
        "ChimeraBoost",
        "chimeraboost",
        "ChimeraBoostClassifier",
        "ChimeraBoostRegressor",
        threads="thread_count",
    ),
    "NGB": Library("NGBoost", "ngboost", "NGBClassifier", threads="", fixed={"verbose": False}),
    HGB: Library(
        "HistGradientBoosting",
        "sklearn.ensemble",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
        rounds="max_iter",
        threads="",
    ),
    SCBOOST_PAPER: Library("SCBoost, as printed", "scboost_lab.printed", "PrintedSCBoost.from_paper"),
    SCBOOST: Library(SCBOOST, "scboost", "SCBoostClassifier", "SCBoostRegressor"),
    SCBOOST_DEFAULT: Library("SCBoost, default", "scboost", "SCBoostClassifier", "SCBoostRegressor", rounds=""),
}
BASELINES = ("RF", "ADA", "GBDT", "XGB", "LGBM", "CAT", "NGB")
"""The paper's seven."""
METHODS = (*BASELINES, SCBOOST_PAPER, SCBOOST)
"""The columns of the reproduction, 100 rounds each."""
SCORED_METHODS = (*METHODS, SCBOOST_DEFAULT)
"""The columns of Tables 1 and 2, which also have the default that users get: its rounds are cross-validated."""


def make(
    method: str,
    seed: int,
    *,
    n_estimators: int = N_ESTIMATORS,
    n_threads: int = 1,
    regression: bool = False,
    **params: Any,
) -> Any:
    """Make an unfitted model.

    Parameters
    ----------
    method : str
        A key of `LIBRARIES`.
    seed : int
    n_estimators : int
        Trees, or rounds of boosting; ignored by a method that selects them.
    n_threads : int
    regression : bool
    **params
        The method's own settings.

    Returns
    -------
    estimator

    Examples
    --------
    >>> make("RF", 42, max_depth=3).get_params()["n_estimators"]
    100
    """
    if method not in LIBRARIES:
        raise ValueError(f"unknown method {method!r}; known: {', '.join(LIBRARIES)}")
    library = LIBRARIES[method]
    threads = {library.threads: n_threads} if library.threads else {}
    rounds = {library.rounds: n_estimators} if library.rounds else {}
    common = {**rounds, "random_state": seed, **threads, **library.fixed}
    try:
        found: Any = import_module(library.module)
    except ImportError as error:
        raise NotInstalledError(f"{method} needs the package {error.name or library.module}") from error
    for part in (library.regressor if regression else library.classifier).split("."):
        found = getattr(found, part)
    try:
        return found(**{**common, **params})
    except ImportError as error:  # scboost asks for XGBoost when it is used
        raise NotInstalledError(f"{method}: {error}") from error
