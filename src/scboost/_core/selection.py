"""Selection by cross-validation: number of rounds, depth, features and categorical splits.

Models of all folds grow in step. Candidates for the options of the trees compete on the same folds; features are left
out if that lowers the loss on held-out samples by more than two standard errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scboost._arrays import FloatArray
from scboost._core import autotune
from scboost._core.race import Candidate, Race
from scboost._core.run import OutOfFold, Run, grow, pooled_loss
from scboost._core.spec import FitSpec
from scboost._core.statistics import standard_errors
from scboost._core.stopping import ComparedStopping, ContinuedStopping, EarlyStopping
from scboost._core.training import Training
from scboost._data.folds import Folds
from scboost._data.samples import Samples
from scboost._engine.factory import EngineFactory
from scboost._engine.interface import Engine, TreeOptions
from scboost._runtime.context import Context

# Features with at most this multiple of the mean gain are left out in a trial; more of them if that is a success,
# fewer if not.
_GAIN, _LOW_GAINS, _HIGH_GAIN = 1.0, (0.5, 0.2), 2.0
# By how many standard errors the loss must fall, and after how many rounds in which it is higher a trial ends.
_STANDARD_ERRORS = 2.0
_ROUNDS_BEHIND = 5


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
    candidate : Candidate
        Their options.
    """

    trainings: list[Training]
    held_out: list[OutOfFold]
    contributions: list[list[FloatArray]]
    losses: list[float]
    n_rounds: int
    candidate: Candidate

    @property
    def have_trees(self) -> bool:
        """Whether every model has a split."""
        return all(training.ensemble.gains().any() for training in self.trainings)


