"""Successive halving: candidates for the options of a model compete on the folds of a cross-validation.

All candidates start with short runs; those with the lowest loss on held-out samples go on. Runs are continued, never
repeated. Candidates are in the order of their cost: a tie goes to the cheaper one. The last one is compared with the
incumbent, if there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from scboost._arrays import FloatArray
from scboost._core.loop import Settings
from scboost._core.stopping import ComparedStopping, EarlyStopping
from scboost._engine.interface import TreeOptions

# Rounds after which candidates are compared, and how many of them go on.
_RUNGS = ((12, 4), (30, 2), (75, 1))
# After how many rounds in which it is worse than the incumbent the last candidate gives up.
_ROUNDS_BEHIND = 10


@dataclass(frozen=True)
class Candidate:
    """Options that compete.

    Attributes
    ----------
    options : TreeOptions
        Options of the trees.
    projection_strength : float or None
        In place of that of the settings, if given.
    rate : float
        Factor of the learning rate of a model on all samples: simple trees tolerate larger steps.
    pace : float
        How many rounds of it correspond to one round of the default trees.
    margin : float
        By how many standard errors its loss must be lower than that of candidates without a margin.
    """

    options: TreeOptions
    projection_strength: float | None = None
    rate: float = 1.0
    pace: float = 1.0
    margin: float = 0.0

    def settings(self, base: Settings) -> Settings:
        """Return the settings of a model of this candidate."""
        gamma = base.gamma if self.projection_strength is None else self.projection_strength
        return replace(base, gamma=gamma)


class Measured(Protocol):
    """Models of one candidate."""

    candidate: Candidate
    losses: list[float]

    def pointwise_loss(self) -> FloatArray | None:
        """Return the loss of each held-out sample after the best round; None if a fold has no trees."""


class Competitor(Measured, Protocol):
    """Models of one candidate, which can be grown further."""

    def advance(self, n_rounds: int, stopping: EarlyStopping) -> None:
        """Grow the models up to a number of rounds, unless they stop before."""


_T = TypeVar("_T", bound=Competitor)


class Race(Generic[_T]):
    """Successive halving of candidates.

    Parameters
    ----------
    start : callable
        Returns the competitor of a candidate, without rounds.
    stopping : EarlyStopping
        When competitors stop.
    n_rounds : int
        Maximum number of rounds.
    in_standard_errors : callable
        Returns the mean of a quantity of the held-out samples in units of its standard error.
    """

    def __init__(
        self,
        start: Callable[[Candidate], _T],
        stopping: EarlyStopping,
        n_rounds: int,
        in_standard_errors: Callable[[FloatArray], float],
    ) -> None:
        self._start, self._stopping, self._n_rounds = start, stopping, n_rounds
        self._in_standard_errors = in_standard_errors

    def run(self, candidates: Sequence[Candidate], incumbent: Measured | None = None) -> _T | None:
        """Return the best competitor, grown to the end; None if it does not beat the incumbent.

        Parameters
        ----------
        candidates : sequence of Candidate
            What competes; not the candidate of the incumbent.
        incumbent : Measured, optional
            Models that are grown to the end already.
        """
        left = [self._start(candidate) for candidate in candidates]
        for rounds, kept in _RUNGS:
            if len(left) > kept:
                for one in left:
                    one.advance(min(math.ceil(rounds * one.candidate.pace), self._n_rounds), self._stopping)
                left = self._ranked(left)[:kept]
        if not left:
            return None
        leader = left[0]
        if incumbent is None:
            leader.advance(self._n_rounds, self._stopping)
            return leader
        leader.advance(self._n_rounds, self._compared(leader, incumbent))
        return leader if self._is_better(leader, incumbent) else None

    def _ranked(self, competitors: Sequence[_T]) -> list[_T]:
        """Return competitors by their lowest losses; those with a margin behind the best without one, unless better."""
        ranked = sorted(competitors, key=_lowest)
        best = next((one for one in ranked if not one.candidate.margin), None)
        if best is None:
            return ranked
        return sorted(ranked, key=lambda one: one is not best and not self._is_better(one, best))

    def _is_better(self, one: Measured, other: Measured) -> bool:
        """Whether models have a lower loss, by the margin of their candidate."""
        if _lowest(one) >= _lowest(other):
            return False
        if not one.candidate.margin:
            return True
        before, after = other.pointwise_loss(), one.pointwise_loss()
        if before is None or after is None:
            return False
        return self._in_standard_errors(before - after) > one.candidate.margin

    def _compared(self, one: Measured, incumbent: Measured) -> EarlyStopping:
        """Return when the last candidate stops: also if it stays behind the incumbent at the same stage."""
        ratio, n = one.candidate.pace / incumbent.candidate.pace, len(incumbent.losses)
        reference = tuple(incumbent.losses[min(int(i / ratio), n - 1)] for i in range(int(n * ratio)))
        return ComparedStopping(**vars(self._stopping), reference=reference, n_worse=_ROUNDS_BEHIND)


def _lowest(one: Measured) -> float:
    return min(one.losses, default=math.inf)
