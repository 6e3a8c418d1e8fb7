"""Selection by cross-validation: number of rounds, depth, features and categorical splits.

Models of all folds grow in step. An alternative to the tree options is selected if it lowers the loss on held-out
samples by more than a number of standard errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scboost._arrays import FloatArray
from scboost._core import autotune
from scboost._core.run import OutOfFold, Run, grow
from scboost._core.spec import FitSpec
from scboost._core.statistics import standard_errors
from scboost._core.stopping import ComparedStopping, EarlyStopping
from scboost._core.training import Training
from scboost._data.folds import Folds
from scboost._data.samples import Samples
from scboost._engine.factory import EngineFactory
from scboost._engine.interface import Engine, TreeOptions
from scboost._runtime.context import Context

# Features with at most this multiple of the mean gain are left out in a trial; more of them if that is a success,
# fewer if not.
_GAIN, _LOW_GAIN, _HIGH_GAIN = 1.0, 0.5, 2.0
# By how many standard errors the loss must fall, and after how many rounds in which it is higher a trial ends.
_STANDARD_ERRORS, _DEPTH_STANDARD_ERRORS = 2.0, 1.5
_ROUNDS_BEHIND = 10


class NoModelYetError(KeyboardInterrupt):
    """An interrupt from the keyboard before there is a model that could be kept."""


@dataclass
class FoldModels:
    """Models of a cross-validation, grown in step.

    Attributes
    ----------
    trainings : list of Training
        One per fold, cut at the best round.
    held_out : list of OutOfFold
        Their held-out samples.
    contributions : list of lists of ndarrays
        Predictions of each round's learners for these, where they are kept.
    losses : list of float
        Loss on all held-out samples after each round.
    n_rounds : int
        The best number of rounds, or that of all.
    """

    trainings: list[Training]
    held_out: list[OutOfFold]
    contributions: list[list[FloatArray]]
    losses: list[float]
    n_rounds: int

    @property
    def have_trees(self) -> bool:
        """Whether every model has a split."""
        return all(training.ensemble.gains().any() for training in self.trainings)

    def losses_of(self, n_folds: int) -> list[float]:
        """Return the loss on the held-out samples of the first folds after each round."""
        if n_folds == len(self.trainings):
            return self.losses
        parts = [(t.validation_loss, h.weight) for t, h in zip(self.trainings, self.held_out, strict=True)][:n_folds]
        seen = [(losses, weight) for losses, weight in parts if losses]  # a model that ended early keeps its last loss
        padded = [[losses[min(i, len(losses) - 1)] for i in range(len(self.losses))] for losses, _ in seen]
        return np.average(padded, axis=0, weights=[weight for _, weight in seen]).tolist() if seen else []


class CrossValidation:
    """Grows fold models and selects their options.

    Parameters
    ----------
    spec : FitSpec
        Specification of the fit.
    samples : Samples
        All samples.
    folds : Folds
        Their folds.
    context : Context
        Context of the fit.
    """

    def __init__(self, spec: FitSpec, samples: Samples, folds: Folds, context: Context) -> None:
        self._spec, self._samples, self._folds, self._context = spec, samples, folds, context
        self._engines = EngineFactory(spec.engine, context)

    def engine(self, options: TreeOptions) -> Engine:
        """Return an engine on all samples."""
        return self._engines.make(self._samples.X, self._samples.weight, options)

    def grow(
        self,
        engines: list[Engine],
        stopping: EarlyStopping | None,
        label: str,
        *,
        n_folds: int | None = None,
        kept: bool = False,
    ) -> FoldModels:
        """Grow a model for each of the first folds, in step, and cut them at the best round.

        Parameters
        ----------
        engines : list of Engine
            One per fold.
        stopping : EarlyStopping or None
            When to stop.
        label : str
            Label of the progress bar.
        n_folds : int, optional
            How many folds; all by default.
        kept : bool, default=False
            Whether the models are part of the result.
        """
        spec, context, selection = self._spec, self._context, self._spec.selection
        folds = self._folds[:n_folds]
        speedup = 1 if selection is None else selection.speedup
        n_rounds = spec.strategy.n_rounds // speedup
        keeps_contributions = spec.strategy.weighting is not None or not spec.loss.supports_weighting
        contributions: list[list[FloatArray]] = [[] for _ in folds]
        held_out = [
            OutOfFold(self._samples, indices, spec.loss, context, added if keeps_contributions else None, spec.metric)
            for added, (_, indices) in zip(contributions, folds, strict=True)
        ]
        settings = spec.settings
        runs = [
            Run(
                self._samples.only(train),
                spec.loss,
                replace(settings, seed=settings.seed + 1 + i, eta=settings.eta * speedup),
                engine,
                spec.new_ensemble,
                n_rounds,
                context,
                from_zero=spec.from_zero,
                validation=held_out[i],
            )
            for i, (engine, (train, _)) in enumerate(zip(engines, folds, strict=True))
        ]
        context.observer.begin(n_rounds, label, kept=kept)

        def keep_best() -> None:
            for part in held_out:
                part.keep()

        losses = grow(runs, n_rounds, stopping=stopping, observer=context.observer, on_best=keep_best)
        trainings = [run.training for run in runs]
        if trainings[0].interrupted:
            raise NoModelYetError("interrupted while fold models were grown: there is no model yet")
        best = int(np.argmin(losses)) + 1 if selection is not None and losses else len(losses)
        for training in trainings:
            training.ensemble.truncate(best)
        return FoldModels(trainings, held_out, contributions, losses, best)

    def select_options(self, models: FoldModels, options: TreeOptions) -> tuple[FoldModels, TreeOptions]:
        """Try other options than those of the models; return the best models, and the options of a final model."""
        selection = self._spec.selection
        if selection is None:
            return models, options
        if selection.selects_subset_splits and models.have_trees:
            subsets = replace(options, subset_splits=True)
            tried = self._try(subsets, "scboost, categories", models, models)
            if tried is not None:
                models, options = tried, subsets
        deep = models
        for depth in selection.depths if models.have_trees else ():
            shallow = replace(options, max_depth=depth)
            tried = self._try(
                shallow,
                "scboost, depth",
                models,
                deep,
                min_standard_errors=_DEPTH_STANDARD_ERRORS,
                rounds_per_round=selection.shallow_rounds,
            )
            if tried is None:
                break
            models, options = tried, shallow
        if selection.selects_features and models.have_trees:
            return self._select_features(models, options)
        return models, options

    def _select_features(self, models: FoldModels, options: TreeOptions) -> tuple[FoldModels, TreeOptions]:
        """Try fewer features.

        The features of a fold's model are selected by their gains in the model of that fold, which has not seen the
        samples that tell whether the selection was good.
        """
        gains = np.array([training.ensemble.gains() for training in models.trainings])
        gains /= gains.mean(axis=1, keepdims=True)

        def without(least: float, incumbent: FoldModels) -> tuple[FoldModels, TreeOptions] | None:
            """Try the features with a gain above the least."""
            parts = (*gains, gains.mean(axis=0))
            *of_folds, of_all = (tuple(np.flatnonzero(part > least).tolist()) for part in parts)
            if len(of_all) == gains.shape[1] or not all((*of_folds, of_all)):
                return None
            selected = replace(options, features=of_all)
            tried = self._try(selected, "scboost, columns", incumbent, models, features=of_folds)
            return None if tried is None else (tried, selected)

        middle = without(_GAIN, models)
        if middle is None:
            return without(_LOW_GAIN, models) or (models, options)
        return without(_HIGH_GAIN, middle[0]) or middle

    def _try(
        self,
        options: TreeOptions,
        label: str,
        incumbent: FoldModels,
        before: FoldModels,
        *,
        features: Sequence[tuple[int, ...]] = (),
        min_standard_errors: float = _STANDARD_ERRORS,
        rounds_per_round: int = 1,
    ) -> FoldModels | None:
        """Grow fold models again; None unless they beat the incumbent, and significantly those before.

        Each has the options, or the features given for its fold. With many folds, some must beat the incumbent before
        all are grown; but trials of features are short unless they succeed.
        """
        selection, n_folds = self._spec.selection, len(self._folds)
        if selection is None:
            return None
        first = n_folds if features else min(autotune.FOLDS, n_folds)
        if features:
            engines = [self.engine(replace(options, features=part)) for part in features]
        else:
            engines = [self.engine(options)] * n_folds
        for n in dict.fromkeys((first, n_folds)):
            reference = incumbent.losses_of(n)
            stopping = ComparedStopping(
                **vars(selection.stopping),
                reference=tuple(np.repeat(reference, rounds_per_round).tolist()),
                n_worse=_ROUNDS_BEHIND,
            )
            tried = self.grow([engine.fork() for engine in engines[:n]], stopping, label, n_folds=n)
            if min(tried.losses, default=np.inf) >= min(reference, default=np.inf):
                return None
        return tried if self._improvement(before, tried) > min_standard_errors else None

    def _improvement(self, before: FoldModels, after: FoldModels) -> float:
        """Return by how many standard errors held-out losses fall; 0 if a fold has no trees."""
        if any(part.best_scores is None for models in (before, after) for part in models.held_out):
            return 0.0
        indices = np.concatenate([held_out for _, held_out in self._folds])
        old, new = (
            np.concatenate([h.pointwise_loss(t.ensemble) for h, t in zip(m.held_out, m.trainings, strict=True)])
            for m in (before, after)
        )
        keys, weight = self._samples.keys(self._context)[indices], self._samples.targets(indices).weight
        return standard_errors(old - new, keys, weight, self._context.communicator)
