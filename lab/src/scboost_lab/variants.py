"""Variants of the method that the library has no parameter for: each is a projector handed to the loop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scboost import SCBoostClassifier
from scboost._arrays import FloatArray
from scboost.boosting.history import History, Projection
from scboost.boosting.loop import Settings


@dataclass(frozen=True)
class Spec:
    """A method name, read.

    Attributes
    ----------
    params : dict
        Parameters of the estimator.
    rate : float
        Factor of the automatic learning rate.
    rule : str
        How gamma changes from round to round; see `gamma_rule`. Empty for a constant.
    metric : str
        "curvature", as in the estimator: rows weigh as much as their curvature, and the part removed is the best
        Newton step within the history's span; "equal": all rows weigh the same.
    """

    params: dict[str, Any]
    rate: float = 1.0
    rule: str = ""
    metric: str = "curvature"


def gamma_rule(rule: str, gamma: float, n: int, progress: float, share: float) -> float:
    """Gamma of a round.

    Parameters
    ----------
    rule : str
        "share": gamma times twice the share; "falling" and "rising": between gamma + 0.3 and
        gamma - 0.3 over the rounds; "rows": gamma at 3,200 rows, 0.11 less for every factor e.
    gamma : float
        The constant that the rule starts from.
    n : int
        Number of rows.
    progress : float
        Share of the rounds that are done.
    share : float
        Share of the residual's energy that history spans.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> gamma_rule("rows", 0.7, 3200, 0.0, 0.0)
    0.7
    """
    values: dict[str, Callable[[], float]] = {
        "": lambda: gamma,
        "share": lambda: 2 * gamma * share,
        "falling": lambda: gamma + 0.3 - 0.6 * progress,
        "rising": lambda: gamma - 0.3 + 0.6 * progress,
        "rows": lambda: gamma - 0.11 * float(np.log(n / 3200)),
    }
    return float(np.clip(values[rule](), 0.0, 1.0))


class Prototype(SCBoostClassifier):
    """Rules for gamma and metrics that the estimator has no parameter for; set `spec` before fitting."""

    spec: Spec

    def make_projector(self, settings: Settings, F: FloatArray, capacity: int, sample_weight: FloatArray | None) -> Any:
        """Return a projection with the rule and the metric of `spec`."""
        history = History(F.shape[1], capacity, F.dtype, sample_weight)
        return _RuleProjector(history, settings, self.spec, int(self.n_estimators))


class _RuleProjector:
    """The projection of two classes, with a gamma that changes from round to round."""

    def __init__(self, history: History, settings: Settings, spec: Spec, n_rounds: int) -> None:
        self._history, self._settings, self._spec, self._n_rounds = history, settings, spec, n_rounds
        self._round = 0

    def project(self, r: FloatArray, curvature: FloatArray | None, out: FloatArray) -> list[Projection]:
        """Project with the gamma of this round."""
        c = None if curvature is None or self._spec.metric == "equal" else curvature[0]
        alpha = self._settings.alpha
        share = self._history.project(r[0], alpha=alpha, gamma=0.0, curvature=c).share
        progress = self._round / self._n_rounds
        gamma = gamma_rule(self._spec.rule, self._settings.gamma, r.shape[1], progress, share)
        return [self._history.project(r[0], alpha=alpha, gamma=gamma, curvature=c, out=out[0])]

    def append(self, predictions: Sequence[FloatArray]) -> None:
        """Remember a round."""
        self._history.append(predictions[0])
        self._round += 1

    def reserve(self, capacity: int) -> None:
        """Make room for more rounds."""
        self._history.reserve(capacity)


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
