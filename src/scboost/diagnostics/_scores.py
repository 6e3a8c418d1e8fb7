"""How well margins predict: scores by row, intervals from resampled rows, calibration.

Everything starts from the margin of the trees, so that boosters without ``predict_proba``, ensembles cut short and
pruned ones are scored in the same way as whole models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from scboost._arrays import FloatArray, IntArray
from scboost.diagnostics._target import encode_target
from scboost.diagnostics._tree_matrix import TreeMatrix

_RESAMPLES = 200
_SMALLEST = float(np.finfo(np.float64).eps)  # of probabilities, whose log-loss is to stay finite, as in scikit-learn
_BINS = 10


@dataclass(frozen=True)
class Score:
    """One score and how far chance may have moved it.

    Attributes
    ----------
    name, meaning : str
        What it is called, and what it says in one sentence.
    value, low, high : float
        On the rows, and the central 95 % of its values on resampled rows.
    higher_is_better : bool
        Which way is better.
    """

    name: str
    meaning: str
    value: float
    low: float
    high: float
    higher_is_better: bool


@dataclass(frozen=True)
class Calibration:
    """What was predicted and what came true, in groups of rows with similar predictions.

    Attributes
    ----------
    predicted, observed, low, high : ndarray of shape (n_groups,)
        Mean prediction, mean outcome, and the 95 % interval of that mean.
    count : ndarray of shape (n_groups,)
        Rows of each group.
    error : float
        Mean distance of the two over the rows; NaN for regression.
    error_by_chance : float
        What 95 % of perfectly calibrated models would stay below on as many rows; NaN for regression.
    subject : str
        What was predicted.
    """

    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    count: IntArray
    error: float
    error_by_chance: float
    subject: str


@dataclass(frozen=True)
class Outcome:
    """Predictions for rows with known targets.

    Attributes
    ----------
    target : ndarray of shape (n,)
        Class numbers, or float64 values.
    decided : ndarray of shape (n,)
        Predicted class numbers or values.
    probability : ndarray of shape (n, n_classes) or None
        None for values, and for classifiers whose margin is no probability.
    ranking : ndarray of shape (n,) or None
        What ranks the rows of two classes.
    """

    target: npt.NDArray[Any]
    decided: npt.NDArray[Any]
    probability: FloatArray | None
    ranking: FloatArray | None

    @property
    def classifies(self) -> bool:
        """Whether the targets are classes."""
        return bool(self.target.dtype.kind != "f")

    def loss(self) -> tuple[str, FloatArray]:
        """Return the name of the loss that the curves show, and its value for every row."""
        if not self.classifies:
            return "squared error", (self.target - self.decided) ** 2
        if self.probability is None:
            return "error rate", (self.target != self.decided).astype(np.float64)
        p = np.clip(self.probability[np.arange(len(self.target)), self.target], _SMALLEST, 1)
        return "log-loss", -np.log(p)


def outcome(trees: TreeMatrix, margin: FloatArray, y: Any, *, link: str | None = None) -> Outcome:
    """Turn margins into predictions.

    Parameters
    ----------
    trees : TreeMatrix
        Of the rows: its classes and its link say what the margin is.
    margin : ndarray of shape (n,) or (n, K)
    y : array-like of shape (n,)
        Labels or values.
    link : str, optional
        What the margin is, if not what the trees say.

    Returns
    -------
    Outcome
    """
    target = encode_target(trees, y)
    link = trees.link if link is None else link
    if target.dtype.kind == "f":
        return Outcome(target, margin, None, None)
    if link == "probability":
        margin = np.round(margin, 6)  # rounding must not decide ties, which go to the first class as in scikit-learn
    if margin.ndim == 2:
        p = special.softmax(margin, axis=1) if link == "softmax" else margin
        return Outcome(target, np.argmax(margin, axis=1), None if link in {"vote", "other"} else p, None)
    if link in {"vote", "other"}:
        return Outcome(target, (margin > 0).astype(np.intp), None, margin)
    one = special.expit(margin) if link == "logit" else np.clip(margin, 0, 1)
    return Outcome(target, (one > 0.5).astype(np.intp), np.stack([1 - one, one], axis=1), one)


def measure_scores(found: Outcome, seed: int) -> list[Score]:
    """Return the scores of predictions, with intervals from rows drawn again with replacement.

    Parameters
    ----------
    found : Outcome
    seed : int
        Of the draws.

    Returns
    -------
    list of Score
        The most telling first.
    """
    rules = _class_scores(found) if found.classifies else _value_scores(found)
    n = len(found.target)
    rng = np.random.default_rng(seed)
    drawn = np.empty((_RESAMPLES, len(rules)))
    for row in drawn:
        w = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        row[:] = [rule(w) for _, _, _, rule in rules]
    scores = []
    for (name, meaning, higher, rule), values in zip(rules, drawn.T, strict=True):
        defined = values[np.isfinite(values)]  # a draw with one class has no AUC
        low, high = np.quantile(defined, [0.025, 0.975]) if len(defined) else (np.nan, np.nan)
        scores.append(Score(name, meaning, rule(np.ones(n)), float(low), float(high), higher))
    return scores


_Rule = tuple[str, str, bool, Callable[[FloatArray], float]]


def _mean_of(values: FloatArray) -> Callable[[FloatArray], float]:
    return lambda w: float(w @ values / w.sum())


def _class_scores(found: Outcome) -> list[_Rule]:
    right = (found.target == found.decided).astype(np.float64)
    accuracy: _Rule = ("accuracy", "share of rows whose class is right", True, _mean_of(right))
    rules: list[_Rule] = []
    if found.probability is not None:
        loss = found.loss()[1]
        rules.append(("log-loss", "price of the probabilities; sure and wrong costs most", False, _mean_of(loss)))
    if found.ranking is not None:
        positive = found.target == 1
        groups = np.unique(found.ranking, return_inverse=True)[1]
        rules.append(
            ("AUC", "chance that a row of the second class ranks above one of the first", True, _auc(positive, groups))
        )
    return [*rules, accuracy]


def _auc(positive: npt.NDArray[np.bool_], groups: IntArray) -> Callable[[FloatArray], float]:
    """Return the area under the ROC curve as a function of the rows' weights; ties count one half."""
    n_groups = int(groups.max()) + 1

    def area(w: FloatArray) -> float:
        up = np.bincount(groups, w * positive, n_groups)
        down = np.bincount(groups, w * ~positive, n_groups)
        pairs = up.sum() * down.sum()
        below = np.cumsum(down) - down / 2
        return float(up @ below / pairs) if pairs > 0 else float("nan")

    return area


