"""The interface of losses that couple samples: the loss of one depends on the raw scores of others."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from scboost._arrays import FloatArray
from scboost._core.losses.base import Loss, loss_sums
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator
from scboost._runtime.threads import SERIAL, Threads


class CoupledLoss(Loss):
    """A loss that the loop evaluates on all samples at once, in place of block by block.

    Subclasses implement :meth:`derivatives`. Samples of weight 0 get derivatives, but do not affect those of others.
    Samples that affect each other must be on one worker. Targets are float64.
    """

    separable = False

    @abstractmethod
    def derivatives(
        self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the loss, of shape (n,), and gradient and Hessian, of the shape of raw, for a unit of weight."""

    @abstractmethod
    def hessian_product(
        self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None, V: FloatArray
    ) -> FloatArray:
        """Return the full Hessian of the weighted sum of the losses, applied to directions.

        Parameters
        ----------
        y, raw, sample_weight
            As for :meth:`derivatives`.
        V : ndarray of shape (n, T)
            Directions of the raw scores.

        Returns
        -------
        ndarray of shape (n, T)
        """

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        """Return 0: only differences of raw scores matter."""
        del y, sample_weight
        return np.zeros(1)

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gradient and Hessian of samples without weights."""
        return self.derivatives(y, raw, None)[1:]

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        """Return the loss of each of the samples without weights."""
        return self.losses(y, raw, None)

    def losses(self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        """Return the loss of each sample, of shape (n,); override it if derivatives take longer."""
        return self.derivatives(y, raw, sample_weight)[0]

    def mean(
        self,
        y: FloatArray,
        raw: FloatArray,
        sample_weight: FloatArray | None = None,
        communicator: Communicator = SINGLE_PROCESS,
        threads: Threads = SERIAL,
    ) -> float:
        """Return the weighted mean loss over the samples of all workers."""
        del threads
        sums = loss_sums(self.losses(y, raw, sample_weight), sample_weight, slice(None))
        total, weight = communicator.sum(np.array(sums))
        return float(total / weight)
