"""Tree weights of finished models, learned on held-out data."""

from __future__ import annotations

import numpy as np

from scboost._arrays import FloatArray
from scboost._core.losses import Loss
from scboost._core.selection import FoldModels
from scboost._core.spec import Weighting
from scboost._core.statistics import weighted_quantile
from scboost._core.weighting import Weights, learn_scale, learn_weights
from scboost._data.folds import Folds
from scboost._data.samples import Samples
from scboost._engine.ensemble import Ensemble
from scboost._runtime.communicator import Communicator
from scboost._runtime.context import Context

_LARGEST_EXCHANGE = 2 * 2**30  # bytes of held-out contributions that workers send each other


def weigh_ensemble(
    ensemble: Ensemble, validation: Samples, loss: Loss, weighting: Weighting, context: Context
) -> Weights | None:
    """Re-weight an ensemble by covariance-regularized weights learned on a validation set."""
    if ensemble.n_rounds == 0:
        return None
    H = ensemble.contributions(validation.X, n_jobs=context.n_threads)
    simplex = weighting.method == "simplex"
    A = H if simplex else H * ensemble.weights[:, :, None].astype(H.dtype)
    found = _learn(A.transpose(2, 1, 0), validation, ensemble.intercept, loss, weighting, context)
    factors = np.repeat(found.weights[:, None], ensemble.n_outputs, axis=1)
    weights = factors if simplex else factors * ensemble.weights
    ensemble.reweight(weights, ensemble.intercept if simplex else ensemble.intercept + found.intercept)
    return found


def weigh_folds(
    samples: Samples, folds: Folds, models: FoldModels, loss: Loss, weighting: Weighting, context: Context
) -> Weights:
    """Return weights by round, learned out of fold."""
    A = np.zeros((models.n_rounds, loss.n_outputs, len(samples)), dtype=np.float32)
    start = np.zeros((len(samples), loss.n_outputs))
    seen = np.zeros(len(samples), dtype=bool)
    for training, rounds, (_, held_out) in zip(models.trainings, models.contributions, folds, strict=True):
        for t, h in enumerate(rounds[: models.n_rounds]):
            A[t][:, held_out] = training.settings.eta * h
        start[held_out] = training.ensemble.intercept
        seen[held_out] = True
    A = A.transpose(2, 1, 0)
    if not seen.all():
        A, start, samples = A[seen], start[seen], samples.targets(np.flatnonzero(seen))
    return _learn(A, samples, start, loss, weighting, context)


def out_of_fold_shift(
    samples: Samples, folds: Folds, models: FoldModels, loss: Loss, communicator: Communicator
) -> FloatArray:
    """Return the shift of each output that gives its quantile the nominal coverage of held-out samples.

    Residuals of training samples are too small for this.
    """
    scores = [
        training.ensemble.intercept[:, None]
        + training.settings.eta
        * np.sum(rounds[: models.n_rounds] or np.zeros((1, loss.n_outputs, len(indices))), axis=0)
        for training, rounds, (_, indices) in zip(models.trainings, models.contributions, folds, strict=True)
    ]
    held_out = samples.targets(np.concatenate([indices for _, indices in folds]))
    F = np.concatenate(scores, axis=1)
    shifts = np.zeros(len(F))
    for k in range(len(F)):
        quantile = loss.output(k).residual_quantile
        if quantile is not None:
            shifts[k] = weighted_quantile(held_out.y - F[k], held_out.weight, quantile, communicator)
    return shifts


def out_of_fold_scale(
    samples: Samples, folds: Folds, models: FoldModels, loss: Loss, communicator: Communicator
) -> list[float]:
    """Return the factor of all trees that minimizes the loss of held-out samples at the selected round.

    Several targets have one factor each.
    """
    start, added = [], []
    for training, part in zip(models.trainings, models.held_out, strict=True):
        scores = part.added_scores(training.ensemble)
        if scores is None:
            return [1.0]
        added.append(scores)
        start.append(np.broadcast_to(training.ensemble.intercept[:, None], scores.shape))
    held_out = samples.targets(np.concatenate([indices for _, indices in folds]))
    A, F = np.concatenate(added, axis=1), np.concatenate(start, axis=1)
    if not loss.independent_outputs:
        return [
            learn_scale(A, held_out.y, loss=loss, start=F, sample_weight=held_out.weight, communicator=communicator)
        ]
    scales = []
    for k in range(loss.n_outputs):
        seen = ~np.isnan(held_out.y[:, k])
        weight = None if held_out.weight is None else held_out.weight[seen]
        y = held_out.y[seen, k].astype(np.float64)
        added_k, start_k = A[k : k + 1, seen], F[k : k + 1, seen]
        scales.append(learn_scale(added_k, y, loss=loss.output(k), start=start_k, sample_weight=weight))
    return scales


def _learn(
    A: FloatArray, samples: Samples, start: FloatArray, loss: Loss, weighting: Weighting, context: Context
) -> Weights:
    if context.communicator.size > 1:
        A, samples, start = _gathered(A, samples, start, context.communicator)
    found = learn_weights(
        A,
        samples.y,
        loss=loss,
        start=start,
        sample_weight=samples.weight,
        method=weighting.method,
        covariance_penalty=weighting.covariance_penalty,
        ridge=weighting.ridge,
    )
    if not found.converged:
        context.observer.warn(
            f"The weights are {found.gap:.2g} from the optimum after {found.n_iterations} iterations."
        )
    return found


def _gathered(
    A: FloatArray, samples: Samples, start: FloatArray, communicator: Communicator
) -> tuple[FloatArray, Samples, FloatArray]:
    """Return the held-out samples of all workers on every worker: each solves the same small problem."""
    size = float(communicator.sum(np.array(float(A.nbytes))))
    if size > _LARGEST_EXCHANGE:
        raise ValueError(
            f"weighting needs the contributions of {A.shape[-1]} rounds to {samples.count(communicator)} held-out "
            f"samples on every worker, {size / 2**30:.1f} GiB, more than {_LARGEST_EXCHANGE / 2**30:.0f}; hold out "
            "fewer samples."
        )
    start = np.broadcast_to(start, A.shape[:-1])
    parts = communicator.gather((A, samples.y, samples.weight, start))
    weights = None if parts[0][2] is None else np.concatenate([part[2] for part in parts])
    joined = Samples(None, np.concatenate([part[1] for part in parts]), weights)
    return np.concatenate([part[0] for part in parts]), joined, np.concatenate([part[3] for part in parts])