def _value_scores(found: Outcome) -> list[_Rule]:
    y, squares = found.target, (found.target - found.decided) ** 2

    def r2(w: FloatArray) -> float:
        spread = w @ (y - w @ y / w.sum()) ** 2
        return float(1 - w @ squares / spread) if spread > 0 else float("nan")

    def rmse(w: FloatArray) -> float:
        return float(np.sqrt(w @ squares / w.sum()))

    return [
        ("R2", "share of the variance of y that is explained", True, r2),
        ("RMSE", "root of the mean squared error, in units of y", False, rmse),
        ("MAE", "mean distance from y, in its units", False, _mean_of(np.abs(y - found.decided))),
    ]


def calibrate(found: Outcome, seed: int) -> Calibration | None:
    """Compare predictions with outcomes in groups of equal size; None where there is no probability.

    For two classes the probability of the second one is looked at, for more that of the predicted class, for values
    the prediction itself.
    """
    if not found.classifies:
        prediction, happened, subject = found.decided, found.target, "value"
    elif found.probability is None:
        return None
    elif found.probability.shape[1] == 2:
        prediction, happened = found.probability[:, 1], (found.target == 1).astype(np.float64)
        subject = "probability of the second class"
    else:
        prediction = found.probability.max(axis=1)
        happened = (found.target == found.decided).astype(np.float64)
        subject = "probability of the predicted class"
    n_bins = max(1, min(_BINS, len(prediction) // 5))
    edges = np.quantile(prediction, np.linspace(0, 1, n_bins + 1)[1:-1])
    bins = np.searchsorted(edges, prediction, side="right")
    bins = np.unique(bins, return_inverse=True)[1]  # ties leave some empty
    count = np.bincount(bins)
    predicted, observed = np.bincount(bins, prediction) / count, np.bincount(bins, happened) / count
    if found.classifies:
        low, high = _wilson(observed, count)
    else:
        spread = np.bincount(bins, (happened - observed[bins]) ** 2) / np.maximum(count - 1, 1)
        half = 1.96 * np.sqrt(spread / count)
        low, high = observed - half, observed + half
    error = by_chance = float("nan")
    if found.classifies:
        error = float(np.abs(predicted - observed) @ count / count.sum())
        rng = np.random.default_rng(seed)
        draws = [np.bincount(bins, rng.random(len(prediction)) < prediction) / count for _ in range(_RESAMPLES)]
        by_chance = float(np.quantile([np.abs(d - predicted) @ count / count.sum() for d in draws], 0.95))
    return Calibration(predicted, observed, low, high, count, error, by_chance, subject)


def _wilson(share: FloatArray, count: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's 95 % interval of a share."""
    z = 1.96
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return centre - half, centre + half
