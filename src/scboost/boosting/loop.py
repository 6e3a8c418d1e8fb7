"""The boosting loop.

With ``gamma = 1``, all history, leaf means and a start at zero it is the paper's Algorithm 1; with ``gamma = 0`` and
Newton leaves it is plain Newton boosting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from scboost._arrays import FloatArray
from scboost.boosting.history import History, Projection
from scboost.boosting.learners import Engine, Learner
from scboost.boosting.losses import Loss, newton_steps

_HEAD = 1 << 10  # rows that tell of most innovations that they are not constant


@dataclass(frozen=True)
class Dials:
    """Settings of the loop, in the letters of the method.

    Attributes
    ----------
    eta : float
        Learning rate.
    alpha : float in (0, 1]
        Share of the history's energy that is projected away.
    gamma : float in [0, 1]
        Share of the historical component that is removed from the residual.
    memory : int or None
        How many of the latest learners make up the history; None for all.
    leaf_rule : {"newton", "mean"}
        Leaf values are Newton steps on the raw residual, or means of the innovation.
    l2 : float
        Added to the curvature of each leaf.
    subsample : float in (0, 1]
        Share of the rows that a round's structure and leaf values are learnt from.
    seed : int
        Seed of row and column sampling.
    """

    eta: float
    alpha: float
    gamma: float
    memory: int | None
    leaf_rule: Literal["newton", "mean"]
    l2: float
    subsample: float
    seed: int


@dataclass
class State:
    """Everything that one round hands to the next.

    Attributes
    ----------
    F : ndarray of shape (K, n)
        Raw scores of the training rows.
    histories : list of History
        One for each output.
    round : int
        Number of rounds done.
    stop_reason : str
        Why no further round is possible; empty while one is.
    """

    F: FloatArray
    histories: list[History]
    round: int = 0
    stop_reason: str = ""


@dataclass(frozen=True)
class Round:
    """What one round did.

    Attributes
    ----------
    learners : list of Learner
        One for each output, with their final leaf values.
    projections : list of Projection
        One for each output; empty if nothing is projected.
    loss : float
        Mean training loss before the round.
    """

    learners: list[Learner]
    projections: list[Projection] = field(default_factory=list)
    loss: float = np.nan


def start(
    loss: Loss,
    y: FloatArray,
    sample_weight: FloatArray | None,
    dials: Dials,
    engine: Engine,
    intercept: FloatArray,
    n_rounds: int,
) -> State:
    """State before the first round: constant scores, empty histories."""
    F = np.repeat(intercept[:, None], len(y), axis=1).astype(engine.dtype)
    capacity = n_rounds if dials.memory is None else min(dials.memory, n_rounds)
    n_histories = loss.n_outputs if dials.gamma > 0 else 0
    return State(F, [History(len(y), capacity, engine.dtype, sample_weight) for _ in range(n_histories)])


def boost(
    state: State, loss: Loss, y: FloatArray, sample_weight: FloatArray | None, dials: Dials, engine: Engine
) -> Iterator[Round]:
    """Yield one round after the other, without end unless there is nothing left to learn.

    Parameters
    ----------
    state : State
        Advanced in place, so that a loop can be stopped after any round and taken up again.
    loss : Loss
        The loss to minimise.
    y : ndarray of shape (n,)
        Target, in the engine's dtype.
    sample_weight : ndarray of shape (n,) or None
        Row weights, in float64: their products must not be rounded, or a weight would differ from repetition.
    dials : Dials
        Settings.
    engine : Engine
        Grows the learners.

    Yields
    ------
    Round
    """
    while not state.stop_reason:
        r, curvature = loss.residual(y, state.F)
        mean_loss = loss.mean(y, state.F, sample_weight)

        q = np.empty_like(r) if state.histories else r
        curved = dials.leaf_rule == "newton" and not loss.constant_curvature
        projections = [
            history.project(
                r[k], alpha=dials.alpha, gamma=dials.gamma, curvature=curvature[k] if curved else None, out=q[k]
            )
            for k, history in enumerate(state.histories)
        ]
        if _is_constant(q, r):
            state.stop_reason = "the innovation is constant: nothing is left to learn"
            return

        rows, seed = sample_weight, 0
        if dials.subsample < 1 or engine.draws:
            rng = np.random.default_rng([dials.seed, state.round])
            rows = _row_weights(rng, dials.subsample, sample_weight, r.shape[1])
            seed = int(rng.integers(2**32))
        shape = curvature if dials.leaf_rule == "newton" else np.ones_like(r)
        target = q if rows is None else q * rows
        learners = engine.grow(target, shape if rows is None else shape * rows, seed)
        repeats_itself = dials.subsample == 1 and not engine.samples_columns
        if repeats_itself and all(len(learner.values) == 1 for learner in learners):
            state.stop_reason = "no tree found a split that its constraints allow"
            return

        for k, learner in enumerate(learners):
            if learner.leaf is not None:
                leaf, n_leaves = learner.leaf, len(learner.values)
                if dials.leaf_rule == "newton":
                    steps = loss.leaf_steps(leaf, n_leaves, y, state.F[k], r[k], curvature[k], rows, dials.l2)
                else:
                    steps = newton_steps(leaf, n_leaves, q[k], shape[k], rows, dials.l2)
                learner.values = engine.constrain(learner, steps, shape[k]).astype(r.dtype)
            elif dials.leaf_rule == "newton":
                raise TypeError(f"leaf_rule='newton' needs learners with leaves, got {learner.model!r}.")
            h = learner.predictions()
            state.F[k] += dials.eta * h
            if state.histories:
                state.histories[k].append(h)
        state.round += 1
        yield Round(learners, projections, mean_loss)


def _is_constant(q: FloatArray, r: FloatArray) -> bool:
    """Whether every output's innovation is constant up to what rounding leaves of its residual."""
    rounding = 64 * np.finfo(q.dtype).eps
    if np.ptp(q[0, :_HEAD]) > rounding * np.sqrt(r[0] @ r[0]):  # which is more than the largest residual: almost always
        return False
    return bool(np.all(np.ptp(q, axis=1) <= rounding * np.abs(r).max(axis=1)))


def _row_weights(
    rng: np.random.Generator, subsample: float, sample_weight: FloatArray | None, n: int
) -> FloatArray | None:
    """Sample weights of this round's rows, 0 for those left out; None if every row counts once."""
    if subsample == 1:
        return sample_weight
    drawn = (rng.random(n, dtype=np.float32) < subsample).astype(np.float64)
    return drawn if sample_weight is None else drawn * sample_weight
