"""The paper's folds and scores."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost_lab.datasets import SEED

N_FOLDS = 10
SCORES = ("ACC", "F1", "AUC", "log_loss")
SCORE_COLUMNS = (*SCORES, "fit_seconds", "predict_seconds")
HIGHER_IS_BETTER = {"ACC": 1, "F1": 1, "AUC": 1, "R2": 1, "log_loss": -1, "RMSE": -1, "MAE": -1}
"""Sign with which a score counts as better."""

Rows = NDArray[np.int64]


def folds(
    y: NDArray[Any], seed: int = SEED, n_folds: int = N_FOLDS, *, stratified: bool = True
) -> list[tuple[Rows, Rows]]:
    """Cut the rows into folds, with equal shares of the classes where the target has classes.

    Parameters
    ----------
    y : ndarray of shape (n,)
    seed : int
    n_folds : int
    stratified : bool
        False for regression.

    Returns
    -------
    list of (train, test) row numbers
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    splitter: Any = (StratifiedKFold if stratified else KFold)(n_folds, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros((len(y), 1)), y))


def scores(y: NDArray[np.int64], probability: NDArray[np.float64]) -> dict[str, float]:
    """ACC, F1 (of class 1), AUC and log-loss of the probability of class 1.

    Examples
    --------
    >>> import numpy as np
    >>> scores(np.array([0, 1, 1, 0]), np.array([0.2, 0.9, 0.4, 0.1]))["ACC"]
    0.75
    """
    from sklearn.metrics import accuracy_score, f1_score, log_loss, roc_auc_score

    label = (probability > 0.5).astype(np.int64)
    return {
        "ACC": float(accuracy_score(y, label)),
        "F1": float(f1_score(y, label, zero_division=0.0)),
        "AUC": float(roc_auc_score(y, probability)),
        "log_loss": float(log_loss(y, probability, labels=[0, 1])),
    }


def timed(
    model: Any, X_train: Any, y_train: Any, X_test: Any, method: str = "predict_proba", **given: Any
) -> tuple[Any, dict[str, float]]:
    """Fit with what else is given, predict, and return the predictions with the seconds that both took."""
    start = time.perf_counter()
    model.fit(X_train, y_train, **given)
    fitted = time.perf_counter()
    found = np.asarray(getattr(model, method)(X_test), dtype=np.float64)
    seconds = {"fit_seconds": fitted - start, "predict_seconds": time.perf_counter() - fitted}
    return found, {name: round(value, 4) for name, value in seconds.items()}


def fit_and_score(
    model: Any,
    X_train: NDArray[np.float64],
    y_train: NDArray[np.int64],
    X_test: NDArray[np.float64],
    y_test: NDArray[np.int64],
    **given: Any,
) -> dict[str, float]:
    """Fit a binary classifier, predict, and return the `SCORE_COLUMNS`."""
    probability, seconds = timed(model, X_train, y_train, X_test, **given)
    return {**scores(y_test, probability[:, 1]), **seconds}


def flip(y: NDArray[np.int64], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Labels 0 and 1 with a share of them flipped, drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> int(flip(np.zeros(10, dtype=np.int64), 0.3, np.random.default_rng(0)).sum())
    3
    """
    rows = rng.permutation(len(y))[: round(share * len(y))]
    noisy = y.copy()
    noisy[rows] = 1 - noisy[rows]
    return noisy
