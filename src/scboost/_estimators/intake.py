"""Input validation: arguments of ``fit`` to samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, _num_samples

from scboost._arrays import ArrayLike, FloatArray, IntArray
from scboost._core.losses import Loss
from scboost._data.encoder import Encoder, InputRules, Matrix
from scboost._data.samples import Samples
from scboost._data.validation import check_size
from scboost._runtime.communicator import Communicator, agreed


@dataclass(frozen=True)
class Target:
    """Encoded target and the loss that it determines.

    Attributes
    ----------
    samples : Samples
        Samples with targets as the loss takes them, and weights.
    loss : Loss
        The loss.
    classes : ndarray of shape (n_classes,) or None
        Class labels; None for regression.
    class_weights : ndarray of shape (n_classes,) or None
        Weight of each class.
    """

    samples: Samples
    loss: Loss
    classes: npt.NDArray[Any] | None = None
    class_weights: FloatArray | None = None

    @property
    def has_one_number(self) -> bool:
        """Whether the target of a sample is one number: a value, or one of two classes."""
        return self.loss.task in {"regression", "distribution"} and self.samples.y.ndim == 1 and self.loss.n_classes < 3


def learn_features(
    X: ArrayLike, rules: InputRules, like: Encoder | None, owner: str, communicator: Communicator
) -> tuple[Encoder, Matrix]:
    """Fit the encoder on the training set of all workers; return it with the encoded samples of this worker.

    Parameters
    ----------
    X : array-like, sparse matrix or table of shape (n, d)
        The training set.
    rules : InputRules
        Rules of accepted input.
    like : Encoder or None
        Encoder of a model that is to be continued, whose categories and parts of dates are kept.
    owner : str
        Name of the estimator, for messages.
    communicator : Communicator
        The other workers.
    """
    shared = communicator.size > 1
    with agreed(communicator):
        encoder = Encoder.learn(X, rules, like)
    if shared:
        encoder = Encoder.merge(communicator.gather(encoder))
    with agreed(communicator):
        matrix = encoder.encode(X, owner=owner, min_samples=0 if shared else 2)
    if rules.dtype is np.float32:
        check_size(matrix)
    return encoder, matrix


def numbers(y: npt.NDArray[Any], name: str) -> FloatArray:
    """Return a target as numbers, or raise ValueError."""
    if y.dtype.kind in "mM":
        raise ValueError(
            f"{name} must be numbers for regression, got dtype {y.dtype}; convert it first, such as to days since a "
            "fixed date, so that the unit of the predictions is known."
        )
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers for regression, got {y.dtype} ({error}).") from error


def without_weightless(
    X: Any, y: Any, sample_weight: Any, groups: Any, communicator: Communicator
) -> tuple[Any, Any, Any, Any, IntArray | None]:
    """Leave out samples of weight 0, so that not even their categories are learned.

    The last result is the new position of each sample, -1 for those left out; None if none was left out.
    Invalid input is returned unchanged: :func:`make_samples` raises the error.
    """
    weight = np.asarray(sample_weight) if sample_weight is not None else np.ones(1)
    if weight.ndim != 1 or weight.dtype.kind not in "biuf" or weight.all() or not weight.any():
        return X, y, sample_weight, groups, None
    if any(_num_samples(given) != len(weight) for given in (X, y, groups) if given is not None):
        return X, y, sample_weight, groups, None
    kept = np.flatnonzero(weight)
    if len(kept) < 2 and communicator.size == 1:
        raise ValueError(f"sample_weight is positive for {len(kept)} of {len(weight)} samples; at least 2 need weight.")
    X, y, groups = (None if given is None else _safe_indexing(given, kept) for given in (X, y, groups))
    positions = np.full(len(weight), -1, dtype=np.intp)
    positions[kept] = np.arange(len(kept))
    return X, y, weight[kept], groups, positions


# Weights are float32 in XGBoost, and so are their products with gradients.
_LARGEST_WEIGHT = 1e30
_WEIGHT_RATIO = 1e15


def make_samples(
    X: Any,
    y: FloatArray,
    sample_weight: ArrayLike | None,
    communicator: Communicator,
    name: str = "sample_weight",
) -> Samples:
    """Return samples with checked weights; those with weight 0 are left out, as if they had not been given."""
    if sample_weight is None:
        return Samples(X, y, None)
    if communicator.size > 1 and not len(y):  # other workers may have samples
        return Samples(X, y, np.zeros(0))
    if (dtype := np.asarray(sample_weight).dtype).kind in "mM":
        raise ValueError(f"{name} must be numbers, got dtype {dtype}.")
    weight = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
    if communicator.size > 1 and not weight.any():  # other workers may have samples with weight
        return Samples(X, y, weight).take(np.flatnonzero(weight))
    if weight.min() < 0:
        raise ValueError(f"Negative values in {name}: the smallest is {weight.min():g}; weights must be >= 0.")
    if not weight.any():
        raise ValueError(f"{name} is zero for every sample; at least one of the weights must be non-zero.")
    smallest, largest = float(weight[weight > 0].min()), float(weight.max())
    if largest > _LARGEST_WEIGHT or largest / smallest > _WEIGHT_RATIO:
        raise ValueError(
            f"{name} runs from {smallest:g} to {largest:g}; allowed are weights up to {_LARGEST_WEIGHT:g} whose ratio "
            f"is at most {_WEIGHT_RATIO:g}."
        )
    samples = Samples(X, y, weight)
    return samples if weight.all() else samples.take(np.flatnonzero(weight))


def used_groups(groups: ArrayLike, n_samples: int, sample_weight: ArrayLike | None) -> npt.NDArray[Any]:
    """Return the groups of the samples that have weight, which are those that :func:`make_samples` keeps."""
    groups = np.asarray(groups)
    if groups.shape != (n_samples,):
        raise ValueError(f"groups must have shape ({n_samples},), one for each sample of X, got {groups.shape}.")
    return np.asarray(groups if sample_weight is None else groups[np.asarray(sample_weight) != 0])


def monotone_signs(given: Any, encoder: Encoder) -> tuple[int, ...] | None:
    """Return -1, 0 or 1 for each feature that the trees split on; None without constraints."""
    if given is None:
        return None
    n_features, names, kinds = encoder.n_features, encoder.feature_names, encoder.column_kinds
    if isinstance(given, Mapping):
        positions = _positions(names, "monotone_constraints")
        unknown = [key for key in given if key not in positions]
        if unknown:
            raise ValueError(f"monotone_constraints contains unknown features {unknown!r}; X has {list(positions)!r}.")
        signs = np.zeros(n_features)
        for key, sign in given.items():
            signs[positions[key]] = sign
    else:
        signs = np.asarray(given)
    if signs.shape != (n_features,) or not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError(
            f"monotone_constraints must contain -1, 0 or 1 for each of the {n_features} features, got {given!r}."
        )
    for j in np.flatnonzero(signs):
        name = int(j) if names is None else names[j]
        if kinds[j] == "category":
            raise ValueError(
                f"monotone_constraints cannot constrain the categorical feature {name!r}: categories have no order."
            )
        if kinds[j] == "date":
            raise ValueError(
                f"monotone_constraints cannot constrain the dates of {name!r}, whose month, weekday and other parts "
                "are not monotone in time; pass them as a number such as days since a reference date."
            )
    return tuple(int(s) for s in signs[encoder.features.sources])


def interaction_groups(given: Any, encoder: Encoder) -> list[list[int]] | None:
    """Return groups of indices of the features that the trees split on; None without constraints."""
    if given is None:
        return None
    n_features, names = encoder.n_features, encoder.feature_names
    groups = []
    for group in given:
        if not isinstance(group, Sequence | np.ndarray) or isinstance(group, str):
            raise TypeError(
                f"interaction_constraints must be a list of groups, each a list of features, got {given!r}."
            )
        if any(isinstance(c, str) for c in group):
            positions = _positions(names, "interaction_constraints")
            unknown = [c for c in group if c not in positions]
            if unknown:
                raise ValueError(f"interaction_constraints contains unknown features {unknown!r}.")
            groups.append([positions[c] for c in group])
        else:
            groups.append([int(c) for c in group])
        if not all(0 <= c < n_features for c in groups[-1]):
            raise ValueError(
                f"interaction_constraints must contain feature indices from 0 to {n_features - 1}, got {group!r}."
            )
    return groups if encoder.dates is None else [encoder.features.positions(group) for group in groups]


def _positions(names: Sequence[Any] | None, parameter: str) -> dict[Any, int]:
    if names is None:
        raise ValueError(f"{parameter} refers to features by name, but X has no feature names; use indices.")
    return {name: i for i, name in enumerate(names)}
