"""Link functions: how raw scores become predictions.

Raw scores have shape (K, n): K outputs, n samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy import special

from scboost._arrays import FloatArray


class Link(ABC):
    """A link function.

    Attributes
    ----------
    name : str
        Name of the link.
    objective : str
        XGBoost's objective with the same link, for the native model.
    """

    name: str
    objective: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    @abstractmethod
    def link(self, prediction: FloatArray) -> FloatArray:
        """Return the raw scores of shape (K, n) of predictions in the form that :meth:`inverse` returns."""

    @abstractmethod
    def inverse(self, raw: FloatArray) -> FloatArray:
        """Return the predictions: probabilities of shape (n, n_classes), or values of shape (n,)."""


class IdentityLink(Link):
    """The prediction is the raw score: a mean or a median."""

    name = "identity"
    objective = "reg:squarederror"

    def link(self, prediction: FloatArray) -> FloatArray:
        """Return the predictions; see :class:`Link`."""
        return np.asarray(prediction)[None]

    def inverse(self, raw: FloatArray) -> FloatArray:
        """Return the raw scores; see :class:`Link`."""
        return np.asarray(raw[0])


class QuantileLink(IdentityLink):
    """The prediction is the raw score: a quantile or an expectile rather than a mean or a median."""

    name = "quantile"


class SortedQuantilesLink(Link):
    """Several quantiles, one per output, sorted so that they do not cross; of shape (n, K)."""

    name = "quantile"
    objective = "reg:squarederror"

    def link(self, prediction: FloatArray) -> FloatArray:
        """Return the transposed predictions; see :class:`Link`."""
        return np.ascontiguousarray(np.asarray(prediction).T)

    def inverse(self, raw: FloatArray) -> FloatArray:
        """Sort the raw scores of each sample; see :class:`Link`."""
        return np.ascontiguousarray(np.sort(raw, axis=0).T)


class TargetsLink(Link):
    """Several targets, one per output: predictions are the raw scores, of shape (n, K)."""

    name = "several targets"
    objective = "reg:squarederror"

    def link(self, prediction: FloatArray) -> FloatArray:
        """Return the transposed predictions; see :class:`Link`."""
        return np.ascontiguousarray(np.asarray(prediction).T)

    def inverse(self, raw: FloatArray) -> FloatArray:
        """Return the transposed raw scores; see :class:`Link`."""
        return np.ascontiguousarray(raw.T)


class LabelsLink(Link):
    """Several 0/1 labels, one per output: the raw scores are log-odds, predictions have shape (n, K)."""

    name = "several labels"
    objective = "binary:logistic"

    def link(self, prediction: FloatArray) -> FloatArray:
        """Return the log-odds; see :class:`Link`."""
        return np.ascontiguousarray(special.logit(np.asarray(prediction)).T)

    def inverse(self, raw: FloatArray) -> FloatArray:
        """Return the probability of each label; see :class:`Link`."""
        return np.ascontiguousarray(special.expit(raw).T)


class LogLink(Link):
    """The raw score is the logarithm of a positive mean."""

    name = "log"
    objective = "count:poisson"

    def link(self, prediction: FloatArray) -> FloatArray:
        """Return the logarithms; see :class:`Link`."""
        return np.log(np.asarray(prediction))[None]

    def inverse(self, raw: FloatArray) -> FloatArray:
        """Return the exponentials; see :class:`Link`."""
        return np.asarray(np.exp(raw[0]))


class HazardLink(LogLink):
    """The raw score is the logarithm of a hazard ratio."""

    objective = "survival:cox"


class TimeLink(LogLink):
    """The raw score is the location of the logarithm of a time."""

    objective = "survival:aft"


class RankLink(IdentityLink):
    """The raw score orders the documents of a query."""

    name = "ranking"
    objective = "rank:ndcg"


class PairwiseRankLink(RankLink):
    """The raw score orders the documents of a query, learned from pairs."""

    objective = "rank:pairwise"


class LogitLink(Link):
    """The raw score is the log-odds of the second of two classes."""

    name = "logit"
    objective = "binary:logistic"

    def link(self, prediction: FloatArray) -> FloatArray:
        """Return the log-odds; see :class:`Link`."""
        return np.asarray(special.logit(np.asarray(prediction)[:, 1]))[None]

    def inverse(self, raw: FloatArray) -> FloatArray:
        """Return the probabilities of both classes; see :class:`Link`."""
        p = special.expit(raw[0])
        return np.stack([1 - p, p], axis=1)


class SoftmaxLink(Link):
    """The raw scores are log-probabilities of the classes, up to a constant per sample."""

    name = "softmax"
    objective = "multi:softprob"

    def link(self, prediction: FloatArray) -> FloatArray:
        """Return the centred log-probabilities; see :class:`Link`."""
        logs = np.log(np.asarray(prediction).T)
        return np.asarray(logs - logs.mean(axis=0))

    def inverse(self, raw: FloatArray) -> FloatArray:
        """Return the probabilities of the classes; see :class:`Link`."""
        return np.ascontiguousarray(special.softmax(raw, axis=0).T)


class MeanLink(Link):
    """Raw scores are the parameters of a distribution; the prediction is its mean, the first of them."""

    name = "distribution"
    objective = "reg:squarederror"

    def link(self, prediction: FloatArray) -> FloatArray:
        """Raise ValueError: a mean does not determine the other parameters."""
        del prediction
        raise ValueError("a mean alone does not determine the parameters of a distribution")

    def inverse(self, raw: FloatArray) -> FloatArray:
        """Return the mean; see :class:`Link`."""
        return np.asarray(raw[0])


class LogMeanLink(MeanLink):
    """Raw scores are the parameters of a distribution, of which the first is the logarithm of the mean."""

    def inverse(self, raw: FloatArray) -> FloatArray:
        """Return the mean; see :class:`Link`."""
        return np.asarray(np.exp(raw[0]))


class LogNormalMeanLink(MeanLink):
    """Raw scores are mean and log standard deviation of the logarithm of a log-normal variable."""

    def inverse(self, raw: FloatArray) -> FloatArray:
        """Return the mean; see :class:`Link`."""
        return np.asarray(np.exp(raw[0] + np.exp(2 * raw[1]) / 2))


IDENTITY = IdentityLink()
IDENTITY_MEAN, LOG_MEAN, LOGNORMAL_MEAN = MeanLink(), LogMeanLink(), LogNormalMeanLink()
