"""What the two estimators share: fit and the fitted model."""

from __future__ import annotations

import copy
import functools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from scboost._arrays import ArrayLike, FloatArray, IntArray
from scboost._core.autotune import FAST_ROUNDS
from scboost._core.losses import Loss
from scboost._core.samples import Samples
from scboost._core.training import Training
from scboost._data.encoder import Encoder, InputRules
from scboost._engine.estimator import EstimatorEngine
from scboost._engine.interface import TreeOptions
from scboost._model.fitted import FittedModel, Selection, new_ensemble
from scboost._model.reader import read_trees
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator, agreed
from scboost._runtime.context import Context
from scboost._runtime.storage import IN_MEMORY, Storage
from scboost._runtime.threads import Threads
from scboost._runtime.threads import thread_count as resolved_thread_count
from scboost.diagnostics import EnsembleReader
from scboost.estimators.batches import OpenBatches, opened
from scboost.estimators.callbacks import CallbackSupportMixin, RoundObserver, Tasks, with_callbacks
from scboost.estimators.fitting import (
    EngineMaker,
    Fitted,
    Trainer,
    can_choose_rounds,
    check_classes,
    hold_out,
    make_folds,
)
from scboost.estimators.intake import (
    Target,
    check_size,
    interaction_groups,
    learn_features,
    monotone_signs,
    target_vector,
    used_groups,
    without_weightless,
)
from scboost.estimators.metric import Metric
from scboost.estimators.migration import advice, explains_foreign_arguments
from scboost.estimators.parameters import (
    CONSTRAINTS,
    Plan,
    check_batches,
    check_shareable,
    check_together,
    make_plan,
    thread_count,
)
from scboost.estimators.resuming import Identity, Resumable, check_base
from scboost.xgb.engine import XGBoostEngine

if TYPE_CHECKING:
    import xgboost

    from scboost.weighting import Weights


_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")
_Self = TypeVar("_Self", bound="SCBoost")


