"""Successive halving: candidates for the options of a model compete on the folds of a cross-validation.

Candidates start with short runs on the first folds; those with the lowest loss on held-out samples go on. Runs are
continued, never repeated. Candidates are in the order of their cost: a tie goes to the cheaper one. The best one is
grown to the end on all folds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from scboost._arrays import FloatArray
from scboost._core.loop import Settings
from scboost._core.stopping import EarlyStopping, HopelessStopping
from scboost._engine.interface import TreeOptions

# Share of the folds on which candidates are compared before the last ones are grown on all.
_FIRST_FOLDS = 0.4
FIRST_ROUNDS = 50
"""Rounds after which features are selected and the last two candidates are compared."""
# Rounds after which candidates are compared, on which share of the first folds, and how many of them go on.
_RUNGS = ((12, 0.5, 3), (30, 0.5, 2), (FIRST_ROUNDS, 1.0, 1))
# The same for a thorough selection; and where one fold decides, because samples are many: large trees are ahead for
# longer, and models of one fold take a small share of the time.
_THOROUGH_RUNGS = ((12, 1.0, 3), (30, 1.0, 2), (75, 1.0, 1))
_RUNGS_OF_ONE_FOLD = ((12, 1.0, 3), (75, 1.0, 1))
# The same for candidates with a margin, shallow trees: they learn slowly at first, so that they compete with each
# other, not with deep trees. The best of them is grown until it cannot catch up with deep trees any more.
_MARGIN_RUNGS = ((30, 1.0, 1),)
# Rounds after which subset splits are compared with one-vs-rest splits; then all candidates have the better kind.
_SPLITS_ROUNDS = 30


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


class Competitor(Protocol):
    """Models of one candidate, which can be grown further."""

    candidate: Candidate
    losses: list[float]

    def first_losses(self, n_folds: int) -> list[float]:
        """Return the loss on the held-out samples of the first folds after each round."""

    def pointwise_loss(self) -> FloatArray | None:
        """Return the loss of each held-out sample after the best round; None if a fold has no trees."""

    def advance(self, n_rounds: int, stopping: EarlyStopping, n_folds: int | None = None) -> None:
        """Grow the models of the first folds, or of all, up to a number of rounds, unless they stop before."""


_T = TypeVar("_T", bound=Competitor)


def first_folds(n_folds: int) -> int:
    """Return on how many of the folds a trial must be better before it is grown on the others."""
    return math.ceil(_FIRST_FOLDS * n_folds)


class Race(Generic[_T]):
    """Successive halving of competitors.

    Parameters
    ----------
    stopping : EarlyStopping
        When competitors stop.
    n_rounds : int
        Maximum number of rounds.
    in_standard_errors : callable
        Returns the mean of a quantity of the held-out samples in units of its standard error.
    n_folds : int
        Number of folds.
    thorough : bool, default=False
        Whether candidates are compared after more rounds, and the winner with the default on all folds.
    """

    def __init__(
        self,
        stopping: EarlyStopping,
        n_rounds: int,
        in_standard_errors: Callable[[FloatArray], float],
        n_folds: int,
        *,
        thorough: bool = False,
    ) -> None:
        self._stopping, self._n_rounds = stopping, n_rounds
        self._in_standard_errors, self._n_first = in_standard_errors, first_folds(n_folds)
        self._thorough = thorough
        self._rungs = _RUNGS_OF_ONE_FOLD if n_folds == 1 else _THOROUGH_RUNGS if thorough else _RUNGS

    def run(self, competitors: Sequence[_T]) -> _T:
        """Return the best competitor, grown to the end.

        Parameters
        ----------
        competitors : sequence of Competitor
            In the order of their cost; some may have rounds already. At least one has no margin.
        """
        left = self._with_better_splits(competitors)
        winner = self._best([one for one in left if not one.candidate.margin], self._rungs)
        winner.advance(self._n_rounds, self._stopping)
        if self._thorough:
            winner = self._best_of_default_and(winner, competitors)
        slow = [one for one in left if one.candidate.margin]
        if slow and self._is_better(challenger := self._best(slow, _MARGIN_RUNGS), winner):
            winner = challenger
        return winner

    def _with_better_splits(self, competitors: Sequence[_T]) -> list[_T]:
        """Return the competitors with the better kind of categorical splits, compared with all else as by default."""
        default = _default(competitors)
        options = replace(default.candidate.options, subset_splits=True)
        trial = next((one for one in competitors if one.candidate == replace(default.candidate, options=options)), None)
        if trial is None or trial is default:
            return list(competitors)
        n = min(_SPLITS_ROUNDS, self._n_rounds)
        for one in (default, trial):
            one.advance(n, self._stopping, self._n_first)
        is_better = _lowest(trial, self._n_first, n) < _lowest(default, self._n_first, n)
        return [one for one in competitors if one.candidate.options.subset_splits == is_better]

    def _best_of_default_and(self, winner: _T, competitors: Sequence[_T]) -> _T:
        """Return the better one on all folds: the first folds may have misled, and the default is grown already."""
        default = _default(competitors)
        default.advance(self._n_rounds, self._stopping)
        return default if _lowest(default) < _lowest(winner) else winner

    def _best(self, competitors: list[_T], rungs: Sequence[tuple[int, float, int]]) -> _T:
        """Return the best competitor."""
        left = competitors
        for rounds, share, kept in rungs:
            if len(left) > kept:
                lowest, n_folds = [], math.ceil(share * self._n_first)
                for one in left:
                    n_rounds = min(math.ceil(rounds * one.candidate.pace), self._n_rounds)
                    one.advance(n_rounds, self._stopping, n_folds)
                    lowest.append(_lowest(one, n_folds, n_rounds))
                left = [left[i] for i in sorted(range(len(left)), key=lowest.__getitem__)[:kept]]
        return left[0]

    def _is_better(self, one: _T, other: _T) -> bool:
        """Whether a competitor has a lower loss in the end, by the margin of its candidate."""
        target = _lowest(other, self._n_first)
        stopping = HopelessStopping(**vars(self._stopping), target=target, n_rounds=self._n_rounds)
        one.advance(self._n_rounds, stopping, self._n_first)
        if _lowest(one, self._n_first) >= target:
            return False
        one.advance(self._n_rounds, self._stopping)
        before, after = other.pointwise_loss(), one.pointwise_loss()
        if _lowest(one) >= _lowest(other) or before is None or after is None:
            return False
        return self._in_standard_errors(before - after) > one.candidate.margin


def _default(competitors: Sequence[_T]) -> _T:
    """Return the competitor with the default options: the first one without a margin."""
    return next(one for one in competitors if not one.candidate.margin)


def _lowest(one: Competitor, n_folds: int | None = None, n_rounds: int | None = None) -> float:
    """Return the lowest loss on the first folds, or on all, up to a number of rounds."""
    losses = one.losses if n_folds is None else one.first_losses(n_folds)
    return min(losses[:n_rounds], default=math.inf)
