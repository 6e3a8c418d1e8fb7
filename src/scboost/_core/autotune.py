"""All rules behind "auto": default values that depend on the loss and the data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scboost._core.losses import Loss, SquaredLoss
from scboost._core.race import Candidate
from scboost._core.stopping import EarlyStopping
from scboost._engine.interface import TreeOptions

MAX_ROUNDS = 1000
"""Maximum number of rounds that cross-validation or early stopping selects from."""
FAST_ROUNDS = 100
"""Rounds of ``preset="fast"``."""
FAST_RATE, FAST_PROJECTION = 0.8, 0.7
"""Factor of the learning rate and projection strength where the number of rounds is not selected."""
LARGEST_RATE = 0.5
"""Largest learning rate that "auto" returns."""
MEMORY = 5
"""Number of trees in the history."""
DEPTH = 6
"""Maximum depth of trees without a limit on leaves."""
DEPTH_OF_TARGETS = 4
"""Depth of the symmetric trees of several targets that have one structure."""
LEAVES = 31
"""Maximum number of leaves of leaf-wise trees."""
FOLDS, BEST_FOLDS = 5, 10
"""Number of folds; with ``preset="best"`` each fold model sees nearly all samples."""
FAST_FOLDS = 3
"""Number of folds that correct the quantiles of ``preset="fast"``."""
ROUNDS_TO_SELECT_RATE = 500
"""Number of rounds from which cross-validation, whose cost is then small, determines the learning rate."""
FARTHER = 2
"""How many times the maximum number of rounds fold models may stand for, if the learning rate is free."""
FEWEST_CATEGORIES_FOR_SUBSETS = 4
"""Number of categories from which subset splits differ from one-vs-rest splits."""
FEW_SAMPLES = 1_000
"""Number of samples up to which averaged fold models take larger steps."""
MIN_SAMPLES_TO_SELECT = 20
"""Number of distinct samples from which the number of rounds can be selected."""

# Number of folds that select the number of rounds, by the largest number of samples: with many, fewer folds suffice.
_SELECTION_FOLDS = ((1_000, 5), (20_000, 3))
MAX_SELECTION_SIZE = _SELECTION_FOLDS[-1][0]
"""Number of samples up to which tree options are selected; beyond, a single fold would decide."""
_PATIENCE = 10
# Patience while the number of rounds is selected: rounds, and share of the best round so far.
_SELECTION_STOPPING = EarlyStopping(patience=60, tol=0.0, share=0.2)
# Fold models take larger steps and fewer of them: they find the best round at less cost, as well. Where they are
# averaged and samples are few, so that rounds cost little more than their overhead, even larger ones.
_SELECTION_SPEEDUP, _SPEEDUP_OF_FEW = 4, 8
# Share of a class below which they do not: from log-odds far from 0, where Hessians are small, such steps overshoot.
RARE_CLASS = 0.005
# Features from which and samples up to which histograms, not samples, take the time of growing a tree.
_WIDE, _FEW_SAMPLES = 100, 10_000
# Standard errors by which shallow trees must be better: fold models with large steps are in favour of them.
_SHALLOW_MARGIN = 1.0
# Outputs above which rounds are so expensive that only shapes with their projection and categorical splits compete, and
# for several targets, whose trees are often best shallow, one depth.
_MANY_OUTPUTS, _DEPTH_OF_MANY = 4, 3
# Further depths for several targets and many samples, and the factor of the learning rate: symmetric trees of
# DEPTH_OF_TARGETS are simple.
_MORE_DEPTHS_OF_TARGETS, _RATE_OF_TARGETS = (6, 8), 2.0
# Rounds of trees that many classes share, for one of the default trees in a comparison; their depth for many samples.
_PACE_OF_CLASSES, _DEPTH_OF_MANY_SAMPLES = 4.0, 9
# Samples from which other shapes and larger trees are candidates.
_SOME_SAMPLES, _MANY_SAMPLES = 2_000, 10_000


def early_stopping(patience: int | str, tol: float, *, is_open: bool) -> EarlyStopping:
    """Return when to stop on a validation set; with an open number of rounds as patiently as in cross-validation."""
    if not isinstance(patience, str):
        return EarlyStopping(int(patience), float(tol))
    if is_open:
        return EarlyStopping(_SELECTION_STOPPING.patience, float(tol), _SELECTION_STOPPING.share)
    return EarlyStopping(_PATIENCE, float(tol))


def selection_stopping(patience: int | str, tol: float) -> EarlyStopping:
    """Return when fold models that select the number of rounds stop."""
    return _SELECTION_STOPPING if isinstance(patience, str) else EarlyStopping(int(patience), float(tol))


def selection_speedup(rate: float, rarest_class: float = 1.0, *, few_averaged: bool = False) -> int:
    """Return by which factor the learning rate of fold models is larger."""
    if rarest_class < RARE_CLASS:
        return 1
    speedup = _SPEEDUP_OF_FEW if few_averaged else _SELECTION_SPEEDUP
    return min(speedup, max(int(LARGEST_RATE / rate), 1))


def selection_folds(effective_size: float, n_outputs: int = 1) -> int:
    """Return how many folds select the number of rounds; fewer if every round grows many trees."""
    size = effective_size * max(n_outputs / _MANY_OUTPUTS, 1.0)
    return next((folds for most, folds in _SELECTION_FOLDS if size <= most), 1)


@dataclass(frozen=True)
class Free:
    """Parameters left at "auto", which candidates may vary.

    Attributes
    ----------
    depth, shape, projection, subset_splits, rate : bool
        Depth and shape of the trees, projection strength, kind of categorical splits, learning rate.
    sharing : bool
        Whether the trees of several outputs have one structure.
    """

    depth: bool
    shape: bool
    projection: bool
    subset_splits: bool
    rate: bool
    sharing: bool = False


def candidates(base: TreeOptions, loss: Loss, n_samples: float, free: Free) -> tuple[Candidate, ...]:
    """Return the options that compete, in the order of their cost.

    Parameters
    ----------
    base : TreeOptions
        Options where nothing is selected.
    loss : Loss
        The loss.
    n_samples : float
        Number of samples.
    free : Free
        Options that may differ from the base.
    """
    classifies = loss.classifies
    if base.shared:
        found = (_several_targets if loss.independent_outputs else _many_classes)(base, n_samples, free)
        return tuple(found + _with_subset_splits(found, free))
    found = [Candidate(base)]
    many_outputs = loss.n_outputs > _MANY_OUTPUTS
    if many_outputs:
        free = replace(free, depth=free.depth and loss.independent_outputs)
    if free.depth and n_samples <= MAX_SELECTION_SIZE:
        depths, pace = ((2, 3), 2.0) if classifies else ((2, 3, 4), 3.0)
        rate = 2.0 if classifies and free.rate else 1.0
        shallow = [replace(base, max_depth=depth) for depth in ((_DEPTH_OF_MANY,) if many_outputs else depths)]
        found = [Candidate(options, None, rate, pace, _SHALLOW_MARGIN) for options in shallow] + found
    if free.shape and (base.max_depth or DEPTH) >= DEPTH:
        found += _shapes(base, n_samples, free)
    return tuple(found + _with_subset_splits(found, free))


def _with_subset_splits(found: list[Candidate], free: Free) -> list[Candidate]:
    if not free.subset_splits:
        return []
    return [replace(one, options=replace(one.options, subset_splits=True)) for one in found]


def _several_targets(base: TreeOptions, n_samples: float, free: Free) -> list[Candidate]:
    """Return candidates for several targets, whose trees have one structure in the base."""
    depths = _MORE_DEPTHS_OF_TARGETS if free.depth and n_samples > _SOME_SAMPLES else ()
    rate = _RATE_OF_TARGETS if free.rate else 1.0
    found = [Candidate(options, None, rate) for options in (base, *(replace(base, max_depth=d) for d in depths))]
    if free.sharing:
        found += [replace(one, options=replace(one.options, shared=False)) for one in found]
    return found


def _many_classes(base: TreeOptions, n_samples: float, free: Free) -> list[Candidate]:
    """Return candidates for many classes, which are compared late: rounds of one structure learn slowly at low cost."""
    found = [Candidate(base, pace=_PACE_OF_CLASSES)]
    if free.shape and free.projection:
        rate = 2.0 if free.rate else 1.0
        found.append(Candidate(replace(base, shape="symmetric"), 0.9, rate, _PACE_OF_CLASSES))
    if free.depth and n_samples > _MANY_SAMPLES:
        found.append(Candidate(replace(base, max_depth=_DEPTH_OF_MANY_SAMPLES), pace=_PACE_OF_CLASSES))
    return found


def shares_structure(loss: Loss) -> bool:
    """Whether trees of all outputs with one structure are a candidate, or for many classes the only ones."""
    return loss.independent_outputs or loss.n_classes > _MANY_OUTPUTS


def leaf_penalty(loss: Loss, *, shared: bool) -> float:
    """Return the factor of the L2 regularization of leaf values.

    Hessians of probabilities near 1 / K decrease with the number of classes K. Trees of one class separate the samples
    to which it matters; in the leaves of a common tree every class is one of K.
    """
    return _MANY_OUTPUTS / loss.n_classes if shared and loss.n_classes > _MANY_OUTPUTS else 1.0


def _shapes(base: TreeOptions, n_samples: float, free: Free) -> list[Candidate]:
    """Return candidates of other shapes than the base, and of more capacity for many samples."""
    depth, rate = base.max_depth or DEPTH, 2.0 if free.rate else 1.0
    by_level = replace(base, max_depth=depth, max_leaves=None)
    symmetric = replace(by_level, shape="symmetric")
    found = [
        Candidate(replace(by_level, shape="alternating"), pace=1.3),
        Candidate(symmetric, None, rate, 1.5),
    ]
    if free.projection:
        found.append(Candidate(symmetric, 0.9, rate, 1.8))
    if n_samples > _SOME_SAMPLES and free.depth:
        deeper = 10 if n_samples <= MAX_SELECTION_SIZE else 12
        found.append(Candidate(replace(by_level, shape="alternating", max_depth=deeper)))
    if n_samples > _MANY_SAMPLES and free.depth:
        leaves = (127,) if n_samples <= MAX_SELECTION_SIZE else (127, 255)
        found += [Candidate(replace(base, shape="leaf-wise", max_depth=None, max_leaves=n)) for n in leaves]
    return found


def max_bin(n_features: int, total_weight: float) -> int:
    """Return the number of histogram bins."""
    return 64 if _is_wide(n_features, total_weight) else 256


def _is_wide(n_features: int, total_weight: float) -> bool:
    return n_features >= _WIDE and total_weight < _FEW_SAMPLES


def shapes_compete(loss: Loss, n_samples: float) -> bool:
    """Whether trees of other shapes are candidates.

    Not on so few samples that cross-validation cannot distinguish shapes: it would double the time without improvement.
    Many classes have the time, as their trees have one structure.
    """
    return loss.n_classes > _MANY_OUTPUTS or (
        (loss.n_outputs == 1 or loss.n_classes > 0) and n_samples >= _SOME_SAMPLES
    )


@dataclass(frozen=True)
class LossDefaults:
    """Default values that depend on the loss.

    Attributes
    ----------
    projection_strength, exploration : float
        Strength of the projection and of exploration.
    min_child_weight : float
        Minimum sum of Hessians in a leaf.
    rate : float
        Factor of the learning rate where the number of rounds is selected.
    """

    projection_strength: float
    exploration: float
    min_child_weight: float = 1.0
    rate: float = 1.0


def loss_defaults(loss: Loss) -> LossDefaults:
    """Return the default values for a loss."""
    quantiles = [loss.output(k).residual_quantile for k in range(loss.n_outputs)]
    extremes = [min(q, 1 - q) for q in quantiles if q is not None]
    if extremes:
        # Gradients are signs, which do not tell the size of a step: projection does not apply. A leaf
        # needs enough samples on either side of its quantile.
        return LossDefaults(0.0, 0.0, min_child_weight=max(20.0, 2 / min(extremes)), rate=2.0)
    if loss.classifies:
        # Hessians p(1 - p) vanish as predictions become certain: a larger minimum would end learning there.
        return LossDefaults(0.5, 0.7, min_child_weight=0.1)
    if not _derives_from_built_in(loss):
        return LossDefaults(0.5, 0.7)
    return LossDefaults(0.7, 0.3)


def _derives_from_built_in(loss: Loss) -> bool:
    package = SquaredLoss.__module__.rpartition(".")[0]
    return any(cls.__module__.startswith(package) for cls in type(loss).__mro__ if cls is not Loss)


def auto_learning_rate(
    n_samples: float, n_estimators: int, *, many_classes: bool = False, two_classes_to_the_end: bool = False
) -> float:
    """Return the default learning rate for a number of samples and of rounds, at most 0.5.

    It grows with the number of samples as CatBoost's rule at 1,000 rounds; with fewer rounds it is larger.

    Parameters
    ----------
    n_samples : float
        Number of training samples, or the sum of their weights.
    n_estimators : int
        Number of rounds.
    many_classes : bool, default=False
        Whether there are more than two classes, whose steps are damped by an upper bound of the Hessian.
    two_classes_to_the_end : bool, default=False
        Whether there are two classes and no early stopping that would prevent overfitting. More than 100 rounds then
        have a smaller rate: 1,000 rounds that of CatBoost's rule, in between by interpolation.

    Returns
    -------
    float
        ``exp(0.246 ln n - 5.127) (T / 1000)^-0.627``, or ``exp(0.051 ln n - 3.001) (T / 1000)^-0.627``; to the end,
        at 1,000 rounds, ``exp(0.427 ln n - 7.525)``.
    """
    a, b = (0.051, -3.001) if many_classes else (0.246, -5.127)

    def rate(rounds: int) -> float:
        return float(np.exp(a * np.log(n_samples) + b) * (rounds / 1000) ** -0.627)

    if two_classes_to_the_end and n_estimators > FAST_ROUNDS:
        few, many = rate(FAST_ROUNDS), float(np.exp(0.427 * np.log(n_samples) - 7.525))
        share = float(np.log10(n_estimators / FAST_ROUNDS))
        return float(min(few * (many / few) ** share, LARGEST_RATE))
    return min(rate(n_estimators), LARGEST_RATE)
