"""The scale of an accelerated failure time model, estimated before its trees are grown.

The location of a censored time depends on the scale: the larger the scale, the later the event is expected. The scale
without features contains everything that the features explain. Trees grown with it predict times that are too late, so
a few rounds of fold models estimate the scale that is left given the features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from scboost._core.losses import AFTLoss
from scboost._core.race import Candidate
from scboost._core.selection import CrossValidation
from scboost._core.spec import FitSpec, FoldSpec, RoundSelection
from scboost._core.stopping import EarlyStopping
from scboost._core.survival import location_and_scale, out_of_fold_scores
from scboost._core.train import TrainingData, can_select_rounds, folds_of
from scboost._runtime.context import Context
from scboost._runtime.observer import SILENT

# Learning rate and largest number of rounds of the fold models; they stop after some rounds without improvement.
_RATE, _ROUNDS, _PATIENCE = 0.2, 60, 5
_FOLDS = 3


def with_scale_given_features(spec: FitSpec, data: TrainingData, context: Context) -> AFTLoss:
    """Return the loss of a specification with the scale of the log-times around out-of-fold predictions.

    With fewer samples than cross-validation needs, or if the fold models find no split, the loss stays as it is.

    Parameters
    ----------
    spec : FitSpec
        Specification of the fit, with an AFT loss.
    data : TrainingData
        The data.
    context : Context
        Context of the fit.
    """
    loss = spec.loss
    assert isinstance(loss, AFTLoss)  # noqa: S101 - for the type checker
    if not can_select_rounds(data.samples, 0, context):
        return loss
    pilot = replace(
        spec,
        strategy=replace(spec.strategy, n_rounds=_ROUNDS, weighting=None),
        settings=replace(spec.settings, eta=_RATE),
        selection=RoundSelection(
            stopping=EarlyStopping(_PATIENCE, 0.0),
            speedup=1,
            selects_features=False,
            candidates=(Candidate(spec.options),),
            scales_rate=False,
        ),
        folds=_folds(spec),
        metric=None,
    )
    silent = replace(context, observer=SILENT)
    folds = folds_of(pilot, data, silent)
    models = CrossValidation(pilot, data.samples, folds, silent).grow(kept=False)
    found = out_of_fold_scores(data.samples, folds, models)
    if found is None or np.isinf(found[0].y[:, 1]).all():
        return loss
    held_out, raw = found
    return type(loss)(location_and_scale(type(loss), held_out.y, held_out.weight, raw[0])[1])


def _folds(spec: FitSpec) -> FoldSpec:
    """Return the folds of the fit, or some of its own if it has none or they can be read once only."""
    if spec.strategy.grows_folds and not isinstance(spec.folds.cv, Iterator):
        return spec.folds
    return replace(spec.folds, cv="auto", n_folds=_FOLDS, n_used=min(_FOLDS, spec.folds.n_used))
