"""Splits of a training set: folds and validation sets, by hashed features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray, Keys
from scboost._data.hashing import mix64, rank_keys
from scboost._data.samples import Samples
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator
from scboost._runtime.context import Context

Folds = list[tuple[IntArray, IntArray]]
"""Indices of the training and of the held-out samples, fold by fold."""


def content_folds(
    keys: Keys, n_folds: int, classes: IntArray | None, seed: int, communicator: Communicator = SINGLE_PROCESS
) -> IntArray:
    """Return the fold of each sample, of shape (n,): equal samples share one, and folds are stratified by class.

    Parameters
    ----------
    keys : ndarray of shape (n,)
        From :func:`scboost._data.hashing.row_keys`.
    n_folds : int
        Number of folds.
    classes : ndarray of shape (n,) or None
        Class index of each sample; None for regression.
    seed : int
        Two calls with the same seed return the same folds, whichever workers have the samples.
    """
    fold = np.empty(len(keys), dtype=np.intp)
    taken = 0
    for group, rank, n_distinct in _ranked(keys, classes, seed, communicator):
        fold[group] = (rank + taken) % n_folds
        taken += n_distinct  # classes continue where the previous one ended, so that folds have equal sizes
    return fold


def content_sample(
    keys: Keys, share: float, classes: IntArray | None, seed: int, communicator: Communicator = SINGLE_PROCESS
) -> npt.NDArray[np.bool_]:
    """Return whether each sample is in a random share of each class's distinct samples, of shape (n,).

    Of a class with two or more distinct samples, at least one is in and one is out; a single one is out. The other
    parameters are those of :func:`content_folds`.
    """
    drawn = np.empty(len(keys), dtype=bool)
    for group, rank, n_distinct in _ranked(keys, classes, seed, communicator):
        drawn[group] = rank < min(max(round(share * n_distinct), 1), n_distinct - 1)
    return drawn


def _ranked(
    keys: Keys, classes: IntArray | None, seed: int, communicator: Communicator
) -> Iterator[tuple[Any, IntArray, int]]:
    """Shuffle the distinct samples of each class, over all workers.

    Yields the indices of a class, the rank of each sample, and the number of distinct samples.
    """
    order_keys = mix64(keys ^ mix64(np.array([seed + 1], dtype=np.uint64)))
    groups: list[Any] = [slice(None)]
    if classes is not None:
        n_classes = int(communicator.max(np.array(classes.max(initial=-1), dtype=np.float64))) + 1
        groups = [np.flatnonzero(classes == c) for c in range(n_classes)]
    for group in groups:
        keys_of_group, place = np.unique(order_keys[group], return_inverse=True)
        rank: IntArray = np.arange(len(keys_of_group))
        n_distinct = len(rank)
        if communicator.size > 1:
            rank, _, first = rank_keys(keys_of_group, np.zeros(len(rank)), communicator)
            n_distinct = int(communicator.sum(np.array(first.sum())))
        yield group, rank[place.reshape(-1)], n_distinct


def hold_out(
    samples: Samples, fraction: float, n_classes: int, labels: npt.NDArray[Any] | None, seed: int, context: Context
) -> tuple[Samples, Samples]:
    """Split samples into a training and a validation set, stratified by class; equal samples stay together.

    Parameters
    ----------
    samples : Samples
        All samples.
    fraction : float
        Share of the validation set.
    n_classes : int
        Number of classes; 0 for regression.
    labels : ndarray or None
        Names of the classes, for messages.
    seed : int
        Seed of the split.
    context : Context
        Context of the fit.
    """
    origin = f"validation_fraction={fraction} of {samples.count(context.communicator)} samples"
    advice = "Give X_val and y_val, or use neither early_stopping nor weighting."
    distinct = count_distinct(samples, n_classes, context)
    if n_classes and labels is not None and min(distinct) < 2:
        raise ValueError(
            f"{origin} cannot be held out: class {labels.tolist()[np.argmin(distinct)]!r} has 1 sample, not counting "
            f"repetitions, and at least 2 are needed. {advice}"
        )
    size = samples.effective_size(context.communicator)
    if min(np.ceil(fraction * size), np.floor((1 - fraction) * size)) < max(n_classes, 1) or min(distinct) < 2:
        raise ValueError(
            f"{origin} cannot be held out: the training or the validation set would be too small. {advice}"
        )
    held_out = content_sample(
        samples.fold_keys(context), fraction, class_indices(samples, n_classes), seed, context.communicator
    )
    return samples.take(np.flatnonzero(~held_out)), samples.take(np.flatnonzero(held_out))


def make_folds(
    samples: Samples,
    cv: Any,
    n_folds: int,
    n_used: int,
    *,
    n_classes: int,
    seed: int,
    all_needed: bool,
    groups: npt.NDArray[Any] | None,
    positions: IntArray | None,
    fallback: int,
    context: Context,
) -> Folds:
    """Split samples into folds by their hashed features, or by the splitter given as ``cv``.

    Parameters
    ----------
    samples : Samples
        All samples.
    cv : int, "auto", splitter or iterable of (train, test)
        The parameter of that name.
    n_folds, n_used : int
        Number of folds, and how many of them are held out in turn.
    n_classes : int
        Number of classes, by which folds are stratified; 0 for regression.
    seed : int
        Seed of the split.
    all_needed : bool
        Whether no fold may be empty.
    groups : ndarray of shape (n,) or None
        For splitters that need them.
    positions : ndarray of int or None
        Position of each sample that an iterable counts, -1 for those left out; 0, 1, 2, ... if not given.
    fallback : int
        Number of folds for ``cv="auto"`` where a class has too few samples.
    context : Context
        Context of the fit.
    """
    if not isinstance(cv, str | int | np.integer):
        return _given_folds(cv, samples, groups, positions)
    smallest = min(count_distinct(samples, n_classes, context))
    if cv == "auto" and smallest < n_folds:
        n_folds, n_used = min(n_folds, fallback), min(n_used, fallback)
    if smallest < (n_folds if n_used > 1 and all_needed else 2):
        kind = "samples of the rarest class" if n_classes else "samples"
        raise ValueError(f"cv={n_folds} is more than the {smallest} distinct {kind}.")
    keys, classes = samples.fold_keys(context), class_indices(samples, n_classes)
    fold = content_folds(keys, n_folds, classes, seed, context.communicator)
    sizes = context.communicator.sum(np.bincount(fold, minlength=n_folds).astype(np.float64))
    used = np.flatnonzero(sizes[:n_used])  # folds of few samples may be empty
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in used]


def _given_folds(cv: Any, samples: Samples, groups: npt.NDArray[Any] | None, positions: IntArray | None) -> Folds:
    """Return the splits of a splitter or of an iterable, checked."""
    if hasattr(cv, "split"):
        cv, positions = cv.split(np.zeros((len(samples), 1)), samples.y, groups), None
    positions = np.arange(len(samples)) if positions is None else positions
    folds = []
    for i, split in enumerate(cv):
        if not isinstance(split, Sequence | np.ndarray) or isinstance(split, str) or len(split) != 2:
            raise ValueError(f"Split {i} of cv must be a pair (train, test) of indices, got {split!r:.80}.")
        parts = [
            _checked_indices(part, f"split {i} of cv, {name}", positions)
            for name, part in zip(("train", "test"), split, strict=True)
        ]
        if len(np.intersect1d(parts[0], parts[1])):
            raise ValueError(f"Split {i} of cv has samples in both its training and its test set.")
        folds.append((parts[0], parts[1]))
    if not folds:
        raise ValueError(f"cv={cv!r:.80} has no splits; at least one (train, test) is needed.")
    return folds


def _checked_indices(part: Any, name: str, positions: IntArray) -> IntArray:
    """Return indices or a mask, as the user counts samples, as positions of samples."""
    n, indices = len(positions), np.asarray(part)
    if indices.dtype == bool and indices.shape == (n,):
        indices = np.flatnonzero(indices)
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise ValueError(
            f"Indices of {name}, must be integers in one dimension or a mask of the {n} samples, got dtype "
            f"{indices.dtype} and shape {indices.shape}."
        )
    outside = indices[(indices < 0) | (indices >= n)]
    if outside.size:
        raise ValueError(f"Indices of {name}, must be from 0 to {n - 1}, got {outside[0]}.")
    indices = indices.astype(np.intp)
    if len(np.unique(indices)) < len(indices):
        raise ValueError(f"Indices of {name}, name a sample twice; use sample_weight for repeated samples.")
    kept = positions[indices]
    kept = np.asarray(kept[kept >= 0])
    if not len(kept):
        raise ValueError(f"Indices of {name}, name no sample of positive weight.")
    return kept


def class_indices(samples: Samples, n_classes: int) -> IntArray | None:
    """Return the class index of each sample; None for regression."""
    return samples.y.astype(np.intp) if n_classes else None


def class_counts(samples: Samples, n_classes: int, communicator: Communicator) -> FloatArray:
    """Return the number of samples of each class on all workers."""
    counts = np.bincount(samples.y.astype(np.intp), minlength=n_classes) if n_classes else np.zeros(0)
    return communicator.sum(counts.astype(np.float64))


def count_distinct(samples: Samples, n_classes: int, context: Context) -> list[int]:
    """Count the distinct samples, by class if there are classes; each worker counts its own."""
    keys = samples.fold_keys(context)
    groups = [keys[samples.y == c] for c in range(n_classes)] if n_classes else [keys]
    counts = np.array([len(np.unique(group)) for group in groups], dtype=np.float64)
    return [int(n) for n in context.communicator.sum(counts)]
