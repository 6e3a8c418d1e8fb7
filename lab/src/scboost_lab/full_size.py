"""Data sets at full size: those of the study with more than 10,000 samples, and generated ones with known structure."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost_lab.datasets import SEED, read_parquet, require_data_dir

_N_FEATURES = 20
_LABEL_NOISE = 0.05


@dataclass(frozen=True)
class FullSize:
    """Where a data set comes from.

    Attributes
    ----------
    task : {"binary", "multiclass", "regression"}
        What is predicted.
    stem : str
        Name of the Parquet file without its ending; empty for generated samples.
    n_samples : int
        Number of generated samples.
    """

    task: str
    stem: str = ""
    n_samples: int = 0


TABLES: dict[str, FullSize] = {
    "adult (all)": FullSize("binary", "adult_train"),
    "covertype (all)": FullSize("binary", "covertype_50k_bin"),
    "credit card (all)": FullSize("binary", "creditcard_full_minmax"),
    "elevators (all)": FullSize("binary", "elevators"),
    "letters (all)": FullSize("multiclass", "letter_26class"),
    "california (all)": FullSize("regression", "california_housing_reg"),
    "diamonds (all)": FullSize("regression", "diamonds_reg"),
    "elevators, regression (all)": FullSize("regression", "elevators_reg"),
    "pol, regression (all)": FullSize("regression", "pol_reg"),
    "generated, 50,000": FullSize("binary", n_samples=50_000),
    "generated, 200,000": FullSize("binary", n_samples=200_000),
    "generated, 1,000,000": FullSize("binary", n_samples=1_000_000),
    "generated regression, 200,000": FullSize("regression", n_samples=200_000),
}


def load(name: str, data_dir: str | None) -> tuple[Any, NDArray[Any]]:
    """Return features and target of a set, all samples of it.

    Parameters
    ----------
    name : str
        A key of `TABLES`.
    data_dir : str or None
        Directory of the Parquet files.

    Returns
    -------
    X : pandas.DataFrame of shape (n, d)
    y : ndarray of shape (n,)
    """
    table = TABLES[name]
    if table.stem:
        return read_parquet(table.stem, require_data_dir(data_dir))
    return generated(table.n_samples, regression=table.task == "regression")


def generated(n: int, *, regression: bool) -> tuple[Any, NDArray[Any]]:
    """Draw samples of a function with interactions of two and three features, steps and features without effect.

    Parameters
    ----------
    n : int
        Number of samples.
    regression : bool
        Whether the target is the function with Gaussian noise, or whether it is positive, with 5 % of the labels wrong.

    Returns
    -------
    X : pandas.DataFrame of shape (n, 20)
    y : ndarray of shape (n,)

    Examples
    --------
    >>> X, y = generated(1000, regression=False)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 20), [0, 1])
    """
    import pandas as pd

    rng = np.random.default_rng([SEED, n])
    X = rng.normal(size=(n, _N_FEATURES))
    X[:, 10:15] = np.round(2 * X[:, 10:15])
    f = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 2 * (X[:, 3] * X[:, 4] * X[:, 5] > 0) - 1
    f += 0.7 * np.abs(X[:, 6]) * (X[:, 10] > 0) + 0.5 * X[:, 7] + np.cos(X[:, 11] + X[:, 8]) - 0.8
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(_N_FEATURES)])
    if regression:
        return frame, f + 0.5 * rng.normal(size=n)
    wrong = rng.random(n) < _LABEL_NOISE
    return frame, ((f > 0) ^ wrong).astype(np.int64)
