"""Averages of fold models, alone or with a model on all samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scboost._core.replay import replay
from scboost._core.selection import FoldModels
from scboost._core.spec import FitSpec
from scboost._core.training import Companions, Training
from scboost._core.weighting import Weights
from scboost._data.samples import Samples
from scboost._engine.ensemble import interleaved
from scboost._engine.interface import Engine
from scboost._runtime.context import Context


def average(trainings: list[Training], weights: Weights | None, scale: float = 1.0) -> Companions:
    """Return the average of fold models, whose rounds are multiplied by their weights, or by a common scale."""
    share = 1 / len(trainings)
    for training in trainings:
        own = training.ensemble
        factors = np.full(own.n_rounds, scale) if weights is None else weights.weights[: own.n_rounds]
        shift = 0.0 if weights is None else weights.intercept
        own.reweight(own.weights * factors[:, None] * share, (own.intercept + shift) * share)
    ensemble = trainings[0].ensemble
    sizes = [training.ensemble.n_rounds for training in trainings]
    for training in trainings[1:]:
        ensemble.extend(training.ensemble)
    return Companions(ensemble, sizes)


def refit(models: FoldModels, spec: FitSpec, samples: Samples, engine: Engine, context: Context) -> list[Training]:
    """Refit the leaf values of fold models on all samples; the last model is interrupted after an interrupt."""
    refitted: list[Training] = []
    for member in models.trainings:
        refitted.append(replay(member, spec, samples, engine, context))
        if refitted[-1].interrupted:
            break
    return refitted


def join(training: Training, *, alone: bool) -> None:
    """Average the model on all samples with its companions, or replace it by them.

    The rounds of all models are interleaved: any number of first rounds has about the same share of each model.
    """
    companions = training.companions
    if companions is None:
        return
    ensemble, sizes = companions.ensemble, companions.sizes
    if not alone:
        ensemble, sizes = training.ensemble, [training.ensemble.n_rounds, *sizes]
        own = 1 / len(sizes)
        for part, share in ((ensemble, own), (companions.ensemble, 1 - own)):
            part.reweight(part.weights * share, part.intercept * share)
        ensemble.extend(companions.ensemble)
    ensemble.select(interleaved(sizes))
    training.ensemble, training.members, training.companions = ensemble, companions.sizes, None
    if training.options.features:
        used = tuple(np.flatnonzero(ensemble.gains()).tolist())
        training.options = replace(training.options, features=used)
