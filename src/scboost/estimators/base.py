"""What the two estimators share: fit and the fitted model."""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from scboost._arrays import ArrayLike, BoolArray, FloatArray, IntArray, stored
from scboost.boosting.ensemble import Ensemble, EstimatorEnsemble
from scboost.boosting.history import Projector
from scboost.boosting.learners import EstimatorEngine
from scboost.boosting.loop import Settings, spectral_projector
from scboost.boosting.losses import Loss
from scboost.boosting.training import Rows, Training
from scboost.boosting.workers import agreed, workers
from scboost.diagnostics import EnsembleReader
from scboost.estimators.batches import OpenBatches, opened
from scboost.estimators.callbacks import CallbackSupportMixin, RoundObserver, Tasks, with_callbacks
from scboost.estimators.columns import Columns
from scboost.estimators.fitting import (
    EngineMaker,
    Fitted,
    NoModelYet,
    Trainer,
    can_choose_rounds,
    check_classes,
    hold_out,
    make_folds,
)
from scboost.estimators.intake import (
    check_size,
    encode,
    interaction_groups,
    monotone_signs,
    target_vector,
    used_groups,
    without_weightless,
)
from scboost.estimators.metric import Metric
from scboost.estimators.migration import advice, explains_foreign_arguments
from scboost.estimators.parameters import (
    CONSTRAINTS,
    FAST_ROUNDS,
    Plan,
    check_batches,
    check_shareable,
    check_together,
    make_plan,
    thread_count,
)
from scboost.estimators.resuming import Identity, check_base
from scboost.estimators.trees import read_trees, reweight_trees
from scboost.xgb.engine import XGBoostEngine
from scboost.xgb.ensemble import TreeEnsemble

if TYPE_CHECKING:
    import xgboost

    from scboost.weighting import Weights


def _read_if_path(model: Any) -> Any:
    if not isinstance(model, str | os.PathLike):
        return model
    from scboost.estimators.model_file import load_model

    return load_model(model)


_Self = TypeVar("_Self", bound="SCBoost")
# Attributes that a fit sets beside those that end in an underscore.
_SET_BY_FIT = ("_columns", "_ensemble", "_identity", "_loss", "_n_rounds_asked", "_sparse", "_training")


