"""The boosting loop.

With ``gamma = 1``, all history, leaf means and a start at zero it is the paper's Algorithm 1; with ``gamma = 0``, no
exploration and Newton leaves it is plain Newton boosting.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from scboost._arrays import FloatArray
from scboost._core.history import History, Projection, SpectralProjector
from scboost._core.leaves import leaf_values, mean_values, newton_values, takes_newton_steps
from scboost._core.losses import Loss
from scboost._core.losses.base import MIN_HESSIAN, loss_sums, total_sums
from scboost._core.sampling import Draws
from scboost._core.stopping import NOT_STOPPED, Stop, StopReason
from scboost._engine.interface import Engine, Learner, Totals
from scboost._runtime.context import Context
from scboost._runtime.threads import Threads

_HEAD = 1 << 10  # samples that usually suffice to see that an innovation is not constant
# Share of a residual that may be rounding.
_ROUNDING = {np.dtype(kind): 64 * float(np.finfo(kind).eps) for kind in (np.float32, np.float64)}
_SMALLEST_PRODUCT = 1e-30  # of which float32 still has all digits
_NO_NOISE: tuple[Any, ...] = (None, None, None, [0], 0.0)  # as the compiled passes take it
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
        L2 regularization of leaf values.
    subsample : float in (0, 1]
        Share of the samples that a round's tree is grown on.
    nu : float
        Exploration: size of the Gaussian noise added to the residual when choosing splits, in units of the noise of the
        residuals themselves. Leaf values are computed without it. In classification it decreases with the square root
        of the training loss: easy data need little of it.
    seed : int
        Seed of everything random.
    l1 : float, default=0.0
        L1 regularization of leaf values.
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
        """Whether rounds draw samples or noise."""
        return self.subsample < 1 or self.nu > 0


@dataclass
class State:
    """Everything that one round hands to the next.

    Attributes
    ----------
    F : ndarray of shape (K, n)
        Raw scores of the training samples.
    projector : SpectralProjector or None
        The history and its projection; None if nothing is projected.
    round : int
        Number of rounds done.
    stop : Stop
        Why no further round is possible.
    first_loss : float
        Mean training loss before the first round; NaN before it is known.
    distributed : bool
        Whether the samples are distributed over several workers.
    """

    F: FloatArray
    projector: SpectralProjector | None
    round: int = 0
    stop: Stop = NOT_STOPPED
    first_loss: float = np.nan
    distributed: bool = False


class Round(NamedTuple):
    """The result of one round.

    Attributes
    ----------
    learners : list of Learner
        One per output, with their final leaf values.
    projections : list of Projection
        One per output; empty if nothing is projected. Their innovations are overwritten by the next round.
    loss : float
        Mean training loss before the round.
    """

    learners: list[Learner]
    projections: list[Projection]
    loss: float


def initial_state(
    sample_weight: FloatArray | None,
    settings: Settings,
    engine: Engine,
    intercept: FloatArray,
    n: int,
    n_rounds: int,
    context: Context,
) -> State:
    """Return the state before the first round: constant scores, an empty history."""
    F: FloatArray = context.storage.zeros((len(intercept), n), engine.dtype)
    F[:] = intercept[:, None]
    distributed = context.communicator.size > 1
    if settings.gamma == 0:
        return State(F, None, distributed=distributed)
    capacity = n_rounds if settings.memory is None else min(settings.memory, n_rounds)
    histories = [History(n, capacity, F.dtype, sample_weight, context.storage) for _ in F]
    projector = SpectralProjector(histories, settings.alpha, settings.gamma)
    return State(F, projector, distributed=distributed)


def has_changing_metric(loss: Loss, settings: Settings) -> bool:
    """Whether the history is projected on in a metric that changes every round."""
    return settings.leaf_rule == "newton" and not loss.constant_hessian


class _Sums(NamedTuple):
    """Sums over the samples of all workers that the projection and the noise of a round need."""

    mean_loss: float
    dispersion: list[float]
    history: list[FloatArray]


class Boosting:
    """The boosting loop on one training set.

    Parameters
    ----------
    state : State
        Advanced in place, so that the loop can be stopped after any round and resumed.
    loss : Loss
        The loss to minimize.
    y : ndarray of shape (n,) or (n, 2)
        Target, in the engine's dtype if the loss is separable.
    sample_weight : ndarray of shape (n,) or None
        Sample weights, in float64: their products must not be rounded, or a weight would differ from repetition.
        Samples of weight 0 do not affect the trees, but their scores are kept up to date.
    settings : Settings
        Settings.
    engine : Engine
        Grows the learners.
    draws : Draws or None
        Source of subsamples and noise, needed if the settings are random.
    context : Context
        Context of the fit.
    """

    def __init__(
        self,
        state: State,
        loss: Loss,
        y: FloatArray,
        sample_weight: FloatArray | None,
        settings: Settings,
        engine: Engine,
        draws: Draws | None,
        context: Context,
    ) -> None:
        if settings.random and draws is None:
            raise ValueError(f"subsample={settings.subsample} and nu={settings.nu} need draws, got None.")
        self._state, self._loss, self._y, self._weight = state, loss, y, sample_weight
        self._settings, self._engine, self._draws, self._context = settings, engine, draws, context
        self._newton = settings.leaf_rule == "newton"
        self._explores = settings.nu > 0
        self._weight64 = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
        self._metric_changes = has_changing_metric(loss, settings)
        self._compiled = context.threads.passes is not None and state.F.dtype == np.float32
        self._kernel = self._derivatives_kernel() if self._compiled else None
        self._compiled_steps = self._compiled and self._newton and takes_newton_steps(loss)
        self._measures_dispersion = self._explores and not loss.unit_dispersion
        self._projects_at_once = state.projector is not None and state.projector.is_compiled(context)
        self._allocate()
        self._finishes_at_once = self._compiled_steps and engine.finishes_rounds and self._suits_one_call()

    def _suits_one_call(self) -> bool:
        """Whether what follows the gradient is one call of the native engine."""
        everyone = self._settings.subsample == 1 and self._context.communicator.size == 1
        projects = self._state.projector is None or self._projects_at_once
        return len(self._state.F) == 1 and everyone and projects

    def _derivatives_kernel(self) -> Callable[..., tuple[float, float]] | None:
        """Return the pass of the native engine that computes the derivatives of the loss; None if there is none."""
        name = vars(type(self._loss)).get("kernel")  # not that of a parent
        fits = self._loss.separable and self._y.dtype == np.float32 and self._y.ndim == 1
        return getattr(self._context.threads.passes, name) if name and fits else None

    def _allocate(self) -> None:
        """Allocate the vectors that every round overwrites: new memory costs time."""
        F = self._state.F
        kinds = [F.dtype] if self._weight is None else [F.dtype, self._weight.dtype]
        dtype = np.result_type(*kinds, np.float64) if self._settings.subsample < 1 else np.result_type(*kinds)
        weighted = self._weight is not None or self._settings.subsample < 1
        self._r, self._hessian = np.empty_like(F), np.empty_like(F)
        self._q = self._r if self._state.projector is None else np.empty_like(F)
        # What a tree is grown on: innovation and Hessian, times the sample weights.
        self._tree_hessian = self._hessian if self._newton else np.ones_like(F)
        self._target = np.empty(F.shape, dtype)
        self._weighted_hessian = np.empty(F.shape, dtype) if weighted else self._tree_hessian

    def __iter__(self) -> Iterator[Round]:
        """Yield one round after the other, without end unless there is nothing left to learn."""
        while not self._state.stop:
            done = self._round()
            if done is not None:
                yield done

    def _round(self) -> Round | None:
        """Do one round in the order of the paper; None if nothing is left to learn."""
        weight = self._drawn_weight()
        sums = self._gradient(weight)
        if not math.isfinite(sums.mean_loss):
            self._stop(StopReason.LOSS_NOT_FINITE, sums.mean_loss)
            return None
        if self._finishes_at_once and (done := self._finish(sums)) is not None:
            return done
        projections = self._project(sums)
        learners = self._grow(weight, self._noise(sums))
        if not learners:
            return None
        self._set_leaf_values(learners, weight)
        if not all(_is_finite(learner.values) for learner in learners):
            self._stop(StopReason.LEAF_NOT_FINITE)
            return None
        self._update(learners)
        return Round(learners, projections, sums.mean_loss)

    def _finish(self, sums: _Sums) -> Round | None:
        """Do the rest of a round of one output in one call; None if there is something to decide, and nothing is done.

        It is the same as the other steps of :meth:`_round`, to the bit; on few samples their calls cost more time than
        the arithmetic.
        """
        state, settings, noise = self._state, self._settings, self._noise(sums)
        projector, history = state.projector, None
        H, alpha, gamma, floor = None, 1.0, 0.0, 0.0
        if projector is not None:
            history, alpha, gamma = projector.histories[0], projector.alpha, projector.gamma
            H, floor = history.compiled
        keys, scale, table, streams, size = _NO_NOISE if noise is None else noise.source(range(1))
        finished = self._engine.finish_round(
            state.round,
            *(H, self._r[0], self._hessian[0], self._metric_changes, self._weight64, alpha, gamma, floor, self._q[0]),
            *(keys, scale, table, streams[0], size),
            *(self._target[0], None if self._weight is None else self._weighted_hessian[0], settings.l2, settings.l1),
            *(settings.eta, None if history is None else history.place, state.F[0]),
        )
        if finished is None:
            return None
        learner, (k, kept, historical, total) = finished
        state.round += 1
        if history is None:
            return Round([learner], [], sums.mean_loss)
        history.next_place()
        return Round([learner], [Projection(self._q[0], k, kept, historical, total - historical)], sums.mean_loss)

    def _stop(self, reason: StopReason, value: float | None = None) -> None:
        self._state.stop = Stop(reason, value)

    def _drawn_weight(self) -> FloatArray | None:
        """Return the sample weights of this round, 0 for samples that are not drawn."""
        if self._settings.subsample == 1 or self._draws is None:
            return self._weight
        drawn = self._draws.sample(self._state.round, self._settings.subsample)
        return drawn if self._weight is None else drawn * self._weight

    def _gradient(self, weight: FloatArray | None) -> _Sums:
        """Compute the residual r, which is the negative gradient, and the Hessian; return the sums that follow need."""
        state, communicator, threads = self._state, self._context.communicator, self._context.threads
        if self._kernel is not None:
            arrays = self._y, state.F, self._weight64, self._r, self._hessian
            local = [np.array(self._kernel(*arrays, threads.native_pool))]
        elif self._loss.separable:
            local = [total_sums(threads.map_blocks(self._differentiate, len(self._y)))]
        else:
            vectors = self._y, state.F, self._weight
            losses, self._r[:], self._hessian[:] = self._loss.shared_derivatives(*vectors, communicator)
            np.negative(self._r, out=self._r)
            local = [total_sums([loss_sums(losses, self._weight, slice(None))])]
        if self._measures_dispersion:
            local.append(self._dispersion_sums(weight))
        if state.projector is not None and not self._projects_at_once:
            local += state.projector.local_sums(self._r, self._metric, threads)
        (total, mass), *sums = communicator.sum_all(*local)
        mean_loss = float(total / mass)
        if state.round == 0:
            state.first_loss = mean_loss
        dispersion = [1.0] * len(self._r)
        if self._measures_dispersion:
            dispersion = _dispersion(sums.pop(0), by_output=self._loss.independent_outputs)
        return _Sums(mean_loss, dispersion, sums)

    def _differentiate(self, rows: slice) -> tuple[float, float]:
        """Compute residuals and Hessians of a block of samples; return the sums of losses and weights."""
        r = self._r[:, rows]
        losses = self._loss.loss_gradient_hessian(self._y[rows], self._state.F[:, rows], r, self._hessian[:, rows])
        np.negative(r, out=r)
        return loss_sums(losses, self._weight, rows)

    def _project(self, sums: _Sums) -> list[Projection]:
        """Compute the innovation q: the residual without (a share of) its historical component."""
        projector = self._state.projector
        if projector is None:
            return []
        if self._projects_at_once:
            return projector.project_compiled(self._r, self._metric, self._q, self._context)
        return projector.project(self._r, self._metric, sums.history, self._q, self._context)

    @property
    def _metric(self) -> FloatArray | None:
        """The Hessians that define the metric of the projection; None if they are all 1."""
        return self._hessian if self._metric_changes else None

    def _noise(self, sums: _Sums) -> _Noise | None:
        """Return the exploration noise of this round."""
        if not self._explores or self._draws is None:
            return None
        nu = self._settings.nu
        decay = _decay(sums.mean_loss, self._state.first_loss) if self._loss.classifies else 1.0
        sizes = [nu * math.sqrt(dispersion) * decay for dispersion in sums.dispersion]
        return _Noise(self._draws, self._state.round, sizes)

    def _grow(self, weight: FloatArray | None, noise: _Noise | None) -> list[Learner]:
        """Grow one learner per output on the innovation with noise; none if nothing is left to learn."""
        energy, hessian, varies = self._context.communicator.sum_all(*self._set_target(weight, noise))
        if not varies and self._is_constant(weight):
            self._stop(StopReason.CONSTANT_INNOVATION)
            return []
        learners = self._grow_on_target(Totals(energy, float(hessian), self._state.round))
        sees_everything = self._settings.subsample == 1 and not self._engine.samples_features
        if not sees_everything or not _no_split(learners) or self._roots_step(weight):
            return learners
        if noise is not None:  # which may have hidden the last split
            energy, hessian, _ = self._context.communicator.sum_all(*self._set_target(weight, None))
            learners = self._grow_on_target(Totals(energy, float(hessian), self._state.round))
        if _no_split(learners):
            self._stop(StopReason.NO_SPLIT)
            return []
        return learners

    def _grow_on_target(self, totals: Totals) -> list[Learner]:
        seed = _engine_seed(self._settings.seed, self._state.round) if self._engine.uses_seed else 0
        return self._engine.grow(self._target, self._weighted_hessian, seed, totals)

    def _set_target(self, weight: FloatArray | None, noise: _Noise | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Set innovation with noise, and Hessian, both times the sample weights: what a learner is grown on.

        Returns the energy of the innovation with noise, of shape (K,), where repeated samples have that of weighted
        ones; the sum of all Hessians; and 1 if the innovation clearly varies.
        """
        q, hessian, target, weighted_hessian = self._q, self._tree_hessian, self._target, self._weighted_hessian
        if self._compiled:
            return self._set_target_compiled(weight, noise)

        def set_block(rows: slice) -> tuple[FloatArray, float]:
            energy: FloatArray = np.empty(len(q))
            for k in range(len(q)):
                v, out = q[k, rows], target[k, rows]
                if noise is not None:
                    v = np.add(v, noise.block(k, hessian[k, rows], rows), out=out if weight is None else None)
                if weight is not None:
                    np.multiply(v, weight[rows], out=out)
                    np.multiply(hessian[k, rows], weight[rows], out=weighted_hessian[k, rows])
                elif noise is None:
                    out[:] = v
                energy[k] = _product(v, out)
            return energy, float(np.add.reduce(weighted_hessian[:, rows], axis=None))

        sums = self._context.threads.map_blocks(set_block, q.shape[1])
        head = q[0, :_HEAD]  # shows almost always that the innovation is not constant
        varies = _clearly_varies(float(head.max() - head.min()) if len(head) else 0.0, self._r)
        energies = np.zeros(len(q))
        for own, _ in sums:
            energies += own
        return energies, np.array(sum(total for _, total in sums)), varies

    def _set_target_compiled(
        self, weight: FloatArray | None, noise: _Noise | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Set what a learner is grown on by passes of the native engine; see :meth:`_set_target`."""
        q, hessian, target = self._q, self._tree_hessian, self._target
        threads = self._context.threads
        set_target = threads.passes.set_target  # type: ignore[union-attr]
        weight = self._weight64 if weight is self._weight else weight
        weighted = target if weight is None else self._weighted_hessian
        energy, spans = np.empty((2, len(q)))
        if noise is None or noise.is_shared:
            source = _NO_NOISE if noise is None else noise.source(range(len(q)))
            mass = set_target(q, hessian, weight, *source, target, weighted, energy, spans, threads.native_pool)
        else:
            mass = 0.0
            for k in range(len(q)):
                one = slice(k, k + 1)
                source = noise.source(range(k, k + 1))
                parts = (array[one] for array in (target, weighted, energy, spans))
                mass += set_target(q[one], hessian[one], weight, *source, *parts, threads.native_pool)
        return energy, np.array(mass), _clearly_varies(float(spans[0]), self._r)

    def _set_leaf_values(self, learners: list[Learner], weight: FloatArray | None) -> None:
        """Replace the learners' own leaf values, unless they have no leaves."""
        leaves = [(learner.leaf, len(learner.values)) for learner in learners if learner.leaf is not None]
        if len(leaves) < len(learners):
            if self._newton:
                raise TypeError(f"leaf_rule='newton' needs learners with leaves, got {learners[0].model!r}.")
            return
        settings = self._settings
        values: Sequence[FloatArray]
        if self._compiled_steps:
            weight = self._weight64 if weight is self._weight else weight
            values = newton_values(leaves, self._r, self._hessian, weight, settings.l2, settings.l1, self._context)
        elif self._newton:
            values = leaf_values(
                leaves,
                self._loss,
                self._y,
                self._state.F,
                self._r,
                self._hessian,
                weight,
                settings.l2,
                settings.l1,
                self._context,
            )
        else:
            values = mean_values(leaves, self._q, weight, settings.l2, settings.l1, self._context)
        for learner, own, hessian in zip(learners, values, self._weighted_hessian, strict=True):
            learner.values = self._engine.constrain(learner, own, hessian).astype(self._r.dtype, copy=False)

    def _update(self, learners: list[Learner]) -> None:
        """Remember the predictions of the new learners and add them to the scores."""
        state, threads = self._state, self._context.threads
        histories = [None] * len(learners) if state.projector is None else state.projector.histories
        for learner, history, F in zip(learners, histories, state.F, strict=True):
            place = None if history is None else history.next_place()
            add_predictions(learner, self._settings.eta, place, F, threads)
        state.round += 1

    def _is_constant(self, weight: FloatArray | None) -> bool:
        """Whether every output's innovation is constant up to rounding, and a constant step gains nothing."""
        q, r = self._q, self._r
        ends = [q.max(axis=1, initial=-np.inf), (-q).max(axis=1, initial=-np.inf), np.abs(r).max(axis=1, initial=0)]
        high, low, size = self._context.communicator.max(np.array(ends))
        constant = np.all(high + low <= 64 * np.finfo(q.dtype).eps * size)
        return bool(constant) and not self._roots_step(weight)

    def _roots_step(self, weight: FloatArray | None) -> bool:
        """Whether a tree without a split, which moves all scores alike, still has a step to take."""
        r, q = self._r, self._q
        w = np.ones(r.shape[1]) if weight is None else weight
        sums = np.array([(r.astype(np.float64) ** 2) @ w, q @ w, np.full(len(q), w.sum())])
        energy, step, mass = self._context.communicator.sum(sums)
        return bool(np.any(step**2 > _ROOT_SHARE * mass * energy))

    def _dispersion_sums(self, weight: FloatArray | None) -> FloatArray:
        """Return the sums of the residuals' sizes in units of the root of the Hessian, and of the weights, by output.

        Samples without the target of an output, which have no Hessian there, do not count; samples whose Hessian
        underflows to 0 have size 0.
        """
        r, hessian, by_output = self._r, self._tree_hessian, self._loss.independent_outputs

        def add_up(rows: slice) -> tuple[FloatArray, FloatArray]:
            h = hessian[:, rows]
            sizes = np.divide(np.abs(r[:, rows]), np.sqrt(h), out=np.zeros_like(h), where=h >= MIN_HESSIAN)
            if weight is None:
                masses = (h > MIN_HESSIAN).sum(axis=1) if by_output else np.full(1, sizes.shape[1])
                return sizes.sum(axis=1, dtype=np.float64), masses.astype(np.float64)
            counted = h > MIN_HESSIAN if by_output else np.ones((1, sizes.shape[1]), dtype=bool)
            return sizes @ weight[rows], counted @ weight[rows]

        sums = np.zeros((2, len(r)))
        for sizes, masses in self._context.threads.map_blocks(add_up, r.shape[1]):
            sums[0] += sizes
            sums[1] += masses
        return sums


def _dispersion(sums: FloatArray, *, by_output: bool) -> list[float]:
    """Return the variance of each output's residuals in units of the Hessian, from their mean absolute size.

    A few outliers must not determine it.
    """
    means = [size / max(mass, sys.float_info.min) for size, mass in sums.T.tolist()]
    squares = [mean * mean for mean in means]  # `mean**2` would raise OverflowError
    if not by_output and len(squares) > 1:
        squares = [float(np.mean(squares))] * len(squares)
    return [math.pi / 2 * square for square in squares]


def _decay(mean_loss: float, first_loss: float) -> float:
    """Return the square root of the training loss as a share of the first.

    Rounded, so that the order in which samples are summed does not reach the noise.
    """
    return round(math.sqrt(max(mean_loss, 0.0) / first_loss), 2) if first_loss > 0 else 1.0


def _engine_seed(seed: int, round_: int) -> int:
    return int(np.random.SeedSequence([seed, round_]).generate_state(1)[0])


def _clearly_varies(span: float, r: FloatArray) -> FloatArray:
    """Return 1 if the range of the first output's innovation is not rounding of its residual."""
    most = math.sqrt(r[0] @ r[0])  # which is more than the largest residual
    return np.array(float(span > _ROUNDING[r.dtype] * most))


def _is_finite(values: FloatArray) -> bool:
    """Whether all values are finite; the sum shows it, unless it is beyond the range of the dtype."""
    return math.isfinite(values.sum()) or bool(np.isfinite(values).all())


def _no_split(learners: list[Learner]) -> bool:
    return all(len(learner.values) == 1 for learner in learners)


class _Noise(NamedTuple):
    """Noise of a round: the size of each output times the root of the Hessian times a normal draw."""

    draws: Draws
    round: int
    sizes: list[float]

    @property
    def is_shared(self) -> bool:
        """Whether all outputs have the same size."""
        return len(set(self.sizes)) == 1

    def source(self, outputs: range) -> tuple[Any, ...]:
        """Return what the compiled passes compute the noise of outputs of one size from."""
        *shared, streams = self.draws.source(self.round, outputs)
        return *shared, streams, self.sizes[outputs.start]

    def block(self, k: int, hessian: FloatArray, rows: slice) -> FloatArray:
        """Return the noise of a block of samples of output k, given their Hessians."""
        return self.draws.noise(self.round, k, rows, hessian, self.sizes[k])


def _product(a: FloatArray, b: FloatArray) -> float:
    """Inner product of two vectors whose squares may be beyond the range of their dtype."""
    product = float(a @ b)
    return product if _SMALLEST_PRODUCT <= product < np.inf else float(a.astype(np.float64) @ b)


def add_predictions(learner: Learner, eta: float, h: FloatArray | None, F: FloatArray, threads: Threads) -> None:
    """Add the predictions of a learner to the scores of its output, of shape (n,), and put them into h, if given."""
    leaf, values = learner.leaf, learner.values
    if threads.passes is not None and leaf is not None and F.dtype == values.dtype == np.float32:
        threads.passes.add_predictions(leaf, values, eta, h, F, threads.native_pool)
        return

    def add_block(rows: slice) -> None:
        out = None if h is None else h[rows]
        if leaf is None:
            predictions = values[rows]
            if out is not None:
                out[:] = predictions
        else:
            predictions = values.take(leaf[rows], out=out, mode="clip")  # "raise" would go by a copy
        F[rows] += eta * predictions

    threads.map_blocks(add_block, len(F))
