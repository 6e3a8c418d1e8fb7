"""Engines that take turns: trees of one shape in even rounds, of another in odd ones."""

from __future__ import annotations

from scboost._arrays import FloatArray
from scboost._engine.interface import Engine, Learner, Totals


class AlternatingEngine(Engine):
    """Grows the learners of each round with the engine whose turn it is.

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

    def grow(self, target: FloatArray, hessian: FloatArray, seed: int, totals: Totals) -> list[Learner]:
        """Grow one learner for each output; see :class:`Engine`."""
        return self._engines[totals.round % 2].grow(target, hessian, seed, totals)

    def fork(self) -> Engine:
        """Return an engine that starts anew; see :class:`Engine`."""
        even, odd = self._engines
        return AlternatingEngine(even.fork(), odd.fork())

    def constrain(self, learner: Learner, values: FloatArray, hessian: FloatArray) -> FloatArray:
        """Make recomputed leaf values obey the constraints, which both engines share; see :class:`Engine`."""
        return self._engines[0].constrain(learner, values, hessian)