class FoldRuns:
    """Models of one candidate on the first folds, which grow in step and can be continued.

    Parameters
    ----------
    spec : FitSpec
        Specification of the fit.
    samples : Samples
        All samples.
    folds : Folds
        The folds.
    candidate : Candidate
        Options of the models.
    engines : list of Engine
        One per fold.
    context : Context
        Context of the fit.
    label : str
        Label of the progress bar.
    kept : bool
        Whether the models are part of the result.
    """

    def __init__(
        self,
        spec: FitSpec,
        samples: Samples,
        folds: Folds,
        candidate: Candidate,
        engines: Sequence[Engine],
        context: Context,
        label: str,
        *,
        kept: bool = False,
    ) -> None:
        self.candidate, self.losses = candidate, list[float]()
        self._context, self._label, self._kept, self._selects = context, label, kept, spec.selection is not None
        self._done = False
        keeps_contributions = spec.strategy.weighting is not None or not spec.loss.supports_weighting
        self._contributions: list[list[FloatArray]] = [[] for _ in folds]
        self._held_out = [
            OutOfFold(samples, indices, spec.loss, context, added if keeps_contributions else None, spec.metric)
            for added, (_, indices) in zip(self._contributions, folds, strict=True)
        ]
        settings = candidate.settings(spec.settings)
        speedup = 1 if spec.selection is None else spec.selection.speedup
        self._runs = [
            Run(
                samples.only(train),
                spec.loss,
                replace(settings, seed=settings.seed + 1 + i, eta=settings.eta * speedup),
                engine,
                spec.new_ensemble,
                spec.fold_rounds,
                context,
                from_zero=spec.from_zero,
                validation=self._held_out[i],
            )
            for i, (engine, (train, _)) in enumerate(zip(engines, folds, strict=True))
        ]

    def advance(self, n_rounds: int, stopping: EarlyStopping | None) -> None:
        """Grow the models up to a number of rounds in all, unless they stop before."""
        if self._done or len(self.losses) >= n_rounds:
            return
        before = self.losses if len(self._runs) > 1 else []  # a single run goes on from its own
        continued = None if stopping is None else ContinuedStopping(stopping, tuple(before))
        if stopping is not None and stopping.reached(self.losses):
            self._done = True
            return
        lowest = min(self.losses, default=np.inf)

        def keep_best() -> None:
            nonlocal lowest
            newest = self._pooled()
            if newest < lowest:
                lowest = newest
                for part in self._held_out:
                    part.keep()

        self._context.observer.begin(n_rounds - len(self.losses), self._label, kept=self._kept)
        observer = self._context.observer
        self.losses = [*before, *grow(self._runs, n_rounds, stopping=continued, observer=observer, on_best=keep_best)]
        self._done = len(self.losses) < n_rounds
        if self._runs[0].training.interrupted:
            raise NoModelYetError("interrupted while fold models were grown: there is no model yet")

    def _pooled(self) -> float:
        """Return the loss on the held-out samples of all folds after the last round."""
        return pooled_loss([run for run in self._runs if run.training.validation_loss])

    def models(self) -> FoldModels:
        """Return the models, cut at the best round."""
        trainings = [run.training for run in self._runs]
        best = int(np.argmin(self.losses)) + 1 if self._selects and self.losses else len(self.losses)
        for training in trainings:
            training.ensemble.truncate(best)
        return FoldModels(trainings, self._held_out, self._contributions, self.losses, best, self.candidate)


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

    def grow(self, *, kept: bool) -> FoldModels:
        """Grow fold models, of the best candidate where there are several, and cut them at the best round."""
        spec, selection = self._spec, self._spec.selection
        label = "scboost, folds" if kept or len(self._folds) > 1 else "scboost, rounds"
        if selection is None:
            runs = self._start(Candidate(spec.options), label, kept=kept)
            runs.advance(spec.fold_rounds, None)
            return runs.models()
        n_folds = min(autotune.FOLDS, len(self._folds))
        race = Race(
            lambda one: self._start(one, label, n_folds=n_folds, kept=kept), selection.stopping, spec.fold_rounds
        )
        runs = race.run(selection.candidates)
        if n_folds < len(self._folds):
            runs = self._start(runs.candidate, label, kept=kept)
            runs.advance(spec.fold_rounds, selection.stopping)
        models = runs.models()
        if selection.selects_features and len(self._folds) > 1 and models.have_trees:
            return self._select_features(models)
        return models

    def _start(
        self,
        candidate: Candidate,
        label: str,
        *,
        n_folds: int | None = None,
        features: Sequence[tuple[int, ...]] = (),
        kept: bool = False,
    ) -> FoldRuns:
        """Return fold models without rounds, each with the options of the candidate, or the features of its fold."""
        folds = self._folds[:n_folds]
        options = candidate.options
        if features:
            engines = [self.engine(replace(options, features=part)) for part in features]
        else:
            engine = self.engine(options)
            engines = [engine.fork() for _ in folds]
        return FoldRuns(self._spec, self._samples, folds, candidate, engines, self._context, label, kept=kept)

    def _select_features(self, models: FoldModels) -> FoldModels:
        """Try fewer features.

        The features of a fold's model are selected by their gains in the model of that fold, which has not seen the
        samples that tell whether the selection was good.
        """
        gains = np.array([training.ensemble.gains() for training in models.trainings])
        gains /= gains.mean(axis=1, keepdims=True)

        def without(least: float, incumbent: FoldModels) -> FoldModels | None:
            """Try the features with a gain above the least."""
            parts = (*gains, gains.mean(axis=0))
            *of_folds, of_all = (tuple(np.flatnonzero(part > least).tolist()) for part in parts)
            if len(of_all) == gains.shape[1] or not all((*of_folds, of_all)):
                return None
            return self._try_features(of_folds, of_all, incumbent, models)

        middle = without(_GAIN, models)
        if middle is not None:
            return without(_HIGH_GAIN, middle) or middle
        return next((found for least in _LOW_GAINS if (found := without(least, models)) is not None), models)

    def _try_features(
        self, of_folds: Sequence[tuple[int, ...]], of_all: tuple[int, ...], incumbent: FoldModels, before: FoldModels
    ) -> FoldModels | None:
        """Grow fold models again; None unless they beat the incumbent, and significantly those before."""
        selection = self._spec.selection
        if selection is None:
            return None
        stopping = ComparedStopping(
            **vars(selection.stopping), reference=tuple(incumbent.losses), n_worse=_ROUNDS_BEHIND
        )
        selected = replace(before.candidate, options=replace(before.candidate.options, features=of_all))
        runs = self._start(selected, "scboost, features", features=of_folds)
        runs.advance(self._spec.fold_rounds, stopping)
        if min(runs.losses, default=np.inf) >= min(incumbent.losses, default=np.inf):
            return None
        tried = runs.models()
        return tried if self._improvement(before, tried) > _STANDARD_ERRORS else None

    def _improvement(self, before: FoldModels, after: FoldModels) -> float:
        """Return by how many standard errors held-out losses fall; 0 if a fold has no trees."""
        if any(part.best_scores is None for models in (before, after) for part in models.held_out):
            return 0.0
        indices = np.concatenate([held_out for _, held_out in self._folds])
        old, new = (
            np.concatenate([h.pointwise_loss(t.ensemble) for h, t in zip(m.held_out, m.trainings, strict=True)])
            for m in (before, after)
        )
        keys, weight = self._samples.fold_keys(self._context)[indices], self._samples.targets(indices).weight
        return standard_errors(old - new, keys, weight, self._context.communicator)
