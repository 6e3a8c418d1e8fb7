"""Selection by cross-validation: number of rounds, depth, features and categorical splits.

Models of all folds grow in step. Features are left out if that lowers the loss of models with the default options on
held-out samples by more than two standard errors after the first rounds, or in the end if the selection is thorough;
then all candidates for the options, the default ones among them, compete on the same folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scboost._arrays import FloatArray, Paged
from scboost._core.race import FIRST_ROUNDS, Candidate, Race, first_folds
from scboost._core.run import OutOfFold, Run, grow, pooled_loss
from scboost._core.spec import FitSpec, RoundSelection
from scboost._core.statistics import standard_errors
from scboost._core.stopping import ComparedStopping, ContinuedStopping, EarlyStopping, JointStopping, Stopping
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


def _pointwise_loss(held_out: Sequence[OutOfFold], trainings: Sequence[Training]) -> FloatArray | None:
    if any(part.best_scores is None for part in held_out):
        return None
    parts = zip(held_out, trainings, strict=True)
    return np.concatenate([part.pointwise_loss(training.ensemble) for part, training in parts])


def _first_losses(held_out: Sequence[OutOfFold], trainings: Sequence[Training]) -> list[float]:
    """Return the loss on held-out samples of the first trainings together after each round."""
    curves = [
        (t.validation_loss, part.weight) for t, part in zip(trainings, held_out, strict=False) if t.validation_loss
    ]
    total, n_rounds = sum(weight for _, weight in curves), max((len(losses) for losses, _ in curves), default=0)
    return [sum(losses[min(i, len(losses) - 1)] * weight for losses, weight in curves) / total for i in range(n_rounds)]


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
    features : tuple of tuples of int, optional
        Features of each model; all by default.
    kept : bool, default=False
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
        features: tuple[tuple[int, ...], ...] = (),
        kept: bool = False,
    ) -> None:
        self.candidate, self.losses, self.features = candidate, list[float](), features
        self._context, self._label, self._kept, self._selects = context, label, kept, spec.selection is not None
        self._spec, self._samples, self._folds, self._engines = spec, samples, folds, engines
        self._done = False
        self._runs: list[Run] = []
        self._held_out: list[OutOfFold] = []
        self._contributions: list[list[FloatArray]] = []

    def _add_run(self) -> None:
        """Add the model of the next fold, without rounds."""
        spec, i = self._spec, len(self._runs)
        train, held_out = self._folds[i]
        keeps_contributions = spec.strategy.weighting is not None or not spec.loss.supports_weighting
        added: list[FloatArray] = []
        part = OutOfFold(
            self._samples, held_out, spec.loss, self._context, added if keeps_contributions else None, spec.metric
        )
        settings = self.candidate.settings(spec.settings)
        speedup = 1 if spec.selection is None else spec.selection.speedup
        run = Run(
            self._samples.only(train),
            spec.loss,
            replace(settings, seed=settings.seed + 1 + i, eta=settings.eta * speedup),
            self._engines[i],
            spec.new_ensemble,
            spec.fold_rounds,
            self._context,
            from_zero=spec.from_zero,
            validation=part,
        )
        self._runs.append(run)
        self._held_out.append(part)
        self._contributions.append(added)

    def advance(self, n_rounds: int, stopping: EarlyStopping | None, n_folds: int | None = None) -> None:
        """Grow the models of the first folds up to a number of rounds in all, unless they stop before.

        Parameters
        ----------
        n_rounds : int
            Number of rounds.
        stopping : EarlyStopping or None
            When to stop.
        n_folds : int, optional
            Number of folds, not fewer than before; all by default. Models of further folds catch up first, unless all
            stop before.
        """
        # Predictions of fold models on paged samples would take another pass through them.
        if n_folds is None or isinstance(self._samples.X, Paged):
            n_folds = len(self._folds)
        n_folds = min(n_folds, len(self._folds))
        if n_folds > len(self._runs):
            self._catch_up(n_folds, stopping)
        if self._done or len(self.losses) >= n_rounds:
            return
        before = self.losses if len(self._runs) > 1 else []  # a single run continues from its own losses
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

        self.losses = [*before, *self._grow(self._runs, n_rounds, continued, keep_best)]
        self._done = len(self.losses) < n_rounds

    def _grow(
        self,
        runs: Sequence[Run],
        n_rounds: int,
        stopping: Stopping | None = None,
        on_best: Callable[[], None] | None = None,
    ) -> list[float]:
        """Grow some models; see :func:`scboost._core.run.grow`."""
        observer = self._context.observer
        observer.begin(n_rounds - runs[0].training.state.round, self._label, kept=self._kept)
        losses = grow(runs, n_rounds, stopping=stopping, observer=observer, on_best=on_best)
        if runs[0].training.interrupted:
            raise NoModelYetError("interrupted while fold models were grown: there is no model yet")
        return losses

    def _catch_up(self, n_folds: int, stopping: EarlyStopping | None) -> None:
        """Add models of further folds, with as many rounds as the others have or until the loss of all says to stop.

        Models that have nothing left to learn before keep their predictions.
        """
        first, n_rounds = len(self._runs), len(self.losses)
        while len(self._runs) < n_folds:
            self._add_run()
        if n_rounds == 0:
            return
        best = int(np.argmin(self.losses))
        joint = None
        if stopping is not None:
            weights = [part.weight for part in self._held_out]
            joint = JointStopping(stopping, tuple(self.losses), sum(weights[:first]) / sum(weights))
        grown = self._grow(self._runs[first:], n_rounds, joint)
        self._done = joint is not None and len(grown) < n_rounds and joint.reached(grown)
        self.losses = self.first_losses(n_folds)[: len(grown) if self._done else n_rounds]
        before, best = best, int(np.argmin(self.losses))
        for i in range(first if best == before else 0, n_folds):
            self._keep_round(i, best + 1)

    def _keep_round(self, i: int, n_rounds: int) -> None:
        """Keep the scores of the held-out samples of a fold after some of its rounds."""
        part, training = self._held_out[i], self._runs[i].training
        if n_rounds >= training.state.round:
            part.keep()
            return
        ensemble, X = training.ensemble, self._samples.take(self._folds[i][1]).X
        H = ensemble.contributions(X, 0, min(n_rounds, ensemble.n_rounds), self._context.n_threads)
        start = self._spec.loss.frame(ensemble.intercept).scores(ensemble.intercept[:, None])
        scores = np.repeat(start.astype(training.state.F.dtype), H.shape[2], axis=1)
        for h in H.astype(scores.dtype, copy=False):  # rounded as in the loop
            scores += training.settings.eta * h
        part.best_scores = scores

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

    def gains(self) -> FloatArray:
        """Return the gain of each feature in the model of each fold, of shape (n_folds, n_features)."""
        return np.array([run.training.ensemble.gains() for run in self._runs])

    def first_losses(self, n_folds: int) -> list[float]:
        """Return the loss on the held-out samples of the first folds after each round."""
        return _first_losses(self._held_out[:n_folds], [run.training for run in self._runs])

    def pointwise_loss(self) -> FloatArray | None:
        """Return the loss of each held-out sample after the best round; see :class:`FoldModels`."""
        return _pointwise_loss(self._held_out, [run.training for run in self._runs])


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
        base = Candidate(spec.options)
        if selection is not None:
            base = next(one for one in selection.candidates if one.options == spec.options)
        runs = self._start(base, self._label(kept), kept=kept)
        if selection is None:
            runs.advance(spec.fold_rounds, None)
            return runs.models()
        if selection.selects_features and len(self._folds) > 1:
            runs = self._select_features(runs, selection, kept=kept)
        competitors = [self._competitor(one, runs, kept=kept) for one in selection.candidates if one != base]
        competitors.insert(selection.candidates.index(base), runs)
        race = Race[FoldRuns](
            selection.stopping,
            spec.fold_rounds,
            self._in_standard_errors,
            len(self._folds),
            thorough=selection.thorough,
        )
        return race.run(competitors).models()

    def _label(self, kept: bool) -> str:
        """Return the label of the progress bar."""
        return "scboost, folds" if kept or len(self._folds) > 1 else "scboost, rounds"

    def _competitor(self, candidate: Candidate, base: FoldRuns, *, kept: bool) -> FoldRuns:
        """Return fold models of a candidate with the features of others."""
        options = replace(candidate.options, features=base.candidate.options.features)
        return self._start(replace(candidate, options=options), self._label(kept), features=base.features, kept=kept)

    def _start(
        self,
        candidate: Candidate,
        label: str,
        *,
        features: tuple[tuple[int, ...], ...] = (),
        kept: bool = False,
    ) -> FoldRuns:
        """Return fold models without rounds, each with the options of the candidate and the features of its fold."""
        spec, options, folds = self._spec, candidate.options, self._folds
        if features:
            engines = [self.engine(replace(options, features=part)) for part in features]
        else:
            engine = self.engine(options)
            engines = [engine.fork() for _ in folds]
        parts = self._samples, folds, candidate, engines, self._context, label
        return FoldRuns(spec, *parts, features=features, kept=kept)

    def _select_features(self, base: FoldRuns, selection: RoundSelection, *, kept: bool) -> FoldRuns:
        """Try fewer features; return the fold models with the best ones after the first rounds.

        The features of a fold's model are selected by their gains in the model of that fold, which has not seen the
        samples that evaluate the selection.
        """
        n_rounds = self._spec.fold_rounds if selection.thorough else min(FIRST_ROUNDS, self._spec.fold_rounds)
        base.advance(n_rounds, selection.stopping)
        gains = base.gains()
        if not gains.any(axis=1).all():
            return base
        gains /= gains.mean(axis=1, keepdims=True)

        def without(least: float, incumbent: FoldRuns) -> FoldRuns | None:
            """Try the features with a gain above the least."""
            parts = (*gains, gains.mean(axis=0))
            *of_folds, of_all = (tuple(np.flatnonzero(part > least).tolist()) for part in parts)
            if len(of_all) == gains.shape[1] or not all((*of_folds, of_all)):
                return None
            options = replace(base.candidate.options, features=of_all)
            label = "scboost, features"
            trial = self._start(replace(base.candidate, options=options), label, features=tuple(of_folds), kept=kept)
            return trial if self._is_better(trial, n_rounds, selection.stopping, (incumbent, base)) else None

        middle = without(_GAIN, base)
        if middle is not None:
            return without(_HIGH_GAIN, middle) or middle
        return next((found for least in _LOW_GAINS if (found := without(least, base)) is not None), base)

    def _is_better(
        self, trial: FoldRuns, n_rounds: int, stopping: EarlyStopping, others: tuple[FoldRuns, FoldRuns]
    ) -> bool:
        """Whether a trial beats the incumbent, and significantly the base, in the first rounds."""
        incumbent, base = others
        for n_folds in (first_folds(len(self._folds)), len(self._folds)):
            reference = incumbent.first_losses(n_folds)
            compared = ComparedStopping(**vars(stopping), reference=tuple(reference), n_worse=_ROUNDS_BEHIND)
            trial.advance(n_rounds, compared, n_folds)
            if min(trial.losses, default=np.inf) >= min(reference, default=np.inf):
                return False
        old, new = base.pointwise_loss(), trial.pointwise_loss()
        return old is not None and new is not None and self._in_standard_errors(old - new) > _STANDARD_ERRORS

    def _in_standard_errors(self, values: FloatArray) -> float:
        """Return the mean of a quantity of the held-out samples in units of its standard error."""
        indices = np.concatenate([held_out for _, held_out in self._folds])
        keys, weight = self._samples.fold_keys(self._context)[indices], self._samples.targets(indices).weight
        return standard_errors(values, keys, weight, self._context.communicator)
