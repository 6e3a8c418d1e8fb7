"""The conformal state in a model file: arrays of numbers that are checked before use."""

from __future__ import annotations

from typing import Any

import numpy as np

from scboost._arrays import Float64Array
from scboost._core.conformal import Conformal, Intervals, LabelSets, LocalScale, Scores
from scboost._core.losses import Loss
from scboost._model.packing import float64, pack, require, unpack


def pack_conformal(state: Conformal) -> dict[str, Any]:
    """Return the state as JSON holds it."""
    if isinstance(state, LabelSets):
        return {"smallest": [*map(_pack_scores, state.smallest)], "adaptive": [*map(_pack_scores, state.adaptive)]}
    stored: dict[str, Any] = {"centred": _pack_scores(state.centred)}
    if state.shifts:
        stored["shifts"] = [*map(_pack_scores, state.shifts)]
    if state.scale is not None:
        stored["scale"] = {"knots": pack(state.scale.knots), "values": pack(state.scale.values)}
    return stored


def unpack_conformal(stored: Any, loss: Loss) -> Conformal:
    """Return the state that untrusted JSON holds, for the outputs or classes of a loss."""
    require(isinstance(stored, dict), "the conformal state is not a dictionary")
    require(loss.task == "regression", f"there are no intervals for the task {loss.task}")
    if loss.n_classes:
        require(set(stored) == {"smallest", "adaptive"}, f"the conformal state has {sorted(stored)!r:.80}")
        smallest, adaptive = (_scores_of(stored[name], loss.n_classes) for name in ("smallest", "adaptive"))
        sizes = [[part.size for part in parts] for parts in (smallest, adaptive)]
        require(np.allclose(sizes[0], sizes[1]), "the two kinds of label scores are not of the same samples")
        return LabelSets(smallest, adaptive)
    require(set(stored) <= {"centred", "shifts", "scale"}, f"the conformal state has {sorted(stored)!r:.80}")
    centred = _unpack_scores(stored["centred"])
    shifts = _scores_of(stored.get("shifts", []), loss.n_outputs if loss.n_outputs > 1 else 0)
    require(all(part.size > 0 for part in (centred, *shifts)), "there are no residuals")
    require(all(np.isclose(part.size, centred.size) for part in shifts), "the residuals are not of the same samples")
    if "scale" not in stored:
        return Intervals(centred, None, shifts)
    require(set(stored["scale"]) == {"knots", "values"}, "the local scale is not knots and values")
    knots, values = (_vector(stored["scale"][name], name) for name in ("knots", "values"))
    require(len(knots) == len(values) > 0, "the local scale has different numbers of knots and values")
    require(bool((np.diff(knots) > 0).all()), "the knots of the local scale do not increase")
    require(bool((values > 0).all()), "the local scale is not positive")
    return Intervals(centred, LocalScale(knots, values), shifts)


def _pack_scores(scores: Scores) -> dict[str, Any]:
    stored = {"values": pack(scores.values)}
    if not np.array_equal(scores.ranks, np.arange(1.0, len(scores.values) + 1)):
        stored["ranks"] = pack(scores.ranks)
    return stored


def _scores_of(stored: Any, n: int) -> tuple[Scores, ...]:
    require(isinstance(stored, list) and len(stored) == n, f"the conformal state is not of {n} outputs or classes")
    return tuple(_unpack_scores(part) for part in stored)


def _unpack_scores(stored: Any) -> Scores:
    require(isinstance(stored, dict) and set(stored) <= {"values", "ranks"}, "scores are not values and ranks")
    values = _vector(stored["values"], "values")
    ranks: Float64Array = np.arange(1.0, len(values) + 1)
    if "ranks" in stored:
        ranks = _vector(stored["ranks"], "ranks")
    require(len(values) == len(ranks), "there are not as many ranks as scores")
    require(bool((np.diff(values) >= 0).all()), "the scores are not sorted")
    require(bool((np.diff(ranks, prepend=0.0) > 0).all()), "the ranks of the scores do not increase")
    return Scores(values, ranks)


def _vector(stored: Any, name: str) -> Float64Array:
    vector = np.asarray(float64(unpack(stored), name), dtype=np.float64)
    require(vector.ndim == 1 and bool(np.isfinite(vector).all()), f"{name} are not finite numbers")
    return vector
