"""Successive halving: candidates for the options of a model compete on the folds of a cross-validation.

All candidates start with short runs; those with the lowest loss on held-out samples go on. Runs are continued, never
repeated. Candidates are in the order of their cost: a tie goes to the cheaper one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from scboost._core.loop import Settings
from scboost._core.stopping import ComparedStopping, EarlyStopping
from scboost._engine.interface import TreeOptions

# Rounds after which candidates are compared, and how many of them go on.
_RUNGS = ((12, 4), (30, 2), (75, 1))
# After how many rounds in which it is worse than the leader a finalist gives up.
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
    """

    options: TreeOptions
    projection_strength: float | None = None
    rate: float = 1.0
    pace: float = 1.0

    def settings(self, base: Settings) -> Settings:
        """Return the settings of a model of this candidate."""
        gamma = base.gamma if self.projection_strength is None else self.projection_strength
        return replace(base, gamma=gamma)


class Competitor(Protocol):
    """Models of one candidate, which can be grown further."""

    candidate: Candidate
    losses: list[float]

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
    """

    def __init__(self, start: Callable[[Candidate], _T], stopping: EarlyStopping, n_rounds: int) -> None:
        self._start, self._stopping, self._n_rounds = start, stopping, n_rounds

    def run(self, candidates: Sequence[Candidate]) -> _T:
        """Return the competitor with the lowest loss, grown to the end."""
        left = [self._start(candidate) for candidate in candidates]
        for rounds, kept in _RUNGS:
            if len(left) > kept:
                for one in left:
                    one.advance(min(math.ceil(rounds * one.candidate.pace), self._n_rounds), self._stopping)
                left = sorted(left, key=_lowest)[:kept]
        leader, *others = left
        leader.advance(self._n_rounds, self._stopping)
        for one in others:
            one.advance(self._n_rounds, self._compared(one, leader))
            leader = min(leader, one, key=_lowest)
        return leader

    def _compared(self, one: Competitor, leader: Competitor) -> EarlyStopping:
        """Return when a finalist stops: also if it stays behind the leader at the same stage."""
        ratio, n = one.candidate.pace / leader.candidate.pace, len(leader.losses)
        reference = tuple(leader.losses[min(int(i / ratio), n - 1)] for i in range(int(n * ratio)))
        return ComparedStopping(**vars(self._stopping), reference=reference, n_worse=_ROUNDS_BEHIND)


def _lowest(one: Competitor) -> float:
    return min(one.losses, default=math.inf)
