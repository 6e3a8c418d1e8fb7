"""Cost of predictions: time and size of the model."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from scboost.diagnostics._subject import Predictor
from scboost.diagnostics._tree_matrix import take_samples

_REPEATS = 3
_SAMPLES = 2_000


@dataclass(frozen=True)
class Cost:
    """Cost of predictions.

    Attributes
    ----------
    seconds_one, seconds_many : float
        Time of a prediction of one sample, and of ``n_many`` samples, by the model's own ``predict``: the
        shortest of three. NaN if they were not measured.
    n_many : int
    bytes : int or None
        Size of the pickled model; None if it cannot be pickled.
    """

    seconds_one: float
    seconds_many: float
    n_many: int
    bytes: int | None


def measure_cost(model: object, X: Any, *, measure_speed: bool) -> Cost:
    """Measure predictions of one and of at most 2,000 samples."""
    n = min(_SAMPLES, int(X.shape[0]))
    one = many = float("nan")
    if measure_speed and type(model).__name__ != "Booster":  # boosters take data of their own library only
        one, many = (_seconds(cast("Predictor", model), take_samples(X, np.arange(size))) for size in (1, n))
    try:
        size = len(pickle.dumps(model))
    except (pickle.PicklingError, TypeError, AttributeError):
        size = None
    return Cost(one, many, n, size)


def _seconds(model: Predictor, X: Any) -> float:
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        model.predict(X)
        times.append(time.perf_counter() - start)
    return min(times)
