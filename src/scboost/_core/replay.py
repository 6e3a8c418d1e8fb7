"""Refit the leaf values of fold models on all samples; their tree structures are kept."""

from __future__ import annotations

from dataclasses import replace

from scboost._core.run import Run, grow
from scboost._core.spec import FitSpec
from scboost._core.training import Training
from scboost._data.samples import Samples
from scboost._engine.interface import Engine
from scboost._engine.replay import ReplayEngine
from scboost._engine.xgboost.ensemble import TreeEnsemble
from scboost._runtime.context import Context


def replay(training: Training, spec: FitSpec, samples: Samples, engine: Engine, context: Context) -> Training:
    """Refit the leaf values of a fold model on all samples, round by round, with the structures of its trees.

    A fold model was grown without its held-out samples, which selected its number of rounds. Its leaf values improve
    with more samples. No split is searched for, so this takes a small share of the time in which the trees were grown.

    Parameters
    ----------
    training : Training
        The fold model.
    spec : FitSpec
        Specification of the fit.
    samples : Samples
        All samples.
    engine : Engine
        An engine on all samples.
    context : Context
        Context of the fit.

    Returns
    -------
    Training
        The model with new leaf values and the intercept of all samples; the fold model itself if its learners are not
        trees. After an interrupt, with the rounds finished so far.
    """
    ensemble, settings = training.ensemble, training.settings
    if not isinstance(ensemble, TreeEnsemble):
        return training
    gamma = 0.0 if settings.leaf_rule == "newton" else settings.gamma  # Newton steps do not depend on the projection
    settings = replace(settings, gamma=gamma, nu=0.0, subsample=1.0)
    trees = ReplayEngine(ensemble, samples.X, engine, context.n_threads)
    n_rounds = ensemble.n_rounds
    run = Run(samples, spec.loss, settings, trees, spec.new_ensemble, n_rounds, context, from_zero=spec.from_zero)
    run.training.options = training.options
    grow([run], n_rounds)
    return run.training
