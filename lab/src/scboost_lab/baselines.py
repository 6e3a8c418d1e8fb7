"""The seven baselines with the paper's settings, and the two SCBoost columns.

100 trees, seed 42, everything else at its package's default, one thread.
Packages are imported when a model is made.
"""

from collections.abc import Callable
from typing import Any

from scboost_lab.protocol import NotInstalledError

N_ESTIMATORS = 100


def _rf(seed: int, **params: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed, n_jobs=1, **params)


def _ada(seed: int, **params: Any) -> Any:
    from sklearn.ensemble import AdaBoostClassifier

    return AdaBoostClassifier(random_state=seed, **params)


def _gbdt(seed: int, **params: Any) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(random_state=seed, **params)


def _xgb(seed: int, **params: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=seed, n_jobs=1, **params)


def _lgbm(seed: int, **params: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1, **params)


def _cat(seed: int, **params: Any) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(random_state=seed, thread_count=1, verbose=0, allow_writing_files=False, **params)


def _ngb(seed: int, **params: Any) -> Any:
    from ngboost import NGBClassifier

    return NGBClassifier(random_state=seed, verbose=False, **params)


def _scboost(seed: int, **params: Any) -> Any:
    from scboost import SCBoostClassifier

    return SCBoostClassifier(random_state=seed, n_jobs=1, **params)


def _scboost_paper(seed: int, **params: Any) -> Any:
    from scboost import SCBoostClassifier

    return SCBoostClassifier.from_paper(random_state=seed, n_jobs=1, **params)


BASELINES: dict[str, Callable[..., Any]] = {
    "RF": _rf,
    "ADA": _ada,
    "GBDT": _gbdt,
    "XGB": _xgb,
    "LGBM": _lgbm,
    "CAT": _cat,
    "NGB": _ngb,
}
SCBOOST_PAPER, SCBOOST = "SCBoost-paper", "SCBoost"
METHODS: dict[str, Callable[..., Any]] = {**BASELINES, SCBOOST_PAPER: _scboost_paper, SCBOOST: _scboost}


def make(method: str, seed: int, **params: Any) -> Any:
    """Make an unfitted model.

    Parameters
    ----------
    method : str
        A key of `METHODS`.
    seed : int
    **params
        Settings other than the paper's: ``n_estimators`` (100 otherwise) and the method's own.

    Returns
    -------
    estimator
        With ``fit`` and ``predict_proba``.

    Examples
    --------
    >>> make("RF", 42, max_depth=3).get_params()["n_estimators"]
    100
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
    try:
        return METHODS[method](seed, **{"n_estimators": N_ESTIMATORS, **params})
    except ImportError as error:
        raise NotInstalledError(f"{method} needs the package {error.name}") from error
