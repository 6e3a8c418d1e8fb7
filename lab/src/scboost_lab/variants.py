"""A variant of the method that the library has no parameter for: a projector handed to the loop."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scboost import SCBoostClassifier
from scboost._arrays import FloatArray
from scboost.boosting.history import History, Projection
from scboost.boosting.loop import Settings


class JointHistoryClassifier(SCBoostClassifier):
    """Many classes with one history: the residuals of all classes are projected together, as one long vector."""

    def make_projector(self, settings: Settings, F: FloatArray, capacity: int, sample_weight: FloatArray | None) -> Any:
        """Return the projection of all classes together."""
        weight = None if sample_weight is None else np.tile(sample_weight, len(F))
        return _JointProjector(History(F.size, capacity, F.dtype, weight), settings)


class _JointProjector:
    """One projection of the residuals of all classes."""

    def __init__(self, history: History, settings: Settings) -> None:
        self._history, self._settings = history, settings

    def project(self, r: FloatArray, curvature: FloatArray | None, out: FloatArray) -> list[Projection]:
        """Project all classes as one vector."""
        joint = self._history.project(
            r.ravel(),
            alpha=self._settings.alpha,
            gamma=self._settings.gamma,
            curvature=None if curvature is None else curvature.ravel(),
        )
        out[:] = joint.innovation.reshape(r.shape)
        return [joint]

    def append(self, predictions: Sequence[FloatArray]) -> None:
        """Remember a round."""
        self._history.append(np.concatenate(predictions))

    def reserve(self, capacity: int) -> None:
        """Make room for more rounds."""
        self._history.reserve(capacity)
