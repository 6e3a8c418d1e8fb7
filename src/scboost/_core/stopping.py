"""Why and when a fit stops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np

# Rounds from which validation losses are extrapolated.
_FEWEST_TO_EXTRAPOLATE = 40


class StopReason(Enum):
    """Why a fit ended before the requested number of rounds.

    The value is the message, with places for a number and for the metric.
    """

    NOT_STOPPED = ""
    CONSTANT_INNOVATION = "the innovation is constant: nothing is left to learn"
    NO_SPLIT = "no tree found a split that its constraints allow"
    LOSS_NOT_FINITE = "the training loss is {}: the learning rate or the target is too large"
    LEAF_NOT_FINITE = "a leaf value is not finite: the learning rate or the target is too large"
    NO_IMPROVEMENT = "validation {1} did not improve in {0} rounds"
    CALLBACK = "a callback asked to stop"
    INTERRUPTED = "interrupted from the keyboard"


@dataclass(frozen=True)
class Stop:
    """A stop reason with the number that belongs to it.

    Attributes
    ----------
    reason : StopReason
        Why the fit ended.
    value : float or None
        Loss or number of rounds, for the message.
    metric : str
        What was monitored on held-out data, for the message.
    """

    reason: StopReason = StopReason.NOT_STOPPED
    value: float | None = None
    metric: str = "loss"

    def __bool__(self) -> bool:
        return self.reason is not StopReason.NOT_STOPPED

    @property
    def message(self) -> str:
        """The reason as text; empty if the fit was not stopped."""
        return self.reason.value.format(self.value, self.metric)

    @property
    def diverged(self) -> bool:
        """Whether scores or leaf values were not finite."""
        return self.reason in (StopReason.LOSS_NOT_FINITE, StopReason.LEAF_NOT_FINITE)

    @property
    def is_premature(self) -> bool:
        """Whether the model has fewer rounds than were found to be best."""
        return self.diverged or self.reason in (StopReason.CALLBACK, StopReason.INTERRUPTED)


NOT_STOPPED = Stop()


class Stopping(Protocol):
    """Says when to stop."""

    def reached(self, losses: Sequence[float]) -> bool:
        """Whether to stop, given the validation loss after each round so far."""


@dataclass(frozen=True)
class EarlyStopping:
    """When to stop on a validation set.

    Attributes
    ----------
    patience : int
        Stop if the last ``patience`` rounds brought no improvement by more than ``tol``.
    tol : float
        Smallest decrease of the validation loss that counts.
    share : float, default=0.0
        Patience as a share of the best round so far, where that is more: small learning rates need more rounds.
    """

    patience: int
    tol: float
    share: float = 0.0

    def reached(self, losses: Sequence[float]) -> bool:
        """Whether to stop, given the validation loss after each round so far."""
        best = self._last_improvement(losses)
        return len(losses) - best >= max(self.patience, self.share * best)

    def _last_improvement(self, losses: Sequence[float]) -> int:
        """Return the last round that lowered the loss by more than ``tol``; 0 if there is none."""
        if self.tol == 0 and isinstance(losses, list) and losses and losses[0] < np.inf:  # the same without a loop
            return losses.index(min(losses)) + 1
        best, lowest = 0, np.inf
        for i, value in enumerate(losses, start=1):
            if value < lowest - self.tol:
                best = i
            lowest = min(lowest, value)
        return best


@dataclass(frozen=True)
class ComparedStopping(EarlyStopping):
    """When to stop a candidate that must beat a reference model.

    Attributes
    ----------
    reference : tuple of float
        Validation losses of the reference model after each round.
    n_worse : int
        Stop if the candidate was worse than the reference in each of this many rounds.
    """

    reference: tuple[float, ...] = ()
    n_worse: int = 1

    def reached(self, losses: Sequence[float]) -> bool:
        """Whether to stop, given the validation loss after each round so far."""
        compared = list(zip(losses, self.reference, strict=False))[-self.n_worse :]
        behind = len(compared) == self.n_worse and all(own > other for own, other in compared)
        return (behind and len(losses) <= len(self.reference)) or super().reached(losses)


@dataclass(frozen=True)
class HopelessStopping(EarlyStopping):
    """When to stop a slow candidate that must fall below a target in the end.

    Its loss is extrapolated: in each further doubling of rounds it would fall by a constant share of its fall in the
    doubling before, the share of the last one, at most 1.

    Attributes
    ----------
    target : float
        Loss to fall below.
    n_rounds : int
        Maximum number of rounds.
    """

    target: float = 0.0
    n_rounds: int = 0

    def reached(self, losses: Sequence[float]) -> bool:
        """Whether to stop, given the validation loss after each round so far."""
        is_long = len(losses) >= _FEWEST_TO_EXTRAPOLATE
        if is_long and min(losses) - self._further_fall(losses) > self.target:
            return True
        return super().reached(losses)

    def _further_fall(self, losses: Sequence[float]) -> float:
        """Return by how much the loss would fall in the rounds left."""
        n = len(losses)
        lowest, half, quarter = (min(losses[: n // k]) for k in (1, 2, 4))
        share = 1.0 if quarter <= half else min((half - lowest) / (quarter - half), 1.0)
        doublings, fall, total = math.log2(max(self.n_rounds / n, 1.0)), half - lowest, 0.0
        while doublings > 0:
            fall *= share
            total += fall * min(doublings, 1.0)
            doublings -= 1
        return total


@dataclass(frozen=True)
class JointStopping:
    """When to stop models that catch up with others, whose losses count as well.

    Attributes
    ----------
    stopping : EarlyStopping
        When to stop.
    others : tuple of float
        Validation losses of the others, in at least as many rounds.
    share : float
        Their share of the weight.
    """

    stopping: EarlyStopping
    others: tuple[float, ...]
    share: float

    def reached(self, losses: Sequence[float]) -> bool:
        """Whether to stop, given the validation loss after each round of the models that catch up."""
        pairs = zip(self.others, losses, strict=False)
        return self.stopping.reached([self.share * other + (1 - self.share) * own for other, own in pairs])


@dataclass(frozen=True)
class ContinuedStopping:
    """When to stop models that are grown in several stages.

    Attributes
    ----------
    stopping : EarlyStopping
        When to stop.
    before : tuple of float
        Validation losses of the stages before.
    """

    stopping: EarlyStopping
    before: tuple[float, ...]

    def reached(self, losses: Sequence[float]) -> bool:
        """Whether to stop, given the validation loss after each round of this stage."""
        return self.stopping.reached([*self.before, *losses])
