"""Variants of the method that the library has no parameter for: the one module here that knows its inner workings."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from scboost import SCBoostClassifier
from scboost._arrays import FloatArray
from scboost.boosting.history import History, Projection
from scboost.boosting.learners import Engine, Learner
from scboost.boosting.loop import Dials, Round, State, _row_weights, boost, start
from scboost.boosting.training import Rows, Training


@dataclass(frozen=True)
class Spec:
    """A method name, read.

    Attributes
    ----------
    params : dict
        Parameters of the estimator.
    rate : float
        Factor of the automatic learning rate.
    rule : str
        How gamma changes from round to round; see `gamma_rule`. Empty for a constant.
    step : str
        "orthogonal" divides each step by the share of the tree's norm that is orthogonal to the history.
    candidates : int
        Trees grown each round, of which the one that scores best by `pick` is kept.
    pick : str
        "correlation" or "orthogonal"; see `BestOfSeveral`.
    metric : str
        "curvature", as in the estimator: rows weigh as much as their curvature, and the part removed is the best
        Newton step within the history's span; "equal": all rows weigh the same.
    """

    params: dict[str, Any]
    rate: float = 1.0
    rule: str = ""
    step: str = ""
    candidates: int = 1
    pick: str = "correlation"
    metric: str = "curvature"


def gamma_rule(rule: str, gamma: float, n: int, progress: float, share: float) -> float:
    """Gamma of a round.

    Parameters
    ----------
    rule : str
        "share": gamma times twice the share; "falling" and "rising": between gamma + 0.3 and
        gamma - 0.3 over the rounds; "rows": gamma at 3,200 rows, 0.11 less for every factor e.
    gamma : float
        The constant that the rule starts from.
    n : int
        Number of rows.
    progress : float
        Share of the rounds that are done.
    share : float
        Share of the residual's energy that history spans.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> gamma_rule("rows", 0.7, 3200, 0.0, 0.0)
    0.7
    """
    values: dict[str, Callable[[], float]] = {
        "": lambda: gamma,
        "share": lambda: 2 * gamma * share,
        "falling": lambda: gamma + 0.3 - 0.6 * progress,
        "rising": lambda: gamma - 0.3 + 0.6 * progress,
        "rows": lambda: gamma - 0.11 * float(np.log(n / 3200)),
    }
    return float(np.clip(values[rule](), 0.0, 1.0))


class Prototype(SCBoostClassifier):
    """Ideas that the estimator has no parameter for; set `spec` before fitting."""

    spec: Spec

    def _grow(self, rows: Rows, loss: Any, seed: int, **_: Any) -> Training:
        spec = self.spec
        dials: Dials = self._dials(rows, seed)
        engine: Engine = self._engine(rows, 1)
        y = rows.y.astype(engine.dtype)
        prior = loss.initial_score(y, None)
        state = start(loss, y, None, dials, engine, prior, self.n_estimators)
        training = Training(self._new_ensemble(prior, loss), state)
        if spec.candidates > 1:
            engine = BestOfSeveral(engine, spec, state)
        history = state.histories[0]
        for t in range(self.n_estimators):
            r, curvature = loss.residual(y, state.F)
            c = None if spec.metric == "equal" else curvature[0]
            share = history.project(r[0], alpha=dials.alpha, gamma=0.0, curvature=c).share
            gamma = gamma_rule(spec.rule, dials.gamma, len(y), t / self.n_estimators, share)
            projection = history.project(r[0], alpha=dials.alpha, gamma=gamma, curvature=c)
            q, shape = projection.innovation[None], curvature
            rng = np.random.default_rng([dials.seed, t])
            drawn = _row_weights(rng, dials.subsample, None, len(y))
            if drawn is not None:
                q, shape = q * drawn, shape * drawn
            learner = engine.grow(q, shape, int(rng.integers(2**32)))[0]
            if len(learner.values) == 1 or learner.leaf is None:
                break
            steps = loss.leaf_steps(
                learner.leaf, len(learner.values), y, state.F[0], r[0], curvature[0], drawn, dials.l2
            )
            learner.values = steps.astype(r.dtype)
            h = learner.predictions()
            scale = 1.0
            if spec.step == "orthogonal":
                scale = min(float(np.linalg.norm(h)) / _orthogonal_norm(h, history.vectors), 2.0)
            state.F[0] += scale * dials.eta * h
            history.append(h)
            training.ensemble.append([learner], dials.eta * scale)
            training.record(Round([learner], [projection], loss.mean(y, state.F)))
        return training


class BestOfSeveral(Engine):
    """Grow several trees on different columns and keep the best.

    "orthogonal" is the objective of Orthogonal Gradient Boosting, ``<q, h> / |h orthogonal to history|``;
    "correlation" is ``<q, h> / |h|``.
    """

    def __init__(self, inner: Engine, spec: Spec, state: State) -> None:
        self.inner, self.spec, self.state = inner, spec, state
        self.dtype = inner.dtype

    def grow(self, target: Any, curvature: Any, seed: int) -> list[Learner]:
        """Grow the candidates and return the best."""
        grown = [self.inner.grow(target, curvature, seed + i) for i in range(self.spec.candidates)]

        def score(learners: list[Learner]) -> float:
            h = learners[0].predictions()
            orthogonal = self.spec.pick == "orthogonal"
            norm = _orthogonal_norm(h, self.state.histories[0].vectors) if orthogonal else float(np.linalg.norm(h))
            return float(target[0] @ h) / max(norm, 1e-12)

        return max(grown, key=score)


def _orthogonal_norm(h: Any, H: Any) -> float:
    """Norm of the part of h that is orthogonal to the remembered trees."""
    if not len(H):
        return float(np.linalg.norm(h))
    coefficients = np.linalg.lstsq(H.T, h, rcond=None)[0]
    return max(float(np.linalg.norm(h - coefficients @ H)), 1e-12)


class JointHistoryClassifier(SCBoostClassifier):
    """Many classes with one history: the residuals of all classes are projected together, as one long vector."""

    def _grow(self, rows: Rows, loss: Any, seed: int, **_: Any) -> Training:
        dials = self._dials(rows, seed)
        engine = self._engine(rows, loss.n_outputs)
        y = rows.y.astype(engine.dtype)
        prior = loss.initial_score(y, None)
        state = start(loss, y, None, dials, engine, prior, self.n_estimators)
        shared = History(loss.n_outputs * len(y), dials.memory or self.n_estimators, engine.dtype)
        parts = _Parts(shared, loss.n_outputs)
        state.histories = [_Part(parts, k) for k in range(loss.n_outputs)]  # type: ignore[misc]
        training = Training(self._new_ensemble(prior, loss), state)
        for done in islice(boost(state, loss, y, None, dials, engine), self.n_estimators):
            training.ensemble.append(done.learners, dials.eta)
            training.record(done)
        return training


class _Parts:
    """What the parts of a joint history share."""

    def __init__(self, history: History, n_outputs: int) -> None:
        self.history, self.n_outputs = history, n_outputs
        self.projection: Projection | None = None
        self.grown: list[FloatArray] = []


class _Part:
    """One class's view of a joint history: the loop projects and appends class by class, in order."""

    def __init__(self, parts: _Parts, k: int) -> None:
        self._parts, self._k = parts, k

    def project(
        self, r: FloatArray, *, alpha: float, gamma: float, curvature: FloatArray | None, out: FloatArray
    ) -> Projection:
        """Project all classes when the first one asks, and hand out this one's part."""
        K = self._parts.n_outputs
        if self._k == 0:
            metric = None if curvature is None else _all_classes(curvature, K)
            self._parts.projection = self._parts.history.project(
                _all_classes(r, K), alpha=alpha, gamma=gamma, curvature=metric
            )
        projection = self._parts.projection
        if projection is None:
            raise RuntimeError("the classes are no longer projected in order")
        out[:] = projection.innovation.reshape(K, -1)[self._k]
        return projection

    def append(self, h: FloatArray) -> None:
        """Remember the trees of a round once the last class's is there."""
        self._parts.grown.append(h)
        if self._k == self._parts.n_outputs - 1:
            self._parts.history.append(np.concatenate(self._parts.grown))
            self._parts.grown = []


def _all_classes(row: FloatArray, n_outputs: int) -> FloatArray:
    """Values of all classes, one class after the other, from a view of the first one's."""
    whole = row.base
    if whole is None or whole.shape != (n_outputs, len(row)):
        raise RuntimeError("the vector of a class is no longer a row of the matrix of all classes")
    return np.asarray(whole.ravel())