def _checked(fit: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate ``fit``: explain unknown arguments, tell scikit-learn's callbacks, validate parameters one by one."""
    decorated: Callable[_P, _R] = with_callbacks(_fit_context(prefer_skip_nested_validation=True)(fit))
    return explains_foreign_arguments(decorated)


class SCBoost(CallbackSupportMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What the classifier and the regressor share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS
    # Where the "?" of scikit-learn's HTML representation leads.
    _doc_link_module = "scboost"
    _doc_link_template = "https://scboost.github.io/scboost/api/generated/scboost.{estimator_name}.html"

    # The fitted state, all of it.
    _model: FittedModel | None = None
    _engine_name: ClassVar[str] = "xgboost"  # or "native"
    _resumable: Resumable | None = None  # with warm_start=True only

    # Parameters, which the constructors of the subclasses set.
    preset: Literal["default", "fast", "best"]
    n_estimators: int | Literal["auto"]
    learning_rate: float | Literal["auto"]
    max_depth: int | Literal["auto"] | None
    max_leaves: int | None
    min_child_weight: float | Literal["auto"]
    reg_lambda: float
    reg_alpha: float
    min_split_loss: float
    projection_strength: float | Literal["auto"]
    energy_threshold: float
    memory: int | Literal["auto", "all"]
    exploration: float | Literal["auto"]
    leaf_rule: Literal["newton", "mean"]
    init: Literal["prior", "zero"]
    subsample: float
    colsample_bytree: float
    colsample_bylevel: float
    colsample_bynode: float
    max_bin: int | Literal["auto"]
    categorical_splits: Literal["auto", "one-vs-rest", "subset"]
    weighting: Literal["simplex", "nonnegative"] | None
    weighting_data: Literal["holdout", "out_of_fold", "fold_average"]
    covariance_penalty: float
    weight_ridge: float
    cv: Any
    feature_selection: bool
    early_stopping: bool
    early_stopping_metric: str | Callable[..., float] | None
    n_iter_no_change: int | Literal["auto"]
    tol: float
    validation_fraction: float
    monotone_constraints: Any
    interaction_constraints: Any
    estimator: Any
    warm_start: bool
    callbacks: Sequence[Callable[[Any], Any]] | None
    n_jobs: int | None
    device: str
    random_state: Any
    verbose: int

    def _set_parameters(self, given: dict[str, Any]) -> None:
        """Set the arguments of a constructor, its ``locals()``, as attributes."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

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

        ``base`` is the loss of a model to continue, whose parameters are kept where they would depend on the data.
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

    def set_params(self: _Self, **params: Any) -> _Self:  # noqa: PYI019 - typing.Self came with Python 3.11
        """Set parameters, as in scikit-learn.

        Parameters
        ----------
        **params
            Parameters by name; those of ``estimator`` as ``estimator__name``.

        Returns
        -------
        self
            The estimator.
        """
        known = list(self.get_params(deep=False))
        unknown = [name for name in params if name.partition("__")[0] not in known]
        if unknown:
            said = " ".join(advice(name, known) for name in unknown)
            raise ValueError(f"Invalid parameter {unknown[0]!r} for estimator {type(self).__name__}. {said}")
        super().set_params(**params)
        return self

    # --- fitting -------------------------------------------------------------------------------------------------

    @_checked
    def fit(  # noqa: PYI019 - typing.Self came with Python 3.11
        self: _Self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        init_model: SCBoost | str | os.PathLike[str] | None = None,
    ) -> _Self:
        """Fit the model to a training set.

        Parameters
        ----------
        X : array-like, sparse matrix, table or Batches of shape (n_samples, n_features)
            Training samples. NaN is missing: each split learns a default direction for it. Infinite values are refused
            in ``fit`` and ordered as numbers when predicting. In a sparse matrix, zeros count as missing, stored or
            not. String and categorical columns of a table (pandas, polars, PyArrow or anything that exports the Arrow
            C stream) are categorical features; categories not seen in ``fit`` count as missing when predicting.
            :class:`scboost.Batches` provides data larger than memory, including targets and weights.
        y : array-like of shape (n_samples,)
            Class labels, or target values for regression.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. Weight 0 is equivalent to leaving the sample out, an integer weight to repeating it. The
            scale of the weights matters only relative to ``reg_lambda``, ``reg_alpha``, ``min_split_loss`` and
            ``min_child_weight``.
        X_val, y_val, sample_weight_val : optional
            Validation set. It is used for early stopping, for selecting the number of rounds and for learning tree
            weights, never for growing trees. By default, validation data are held out from X.
        groups : array-like of shape (n_samples,), optional
            Group labels for a splitter passed as ``cv``, such as :class:`sklearn.model_selection.GroupKFold`.
        init_model : estimator, str or Path, optional
            Fitted model, or path of a model file, to continue training from, possibly on other data. Its rounds are
            kept and ``n_estimators`` rounds are added. To resume an interrupted fit on the *same* data, see
            ``warm_start`` and :class:`scboost.Checkpoint`.

        Returns
        -------
        self
            The fitted estimator. After a keyboard interrupt it keeps the rounds finished so far; if ``fit`` raises any
            other error, the estimator is unchanged.
        """
        base = None if init_model is None else _fitted(init_model)
        self._open_and_fit(
            SINGLE_PROCESS, X, y, sample_weight, (X_val, y_val, sample_weight_val), groups=groups, base=base
        )
        return self

    def __fit_shared__(
        self,
        communicator: Communicator,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        validation_data: tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None],
    ) -> None:
        """Fit to the samples of this worker together with other workers, which call this with theirs."""
        self._validate_params()
        self._open_and_fit(communicator, X, y, sample_weight, validation_data)

    def _open_and_fit(
        self,
        communicator: Communicator,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        validation_data: tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None],
        *,
        groups: ArrayLike | None = None,
        base: SCBoost | None = None,
    ) -> None:
        """Open batches, set up the context of the fit, and fit."""
        resume = self._resumable if self.warm_start else None
        X_val, *validation_targets = validation_data
        with opened(X_val) as opened_val, opened(X) as opened_X:
            in_files = isinstance(opened_X, OpenBatches) and not self.warm_start
            storage = Storage(opened_X.folder) if in_files else IN_MEMORY
            threads = Threads(resolved_thread_count(self._n_threads()))
            try:
                context = Context(communicator, threads, storage)
                given = (opened_val, *validation_targets)
                self._fit(opened_X, y, sample_weight, given, groups, resume, base, context)
            finally:
                threads.close()

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        validation_data: tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None],
        groups: ArrayLike | None,
        resume: Resumable | None,
        base: SCBoost | None,
        context: Context,
    ) -> None:
        communicator = context.communicator
        with agreed(communicator):
            check_together(self)
            if communicator.size > 1:
                check_shareable(self)
            if isinstance(X, OpenBatches):
                given = {"y": y, "sample_weight": sample_weight, "groups": groups}
                check_batches(self, given, has_validation=validation_data[0] is not None)
            for callback in self.callbacks or ():
                if hasattr(callback, "begin") and communicator.rank == 0:
                    callback.begin(self)
            X, y, sample_weight, groups, kept = without_weightless(X, y, sample_weight, groups, communicator)
        base_model = None if base is None else base.__fitted_model__()
        encoder, target = self._learn(X, y, sample_weight, base_model, context)
        rows, loss = target.samples, target.loss
        context.threads.load_kernels(len(rows))
        n_samples = rows.count(communicator)
        if communicator.size > 1 and n_samples < 2:
            raise ValueError(f"X has {n_samples} rows with positive weight on all workers; at least 2 are needed.")
        with agreed(communicator):
            validation = self._given_validation(*validation_data, encoder, target, communicator)
        seed = communicator.gather(int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)))[0]
        if resume is not None:
            seed = resume.training.settings.seed
        plan = make_plan(
            self,
            loss,
            rows,
            seed,
            communicator,
            has_validation=validation is not None,
            has_base=base is not None,
            most_categories=encoder.max_categories,
        )
        if plan.choosing is not None and isinstance(self.cv, str) and not can_choose_rounds(rows, loss, context):
            plan = plan.without_choosing(FAST_ROUNDS)
        if base is not None:
            check_base(self, base, encoder, target, plan)
        identity: Identity | None = None
        training: Training | None = None
        if self.warm_start or self.callbacks:
            identity = Identity.of(self, encoder, rows, validation, context)
        if resume is not None and identity is not None:
            resume.identity.check_same(identity)
            self._check_more_rounds(resume.training, plan)
            training = copy.deepcopy(resume.training)  # if this fit fails, the state of the last one is still there
        tasks = Tasks(self, X, y, sample_weight, plan.n_rounds)
        view = copy.copy(self)  # what callbacks see: this estimator with the model so far
        n_rounds_asked: int | str = plan.n_rounds

        def set_model(estimator: SCBoost, training: Training, outcome: Fitted | None = None) -> SCBoost:
            resumable = None if identity is None else Resumable(training, identity, n_rounds_asked)
            return estimator.__with_fitted_model__(_fitted_model(encoder, target, training, outcome), resumable)

        def observe(n_rounds: int, label: str, kept: bool) -> RoundObserver:
            nonlocal n_rounds_asked
            if kept:
                n_rounds_asked = n_rounds if plan.stopping is None else self.n_estimators
            publish = functools.partial(set_model, view) if kept else None
            return RoundObserver(self, tasks if kept else None, n_rounds, label, publish, communicator)

        make_engine = self._make_engine(encoder, loss.n_outputs, plan, context)
        metric = self._make_metric(target, plan)
        make_ensemble = functools.partial(new_ensemble, encoder, loss, of_trees=self.estimator is None)
        trainer = Trainer(plan, loss, make_engine, make_ensemble, observe, context, metric)
        if plan.uses_folds:
            if validation is not None:
                raise ValueError(
                    f"X_val cannot be used with weighting_data={self.weighting_data!r}, which holds out each fold in "
                    "turn; use weighting_data='holdout'."
                )
            if groups is not None:
                groups = used_groups(groups, _num_samples(X), sample_weight)
            fitted = trainer.fit_folds(rows, make_folds(rows, loss, plan, self.cv, groups, context, kept))
        else:
            if groups is not None:
                raise ValueError("groups was given but no cross-validation is run; use n_estimators='auto'.")
            if validation is None and plan.needs_validation:
                rows, validation = hold_out(rows, loss, plan, self.validation_fraction, target.classes, context)
            elif validation is not None and plan.weighting is not None:
                check_classes(validation, loss, plan, communicator)
            trees = None if base_model is None else base_model.ensemble
            fitted = trainer.fit(rows, validation, resume=training, base=trees)
        set_model(self, fitted.training, fitted)
        if not self.warm_start:
            self._resumable = None
        tasks.end_fit(self)
        if fitted.training.interrupted:
            raise KeyboardInterrupt(f"the model keeps the {fitted.training.ensemble.n_rounds} rounds finished so far")

    def _learn(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        base: FittedModel | None,
        context: Context,
    ) -> tuple[Encoder, Target]:
        """Learn features and target from the training set."""
        communicator = context.communicator
        like, base_loss = (None, None) if base is None else (base.encoder, base.loss)
        if isinstance(X, OpenBatches):
            encoder, labels, weight = X.learn(self._input_rules(), like)
            target = self._learn_target(labels, X, weight, communicator, base_loss)
            samples, stored = target.samples, context.storage.stored
            kept = Samples(X, stored(samples.y), None if samples.weight is None else stored(samples.weight))
            return encoder, replace(target, samples=kept)
        encoder, matrix = learn_features(X, self._input_rules(), like, type(self).__name__, communicator)
        with agreed(communicator):
            labels = target_vector(y, matrix)
        return encoder, self._learn_target(labels, matrix, sample_weight, communicator, base_loss)

    def _input_rules(self) -> InputRules:
        allowed = self.__sklearn_tags__().input_tags
        return InputRules(np.float32 if self.estimator is None else np.float64, allowed.allow_nan, allowed.sparse)

    def _make_metric(self, target: Target, plan: Plan) -> Metric | None:
        if self.early_stopping_metric is None:
            return None
        if plan.stopping is None and plan.choosing is None:
            raise ValueError(
                f"early_stopping_metric={self.early_stopping_metric!r} needs rows that choose the number of rounds or "
                "stop the fit: use n_estimators='auto', with 20 rows or more that differ, or early_stopping=True."
            )
        return Metric(self.early_stopping_metric, target.loss, target.classes)

    def _given_validation(
        self,
        X: ArrayLike | None,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        encoder: Encoder,
        target: Target,
        communicator: Communicator,
    ) -> Samples | None:
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
        labels = target_vector(y, matrix, "y_val")
        return self._validation_samples(labels, matrix, sample_weight, target, communicator)

    def _check_more_rounds(self, resume: Training, plan: Plan) -> None:
        done = resume.ensemble.n_rounds
        if done > plan.n_rounds:
            raise ValueError(
                f"n_estimators={plan.n_rounds} is less than the {done} rounds already done; with warm_start=True it "
                "can only grow."
            )

    # --- learners --------------------------------------------------------------------------------------------------

    def _n_threads(self) -> int:
        return thread_count(self.n_jobs)

    def _make_engine(self, encoder: Encoder, n_outputs: int, plan: Plan, context: Context) -> EngineMaker:
        if self.estimator is not None:
            weighted = self.leaf_rule == "newton" or self.subsample < 1
            return lambda rows, _: EstimatorEngine(
                rows.X, self._make_learner, sample_weighted=weighted or rows.weight is not None
            )
        names, categorical = encoder.feature_names, encoder.categorical
        params: dict[str, Any] = {
            "max_leaves": self.max_leaves or 0,
            "grow_policy": "lossguide" if self.max_leaves else "depthwise",
            "min_child_weight": plan.min_child_weight,
            "lambda": self.reg_lambda,
            "alpha": self.reg_alpha,
            "min_split_loss": self.min_split_loss,
            "colsample_bylevel": self.colsample_bylevel,
            "colsample_bynode": self.colsample_bynode,
            "device": self.device,
        }
        if self.monotone_constraints is not None:
            signs = monotone_signs(self.monotone_constraints, encoder.n_features, names, categorical)
            params["monotone_constraints"] = signs
        if self.interaction_constraints is not None:
            groups = interaction_groups(self.interaction_constraints, encoder.n_features, names)
            params["interaction_constraints"] = groups
        if self._engine_name == "native":
            return self._native_engines(params, categorical, plan, context)
        return lambda rows, options: XGBoostEngine(
            rows.X,
            n_outputs,
            {**params, "max_depth": options.max_depth or 0},
            categorical=categorical,
            subset_splits=options.subset_splits,
            features=np.array(options.features, dtype=np.intp) if options.features else None,
            colsample=self.colsample_bytree,
            sample_weight=rows.weight,
            max_bin=plan.max_bin,
            n_jobs=self._n_threads(),
            context=context,
        )

    def _native_engines(self, params: dict[str, Any], categorical: Any, plan: Plan, context: Context) -> EngineMaker:
        """Return what makes engines of the compiled kernels: models on the same samples share their bins."""
        from scboost._engine.native.engine import NativeEngine, binned
        from scboost._engine.native.trees import BinnedData, GrowthOptions, Pool

        pool = Pool(self._n_threads()) if self._n_threads() > 1 else None
        shared: dict[tuple[int, int], tuple[Samples, BinnedData]] = {}

        def make(rows: Samples, options: TreeOptions) -> NativeEngine:
            key = id(rows.X), id(rows.weight)
            if key not in shared:
                data = binned(
                    rows.X, max_bin=plan.max_bin, categorical=categorical, sample_weight=rows.weight, pool=pool
                )
                shared[key] = rows, data
            growth = GrowthOptions(
                grow_policy="leaf-wise" if self.max_leaves else "depth-wise",
                max_depth=options.max_depth or 0,
                max_leaves=params["max_leaves"],
                reg_lambda=params["lambda"],
                reg_alpha=params["alpha"],
                min_child_weight=params["min_child_weight"],
                min_split_loss=params["min_split_loss"],
                colsample_bylevel=params["colsample_bylevel"],
                colsample_bynode=params["colsample_bynode"],
                monotone_constraints=tuple(params.get("monotone_constraints", ())),
                interaction_constraints=tuple(map(tuple, params.get("interaction_constraints", ()))),
                max_cat_to_onehot=4 if options.subset_splits else 2**31,
            )
            features = np.array(options.features, dtype=np.intp) if options.features else None
            return NativeEngine(
                shared[key][1], growth, features=features, colsample=self.colsample_bytree, pool=pool, context=context
            )

        return make

    def _make_learner(self, seed: int) -> Any:
        learner = clone(self.estimator)
        if "random_state" in learner.get_params() and learner.get_params()["random_state"] is None:
            learner.set_params(random_state=seed)
        return learner

    # --- fitted model ----------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner = None if self.estimator is None else get_tags(self.estimator).input_tags
        tags.input_tags.allow_nan = learner is None or learner.allow_nan
        tags.input_tags.sparse = learner is None or learner.sparse
        return tags

    @property
    def _fitted(self) -> FittedModel:
        """The fitted model; NotFittedError before ``fit``."""
        if self._model is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before "
                "using this estimator."
            )
        return self._model

    def _optional(self, name: str, value: _T | None) -> _T:
        """Return an attribute that only some fits have."""
        if value is None:
            raise AttributeError(f"This {type(self).__name__} has no attribute {name!r}.")
        return value

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._fitted.encoder.n_features

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Feature names, if X had them."""
        names = self._optional("feature_names_in_", self._fitted.encoder.feature_names)
        return np.array(names, dtype=object)

    @property
    def n_estimators_(self) -> int:
        """Number of boosting rounds in use."""
        return self._fitted.n_rounds

    @property
    def best_iteration_(self) -> int:
        """Index of the last round in use, counted from 0 as in XGBoost."""
        return self._fitted.n_rounds - 1

    @property
    def learning_rate_(self) -> float:
        """Learning rate in use."""
        return self._fitted.learning_rate

    @property
    def max_depth_(self) -> int | None:
        """Largest tree depth in use; None for no limit."""
        if self._fitted.has_other_learners:
            raise AttributeError("max_depth_ is the depth of XGBoost's trees; this model has estimator=.")
        return self._fitted.max_depth

    @property
    def training_log_(self) -> dict[str, FloatArray]:
        """Measurements of every round."""
        return dict(self._fitted.training_log)

    @property
    def stop_reason_(self) -> str:
        """Why fewer rounds than requested were run; empty otherwise."""
        return self._fitted.stop_reason

    @property
    def selection_log_(self) -> dict[str, FloatArray]:
        """Validation loss of the fold models, if the number of rounds was selected by cross-validation."""
        return self._optional("selection_log_", dict(self._fitted.selection.log) or None)

    @property
    def selected_features_(self) -> IntArray:
        """Positions of the features that trees may use, if some were excluded."""
        return np.array(self._optional("selected_features_", self._fitted.selection.features or None), dtype=np.intp)

    @property
    def categorical_splits_(self) -> str:
        """How categorical features are split, if there are any."""
        return self._optional("categorical_splits_", self._fitted.selection.categorical_splits)

    @property
    def weighting_result_(self) -> Weights:
        """Tree weights with their optimality gap, if weights were learned."""
        return self._optional("weighting_result_", self._fitted.weighting_result)

    @property
    def target_name_(self) -> str:
        """Name of the target column, if it was set."""
        return self._optional("target_name_", self._fitted.target_name)

    @target_name_.setter
    def target_name_(self, name: str) -> None:
        self._model = replace(self._fitted, target_name=name)

    @property
    def weights_(self) -> FloatArray:
        """Weight of each tree, of shape (n_rounds,), or (n_rounds, n_classes) for several outputs."""
        return self._fitted.weights

    @property
    def intercept_(self) -> FloatArray:
        """Constant part of the raw score, of shape (n_outputs,)."""
        return self._fitted.ensemble.intercept.copy()

    @property
    def estimators_(self) -> list[Any]:
        """Fitted learners, if ``estimator`` was given."""
        return self._fitted.learners()

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the total gain, of shape (n_features,)."""
        return self._fitted.feature_importances

    def get_booster(self) -> xgboost.Booster:
        """Return the native XGBoost model, whose margin is this model's raw score.

        Returns
        -------
        xgboost.Booster
            Leaf values include the tree weights; rounds of weight 0 are left out.
        """
        booster = self._fitted.booster(self._n_threads())
        if self.device != "cpu":
            booster.set_param({"device": self.device})
        return booster

    def apply(self, X: ArrayLike) -> IntArray:
        """Return the leaf of each sample in each tree of the native model, as XGBoost numbers its nodes.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_trees)
            The trees of a round, one for each class, follow each other; rounds of weight 0 are left out.
        """
        return self._fitted.apply(X, self._n_threads())

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which :func:`scboost.load_model` and plain XGBoost read.

        The file is a native XGBoost model: ``xgboost.Booster(model_file=path)`` predicts the same margins. Parameters,
        class labels, categories, weights and dropped rounds are stored in its attributes. It holds no pickle and
        nothing else that could be executed.

        Parameters
        ----------
        path : str or Path
            Name of the file; it must end in ``.json`` (text) or ``.ubj`` (binary, smaller and faster).
        """
        from scboost.estimators.model_file import save_model

        save_model(self._fitted, self.__stored_parameters__(), type(self), path)

    def to_xgboost(self) -> xgboost.XGBClassifier | xgboost.XGBRegressor:
        """Convert the model to XGBoost's scikit-learn class, for tools that expect one.

        Returns
        -------
        xgboost.XGBClassifier or xgboost.XGBRegressor
            With the same predictions up to float32 precision. The classifier's labels are positions in ``classes_``.
            Several quantiles are not sorted.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> from scboost import SCBoostClassifier
        >>> exported = SCBoostClassifier(n_estimators=5).fit(X, y).to_xgboost()
        >>> exported.predict_proba(X).shape
        (150, 3)
        """
        from scboost.estimators.exports import to_xgboost

        return to_xgboost(self._fitted, n_jobs=self.n_jobs)

    def shap_values(self, X: ArrayLike) -> FloatArray:
        """Return exact TreeSHAP values: how much each feature contributes to the raw score.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples to explain.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1), or (n_samples, n_classes, n_features + 1) for several classes
            The last entry is the expected raw score; the sum over the last axis is the raw score.
        """
        return self._fitted.shap_values(X, self._n_threads())

    def __fitted_model__(self) -> FittedModel:
        """Return the fitted model, for the modules of this library that take no estimators."""
        return self._fitted

    def __with_fitted_model__(self: _Self, model: FittedModel, resumable: Resumable | None = None) -> _Self:  # noqa: PYI019
        """Make this a fitted estimator."""
        self._model, self._resumable = model, resumable
        return self

    def __stored_parameters__(self) -> dict[str, Any]:
        """Return the parameters of the library's own class, which a model file stores."""
        return {name: getattr(self, name) for name in self._parameter_constraints}

    def __resumable__(self) -> Resumable | None:
        """Return the state of the last fit, if it was kept."""
        return self._resumable

    def __tree_ensemble__(self) -> EnsembleReader:
        return read_trees(self._fitted, self._n_threads())

    def __with_tree_weights__(self, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> SCBoost:
        return copy.copy(self).__with_fitted_model__(self._fitted.with_tree_weights(kept, weights, intercept))

    def _raw_scores(self, X: ArrayLike) -> FloatArray:
        """Raw scores, of shape (n_outputs, n)."""
        return self._fitted.raw_scores(X, self._n_threads())

    def _staged_raw_scores(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Raw scores after 1, 2, ... rounds, of shape (n_outputs, n)."""
        return self._fitted.staged_raw_scores(X, self._n_threads())


def _fitted_model(encoder: Encoder, target: Target, training: Training, outcome: Fitted | None) -> FittedModel:
    """Return the model of a training, which is not finished if there is no outcome yet."""
    model = FittedModel(
        encoder,
        target.classes,
        target.loss,
        training.ensemble,
        n_rounds=training.ensemble.n_rounds,
        learning_rate=training.settings.eta,
        max_depth=training.options.max_depth,
        training_log=training.log(),
        stop_reason=training.stop.message,
    )
    if outcome is None:
        return model
    splits: Literal["one-vs-rest", "subset"] | None = None
    if encoder.categories is not None:
        splits = "subset" if training.options.subset_splits else "one-vs-rest"
    selection = Selection(outcome.choosing_log, training.options.features, splits)
    return replace(model, n_rounds=outcome.n_rounds, selection=selection, weighting_result=outcome.weights)


def _fitted(init_model: Any) -> SCBoost:
    """Return the fitted estimator that was given, or the one of a file."""
    if isinstance(init_model, str | os.PathLike):
        from scboost.estimators.model_file import load_model

        init_model = load_model(init_model)
    if not isinstance(init_model, SCBoost):
        raise TypeError(
            f"init_model must be a fitted SCBoostClassifier or SCBoostRegressor, or the path of a model file, got "
            f"{type(init_model).__name__}."
        )
    check_is_fitted(init_model)
    return init_model
