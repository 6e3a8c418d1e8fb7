"""The steps of ``fit``: checks, encoding, specification, training, and setting the fitted model."""

from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from scboost._arrays import ArrayLike, IntArray
from scboost._core.losses import Loss
from scboost._core.parameters import Parameters, Request
from scboost._core.rules import check_batch_arguments, check_metric_is_used, check_parameters, check_request
from scboost._core.run import ValidationMetric
from scboost._core.spec import Facts, FitSpec, Strategy, resolve
from scboost._core.statistics import weighted_mean
from scboost._core.train import Trained, TrainingData, can_select_rounds, train
from scboost._core.training import Training
from scboost._data.batches import OpenBatches, opened
from scboost._data.drift import warn_of_drift
from scboost._data.encoder import Encoder, InputRules
from scboost._data.folds import class_counts
from scboost._data.identifiers import warn_of_identifiers
from scboost._data.samples import Samples
from scboost._data.validation import check_size, refuse_masked, target_vector
from scboost._engine.factory import engine_name
from scboost._engine.interface import EngineName, Regressor
from scboost._estimators.callbacks import RoundObserver, Tasks
from scboost._estimators.intake import (
    Target,
    interaction_groups,
    learn_features,
    monotone_signs,
    used_groups,
    without_weightless,
)
from scboost._estimators.metric import Metric
from scboost._model.fitted import FittedModel, Selection, new_ensemble
from scboost._model.resuming import Identity, Resumable, check_base
from scboost._runtime.communicator import Communicator, SingleProcess, agreed
from scboost._runtime.context import Context
from scboost._runtime.signals import interrupts_held, interrupts_raised
from scboost._runtime.storage import IN_MEMORY, Storage
from scboost._runtime.threads import Threads, single_threaded_blas, thread_count

# Size of X below which one thread is as fast as several and does not depend on busy cores.
_SERIAL_CELLS = 2_000_000
# Maximum distance between zero and the mean of y for init='zero', in standard deviations of y.
_FARTHEST_START = 30.0
_ROUNDING = 1e-14  # of means, as a share


@dataclass(frozen=True)
class FitArguments:
    """The arguments of ``fit``.

    Attributes
    ----------
    X, y, sample_weight, X_val, y_val, sample_weight_val, groups
        As in ``fit``.
    base : FitMixin or None
        A fitted estimator to continue.
    positions : ndarray of int or None
        New position of each sample of X, -1 for samples of weight 0; None if none was left out.
    """

    X: ArrayLike
    y: ArrayLike | None = None
    sample_weight: ArrayLike | None = None
    X_val: ArrayLike | None = None
    y_val: ArrayLike | None = None
    sample_weight_val: ArrayLike | None = None
    groups: ArrayLike | None = None
    base: FitMixin | None = None
    positions: IntArray | None = None

    @property
    def base_model(self) -> FittedModel | None:
        """The model to continue."""
        return None if self.base is None else self.base.__fitted_model__()

    def without_weightless(self, communicator: Communicator) -> FitArguments:
        """Leave out samples of weight 0."""
        refuse_masked(
            y=self.y,
            sample_weight=self.sample_weight,
            y_val=self.y_val,
            sample_weight_val=self.sample_weight_val,
            groups=self.groups,
        )
        X, y, weight, groups, positions = without_weightless(
            self.X, self.y, self.sample_weight, self.groups, communicator
        )
        return replace(self, X=X, y=y, sample_weight=weight, groups=groups, positions=positions)


