"""Alternating engines: trees of one shape in even rounds, of another in odd rounds."""

from __future__ import annotations

from typing import Any

from scboost._arrays import FloatArray
from scboost._engine.interface import Engine, Learner, Totals


class AlternatingEngine(Engine):
    """Grows the learners of even and odd rounds with two different engines.

    Parameters
    ----------
    even, odd : Engine
        Engines on the same training matrix, for rounds 0, 2, ... and 1, 3, ...
    """

    def __init__(self, even: Engine, odd: Engine) -> None:
        self._engines = even, odd
        self.dtype = even.dtype
        self.uses_seed = even.uses_seed or odd.uses_seed
        self.samples_features = even.samples_features or odd.samples_features
        self.finishes_rounds = even.finishes_rounds and odd.finishes_rounds

    def grow(self, target: FloatArray, hessian: FloatArray, seed: int, totals: Totals) -> list[Learner]:
        """Grow one learner for each output; see :class:`Engine`."""
        return self._engines[totals.round % 2].grow(target, hessian, seed, totals)

    def finish_round(self, round_: int, *arguments: Any) -> tuple[Learner, tuple[int, float, float, float]] | None:
        """Do what follows the gradient; see :class:`Engine`."""
        return self._engines[round_ % 2].finish_round(round_, *arguments)

    def fork(self) -> Engine:
        """Return a new engine on the same data; see :class:`Engine`."""
        even, odd = self._engines
        return AlternatingEngine(even.fork(), odd.fork())

    def constrain(self, learner: Learner, values: FloatArray, hessian: FloatArray) -> FloatArray:
        """Make recomputed leaf values obey the constraints, which both engines share; see :class:`Engine`."""
        return self._engines[0].constrain(learner, values, hessian)
