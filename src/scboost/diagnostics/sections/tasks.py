"""Scores of rankings and survival models, which are not scores of single samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray
from scboost._core.ranking import ALL, ndcg_by_query, precision_by_query, reciprocal_rank_by_query
from scboost._core.survival import brier_times, concordance, integrated_brier_score, kaplan_meier, step
from scboost.diagnostics._scores import Metric, Score, scores_of
from scboost.diagnostics._target import check_length

_TOP = 10
_RANDOM_ORDERS = 20
_SURVIVAL_RESAMPLES, _SURVIVAL_SAMPLES = 100, 3_000  # concordance takes long
_PARTS, _LEAST_SAMPLES = 5, 20
_NAN = float("nan")


@dataclass(frozen=True)
class TaskResult:
    """Scores of a ranking or survival model, and what is drawn of them.

    Attributes
    ----------
    kind : {"ranking", "survival"}
    scores, baseline_scores : list of Score
        Of the model, and of random orders or the Kaplan-Meier estimate.
    n_units : int
        Number of queries with a relevant document, or of observed events.
    values : ndarray
        Ranking: NDCG@10 of each query. Survival: empty.
    time : float
        Survival: the median event time, at which calibration is measured; NaN for rankings.
    predicted, observed : ndarray
        Survival: mean predicted probability of survival at that time, and the Kaplan-Meier estimate, in up to five
        quantile bins of the predicted probability.
    """

    kind: Literal["ranking", "survival"]
    scores: list[Score]
    baseline_scores: list[Score]
    n_units: int
    values: FloatArray
    time: float
    predicted: FloatArray
    observed: FloatArray


class TaskTarget(Protocol):
    """Targets of a task whose scores are not those of single samples."""

    @property
    def score_name(self) -> str:
        """Name of the primary score."""

    def choose(self, size: int, rng: np.random.Generator) -> IntArray:
        """Return at most ``size`` samples, sorted."""

    def take(self, rows: IntArray) -> TaskTarget:
        """Return some of the targets."""

    def score(self, raw: FloatArray) -> float:
        """Return the primary score of raw scores of shape (n,)."""

    def evaluate(self, raw: FloatArray, seed: int) -> TaskResult:
        """Return all scores of raw scores of shape (n,), with 95 % bootstrap confidence intervals."""


@runtime_checkable
class SurvivalModel(Protocol):
    """A model that knows the formats of survival times, and survival functions of raw scores."""

    def __survival_target__(self, y: Any, n_samples: int) -> SurvivalTarget: ...


@dataclass(frozen=True)
class RankingTarget:
    """Relevances and queries of documents.

    Attributes
    ----------
    relevance : ndarray of shape (n,)
    query : ndarray of int of shape (n,)
        Numbers 0, 1, ... of the queries.
    """

    relevance: FloatArray
    query: IntArray
    score_name = "NDCG"

    @classmethod
    def of(cls, y: Any, qid: Any, n: int) -> RankingTarget:
        """Check relevances and queries."""
        if qid is None:
            raise ValueError(
                "y holds relevances, which are compared within queries: pass qid, the query of each sample."
            )
        relevance = check_length(y, n).astype(np.float64)
        if not (np.isfinite(relevance).all() and (relevance >= 0).all()):
            raise ValueError("y must hold finite relevances of at least 0.")
        query = np.asarray(qid)
        if query.shape != (n,):
            raise ValueError(f"qid must have shape ({n},), one query per sample of X; got {query.shape}.")
        return cls(relevance, np.unique(query, return_inverse=True)[1].reshape(-1))

    def choose(self, size: int, rng: np.random.Generator) -> IntArray:
        """Choose whole queries."""
        n = len(self.query)
        if n <= size:
            return np.arange(n)
        sizes = np.bincount(self.query)
        order = rng.permutation(len(sizes))
        kept = order[: max(1, int(np.searchsorted(np.cumsum(sizes[order]), size, side="right")))]
        return np.flatnonzero(np.isin(self.query, kept))

    def take(self, rows: IntArray) -> RankingTarget:
        """Return some of the targets."""
        return RankingTarget(self.relevance[rows], np.unique(self.query[rows], return_inverse=True)[1].reshape(-1))

    def score(self, raw: FloatArray) -> float:
        """Return the mean NDCG."""
        values = ndcg_by_query(self.relevance, raw, self.query)
        return float(np.nanmean(values)) if np.isfinite(values).any() else _NAN

    def evaluate(self, raw: FloatArray, seed: int) -> TaskResult:
        """Return NDCG, MAP and MRR; queries are resampled as a whole."""
        values = self._values(raw)
        if not values.shape[1]:
            raise ValueError(
                "no query has a relevant document (relevance above 0): scores are not defined; leave y out."
            )
        rng = np.random.default_rng(seed)
        random = np.mean([self._values(rng.random(len(raw))) for _ in range(_RANDOM_ORDERS)], axis=0)
        scores, baseline = (
            scores_of(_mean_metrics(found), values.shape[1], seed, resamples)
            for found, resamples in ((values, 200), (random, 0))
        )
        empty = np.zeros(0)
        return TaskResult("ranking", scores, baseline, values.shape[1], values[0], _NAN, empty, empty)

    def _values(self, raw: FloatArray) -> FloatArray:
        """Return the metrics of each query with a relevant document, of shape (4, n_queries)."""
        found = np.stack(
            [
                ndcg_by_query(self.relevance, raw, self.query, _TOP),
                ndcg_by_query(self.relevance, raw, self.query, ALL),
                precision_by_query(self.relevance, raw, self.query, ALL),
                reciprocal_rank_by_query(self.relevance, raw, self.query, ALL),
            ]
        )
        return np.asarray(found[:, ~np.isnan(found[1])])


def _mean_metrics(values: FloatArray) -> list[Metric]:
    named = (
        (f"NDCG@{_TOP}", f"normalized discounted cumulative gain of the first {_TOP} documents, mean over queries"),
        ("NDCG", "normalized discounted cumulative gain of all documents, mean over queries"),
        ("MAP", "mean average precision; documents with a relevance above 0 are relevant"),
        ("MRR", "mean reciprocal rank of the first relevant document"),
    )

    def mean(own: FloatArray) -> Callable[[FloatArray], float]:
        return lambda weight: float(weight @ own / weight.sum())

    return [
        Metric(name, meaning, higher_is_better=True, compute=mean(own))
        for (name, meaning), own in zip(named, values, strict=True)
    ]


@dataclass(frozen=True)
class SurvivalTarget:
    """Survival times, with what the model makes of raw scores.

    Attributes
    ----------
    bounds : ndarray of shape (n, 2)
        Lower and upper bounds of the times; an upper bound of infinity is right-censored.
    sign : {1, -1}
        1 if a higher raw score is a higher risk.
    survival : callable
        ``survival(raw, times)`` returns probabilities of survival of shape (n, n_times).
    """

    bounds: FloatArray
    sign: int
    survival: Callable[[FloatArray, FloatArray], FloatArray]
    score_name = "concordance"

    def choose(self, size: int, rng: np.random.Generator) -> IntArray:
        """Choose samples at random."""
        n, size = len(self.bounds), min(size, _SURVIVAL_SAMPLES)
        return np.arange(n) if n <= size else np.sort(rng.choice(n, size, replace=False))

    def take(self, rows: IntArray) -> SurvivalTarget:
        """Return some of the targets."""
        return replace(self, bounds=self.bounds[rows])

    def score(self, raw: FloatArray) -> float:
        """Return the concordance index."""
        return concordance(self.bounds, self.sign * raw)

    def evaluate(self, raw: FloatArray, seed: int) -> TaskResult:
        """Return concordance, integrated Brier score and calibration; of interval-censored times only the first."""
        lower, upper = self.bounds.T
        observed = lower == upper
        has_intervals = bool(((lower < upper) & np.isfinite(upper)).any())
        time = float(np.median(lower[observed])) if observed.any() and not has_intervals else _NAN
        n, empty = len(raw), np.zeros(0)
        if np.isnan(time):  # neither Brier score nor Kaplan-Meier estimate
            scores = scores_of([self._concordance(raw)], n, seed, _SURVIVAL_RESAMPLES)
            constant = scores_of([self._concordance(np.zeros(n))], n, seed, 0)
            return TaskResult("survival", scores, constant, int(observed.sum()), empty, _NAN, empty, empty)
        times = brier_times(self.bounds)
        functions, at_median = self.survival(raw, times), self.survival(raw, np.array([time]))[:, 0]
        km_times, km = kaplan_meier(self.bounds)
        flat = np.broadcast_to(step(km_times, km, times, 1.0), (n, len(times)))
        metrics = [self._concordance(raw), self._brier(functions, times), self._calibration(at_median, time)]
        of_all = [
            self._concordance(np.zeros(n)),
            self._brier(flat, times),
            self._calibration(np.full(n, step(km_times, km, np.array([time]), 1.0)[0]), time),
        ]
        predicted, found = self._by_fifths(at_median, time)
        return TaskResult(
            "survival",
            scores_of(metrics, n, seed, _SURVIVAL_RESAMPLES),
            scores_of(of_all, n, seed, 0),
            int(observed.sum()),
            empty,
            time,
            predicted,
            found,
        )

    def _concordance(self, raw: FloatArray) -> Metric:
        def compute(weight: FloatArray) -> float:
            used = weight > 0
            return concordance(self.bounds[used], self.sign * raw[used], weight[used])

        meaning = "Harrell's concordance index: share of comparable pairs in the right order"
        return Metric("C-index", meaning, higher_is_better=True, compute=compute)

    def _brier(self, functions: FloatArray, times: FloatArray) -> Metric:
        def compute(weight: FloatArray) -> float:
            used = weight > 0
            return integrated_brier_score(self.bounds[used], functions[used], times, weight[used])

        meaning = "integrated Brier score of the survival functions; lower is better"
        return Metric("IBS", meaning, higher_is_better=False, compute=compute)

    def _calibration(self, at_median: FloatArray, time: float) -> Metric:
        def compute(weight: FloatArray) -> float:
            used = weight > 0
            times, km = kaplan_meier(self.bounds[used], weight[used])
            return float(weight @ at_median / weight.sum()) - float(step(times, km, np.array([time]), 1.0)[0])

        meaning = (
            f"mean predicted probability of survival minus the Kaplan-Meier estimate, at the median event time "
            f"{time:.4g}; 0 is best"
        )
        return Metric("calibration", meaning, higher_is_better=False, compute=compute)

    def _by_fifths(self, at_median: FloatArray, time: float) -> tuple[FloatArray, FloatArray]:
        """Return predicted and observed survival of samples with similar predictions."""
        n_parts = min(_PARTS, len(at_median) // _LEAST_SAMPLES)
        if n_parts < 2:
            return np.zeros(0), np.zeros(0)
        predicted, observed = [], []
        for rows in np.array_split(np.argsort(at_median, kind="stable"), n_parts):
            times, km = kaplan_meier(self.bounds[rows])
            predicted.append(float(at_median[rows].mean()))
            observed.append(float(step(times, km, np.array([time]), 1.0)[0]))
        return np.array(predicted), np.array(observed)


def task_target(model: object, task: str, y: Any, qid: Any, n: int) -> TaskTarget:
    """Return the targets of a ranking or survival model.

    Parameters
    ----------
    model : object
        The tree ensemble.
    task : {"ranking", "survival"}
    y : array-like
        Relevances, or survival times in one of the formats of :class:`scboost.SCBoostSurvival`.
    qid : array-like or None
        Queries of a ranking.
    n : int
        Number of samples.
    """
    if task == "ranking":
        return RankingTarget.of(y, qid, n)
    if not isinstance(model, SurvivalModel):
        raise TypeError(
            f"Survival times are supported for SCBoostSurvival only, this is a {type(model).__name__}; leave y out."
        )
    return model.__survival_target__(y, n)


def is_task(task: str) -> bool:
    """Whether the scores of a task are not those of single samples."""
    return task in {"ranking", "survival"}


def check_queries(task: str, y: npt.ArrayLike | None, qid: Any) -> None:
    """Reject queries of a model that is not a ranking, and queries without relevances."""
    if qid is None:
        return
    if task != "ranking":
        raise ValueError("qid was given, but the model is not a ranking model; leave qid out.")
    if y is None:
        raise ValueError("qid was given without y; pass the relevances as y, or leave qid out.")