class FitMixin(ABC):
    """The part of the estimators that implements ``fit``."""

    estimator: Regressor | None
    engine: Literal["auto", "native", "xgboost"]
    device: str
    callbacks: Sequence[Callable[[Any], Any]] | None
    n_estimators: int | Literal["auto"]
    random_state: Any
    verbose: int | None
    warm_start: bool
    _resumable: Resumable | None

    if TYPE_CHECKING:  # methods of scikit-learn's base class

        def get_params(self, *, deep: bool = True) -> dict[str, Any]:
            """Return the parameters."""

        def __sklearn_tags__(self) -> Any:
            """Return the tags."""

    @abstractmethod
    def _learn_target(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        communicator: Communicator,
        base: Loss | None,
    ) -> Target:
        """Return the training samples, with the target as the loss takes it, the loss and the classes.

        ``base`` is the loss of a model to continue; its data-dependent parameters are kept.
        """

    @abstractmethod
    def _validation_samples(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        target: Target,
        communicator: Communicator,
    ) -> Samples:
        """Return the validation samples, with the target as the loss takes it."""

    def _supports_weighting(self) -> bool:
        """Whether tree weights can be learned with the loss."""
        return True

    def _target_array(self, y: ArrayLike | None, X: Any, name: str) -> npt.NDArray[Any]:
        """Return the target as an array of the length of X."""
        return target_vector(y, X, name)

    def _metric(self, scoring: str | Callable[..., float], target: Target) -> ValidationMetric:
        """Return the metric that replaces the loss on validation sets."""
        return Metric(scoring, target.loss, target.classes)

    def _refined_loss(self, spec: FitSpec, data: TrainingData, context: Context) -> Loss | None:
        """Return a loss whose parameters were estimated by a short first fit; None to keep that of the target."""
        del spec, data, context
        return None

    def _finished(self, model: FittedModel, samples: Samples, n_threads: int) -> FittedModel:
        """Add the state of a model besides its trees, computed from the training samples."""
        del samples, n_threads
        return model

    @abstractmethod
    def __fitted_model__(self) -> FittedModel:
        """Return the fitted model."""

    @abstractmethod
    def __with_fitted_model__(self, model: FittedModel, resumable: Resumable | None = None) -> Any:
        """Set the fitted state."""

    @abstractmethod
    def __stored_parameters__(self) -> dict[str, Any]:
        """Return the parameters of the built-in class, also for derived classes that do not list them."""

    def _fit_on(self, communicator: Communicator, given: FitArguments) -> None:
        """Fit to the samples of this worker jointly with the other workers."""
        parameters = Parameters.of(self.__stored_parameters__())
        with opened(given.X_val) as X_val, opened(given.X) as X:
            in_files = isinstance(X, OpenBatches) and not self.warm_start
            storage = Storage(X.folder) if in_files else IN_MEMORY
            threads = Threads(thread_count(parameters.n_threads))
            try:
                with interrupts_raised(), single_threaded_blas():
                    self._fit(replace(given, X=X, X_val=X_val), parameters, Context(communicator, threads, storage))
            finally:
                threads.close()

    def _fit(self, given: FitArguments, parameters: Parameters, context: Context) -> None:
        """Check, encode, specify, train, and set the fitted model."""
        communicator = context.communicator
        resume = self._resumable if self.warm_start else None
        with agreed(communicator):
            strategy = self._check(given, parameters, communicator)
            given = given.without_weightless(communicator)
        encoder, target = self._learn(given, context)
        if communicator.size == 1:
            warn_of_identifiers(given.X, encoder)
            if strategy.selects_rounds and isinstance(parameters.cv, str) and target.has_one_number:
                warn_of_drift(given.X, target.samples.y, encoder)
        target = _with_usable_weights(target, parameters, communicator)
        _check_start(target, parameters, communicator)
        if parameters.n_jobs is None and target.samples.count(communicator) * encoder.features.n < _SERIAL_CELLS:
            parameters, context = replace(parameters, n_jobs=1), replace(context, threads=Threads())
        engine = self._engine_name(given, context)
        if engine == "native":
            from scboost._engine.native import passes

            context.threads.use_passes(passes)
        with agreed(communicator):
            validation = self._given_validation(given, encoder, target, communicator)
        seed = communicator.gather(draw_seed(self.random_state))[0]
        seed = seed if resume is None else resume.training.settings.seed
        spec = self._make_spec(parameters, strategy, encoder, target, seed, engine, context)
        data = TrainingData(target.samples, validation, target.classes, positions=given.positions)
        if given.base is not None:
            if type(given.base) is not type(self):
                raise ValueError(f"init_model is a {type(given.base).__name__}; this is a {type(self).__name__}.")
            check_base(given.base.__fitted_model__(), encoder, target.classes, target.loss)
            data.base = given.base.__fitted_model__().ensemble
        if given.groups is not None:
            data.groups = used_groups(given.groups, _num_samples(given.X), given.sample_weight)
        loss = self._refined_loss(spec, data, context) if given.base is None and resume is None else None
        if loss is not None:
            target = replace(target, loss=loss)
            spec = self._make_spec(parameters, strategy, encoder, target, seed, engine, context)
        identity: Identity | None = None
        if self.warm_start or self.callbacks:
            parameters_now = {**self.get_params(deep=False), "engine": engine}
            identity = Identity.of(parameters_now, encoder, target.samples, validation, context)
        if resume is not None and identity is not None:
            resume.identity.check_same(identity)
            _check_more_rounds(resume.training, spec.strategy.n_rounds)
            data.resume = copy.deepcopy(resume.training)  # the previous state is kept if this fit fails
            if resume.n_rounds != spec.strategy.n_rounds:  # out-of-fold predictions are of fewer rounds
                data.resume.conformal = None
        self._train(given, spec, data, encoder, target, identity, context)

    def _check(self, given: FitArguments, parameters: Parameters, communicator: Communicator) -> Strategy:
        """Check parameters and arguments before any data are read; return the strategy."""
        check_parameters(parameters)
        in_batches = isinstance(given.X, OpenBatches)
        if in_batches:
            check_batch_arguments({"y": given.y, "sample_weight": given.sample_weight, "groups": given.groups})
        request = Request(
            has_validation=given.X_val is not None or given.y_val is not None,
            has_groups=given.groups is not None,
            has_base=given.base is not None,
            in_batches=in_batches,
            n_workers=communicator.size,
            supports_weighting=self._supports_weighting(),
        )
        strategy = Strategy.of(parameters, request)
        check_request(parameters, request, strategy)
        for callback in self.callbacks or ():
            if hasattr(callback, "begin") and communicator.rank == 0:
                callback.begin(self)
        return strategy

    def _learn(self, given: FitArguments, context: Context) -> tuple[Encoder, Target]:
        """Learn features and target from the training set."""
        communicator, base, X = context.communicator, given.base_model, given.X
        like, base_loss = (None, None) if base is None else (base.encoder, base.loss)
        if base_loss is None and self.warm_start and self._resumable is not None:
            base_loss = self.__fitted_model__().loss
        if isinstance(X, OpenBatches):
            encoder, labels, weight = X.learn(self._input_rules(), like)
            target = self._learn_target(labels, X, weight, communicator, base_loss)
            samples, stored = target.samples, context.storage.stored
            kept = Samples(X, stored(samples.y), None if samples.weight is None else stored(samples.weight))
            target = replace(target, samples=kept)
        else:
            encoder, matrix = learn_features(X, self._input_rules(), like, type(self).__name__, communicator)
            with agreed(communicator):
                labels = self._target_array(given.y, matrix, "y")
            target = self._learn_target(labels, matrix, given.sample_weight, communicator, base_loss)
        if communicator.size > 1 and (n := target.samples.count(communicator)) < 2:
            raise ValueError(f"X has {n} samples with positive weight on all workers; at least 2 are needed.")
        return encoder, target

    def _engine_name(self, given: FitArguments, context: Context) -> EngineName:
        """Return the engine of the fit."""
        in_batches = isinstance(given.X, OpenBatches)
        distributed, engine = not isinstance(context.communicator, SingleProcess), self.engine
        if engine == "auto" and self.warm_start and self._resumable is not None:  # one engine for all trees of a model
            engine = self._resumable.identity.engine or engine
        return engine_name(engine, in_batches=in_batches, distributed=distributed, device=self.device)

    def _input_rules(self) -> InputRules:
        allowed = self.__sklearn_tags__().input_tags
        return InputRules(np.float32 if self.estimator is None else np.float64, allowed.allow_nan, allowed.sparse)

    def _given_validation(
        self, given: FitArguments, encoder: Encoder, target: Target, communicator: Communicator
    ) -> Samples | None:
        """Return the validation set that was passed to ``fit``."""
        X, y, sample_weight = given.X_val, given.y_val, given.sample_weight_val
        if X is None and y is None:
            if sample_weight is not None:
                raise ValueError("sample_weight_val needs X_val and y_val.")
            return None
        if isinstance(X, OpenBatches):
            if y is not None or sample_weight is not None:
                raise ValueError("X_val is batches, which bring their own y_val and sample_weight_val; leave them out.")
            labels, weight = X.read(encoder)
            return self._validation_samples(labels, X, weight, target, communicator)
        if X is None or y is None:
            raise ValueError("X_val and y_val must be given together.")
        matrix = encoder.encode(X, owner=type(self).__name__, min_samples=0 if communicator.size > 1 else 1)
        if self.estimator is None:
            check_size(matrix, "X_val")
        labels = self._target_array(y, matrix, "y_val")
        return self._validation_samples(labels, matrix, sample_weight, target, communicator)

    def _make_spec(
        self,
        parameters: Parameters,
        strategy: Strategy,
        encoder: Encoder,
        target: Target,
        seed: int,
        engine: EngineName,
        context: Context,
    ) -> FitSpec:
        """Resolve everything that depends on the data."""
        samples, loss, communicator = target.samples, target.loss, context.communicator
        facts = Facts(
            n_features=encoder.features.n,
            total_weight=samples.total_weight(communicator),
            effective_size=samples.effective_size(communicator),
            max_categories=encoder.features.max_categories,
            rarest_class=_rarest_class(samples, loss, communicator),
        )
        scoring, learner = parameters.early_stopping_metric, parameters.estimator
        spec = resolve(
            parameters,
            strategy,
            loss,
            facts,
            seed,
            new_ensemble=functools.partial(new_ensemble, encoder, loss, of_trees=learner is None),
            categorical=encoder.features.categorical,
            monotone=monotone_signs(parameters.monotone_constraints, encoder),
            interactions=interaction_groups(parameters.interaction_constraints, encoder),
            make_learner=None
            if parameters.estimator is None
            else functools.partial(_make_learner, parameters.estimator),
            engine=engine,
            metric=None if scoring is None else self._metric(scoring, target),
        )
        by_hash = isinstance(parameters.cv, str)
        needs_folds = strategy.selects_rounds or strategy.corrects_quantiles
        if needs_folds and by_hash and not can_select_rounds(samples, loss.n_classes, context):
            check_metric_is_used(parameters)
            return spec.without_selection()
        return spec

    def _train(
        self,
        given: FitArguments,
        spec: FitSpec,
        data: TrainingData,
        encoder: Encoder,
        target: Target,
        identity: Identity | None,
        context: Context,
    ) -> None:
        """Train, and set the fitted model; callbacks see a copy of this estimator with the model so far."""
        view = copy.copy(self)
        stops_early = spec.strategy.early_stopping is not None
        engine = spec.engine.name if self.estimator is None else None

        def set_model(to: FitMixin, training: Training, n_rounds: int, trained: Trained | None = None) -> Any:
            requested = self.n_estimators if stops_early else n_rounds
            resumable = None if identity is None else Resumable(training, identity, requested)
            model = _fitted_model(encoder, target, training, trained, engine)
            if trained is not None:
                model = self._finished(model, target.samples, context.n_threads)
            return to.__with_fitted_model__(model, resumable)

        tasks = Tasks(self, given.X, given.y, given.sample_weight, spec.strategy.n_rounds)
        publish = functools.partial(set_model, view)
        verbose = None if self.verbose is None else bool(self.verbose)
        observer = RoundObserver(self.callbacks or (), tasks, publish, context.communicator, verbose=verbose)
        with interrupts_held() as interrupted:  # an interrupt after the last round must not discard the model
            try:
                trained = train(spec, data, replace(context, observer=observer))
            finally:
                observer.close()
            set_model(self, trained.training, observer.n_rounds, trained)
            if not self.warm_start:
                self._resumable = None
            tasks.end_fit(self)
        if trained.training.interrupted or interrupted():
            n_rounds = trained.training.ensemble.n_rounds
            raise KeyboardInterrupt(f"the model keeps the {n_rounds} rounds finished so far")


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return the seed of a fit; None is a fixed seed, so that fits are reproducible by default."""
    if random_state is None:
        random_state = 0
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _rarest_class(samples: Samples, loss: Loss, communicator: Communicator) -> float:
    """Return the share of the samples that is in the class with the fewest, of all labels; 1 for regression."""
    if loss.task == "multilabel classification":
        shares = np.nanmean(samples.y, axis=0)
        return float(np.min(np.minimum(shares, 1 - shares), where=(shares > 0) & (shares < 1), initial=1.0))
    if not loss.n_classes:
        return 1.0
    counts = class_counts(samples, loss.n_classes, communicator)
    return float(counts.min() / counts.sum())


def _with_usable_weights(target: Target, parameters: Parameters, communicator: Communicator) -> Target:
    """Rescale weights with a mean below 1 to mean 1: the default ``min_child_weight`` is in units of samples.

    Integer weights, which are repetitions, have a mean of at least 1 and stay as they are.
    """
    samples = target.samples
    if parameters.min_child_weight != "auto" or samples.weight is None:
        return target
    mean = samples.total_weight(communicator) / samples.count(communicator)
    return target if mean >= 1 else replace(target, samples=samples.weighted(samples.weight / mean))


def _check_start(target: Target, parameters: Parameters, communicator: Communicator) -> None:
    """Reject ``init="zero"`` if the mean of y is too far from zero."""
    if parameters.init == "prior" or not target.loss.translation_invariant:
        return
    for column in np.atleast_2d(target.samples.y.astype(np.float64).T):
        given = ~np.isnan(column)
        y, weight = column[given], None if target.samples.weight is None else target.samples.weight[given]
        mean = weighted_mean(y, weight, communicator)
        deviation = float(np.sqrt(weighted_mean((y - mean) ** 2, weight, communicator)))
        is_constant = deviation <= _ROUNDING * abs(mean)
        if abs(mean) > _FARTHEST_START * deviation and not is_constant:
            raise ValueError(
                f"init='zero' starts at the raw score 0, but y has mean {mean:.3g} and standard deviation "
                f"{deviation:.3g}, which most fits do not reach. Use init='prior' (the default), or center y."
            )


def _make_learner(estimator: Regressor, seed: int) -> Any:
    """Return an unfitted copy of a scikit-learn regressor, with a seed unless it has one."""
    learner: Any = clone(estimator)
    if "random_state" in learner.get_params() and learner.get_params()["random_state"] is None:
        learner.set_params(random_state=seed)
    return learner


def _check_more_rounds(resume: Training, n_rounds: int) -> None:
    done = resume.ensemble.n_rounds
    if done > n_rounds:
        raise ValueError(
            f"n_estimators={n_rounds} is less than the {done} rounds already done; with warm_start=True it can only "
            "grow."
        )


def _fitted_model(
    encoder: Encoder, target: Target, training: Training, trained: Trained | None, engine: EngineName | None
) -> FittedModel:
    """Return the model of a training; unfinished if there is no result yet."""
    model = FittedModel(
        encoder,
        target.classes,
        target.loss,
        training.ensemble,
        n_rounds=training.ensemble.n_rounds,
        learning_rate=training.settings.eta,
        max_depth=training.options.max_depth,
        tree_shape=training.options.shape,
        multi_strategy=training.options.multi_strategy,
        projection_strength=training.settings.gamma,
        training_log=training.log(),
        stop_reason=training.stop.message,
        baseline={} if training.interrupted else training.baseline,
        conformal=None if training.stop.is_premature else training.conformal,
        engine=engine,
        members=tuple(training.members),
    )
    if trained is None:
        return model
    splits: Literal["one-vs-rest", "subset"] | None = None
    if encoder.features.categories is not None:
        splits = "subset" if training.options.subset_splits else "one-vs-rest"
    selection = Selection(trained.selection_log, training.options.features, splits)
    return replace(model, n_rounds=trained.n_rounds, selection=selection, weighting_result=trained.weights)
