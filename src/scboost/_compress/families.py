"""Divergence between the raw scores of a teacher and of a student, one family for each link.

Every link belongs to an exponential family with log-partition function A: the mean is ``A'(F)``, the Hessian ``A''(F)``
and the divergence ``A(F) - A(f) - mean(f) (F - f)``. For classes it is the Kullback-Leibler divergence of the predicted
probabilities, for the identity half the squared error. Near the teacher it is the squared error of the raw score in the
metric of the Hessian.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy import special

from scboost._compress.types import Float64

_MIN_HESSIAN = 1e-6
_LARGEST_LOG = 80.0


class Family(ABC):
    """Exponential family of a link; raw scores have shape (K, n)."""

    link: str

    @property
    def of_classes(self) -> bool:
        """Whether raw scores become probabilities of classes."""
        return self.link in {"logit", "softmax"}

    @abstractmethod
    def mean(self, raw: Float64) -> Float64:
        """Return the mean parameter of raw scores, of the same shape."""

    @abstractmethod
    def log_partition(self, raw: Float64) -> Float64:
        """Return A for each sample, of shape (n,)."""

    @abstractmethod
    def hessian(self, mean: Float64) -> Float64:
        """Return the diagonal of A'' where the mean is `mean`, of shape (K, n) and positive."""

    def curve(self, mean: Float64, direction: Float64) -> Float64:
        """Return A'' times a direction, of shape (K, n)."""
        return self.hessian(mean) * direction

    def bound(self, hessian: Float64) -> Float64:
        """Return a diagonal matrix that is at least A'', given the diagonal of A''.

        Steps of all outputs at once, each with its entry of the bound, do not overshoot.
        """
        return hessian

    def divergence(self, raw: Float64, target: Float64) -> Float64:
        """Return the divergence of raw scores from the teacher's, `target`, of shape (n,); at least 0."""
        mean = self.mean(target)
        value = self.log_partition(raw) - self.log_partition(target) - (mean * (raw - target)).sum(axis=0)
        return np.asarray(np.maximum(value, 0.0))


class Gaussian(Family):
    """Raw scores are predictions; half the squared error."""

    link = "identity"

    def mean(self, raw: Float64) -> Float64:
        """Return the raw scores; see :class:`Family`."""
        return raw

    def log_partition(self, raw: Float64) -> Float64:
        """Return half the square; see :class:`Family`."""
        return np.asarray((raw**2).sum(axis=0) / 2)

    def hessian(self, mean: Float64) -> Float64:
        """Return ones; see :class:`Family`."""
        return np.ones_like(mean)

    def divergence(self, raw: Float64, target: Float64) -> Float64:
        """Return half the squared error, without cancellation; see :class:`Family`."""
        return np.asarray(((raw - target) ** 2).sum(axis=0) / 2)


class Bernoulli(Family):
    """Raw scores are log-odds of the second of two classes."""

    link = "logit"

    def mean(self, raw: Float64) -> Float64:
        """Return probabilities; see :class:`Family`."""
        return np.asarray(special.expit(raw))

    def log_partition(self, raw: Float64) -> Float64:
        """Return log(1 + exp(F)); see :class:`Family`."""
        return np.asarray((np.maximum(raw, 0.0) + np.log1p(np.exp(-np.abs(raw)))).sum(axis=0))  # faster than logaddexp

    def hessian(self, mean: Float64) -> Float64:
        """Return p (1 - p); see :class:`Family`."""
        return np.maximum(mean * (1 - mean), _MIN_HESSIAN)


class Categorical(Family):
    """Raw scores are log-probabilities of K > 2 classes up to a constant."""

    link = "softmax"

    def mean(self, raw: Float64) -> Float64:
        """Return probabilities; see :class:`Family`."""
        return np.asarray(special.softmax(raw, axis=0))

    def log_partition(self, raw: Float64) -> Float64:
        """Return log-sum-exp; see :class:`Family`."""
        return np.asarray(special.logsumexp(raw, axis=0))

    def hessian(self, mean: Float64) -> Float64:
        """Return p (1 - p); see :class:`Family`."""
        return np.maximum(mean * (1 - mean), _MIN_HESSIAN)

    def curve(self, mean: Float64, direction: Float64) -> Float64:
        """Return the full Hessian, diag(p) - p p', times a direction; see :class:`Family`."""
        weighted = mean * direction
        return np.asarray(weighted - mean * weighted.sum(axis=0) + _MIN_HESSIAN * direction)

    def bound(self, hessian: Float64) -> Float64:
        """Return 2 p (1 - p), the sums of the absolute values in the rows of A''; see :class:`Family`."""
        return 2 * hessian


class Poisson(Family):
    """Raw scores are logarithms of positive predictions."""

    link = "log"

    def mean(self, raw: Float64) -> Float64:
        """Return exponentials; see :class:`Family`."""
        return np.exp(np.clip(raw, -_LARGEST_LOG, _LARGEST_LOG))

    def log_partition(self, raw: Float64) -> Float64:
        """Return exponentials; see :class:`Family`."""
        return np.asarray(self.mean(raw).sum(axis=0))

    def hessian(self, mean: Float64) -> Float64:
        """Return the mean; see :class:`Family`."""
        return np.maximum(mean, _MIN_HESSIAN)


FAMILIES: dict[str, type[Family]] = {cls.link: cls for cls in (Gaussian, Bernoulli, Categorical, Poisson)}
