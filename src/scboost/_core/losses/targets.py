"""Losses of several targets: one output and one tree per round for each of them.

Targets have shape (n, K); NaN is a missing target, which does not affect its output. The loss of a sample is the mean
over the targets. Derivatives are those of each target's own loss, so that regularization acts as in a model of one
target.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from scboost._arrays import FloatArray
from scboost._core.links import LabelsLink, TargetsLink
from scboost._core.losses.base import MIN_HESSIAN, Frame, Loss, check_range
from scboost._core.losses.classification import LogisticLoss
from scboost._core.losses.squared import SquaredLoss
from scboost._core.statistics import weighted_mean
from scboost._runtime.communicator import SINGLE_PROCESS


class TargetsLoss(Loss):
    """Mean over several targets of a loss of one target.

    Parameters
    ----------
    n_targets : int
        K, at least 2.
    """

    independent_outputs = True
    _one: Loss

    def __init__(self, n_targets: int) -> None:
        if n_targets < 2:
            raise ValueError(f"A loss of several targets needs at least 2, got {n_targets}.")
        self.n_outputs = n_targets

    def output(self, k: int) -> Loss:
        del k
        return self._one

    def check_target(self, y: FloatArray, name: str) -> None:
        if y.ndim != 2 or y.shape[1] != self.n_outputs:
            raise ValueError(f"{name} must have {self.n_outputs} columns, one per target, got shape {y.shape}.")
        for column in y.T:
            self._one.check_target(column[~np.isnan(column)], name)

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        """Return the best constant of each target, over the samples that have it; 0 if none has."""
        scores = np.zeros(self.n_outputs)
        for k, column in enumerate(y.T):
            seen = ~np.isnan(column)
            weight = None if sample_weight is None else sample_weight[seen]
            if weight is None or weight.any():
                scores[k] = self._constant(column[seen], weight)
        return scores

    def _constant(self, y: FloatArray, sample_weight: FloatArray | None) -> float:
        return float(self._one.initial_score(y, sample_weight)[0])

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        gradient, hessian = np.empty_like(raw), np.empty_like(raw)
        self.loss_gradient_hessian(y, raw, gradient, hessian)
        return gradient, hessian

    def loss_gradient_hessian(
        self, y: FloatArray, raw: FloatArray, gradient: FloatArray, hessian: FloatArray
    ) -> FloatArray:
        total = np.zeros(raw.shape[1], dtype=raw.dtype)
        for k in range(self.n_outputs):
            own, k_only = np.ascontiguousarray(y[:, k]), slice(k, k + 1)
            losses = self._one.loss_gradient_hessian(own, raw[k_only], gradient[k_only], hessian[k_only])
            missing = np.isnan(own)
            if missing.any():
                losses[missing], gradient[k, missing], hessian[k, missing] = 0, 0, MIN_HESSIAN
            total += losses
        return total / self.n_outputs

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        total = np.zeros(raw.shape[1], dtype=raw.dtype)
        for k in range(self.n_outputs):
            total += np.where(np.isnan(y[:, k]), 0, self._one.pointwise_loss(y[:, k], raw[k : k + 1]))
        return total / self.n_outputs


class TargetsSquaredLoss(TargetsLoss):
    """Mean over several targets of half the squared error, each in units of its scale.

    Parameters
    ----------
    scales : sequence of float
        Scale of each target, such as its standard deviation. Predictions do not depend on the units of the targets.
    """

    link = TargetsLink()
    task = "multioutput regression"
    translation_invariant = True
    constant_hessian = True
    _one = SquaredLoss()

    def __init__(self, scales: Sequence[float]) -> None:
        super().__init__(len(scales))
        self.scales = [float(scale) for scale in scales]

    @classmethod
    def of(cls, y: FloatArray, sample_weight: FloatArray | None, scales: Sequence[float] | None) -> TargetsSquaredLoss:
        """Return the loss of a training set, with scales that are given or standard deviations of the targets."""
        for k, column in enumerate(y.T):
            check_range(column[~np.isnan(column)], f"y[:, {k}]")
        loss = cls(_deviations(y, sample_weight) if scales is None else scales)
        loss.constant_hessian = not np.isnan(y).any()
        return loss

    def frame(self, prior: FloatArray) -> Frame:
        """Return standardized units; see :class:`Loss`."""
        scales, one = np.array(self.scales), TargetsSquaredLoss([1.0] * self.n_outputs)
        one.constant_hessian = self.constant_hessian
        return Frame(one, prior, scales, prior, scales)

    def loss_gradient_hessian(
        self, y: FloatArray, raw: FloatArray, gradient: FloatArray, hessian: FloatArray
    ) -> FloatArray:
        unit = np.array(self.scales, dtype=raw.dtype)
        losses = super().loss_gradient_hessian(y / unit, raw / unit[:, None], gradient, hessian)
        gradient /= unit[:, None]
        hessian /= unit[:, None] ** 2
        return losses

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        unit = np.array(self.scales, dtype=raw.dtype)
        return super().pointwise_loss(y / unit, raw / unit[:, None])


class TargetsLogisticLoss(TargetsLoss):
    """Mean over several labels of the negative log-likelihood of a 0/1 target whose log-odds are the raw score.

    Parameters
    ----------
    n_labels : int
        Number of labels.
    """

    link = LabelsLink()
    task = "multilabel classification"
    unit_dispersion = True
    _one = LogisticLoss()

    def __init__(self, n_labels: int) -> None:
        super().__init__(n_labels)
        self.n_labels = n_labels

    def _constant(self, y: FloatArray, sample_weight: FloatArray | None) -> float:
        """Return the log-odds; for a label without variation, those with half a sample added to either class."""
        share = weighted_mean(y, sample_weight, SINGLE_PROCESS)
        if 0 < share < 1:
            return super()._constant(y, sample_weight)
        mass = float(len(y) if sample_weight is None else sample_weight.sum())
        return float(special.logit((share * mass + 0.5) / (mass + 1)))


def _deviations(y: FloatArray, sample_weight: FloatArray | None) -> list[float]:
    """Return the standard deviation of each target over the samples that have it; 1 for a constant."""
    scales = []
    for column in y.T:
        seen = ~np.isnan(column)
        weight = None if sample_weight is None else sample_weight[seen]
        values = np.asarray(column[seen], dtype=np.float64)
        variance = weighted_mean((values - weighted_mean(values, weight, SINGLE_PROCESS)) ** 2, weight, SINGLE_PROCESS)
        scales.append(float(np.sqrt(variance)) if np.ptp(values) > 0 else 1.0)
    return scales
