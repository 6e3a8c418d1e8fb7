"""The boosting loop.

With ``gamma = 1``, all history, leaf means and a start at zero it is the paper's Algorithm 1; with ``gamma = 0``, no
exploration and Newton leaves it is plain Newton boosting.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, kernels, map_blocks, zeros
from scboost.boosting.content import Draws
from scboost.boosting.history import History, Projection, Projector, SpectralProjector
from scboost.boosting.learners import Engine, Learner
from scboost.boosting.losses import Loss, newton_steps
from scboost.boosting.workers import workers

_HEAD = 1 << 10  # rows that tell of most innovations that they are not constant
_SMALLEST_PRODUCT = 1e-30  # of which float32 still has all digits
_ROOT_SHARE = 1e-6  # share of the residual's energy that a tree without a split must explain to be a step


@dataclass(frozen=True)
class Settings:
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
    nu : float
        Exploration: size of the noise under which a learner's structure is chosen, in units of the noise that the
        residuals themselves carry. Leaf values do not see it. Where there are classes, it falls with the root of the
        training loss: easy data need little of it.
    seed : int
        Seed of everything random.
    l1 : float, default=0.0
        By so much the sum of residuals of each leaf comes closer to 0.
    """

    eta: float
    alpha: float
    gamma: float
    memory: int | None
    leaf_rule: Literal["newton", "mean"]
    l2: float
    subsample: float
    nu: float
    seed: int
    l1: float = 0.0

    @property
    def random(self) -> bool:
        """Whether rounds draw rows or noise."""
        return self.subsample < 1 or self.nu > 0


@dataclass
class State:
    """Everything that one round hands to the next.

    Attributes
    ----------
    F : ndarray of shape (K, n)
        Raw scores of the training rows.
    projector : Projector or None
        The history and its projection; None if nothing is projected.
    round : int
        Number of rounds done.
    stop_reason : str
        Why no further round is possible; empty while one is.
    first_loss : float
        Mean training loss before the first round; NaN before it is known.
    """

    F: FloatArray
    projector: Projector | None
    round: int = 0
    stop_reason: str = ""
    first_loss: float = np.nan


@dataclass(frozen=True)
class Round:
    """What one round did.

    Attributes
    ----------
    learners : list of Learner
        One for each output, with their final leaf values.
    projections : list of Projection
        One for each output; empty if nothing is projected. Of a round that explores without row weights, what was the
        innovation is what its learners were grown on.
    loss : float
        Mean training loss before the round.
    """

    learners: list[Learner]
    projections: list[Projection] = field(default_factory=list)
    loss: float = np.nan


def spectral_projector(
    settings: Settings, F: FloatArray, capacity: int, sample_weight: FloatArray | None
) -> SpectralProjector:
    """Return the projection of the method for scores like F, of shape (K, n)."""
    histories = [History(F.shape[1], capacity, F.dtype, sample_weight) for _ in F]
    return SpectralProjector(histories, settings.alpha, settings.gamma)


ProjectorMaker = Callable[[Settings, FloatArray, int, FloatArray | None], Projector]
"""Something with the signature of :func:`spectral_projector`."""


def start(
    sample_weight: FloatArray | None,
    settings: Settings,
    engine: Engine,
    intercept: FloatArray,
    n: int,
    n_rounds: int,
    make_projector: ProjectorMaker = spectral_projector,
) -> State:
    """State before the first round: constant scores, an empty history."""
    F: FloatArray = zeros((len(intercept), n), engine.dtype)
    F[:] = intercept[:, None]
    capacity = n_rounds if settings.memory is None else min(settings.memory, n_rounds)
    return State(F, make_projector(settings, F, capacity, sample_weight) if settings.gamma > 0 else None)


def is_curved(loss: Loss, settings: Settings) -> bool:
    """Whether the history is projected on in a metric that changes every round."""
    return settings.leaf_rule == "newton" and not loss.constant_curvature


