"""Successive halving: candidates for the options of a model compete on the folds of a cross-validation.

Candidates start with short runs on the first folds; those with the lowest loss on held-out samples go on. Runs are
continued, never repeated. Candidates are in the order of their cost: a tie goes to the cheaper one. The last ones are
grown on all folds and compared with the incumbent, if there is one.
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

# Share of the folds on which candidates are compared before the last ones are grown on all.
_FIRST_FOLDS = 0.4
# Rounds after which candidates are compared, on which share of the first folds, and how many of them go on.
_RUNGS = ((12, 0.5, 3), (30, 1.0, 2), (75, 1.0, 1))
# The same for candidates with a margin, shallow trees: they learn slowly at first, so that they compete with each
# other, not with deep trees. The best of them is grown until it stops improving.
_MARGIN_RUNGS = ((30, 1.0, 1),)
# Rounds after which subset splits are compared with one-vs-rest splits; then all candidates have the better kind.
_SPLITS_ROUNDS = 30
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

    def first_losses(self, n_folds: int) -> list[float]:
        """Return the loss on the held-out samples of the first folds after each round."""

    def pointwise_loss(self) -> FloatArray | None:
        """Return the loss of each held-out sample after the best round; None if a fold has no trees."""


class Competitor(Measured, Protocol):
    """Models of one candidate, which can be grown further."""

    def advance(self, n_rounds: int, stopping: EarlyStopping, n_folds: int | None = None) -> None:
        """Grow the models of the first folds, or of all, up to a number of rounds, unless they stop before."""


_T = TypeVar("_T", bound=Competitor)


def first_folds(n_folds: int) -> int:
    """Return on how many of the folds a trial must be better before it is grown on the others."""
    return math.ceil(_FIRST_FOLDS * n_folds)


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
    n_folds : int
        Number of folds.
    """

    def __init__(
        self,
        start: Callable[[Candidate], _T],
        stopping: EarlyStopping,
        n_rounds: int,
        in_standard_errors: Callable[[FloatArray], float],
        n_folds: int,
    ) -> None:
        self._start, self._stopping, self._n_rounds = start, stopping, n_rounds
        self._in_standard_errors, self._n_first = in_standard_errors, first_folds(n_folds)

    def run(self, candidates: Sequence[Candidate], incumbent: Measured | None = None) -> _T | None:
        """Return the best competitor, grown to the end; None if it does not beat the incumbent.

        Parameters
        ----------
        candidates : sequence of Candidate
            What competes; not the candidate of the incumbent.
        incumbent : Measured, optional
            Models that are grown to the end already.
        """
        started = self._with_better_splits([self._start(candidate) for candidate in candidates], incumbent)
        finalists = [
            *self._best([one for one in started if not one.candidate.margin], _RUNGS),
            *self._best([one for one in started if one.candidate.margin], _MARGIN_RUNGS),
        ]
        best, winner = incumbent, None
        for one in finalists:
            stopping = self._stopping
            if incumbent is not None and not one.candidate.margin:
                stopping = self._compared(one, incumbent)
            if best is not None and one.candidate.margin:
                one.advance(self._n_rounds, stopping, self._n_first)
                if _lowest(one, self._n_first) >= _lowest(best, self._n_first):
                    continue
            one.advance(self._n_rounds, stopping)
            if best is None or self._is_better(one, best):
                best = winner = one
        return winner

    def _with_better_splits(self, started: list[_T], incumbent: Measured | None) -> list[_T]:
        """Return the competitors with the better kind of categorical splits, compared with all else as by default."""
        first = next((one for one in started if not one.candidate.margin), None)
        default: Measured | None = first if incumbent is None else incumbent
        if default is None or default.candidate.options.subset_splits:
            return started
        options = replace(default.candidate.options, subset_splits=True)
        trial = next((one for one in started if one.candidate == replace(default.candidate, options=options)), None)
        if trial is None:
            return started
        n = min(_SPLITS_ROUNDS, self._n_rounds)
        trial.advance(n, self._stopping, self._n_first)
        if incumbent is None and first is not None:
            first.advance(n, self._stopping, self._n_first)
        is_better = _lowest(trial, self._n_first, n) < _lowest(default, self._n_first, n)
        return [one for one in started if one.candidate.options.subset_splits == is_better]

    def _best(self, competitors: list[_T], rungs: Sequence[tuple[int, float, int]]) -> list[_T]:
        """Return the best competitor, if there is any."""
        left = competitors
        for rounds, share, kept in rungs:
            if len(left) > kept:
                lowest, n_folds = [], math.ceil(share * self._n_first)
                for one in left:
                    n_rounds = min(math.ceil(rounds * one.candidate.pace), self._n_rounds)
                    one.advance(n_rounds, self._stopping, n_folds)
                    lowest.append(_lowest(one, n_folds, n_rounds))
                left = [left[i] for i in sorted(range(len(left)), key=lowest.__getitem__)[:kept]]
        return left

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


def _lowest(one: Measured, n_folds: int | None = None, n_rounds: int | None = None) -> float:
    """Return the lowest loss on the first folds, or on all, up to a number of rounds."""
    losses = one.losses if n_folds is None else one.first_losses(n_folds)
    return min(losses[:n_rounds], default=math.inf)
