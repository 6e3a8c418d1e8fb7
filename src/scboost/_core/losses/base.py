"""The interface of a loss.

A loss knows its gradient and Hessian, its link and the targets it is defined for. It knows nothing of trees.

Raw scores and everything derived from them have shape (K, n): K outputs, n samples. Targets are a vector of length n:
0/1 for two classes, class indices for many, real numbers for regression; or of shape (n, 2): bounds of survival times;
or of shape (n, K): several targets.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scboost._arrays import FloatArray
from scboost._core.links import IDENTITY, Link
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator
from scboost._runtime.threads import SERIAL, Threads

# Hessian of a sample whose probability has reached 0 or 1 in float32; XGBoost uses the same floor.
MIN_HESSIAN = 1e-16
# Targets are float32 in the loop, and so are their squares: outside of these ranges they would over- or underflow.
_TARGET_RANGES = (1e-15, 1e15)

Task = Literal[
    "regression",
    "survival",
    "ranking",
    "distribution",
    "multioutput regression",
    "multilabel classification",
]


class Loss(ABC):
    """A differentiable loss of raw scores.

    A user-defined loss implements :meth:`initial_score`, :meth:`gradient_hessian` and :meth:`pointwise_loss`, and sets
    ``link`` unless predictions are the raw scores themselves.

    Attributes
    ----------
    link : Link
        How raw scores become predictions; the identity by default.
    n_outputs : int
        K, the number of raw scores per sample.
    n_classes : int
        Number of classes; 0 for regression.
    translation_invariant : bool
        Whether only the difference of target and raw score matters.
    constant_hessian : bool
        Whether the Hessian is 1 everywhere.
    unit_dispersion : bool
        Whether the variance of the gradient equals the Hessian if the model is correct, as for two classes. Otherwise
        their ratio is estimated in each round to scale the exploration noise.
    supports_weighting : bool
        Whether tree weights can be learned with it, which needs a Hessian.
    convex : bool
        Whether the loss is a convex function of the raw scores; tree weights need one, or a surrogate.
    residual_quantile : float or None
        Quantile of ``y - raw`` that is the loss-minimizing constant step of a group of samples; None if it is not one.
    line_search : LineSearch or None
        Exact minimizer of the loss along a constant step, used in place of a Newton step.
    kernel : str
        Name of the compiled kernel of a built-in loss; empty if there is none.
    separable : bool
        Whether the loss of a sample depends on that sample alone.
    independent_outputs : bool
        Whether each output has a target of its own.
    task : {"regression", "survival", "ranking", "distribution", "multioutput regression", "multilabel classification"}
        Task of a loss without classes; determines the estimator that a model file is loaded as.
    """

    link: Link = IDENTITY
    n_outputs: int = 1
    n_classes: int = 0
    translation_invariant: bool = False
    constant_hessian: bool = False
    unit_dispersion: bool = False
    supports_weighting: bool = True
    convex: bool = True
    residual_quantile: float | None = None
    line_search: LineSearch | None = None
    kernel: str = ""
    separable: bool = True
    independent_outputs: bool = False
    task: Task = "regression"

    def __repr__(self) -> str:
        own = ", ".join(f"{name}={getattr(self, name, '?')!r}" for name in inspect.signature(type(self)).parameters)
        return f"{type(self).__name__}({own})"

    @property
    def classifies(self) -> bool:
        """Whether predictions are probabilities."""
        return self.n_classes > 0 or self.task == "multilabel classification"

    def same_as(self, other: Loss) -> bool:
        """Whether another loss is of the same class with the same parameters."""
        return type(self) is type(other) and repr(self) == repr(other)

    def output(self, k: int) -> Loss:
        """Return the loss of output k alone; the loss itself if all outputs are alike."""
        del k
        return self

    def frame(self, prior: FloatArray) -> Frame:
        """Return the units of the boosting loop, given the initial raw score of shape (K,).

        The target of a translation-invariant loss is centered: a large mean would cost float32 precision.
        """
        shift = float(prior[0]) if self.translation_invariant else 0.0
        return Frame(self, np.full(self.n_outputs, shift), np.ones(self.n_outputs), shift)

    def check_target(self, y: FloatArray, name: str) -> None:
        """Raise ValueError, with the name of the target, if the loss is not defined for y of shape (n,)."""
        del y, name

    @abstractmethod
    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        """Return the constant raw score that minimizes the mean loss.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets.
        sample_weight : ndarray of shape (n,) or None
            Sample weights; None if all are 1.

        Returns
        -------
        ndarray of shape (K,)
        """

    @abstractmethod
    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivatives of each sample's loss with respect to its raw scores.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets.
        raw : ndarray of shape (K, n)
            Raw scores.

        Returns
        -------
        gradient, hessian : ndarray of shape (K, n)
            Without sample weights. The Hessian must not be negative, and should stay above 0: it is divided by.
        """

    @abstractmethod
    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        """Return the loss of each sample.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets.
        raw : ndarray of shape (K, n)
            Raw scores; ``raw[0]`` for a loss with one output.

        Returns
        -------
        ndarray of shape (n,)
        """

    def derivatives(
        self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return loss, gradient and Hessian of all samples at once, each per unit of sample weight.

        Only a loss that is not separable depends on the weights.
        """
        del sample_weight
        return self.pointwise_loss(y, raw), *self.gradient_hessian(y, raw)

    def shared_derivatives(
        self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return :meth:`derivatives` of the samples of this worker, where they depend on those of others."""
        del communicator
        return self.derivatives(y, raw, sample_weight)

    def convex_surrogate(self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None) -> Loss:
        """Return a convex loss with the same derivatives at the given raw scores, to learn tree weights with."""
        del y, raw, sample_weight
        if not self.convex:
            raise ValueError(f"Tree weights need a convex loss, which {self!r} is not; use weighting=None.")
        return self

    def exact_gradient(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        """Return the gradient of the pointwise loss without the limits that :meth:`gradient_hessian` may apply."""
        return self.gradient_hessian(y, raw)[0]

    def loss_gradient_hessian(
        self, y: FloatArray, raw: FloatArray, gradient: FloatArray, hessian: FloatArray
    ) -> FloatArray:
        """Set gradient and Hessian of a block and return its pointwise loss; override it if they share computations."""
        gradient[:], hessian[:] = self.gradient_hessian(y, raw)
        return self.pointwise_loss(y, raw)

    def shared_initial_score(
        self, y: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> FloatArray:
        """Return the initial score for the samples of all workers: the weighted mean of the workers' initial scores.

        Built-in losses return the minimizer of the mean loss over all samples.
        """
        weight = float(len(y)) if sample_weight is None else float(sample_weight.sum())
        total = float(communicator.sum(np.array(weight)))
        score = self.initial_score(y, sample_weight) if weight else np.zeros(self.n_outputs)
        return communicator.sum(weight / total * score)

    def mean(
        self,
        y: FloatArray,
        raw: FloatArray,
        sample_weight: FloatArray | None = None,
        communicator: Communicator = SINGLE_PROCESS,
        threads: Threads = SERIAL,
    ) -> float:
        """Return the weighted mean loss over the samples of all workers, summed in float64 over blocks."""

        def add_up(rows: slice) -> tuple[float, float]:
            return loss_sums(self.pointwise_loss(y[rows], raw[:, rows]), sample_weight, rows)

        total, weight = communicator.sum(total_sums(threads.map_blocks(add_up, len(y))))
        return float(total / weight)


@dataclass(frozen=True)
class Frame:
    """Units of the boosting loop: raw scores are ``shift + unit * score``, and targets are shifted and divided alike.

    Attributes
    ----------
    loss : Loss
        The loss of targets and scores in these units; its values are those of the loss in the original units.
    shift, unit : ndarray of shape (K,)
        Origin and unit of the raw scores of each output.
    target_shift, target_unit : float or ndarray of shape (K,)
        Origin and unit of the target.
    """

    loss: Loss
    shift: FloatArray
    unit: FloatArray
    target_shift: float | FloatArray = 0.0
    target_unit: float | FloatArray = 1.0

    def target(self, y: FloatArray) -> FloatArray:
        """Return targets in these units."""
        return np.asarray((y - self.target_shift) / self.target_unit)

    def scores(self, raw: FloatArray) -> FloatArray:
        """Return raw scores of shape (K, n) in these units."""
        return np.asarray((raw - self.shift[:, None]) / self.unit[:, None])

    def raw(self, scores: FloatArray) -> FloatArray:
        """Return the raw scores of scores of shape (K, n) in these units, in float64."""
        return np.asarray(self.shift[:, None] + self.unit[:, None] * scores.astype(np.float64))


class LineSearch(ABC):
    """Exact minimizer of a loss along a constant step, for independent groups of samples.

    The loss of a group, as a function of the step s, must depend on its samples through the sums of two terms only.
    """

    @abstractmethod
    def terms(self, y: FloatArray, raw: FloatArray, hessian: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the two terms of each sample, of shape (n,), for one output."""

    @abstractmethod
    def minimize(self, sums: FloatArray, l2: float, l1: float) -> FloatArray:
        """Return the step of each group that minimizes its loss plus ``l2 s^2 / 2 + l1 |s|``.

        Parameters
        ----------
        sums : ndarray of shape (2, n_groups)
            Weighted sums of the terms over the samples of each group.
        l2, l1 : float
            Regularization.
        """


def initial_score(
    loss: Loss, y: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
) -> FloatArray:
    """Return the initial score for the samples of all workers."""
    if communicator.size == 1:
        return loss.initial_score(y, sample_weight)
    if is_built_in(loss):
        return loss.shared_initial_score(y, sample_weight, communicator)
    return Loss.shared_initial_score(loss, y, sample_weight, communicator)  # it may override the score of a built-in


def loss_sums(losses: FloatArray, sample_weight: FloatArray | None, rows: slice) -> tuple[float, float]:
    """Return the weighted sum of a block's losses, and the sum of its weights."""
    if sample_weight is None:
        return float(losses.sum(dtype=np.float64)), float(len(losses))
    weight = sample_weight[rows]
    return float(losses @ weight), float(weight.sum())


def total_sums(parts: Sequence[tuple[float, float]]) -> FloatArray:
    """Add up pairs of sums in their order."""
    return np.array([sum(total for total, _ in parts), sum(weight for _, weight in parts)])


def check_range(y: FloatArray, name: str) -> None:
    """Reject targets whose differences cannot be squared in float32, the dtype of the loop."""
    span, (low, high) = float(np.ptp(y)) if len(y) else 0.0, _TARGET_RANGES
    if span and not low < span < high:
        raise ValueError(f"{name} spans {span:.3g}; rescale it to span between {low:g} and {high:g}.")


def is_built_in(loss: Loss) -> bool:
    """Whether a loss is built in, so that model files can store it."""
    return type(loss).__module__.rpartition(".")[0] == __name__.rpartition(".")[0]