def boost(
    state: State,
    loss: Loss,
    y: FloatArray,
    sample_weight: FloatArray | None,
    settings: Settings,
    engine: Engine,
    draws: Draws | None = None,
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
        Row weights, in float64: their products must not be rounded, or a weight would differ from repetition. Rows of
        weight 0 teach nothing, but their scores are kept up to date.
    settings : Settings
        Settings.
    engine : Engine
        Grows the learners.
    draws : Draws, optional
        What rows and noise are drawn from, needed if the settings are random.

    Yields
    ------
    Round
    """
    if settings.random and draws is None:
        raise ValueError(f"subsample={settings.subsample} and nu={settings.nu} need draws, got None.")
    vectors = _Vectors()
    while not state.stop_reason:
        done = _round(state, loss, y, sample_weight, settings, engine, draws, vectors)
        if done is not None:
            yield done
        del done  # with its hold on vectors of the round


class _Vectors:
    """Vectors that every round writes anew, kept from one round to the next: memory that is new costs time.

    Those that someone still holds, such as a projector that records residuals, are theirs.
    """

    def __init__(self) -> None:
        self._kept: dict[str, FloatArray] = {"nothing": np.empty(0)}
        self._free = self._holders("nothing")

    def like(self, a: FloatArray, name: str, dtype: npt.DTypeLike | None = None) -> FloatArray:
        """Return vectors of the shape of others, and of their type if none is given; a name has them for one use."""
        dtype = a.dtype if dtype is None else np.dtype(dtype)
        if name not in self._kept or self._kept[name].dtype != dtype or self._holders(name) > self._free:
            self._kept[name] = np.empty(a.shape, dtype)
        return self._kept[name]

    def _holders(self, name: str) -> int:
        return sys.getrefcount(self._kept[name])


def _round(
    state: State,
    loss: Loss,
    y: FloatArray,
    sample_weight: FloatArray | None,
    settings: Settings,
    engine: Engine,
    draws: Draws | None,
    vectors: _Vectors,
) -> Round | None:
    """Do one round; None if nothing is left to learn. See :func:`boost`."""
    newton = settings.leaf_rule == "newton"
    curved = is_curved(loss, settings)
    sees_everything = settings.subsample == 1 and not engine.samples_columns
    r, curvature = (vectors.like(state.F, name) for name in ("residual", "curvature"))
    loss_so_far = loss.derivatives(y, state.F, sample_weight, r, curvature)
    rows = sample_weight
    if settings.subsample < 1 and draws is not None:
        drawn = draws.sample(state.round, settings.subsample)
        rows = drawn if sample_weight is None else drawn * sample_weight
    shape = curvature if newton else np.ones_like(r)
    explores = settings.nu > 0 and draws is not None
    dispersion = _dispersion(r, shape, rows) if explores and not loss.unit_dispersion else None

    projector, metric = state.projector, curvature if curved else None
    q, projections = r, []
    if projector is not None:
        q = vectors.like(r, "innovation")
        projections = projector.project(r, metric, q)
    mean_loss = loss_so_far()
    if state.round == 0:
        state.first_loss = mean_loss
    if not math.isfinite(mean_loss):
        state.stop_reason = diverged(mean_loss)
        return None
    clear = _clearly_varies(q, r)
    varies = workers().sum_later(np.array(float(clear)))
    noise = None
    if explores and draws is not None:
        size = settings.nu * (1.0 if dispersion is None else math.sqrt(dispersion()))
        if loss.n_classes:
            size *= _fallen(mean_loss, state.first_loss)
        noise = _Noise(draws, state.round, size)
    in_place = clear and newton and projector is not None
    target, weighted_shape, energy, bend = _weighted(q, shape, rows, noise, vectors, in_place=in_place)
    measured = engine.measure(energy, bend, r.shape[1])
    if not varies() and _is_constant(q, r, rows):
        state.stop_reason = "the innovation is constant: nothing is left to learn"
        return None
    seed = _engine_seed(settings.seed, state.round) if engine.draws else 0
    learners = engine.grow(target, weighted_shape, seed, measured())
    no_split = sees_everything and _no_split(learners)
    if no_split and noise is not None and newton and projector is not None:
        projector.project(r, metric, q)  # the noise may be in it; on all workers, which add up together
    if no_split and not _roots_step(q, r, rows):
        # Noise may have hidden the last split.
        plain = learners
        if noise is not None:
            target, weighted_shape, energy, bend = _weighted(q, shape, rows, None, vectors)
            plain = engine.grow(target, weighted_shape, seed, engine.measure(energy, bend, r.shape[1])())
        if _no_split(plain):
            state.stop_reason = "no tree found a split that its constraints allow"
            return None
        learners = plain

    penalties = settings.l2, settings.l1
    steps: list[Callable[[], FloatArray] | None] = []
    for k, learner in enumerate(learners):
        if learner.leaf is None:
            if newton:
                raise TypeError(f"leaf_rule='newton' needs learners with leaves, got {learner.model!r}.")
            steps.append(None)
        elif newton:
            own, leaf, n_leaves = loss.of_output(k), learner.leaf, len(learner.values)
            steps.append(own.leaf_steps(leaf, n_leaves, y, state.F[k], r[k], curvature[k], rows, *penalties))
        else:
            steps.append(newton_steps(learner.leaf, len(learner.values), q[k], shape[k], rows, *penalties))
    for k, (learner, step) in enumerate(zip(learners, steps, strict=True)):
        if step is not None:
            learner.values = engine.constrain(learner, step(), weighted_shape[k]).astype(r.dtype)
    if not all(np.isfinite(learner.values).all() for learner in learners):
        state.stop_reason = "a leaf value is not finite: the steps are too large, or so is the target"
        return None
    places: list[FloatArray | None] = [None] * len(learners)
    if isinstance(projector, SpectralProjector):
        places = projector.remember(learners)
    elif projector is not None:
        projector.append([learner.predictions() for learner in learners])
    for learner, place, F in zip(learners, places, state.F, strict=True):
        _add(learner, settings.eta, place, F)
    state.round += 1
    return Round(learners, projections, mean_loss)


def _fallen(mean_loss: float, first_loss: float) -> float:
    """Root of the share of the first training loss that is left.

    Rounded, so that the order in which rows are summed does not reach the noise.
    """
    return round(math.sqrt(max(mean_loss, 0.0) / first_loss), 2) if first_loss > 0 else 1.0


def diverged(mean_loss: float) -> str:
    """Return the reason to stop where the training loss is not finite."""
    return f"the training loss is {mean_loss}: the steps are too large, or so is the target"


def _engine_seed(seed: int, round_: int) -> int:
    return int(np.random.SeedSequence([seed, round_]).generate_state(1)[0])


def _clearly_varies(q: FloatArray, r: FloatArray) -> bool:
    """Whether the first rows tell, as they almost always do, that the first output's innovation is not constant."""
    if not q.shape[1]:
        return False
    most = math.sqrt(r[0] @ r[0])  # which is more than the largest residual
    head = q[0, :_HEAD]
    return bool(head.max() - head.min() > 64 * np.finfo(q.dtype).eps * most)


def _is_constant(q: FloatArray, r: FloatArray, weight: FloatArray | None) -> bool:
    """Whether every output's innovation is constant up to what rounding leaves of its residual, and no root a step."""
    ends = [q.max(axis=1, initial=-np.inf), (-q).max(axis=1, initial=-np.inf), np.abs(r).max(axis=1, initial=0)]
    high, low, size = workers().max(np.array(ends))
    constant = np.all(high + low <= 64 * np.finfo(q.dtype).eps * size)
    return bool(constant) and not _roots_step(q, r, weight)


def _no_split(learners: list[Learner]) -> bool:
    return all(len(learner.values) == 1 for learner in learners)


def _roots_step(q: FloatArray, r: FloatArray, weight: FloatArray | None) -> bool:
    """Whether a tree without a split, which moves all scores alike, still has a step to take."""
    w = np.ones(r.shape[1]) if weight is None else weight
    sums = workers().sum(np.array([(r.astype(np.float64) ** 2) @ w, q @ w, np.full(len(q), w.sum())]))
    energy, step, mass = sums
    return bool(np.any(step**2 > _ROOT_SHARE * mass * energy))


@dataclass(frozen=True)
class _Noise:
    """Noise of a round: the size times the root of the curvature, times a normal draw."""

    draws: Draws
    round: int
    size: float

    def of(self, k: int, curvature: FloatArray, rows: slice) -> FloatArray:
        """Noise of a block of rows of output k, whose curvatures are given, of shape (rows,)."""
        return self.draws.noise(self.round, k, rows, curvature, self.size)


def _weighted(
    q: FloatArray,
    shape: FloatArray,
    weight: FloatArray | None,
    noise: _Noise | None,
    vectors: _Vectors,
    *,
    in_place: bool = False,
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Innovation with noise, and curvature, both times the rows' weights: what a learner is grown on.

    And the energy of the innovation with noise, of shape (K,): repeated rows have that of weighted ones; and the sum of
    all curvatures. Noise may be added in place, where there are no weights.
    """
    dtype = q.dtype if weight is None else np.result_type(q, weight)
    target = q if in_place and weight is None and noise is not None else vectors.like(q, "target", dtype)
    weighted_shape = shape if weight is None else vectors.like(q, "weighted curvature", dtype)

    def go(rows: slice) -> tuple[FloatArray, float]:
        energy = np.empty(len(q))
        for k in range(len(q)):
            v, out = q[k, rows], target[k, rows]
            if noise is not None:
                v = np.add(v, noise.of(k, shape[k, rows], rows), out=out if weight is None else None)
            if weight is not None:
                np.multiply(v, weight[rows], out=out)
                np.multiply(shape[k, rows], weight[rows], out=weighted_shape[k, rows])
            elif noise is None:
                out[:] = v
            energy[k] = _product(v, out)
        return energy, float(np.add.reduce(weighted_shape[:, rows], axis=None))

    sums = map_blocks(go, q.shape[1])
    return target, weighted_shape, sum((energy for energy, _ in sums), np.zeros(len(q))), sum(c for _, c in sums)


def _product(a: FloatArray, b: FloatArray) -> float:
    """Inner product of two vectors whose squares may be beyond the numbers of their type."""
    product = float(a @ b)
    return product if _SMALLEST_PRODUCT <= product < np.inf else float(a.astype(np.float64) @ b)


def _dispersion(r: FloatArray, curvature: FloatArray, weight: FloatArray | None) -> Callable[[], float]:
    """Return a function for the variance of the residuals in units of the curvature.

    From their mean size: a few huge ones must not decide.
    """

    def add_up(rows: slice) -> tuple[FloatArray, float]:
        sizes = np.abs(r[:, rows]) / np.sqrt(curvature[:, rows])
        if weight is None:
            return sizes.sum(axis=1, dtype=np.float64), sizes.shape[1]
        return sizes @ weight[rows], float(weight[rows].sum())

    sums = np.zeros(len(r) + 1)
    for sizes, mass in map_blocks(add_up, r.shape[1]):
        sums[:-1] += sizes
        sums[-1] += mass
    totals = workers().sum_later(sums)

    def dispersion() -> float:
        *sizes, mass = totals()
        return float(np.pi / 2 * np.mean((np.array(sizes) / mass) ** 2))

    return dispersion


def _add(learner: Learner, eta: float, h: FloatArray | None, F: FloatArray) -> None:
    """Add the predictions of a learner to the scores of its output, of shape (n,), and put them into h, if given."""
    leaf, values = learner.leaf, learner.values
    compiled = None if leaf is None else kernels(leaf)

    def go(rows: slice) -> None:
        out = None if h is None else h[rows]
        if leaf is None:
            predictions = values[rows]
            if out is not None:
                out[:] = predictions
        elif compiled is not None:
            compiled.add(leaf[rows], values, eta, out, F[rows])
            return
        else:
            predictions = values.take(leaf[rows], out=out, mode="clip")  # "raise" would go by a copy
        F[rows] += eta * predictions

    map_blocks(go, len(F))