class SCBoost(CallbackSupportMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What the classifier and the regressor share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS
    # Where the "?" of scikit-learn's HTML representation leads.
    _doc_link_module = "scboost"
    _doc_link_template = "https://scboost.github.io/scboost/api/generated/scboost.{estimator_name}.html"

    if TYPE_CHECKING:  # set by fit
        n_features_in_: int
        weighting_result_: Weights
        _columns: Columns | None
        _ensemble: Ensemble
        _identity: Identity
        _loss: Loss
        _n_rounds_asked: int | str
        _sparse: bool
        _training: Training

    def __init__(
        self,
        *,
        preset: Literal["default", "fast", "best"],
        n_estimators: int | Literal["auto"],
        learning_rate: float | Literal["auto"],
        max_depth: int | Literal["auto"] | None,
        max_leaves: int | None,
        min_child_weight: float | Literal["auto"],
        reg_lambda: float,
        reg_alpha: float,
        min_split_loss: float,
        projection_strength: float | Literal["auto"],
        energy_threshold: float,
        memory: int | Literal["auto", "all"],
        exploration: float | Literal["auto"],
        leaf_rule: Literal["newton", "mean"],
        init: Literal["prior", "zero"],
        subsample: float,
        colsample_bytree: float,
        colsample_bylevel: float,
        colsample_bynode: float,
        max_bin: int | Literal["auto"],
        categorical_splits: Literal["auto", "one-vs-rest", "subset"],
        weighting: Literal["simplex", "nonnegative"] | None,
        weighting_data: Literal["holdout", "out_of_fold", "fold_average"],
        covariance_penalty: float,
        weight_ridge: float,
        cv: Any,
        feature_selection: bool,
        early_stopping: bool,
        early_stopping_metric: str | Callable[..., float] | None,
        n_iter_no_change: int | Literal["auto"],
        tol: float,
        validation_fraction: float,
        monotone_constraints: Any,
        interaction_constraints: Any,
        estimator: Any,
        warm_start: bool,
        callbacks: Sequence[Callable[[Any], Any]] | None,
        n_jobs: int | None,
        device: str,
        random_state: Any,
        verbose: int,
    ) -> None:
        self.preset = preset
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.min_split_loss = min_split_loss
        self.projection_strength = projection_strength
        self.energy_threshold = energy_threshold
        self.memory = memory
        self.exploration = exploration
        self.leaf_rule = leaf_rule
        self.init = init
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.colsample_bylevel = colsample_bylevel
        self.colsample_bynode = colsample_bynode
        self.max_bin = max_bin
        self.categorical_splits = categorical_splits
        self.weighting = weighting
        self.weighting_data = weighting_data
        self.covariance_penalty = covariance_penalty
        self.weight_ridge = weight_ridge
        self.cv = cv
        self.feature_selection = feature_selection
        self.early_stopping = early_stopping
        self.early_stopping_metric = early_stopping_metric
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.monotone_constraints = monotone_constraints
        self.interaction_constraints = interaction_constraints
        self.estimator = estimator
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _learn_target(self, y: npt.NDArray[Any], X: Any, sample_weight: ArrayLike | None) -> tuple[Rows, Loss]:
        """Return the training rows, with the target as the loss takes it, and the loss."""

    @abstractmethod
    def _validation_rows(self, y: npt.NDArray[Any], X: Any, sample_weight: ArrayLike | None, loss: Loss) -> Rows:
        """Return the validation rows, with the target as the loss takes it."""

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

    @explains_foreign_arguments
    @with_callbacks  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
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
        init_model: Any = None,
    ) -> _Self:
        """Fit to training rows.

        Parameters
        ----------
        X : array-like, sparse matrix, table or Batches of shape (n_samples, n_features)
            NaN is missing: each split learns which side it goes to. Infinity is refused here, and is the largest number
            when predicting. In a sparse matrix, zeros, stored or not, count as missing. String and categorical columns
            of a pandas, polars or pyarrow table are categorical, without order; a category that was not seen in ``fit``
            counts as missing when predicting. :class:`scboost.Batches` bring their targets and weights along.
        y : array-like of shape (n_samples,)
            Class labels or numbers.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights; weight 0 is the same as leaving the row out, an integer the same as repeating it. Their unit
            matters to ``reg_lambda``, ``reg_alpha``, ``min_split_loss`` and ``min_child_weight`` only.
        X_val, y_val, sample_weight_val : optional
            Validation rows, which choose the number of rounds, stop early and weigh the trees; held out from X if not
            given. The trees are grown on the other rows only, whatever the validation labels are.
        groups : array-like of shape (n_samples,), optional
            Groups of rows for a splitter given as ``cv``, such as :class:`sklearn.model_selection.GroupKFold`.
        init_model : estimator, str or Path, optional
            A fitted model, or the file of one, to go on from on these rows, which may be others than its own: its
            rounds are kept and ``n_estimators`` rounds are added. To go on with the *same* rows as if there had been
            no interruption, see ``warm_start`` and :class:`scboost.Checkpoint`.

        Returns
        -------
        self
            The fitted estimator. If the fit is interrupted from the keyboard, the estimator keeps the rounds finished;
            if it fails, the estimator is what it was before.
        """
        before = dict(vars(self))
        resume: Training | None = before.get("_training") if self.warm_start else None
        try:
            if resume is None:
                self._forget()
            base = _read_if_path(init_model)
            with opened(X_val) as rows_val, opened(X, with_vectors=not self.warm_start) as rows:
                self._fit(rows, y, sample_weight, (rows_val, y_val, sample_weight_val), groups, resume, base)
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt) or isinstance(error, NoModelYet):
                self.__dict__.clear()
                self.__dict__.update(before)
            raise
        finally:
            if not self.warm_start:
                self.__dict__.pop("_training", None)
        return self

    def _forget(self) -> None:
        """Drop what an earlier fit has set."""
        for name in list(vars(self)):
            if name in _SET_BY_FIT or (name.endswith("_") and not name.startswith("_")):
                delattr(self, name)

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        validation_data: tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None],
        groups: ArrayLike | None,
        resume: Training | None,
        base: Any,
    ) -> None:
        with agreed():
            check_together(self)
            if workers().size > 1:
                check_shareable(self)
            if isinstance(X, OpenBatches):
                given = {"y": y, "sample_weight": sample_weight, "groups": groups}
                check_batches(self, given, has_validation=validation_data[0] is not None)
            for callback in self.callbacks or ():
                if hasattr(callback, "begin") and workers().rank == 0:
                    callback.begin(self)
            X, y, sample_weight, groups, kept = without_weightless(X, y, sample_weight, groups)
        if isinstance(X, OpenBatches):
            rows, loss = self._learn_batches(X, base)
        else:
            matrix = encode(self, X, fitting=True, like=base)
            with agreed():
                target = target_vector(y, matrix)
            rows, loss = self._learn_target(target, matrix, sample_weight)
        if workers().size > 1 and rows.count() < 2:
            raise ValueError(f"X has {rows.count()} rows with positive weight on all workers; at least 2 are needed.")
        with agreed():
            validation = self._given_validation(*validation_data, loss)
        seed = workers().gather(int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)))[0]
        if resume is not None:
            seed = resume.settings.seed
        plan = make_plan(
            self,
            loss,
            rows,
            seed,
            has_validation=validation is not None,
            has_base=base is not None,
            most_categories=0 if self._columns is None else self._columns.most_categories,
        )
        if plan.choosing is not None and isinstance(self.cv, str) and not can_choose_rounds(rows, loss):
            plan = plan.without_choosing(FAST_ROUNDS)
        if base is not None:
            check_base(self, base, loss, plan)
        if self.warm_start or self.callbacks:
            identity = Identity.of(self, rows, validation)
            if resume is not None:
                self._identity.check_same(identity)
                self._check_more_rounds(resume, plan)
            self._identity = identity
        self._loss = loss
        tasks = Tasks(self, X, y, sample_weight, plan.n_rounds)

        def observe(n_rounds: int, label: str, kept: bool) -> RoundObserver:
            if kept:
                self._n_rounds_asked = n_rounds if plan.stopping is None else self.n_estimators
            return RoundObserver(self, tasks if kept else None, n_rounds, label, self._publish if kept else None)

        make_engine = self._make_engine(loss.n_outputs, plan)
        measure = self._make_metric(loss, plan)
        trainer = Trainer(plan, loss, make_engine, self._make_ensemble(loss), self.make_projector, observe, measure)
        if plan.uses_folds:
            if validation is not None:
                raise ValueError(
                    f"X_val cannot be used with weighting_data={self.weighting_data!r}, which holds out each fold in "
                    "turn; use weighting_data='holdout'."
                )
            if groups is not None:
                groups = used_groups(groups, matrix, sample_weight)
            fitted = trainer.fit_folds(rows, make_folds(rows, loss, plan, self.cv, groups, kept))
        else:
            if groups is not None:
                raise ValueError("groups say how cv cuts folds, but this fit has none; use n_estimators='auto'.")
            if validation is None and plan.needs_validation:
                labels = getattr(self, "classes_", None)
                rows, validation = hold_out(rows, loss, plan, self.validation_fraction, labels)
            elif validation is not None and plan.weighting is not None:
                check_classes(validation, loss, plan)
            trees = None if base is None else base._ensemble
            fitted = trainer.fit(rows, validation, resume=resume, base=trees)
        self._publish(fitted.training)
        self._finish(fitted)
        tasks.end_fit()
        if fitted.training.interrupted:
            raise KeyboardInterrupt(f"the model keeps the {fitted.training.ensemble.n_rounds} rounds finished so far")

    def _learn_batches(self, batches: OpenBatches, base: Any) -> tuple[Rows, Loss]:
        y, sample_weight = batches.read(self, fitting=True, like=base)
        rows, loss = self._learn_target(y, batches, sample_weight)
        return Rows(batches, stored(rows.y), None if rows.weight is None else stored(rows.weight)), loss

    def _make_metric(self, loss: Loss, plan: Plan) -> Metric | None:
        if self.early_stopping_metric is None:
            return None
        if plan.stopping is None and plan.choosing is None:
            raise ValueError(
                f"early_stopping_metric={self.early_stopping_metric!r} needs rows that choose the number of rounds or "
                "stop the fit: use n_estimators='auto', with 20 rows or more that differ, or early_stopping=True."
            )
        return Metric(self.early_stopping_metric, loss, getattr(self, "classes_", None))

    def _given_validation(
        self, X: ArrayLike | None, y: ArrayLike | None, sample_weight: ArrayLike | None, loss: Loss
    ) -> Rows | None:
        if X is None and y is None:
            if sample_weight is not None:
                raise ValueError("sample_weight_val needs X_val and y_val.")
            return None
        if isinstance(X, OpenBatches):
            if y is not None or sample_weight is not None:
                raise ValueError("X_val is batches, which bring their own y_val and sample_weight_val; leave them out.")
            labels, weight = X.read(self, fitting=False)
            return self._validation_rows(labels, X, weight, loss)
        if X is None or y is None:
            raise ValueError("X_val and y_val must be given together.")
        matrix = encode(self, X, fitting=False)
        if self.estimator is None:
            check_size(matrix, "X_val")
        return self._validation_rows(target_vector(y, matrix, "y_val"), matrix, sample_weight, loss)

    def _check_more_rounds(self, resume: Training, plan: Plan) -> None:
        done = resume.ensemble.n_rounds
        if done > plan.n_rounds:
            raise ValueError(
                f"n_estimators={plan.n_rounds} is less than the {done} rounds already done; with warm_start=True it "
                "can only grow."
            )

    def _publish(self, training: Training) -> None:
        """Set the fitted attributes from a training, finished or not."""
        self._training = training
        self._ensemble = training.ensemble
        self.training_log_ = training.log()
        self.stop_reason_ = training.stop_reason
        self.n_estimators_ = training.ensemble.n_rounds
        self.learning_rate_ = training.settings.eta
        if self.estimator is None:
            self.max_depth_ = training.offer.depth

    def _finish(self, fitted: Fitted) -> None:
        self.n_estimators_ = fitted.n_rounds
        if fitted.weights is not None:
            self.weighting_result_ = fitted.weights
        if fitted.choosing_log:
            self.selection_log_ = fitted.choosing_log
        offer = fitted.training.offer
        if offer.columns:
            self.selected_features_ = np.array(offer.columns, dtype=np.intp)
        if self._categorical is not None:
            self.categorical_splits_ = "subset" if offer.groups else "one-vs-rest"

    # --- learners --------------------------------------------------------------------------------------------------

    def _n_threads(self) -> int:
        return thread_count(self.n_jobs)

    @property
    def _categorical(self) -> BoolArray | None:
        return None if self._columns is None else self._columns.categorical

    def _make_engine(self, n_outputs: int, plan: Plan) -> EngineMaker:
        if self.estimator is not None:
            weighted = self.leaf_rule == "newton" or self.subsample < 1
            return lambda rows, _: EstimatorEngine(
                rows.X, self._make_learner, sample_weighted=weighted or rows.weight is not None
            )
        names = getattr(self, "feature_names_in_", None)
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
            signs = monotone_signs(self.monotone_constraints, self.n_features_in_, names, self._categorical)
            params["monotone_constraints"] = signs
        if self.interaction_constraints is not None:
            groups = interaction_groups(self.interaction_constraints, self.n_features_in_, names)
            params["interaction_constraints"] = groups
        return lambda rows, offer: XGBoostEngine(
            rows.X,
            n_outputs,
            {**params, "max_depth": offer.depth or 0},
            categorical=self._categorical,
            category_groups=offer.groups,
            columns=np.array(offer.columns, dtype=np.intp) if offer.columns else None,
            colsample=self.colsample_bytree,
            sample_weight=rows.weight,
            max_bin=plan.max_bin,
            n_jobs=self._n_threads(),
        )

    def _make_learner(self, seed: int) -> Any:
        learner = clone(self.estimator)
        if "random_state" in learner.get_params() and learner.get_params()["random_state"] is None:
            learner.set_params(random_state=seed)
        return learner

    def make_projector(
        self, settings: Settings, F: FloatArray, capacity: int, sample_weight: FloatArray | None
    ) -> Projector:
        """Return what projects residuals away from the latest trees; ``fit`` calls it once for each model it grows.

        A subclass may return another one: an object with the methods of :class:`scboost.boosting.history.Projector`.

        Parameters
        ----------
        settings : Settings
            Settings of the loop: ``alpha``, ``gamma``, ``memory`` and others.
        F : ndarray of shape (n_outputs, n_samples)
            Scores before the first round, whose shape and type are those of all residuals.
        capacity : int
            How many trees of each output will be remembered.
        sample_weight : ndarray of shape (n_samples,) or None
            Row weights.

        Returns
        -------
        Projector
            The projection of the method.
        """
        return spectral_projector(settings, F, capacity, sample_weight)

    def _make_ensemble(self, loss: Loss) -> Callable[[FloatArray], Ensemble]:
        if self.estimator is not None:
            return lambda intercept: EstimatorEnsemble(self.n_features_in_, intercept)
        names = getattr(self, "feature_names_in_", None)

        def make(intercept: FloatArray) -> TreeEnsemble:
            return TreeEnsemble(
                self.n_features_in_,
                intercept,
                objective=loss.objective,
                categorical=self._categorical,
                feature_names=None if names is None else [str(name) for name in names],
                tables=None if self._columns is None else self._columns.tables,
            )

        return make

    # --- fitted model ----------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_ensemble")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner = None if self.estimator is None else get_tags(self.estimator).input_tags
        tags.input_tags.allow_nan = learner is None or learner.allow_nan
        tags.input_tags.sparse = learner is None or learner.sparse
        return tags

    @property
    def best_iteration_(self) -> int:
        """Number of the last round in use, counted from 0 as in XGBoost."""
        check_is_fitted(self)
        return self.n_estimators_ - 1

    @property
    def weights_(self) -> FloatArray:
        """Weight of each learner grown, of shape (n_learners,), or (n_rounds, n_classes) for many classes."""
        check_is_fitted(self)
        weights = self._ensemble.weights
        return weights[:, 0].copy() if weights.shape[1] == 1 else weights.copy()

    @property
    def intercept_(self) -> FloatArray:
        """Constant part of the raw score, of shape (n_outputs,)."""
        check_is_fitted(self)
        return self._ensemble.intercept.copy()

    @property
    def estimators_(self) -> list[Any]:
        """Fitted learners, one after the other, if ``estimator`` was given."""
        check_is_fitted(self)
        if isinstance(self._ensemble, EstimatorEnsemble):
            return self._ensemble.estimators
        raise AttributeError("estimators_ exists with estimator= only; see get_booster().")

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each column in the total gain, of shape (n_features,)."""
        check_is_fitted(self)
        gains = self._ensemble.gains()
        total = gains.sum()
        return gains / total if total > 0 else gains

    def get_booster(self) -> xgboost.Booster:
        """Return the native XGBoost model whose margin is this model's raw score.

        Returns
        -------
        xgboost.Booster
            Leaves carry the weights, and rounds with weight 0 are left out.
        """
        booster = self._trees("get_booster").booster(self._n_threads())
        if self.device != "cpu":
            booster.set_param({"device": self.device})
        return booster

    def apply(self, X: ArrayLike) -> IntArray:
        """Leaf of each row in each tree of the native model, as XGBoost numbers its nodes.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_trees)
            The trees of a round, one for each class, come after each other; rounds of weight 0 are left out.
        """
        trees = self._trees("apply")
        rows = trees.prepare(self._encode(X), self._n_threads())
        leaves = trees.booster(self._n_threads()).predict(rows, pred_leaf=True, validate_features=False)
        return np.asarray(leaves, dtype=np.intp).reshape(rows.num_row(), -1)

    def _trees(self, method: str) -> TreeEnsemble:
        """Return the ensemble, for what only XGBoost's trees can do."""
        check_is_fitted(self)
        if isinstance(self._ensemble, TreeEnsemble):
            return self._ensemble
        raise AttributeError(f"{method}() needs trees of the XGBoost engine; this model has estimator=.")

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which :func:`scboost.load_model` and plain XGBoost read.

        The file is a native XGBoost model: ``xgboost.Booster(model_file=path)`` predicts the same margins. Parameters,
        class labels, categories, weights and the rounds that were dropped ride in its attributes. It holds no pickle
        and nothing else that could be executed.

        Parameters
        ----------
        path : str or Path
            Name of the file; it must end in ``.json`` (text) or ``.ubj`` (binary, smaller and faster).
        """
        from scboost.estimators.model_file import save_model

        save_model(self, path)

    def to_xgboost(self) -> xgboost.XGBClassifier | xgboost.XGBRegressor:
        """Turn the model into one of XGBoost's scikit-learn classes, for tools that know these.

        Returns
        -------
        xgboost.XGBClassifier or xgboost.XGBRegressor
            With the same predictions up to float32. The classifier's labels are the positions in ``classes_``. Several
            quantiles come unsorted.

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

        return to_xgboost(self)

    def shap_values(self, X: ArrayLike) -> FloatArray:
        """Shares of the columns in the raw scores: exact TreeSHAP values, by the native model.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to explain.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1), or (n_samples, n_classes, n_features + 1) for many classes
            The last entry is the mean score; the sum over the last axis is the raw score.
        """
        shares = self._trees("shap_values").explain(self._encode(X), self._n_threads())
        return shares[:, 0] if shares.shape[1] == 1 else shares

    def __tree_ensemble__(self) -> EnsembleReader:
        check_is_fitted(self)
        classes = getattr(self, "classes_", None)
        return read_trees(self._ensemble, self._loss, self._encode, classes, self._n_threads())

    def __with_tree_weights__(self, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> SCBoost:
        new = copy.deepcopy(self)
        # The state of the fit and the weights it learned describe trees that the new model no longer has.
        for name in ("_training", "weighting_result_"):
            new.__dict__.pop(name, None)
        reweight_trees(new._ensemble, kept, weights, intercept)
        new.n_estimators_ = new._ensemble.n_rounds
        return new

    def _encode(self, X: ArrayLike) -> Any:
        return encode(self, X, fitting=False)

    def _scores(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        # XGBoost orders infinite values like all others, and to look for them costs up to a fifth of the prediction.
        matrix = encode(self, X, fitting=False, check_finite=self.estimator is not None)
        return self._ensemble.scores(matrix, self._n_threads())

    def _staged_scores(self, X: ArrayLike) -> Iterator[FloatArray]:
        check_is_fitted(self)
        return islice(self._ensemble.staged(self._encode(X), self._n_threads()), self.n_estimators_)
