"""Samples: features, targets and weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from scboost._arrays import FloatArray, IntArray, Keys
from scboost._data.hashing import row_keys
from scboost._runtime.communicator import Communicator
from scboost._runtime.context import Context


@dataclass
class Samples:
    """Features, targets and sample weights.

    Attributes
    ----------
    X : matrix or Paged of shape (n, d), or None
        Features; None where they are not needed.
    y : ndarray of shape (n,) or (n, 2)
        Targets as the loss takes them.
    weight : ndarray of shape (n,) or None
        Sample weights.
    groups : ndarray of shape (n,) or None
        Hash of the group of each sample, if folds must keep groups whole.
    """

    X: Any
    y: FloatArray
    weight: FloatArray | None
    _keys: Keys | None = field(default=None, repr=False, compare=False)
    groups: Keys | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, indices: Any) -> Samples:
        """Return some of the samples."""
        return replace(self.targets(indices), X=self.X[indices])

    def targets(self, indices: Any) -> Samples:
        """Return some of the samples without their features."""
        weight, groups = (None if part is None else part[indices] for part in (self.weight, self.groups))
        return Samples(None, self.y[indices], weight, groups=groups)

    def weighted(self, weight: FloatArray | None) -> Samples:
        """Return the same samples with other weights."""
        return Samples(self.X, self.y, weight, self._keys, self.groups)

    def only(self, indices: IntArray) -> Samples:
        """Return all samples, with weight 0 for those not among the indices."""
        mask = np.zeros(len(self), dtype=np.float32)  # exact in any product
        mask[indices] = 1
        return self.weighted(mask if self.weight is None else self.weight * mask)

    def total_weight(self, communicator: Communicator) -> float:
        """Return the sum of the weights of the samples of all workers."""
        return float(communicator.sum(np.array(float(len(self)) if self.weight is None else self.weight.sum())))

    def count(self, communicator: Communicator) -> int:
        """Return the number of samples of all workers."""
        return int(communicator.sum(np.array(float(len(self)))))

    def effective_size(self, communicator: Communicator) -> float:
        """Return the number of samples of all workers, or the sum of their weights if that is larger."""
        return max(self.total_weight(communicator), self.count(communicator))

    def keys(self, context: Context) -> Keys:
        """Return the hash of each sample's features, computed once."""
        if self._keys is None:
            self._keys = row_keys(self.X, context.threads, context.storage)
        return self._keys

    def fold_keys(self, context: Context) -> Keys:
        """Return the keys by which samples are assigned to folds: those of their groups, or of their features."""
        return self.keys(context) if self.groups is None else self.groups

    def forget_keys(self) -> None:
        """Free the memory of the keys; they are computed again if needed."""
        self._keys = None
