"""Any scikit-learn regressor as the engine: the learner of the paper, and an oracle for the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scboost._arrays import FloatArray
from scboost._engine.interface import Engine, Learner, Totals


class EstimatorEngine(Engine):
    """Any scikit-learn regressor as the learner.

    Parameters
    ----------
    X : array of shape (n, d)
        Training samples.
    make : callable
        ``make(seed)`` returns an unfitted regressor.
    sample_weighted : bool
        Whether target and Hessian define a weighted least-squares problem; otherwise the Hessian is constant and the
        regressor is fitted to the target itself.
    """

    dtype = np.float64

    def __init__(self, X: Any, make: Callable[[int], Any], *, sample_weighted: bool) -> None:
        self._X, self._make, self._sample_weighted = X, make, sample_weighted

    def grow(self, target: FloatArray, hessian: FloatArray, seed: int, totals: Totals | None = None) -> list[Learner]:
        """Fit one regressor for each output; see :class:`Engine`."""
        del totals
        learners = []
        for k in range(len(target)):
            model = self._make((seed + k) % 2**32)
            if self._sample_weighted:
                rows = hessian[k] > 0
                model.fit(self._X[rows], target[k, rows] / hessian[k, rows], sample_weight=hessian[k, rows])
            else:
                model.fit(
                    self._X, target[k].copy()
                )  # a copy, because the loop overwrites the target and the learner may keep a reference
            leaves = model.apply(self._X) if hasattr(model, "apply") else None
            if leaves is not None and leaves.ndim == 1:  # a forest returns one leaf per tree
                nodes, leaf = np.unique(leaves, return_inverse=True)
                values = np.empty(len(nodes))
                values[leaf] = model.predict(self._X)
                learners.append(Learner(leaf, values, model, nodes))
            else:
                learners.append(Learner(None, np.asarray(model.predict(self._X), dtype=np.float64), model, None))
        return learners
