"""Base class of the estimators: ``fit`` and access to the fitted model."""

from __future__ import annotations

import copy
import html
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, ParamSpec, TypeVar, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from scboost._arrays import ArrayLike, Float64Array, FloatArray, IntArray
from scboost._core.foreign_arguments import advice, attribute_advice, explains_foreign_arguments
from scboost._data.tables import materialize
from scboost._engine.interface import EngineName, Regressor
from scboost._estimators.callbacks import CallbackSupportMixin, with_callbacks
from scboost._estimators.fitting import FitArguments, FitMixin
from scboost._estimators.intake import without_weightless
from scboost._estimators.parameters import CONSTRAINTS, thread_count
from scboost._estimators.summary import as_text, selected_settings
from scboost._model.fitted import FittedModel
from scboost._model.reader import read_trees
from scboost._model.resuming import Resumable
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator
from scboost.diagnostics import EnsembleReader

if TYPE_CHECKING:
    import xgboost
    from typing_extensions import Self

    from scboost._compress.result import Compressed
    from scboost._core.weighting import Weights


_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")


def _checked(fit: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate ``fit``: explain unknown arguments, set up scikit-learn's callbacks and validate each parameter."""
    decorated: Callable[_P, _R] = with_callbacks(_fit_context(prefer_skip_nested_validation=True)(fit))
    return explains_foreign_arguments(decorated)


class PredictionUncertainty(NamedTuple):
    """Uncertainty of predictions; see ``prediction_uncertainty``.

    Attributes
    ----------
    aleatoric, epistemic : ndarray of shape (n_samples,)
        Uncertainty due to noise in the data, and due to the model.
    """

    aleatoric: Float64Array
    epistemic: Float64Array


class SCBoost(CallbackSupportMixin, BaseEstimator, FitMixin):
    """Base class of the estimators."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS
    # Target of the "?" link in scikit-learn's HTML representation.
    _doc_link_module = "scboost"
    _doc_link_template = "https://scboost.github.io/scboost/api/generated/scboost.{estimator_name}.html"

    # The only fitted state.
    _model: FittedModel | None = None
    _resumable: Resumable | None = None  # with warm_start=True only

    # Parameters, set by the constructors of the subclasses.
    preset: Literal["default", "fast", "best"]
    n_estimators: int | Literal["auto"]
    learning_rate: float | Literal["auto"]
    max_depth: int | Literal["auto"] | None
    max_leaves: int | Literal["auto"] | None
    tree_shape: Literal["auto", "depth-wise", "leaf-wise", "symmetric", "alternating"]
    multi_strategy: Literal["auto", "one_output_per_tree", "multi_output_tree"]
    max_trees: int | None
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
    estimator: Regressor | None
    warm_start: bool
    callbacks: Sequence[Callable[[Any], Any]] | None
    n_jobs: int | None
    engine: Literal["auto", "native", "xgboost"]
    device: str
    random_state: Any
    verbose: int | None

    def _set_parameters(self, given: dict[str, Any]) -> None:
        """Set the arguments of a constructor, its ``locals()``, as attributes."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    def set_params(self, **params: Any) -> Self:
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
            hints = " ".join(advice(name, known) for name in unknown)
            raise ValueError(f"Invalid parameter {unknown[0]!r} for estimator {type(self).__name__}. {hints}")
        super().set_params(**params)
        return self

    # --- fitting -------------------------------------------------------------------------------------------------

    @_checked
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        init_model: SCBoost | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the model to a training set.

        Parameters
        ----------
        X : array-like, sparse matrix, table or Batches of shape (n_samples, n_features)
            Training samples. NaN is missing: each split learns a default direction for it. Infinite values are refused
            in ``fit`` and ordered as numbers when predicting. In a sparse matrix, zeros count as missing, stored or
            not. String and categorical columns of a table (pandas, polars, PyArrow or anything that exports the Arrow
            C stream, such as a DuckDB relation) are categorical features, and so are columns of strings in an array;
            categories not seen in ``fit`` count as missing when predicting.
            :class:`scboost.Batches` provides data larger than memory, including targets and weights.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Class labels, or target values for regression. Several columns are several targets of one model: numbers
            (squared error only), or for a classifier labels with the values 0 and 1. Each round grows one tree per
            target (see ``multi_strategy``); the number of rounds is selected on the mean loss over the targets, which
            are standardized. NaN is a missing target, left out of the loss; every sample needs at least one target.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. Weight 0 is equivalent to leaving the sample out, an integer weight to repeating it. The
            scale of the weights matters only relative to ``reg_lambda``, ``reg_alpha``, ``min_split_loss`` and
            ``min_child_weight``. Weights with a mean below 1, such as weights that sum to 1, are rescaled to mean 1
            unless ``min_child_weight`` is given.
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
            The fitted estimator. After a keyboard interrupt it keeps the rounds finished so far. If the interrupt comes
            before the first round of the model to be kept, for example during cross-validation, or if ``fit`` raises
            any other error, the estimator is unchanged.
        """
        base = None if init_model is None else _fitted(init_model)
        X, y, X_val, y_val = map(materialize, (X, y, X_val, y_val))  # a stream can be read only once
        before = self._model, self._resumable
        self._fit_on(SINGLE_PROCESS, FitArguments(X, y, sample_weight, X_val, y_val, sample_weight_val, groups, base))
        if self.max_trees is not None:
            from scboost._estimators.compression import compressed

            X, *_ = without_weightless(X, y, sample_weight, None, SINGLE_PROCESS)
            try:
                self.__with_fitted_model__(compressed(self, X, self.max_trees))
            except KeyboardInterrupt as error:
                raise KeyboardInterrupt(f"the model keeps its {self.n_estimators_} rounds, not compressed") from error
            except Exception:
                self._model, self._resumable = before
                raise
        return self

    def __fit_shared__(self, communicator: Communicator, given: FitArguments) -> None:
        """Fit to the samples of this worker jointly with the other workers, which call this method as well."""
        self._validate_params()
        self._fit_on(communicator, given)

    def _n_threads(self) -> int:
        return thread_count(self.n_jobs)

    # --- fitted model ----------------------------------------------------------------------------------------------

    if not TYPE_CHECKING:  # hidden from type checkers, which would accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError; for attributes of other libraries, with the equivalent here."""
            answer = attribute_advice(name)
            if answer:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}. {answer}")
            return object.__getattribute__(self, name)  # raises the error of the property, or the usual one

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
    def model_feature_names_(self) -> npt.NDArray[Any]:
        """Names of the features that the trees split on: those of X, with each date replaced by its parts."""
        names = self._optional("model_feature_names_", self._fitted.encoder.features.names)
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
            raise AttributeError("max_depth_ is the depth of built-in trees; this model has estimator=.")
        return self._fitted.max_depth

    @property
    def tree_shape_(self) -> str:
        """How trees grow: "depth-wise", "leaf-wise", "symmetric" or "alternating"."""
        shape = None if self._fitted.has_other_learners else self._fitted.tree_shape
        return self._optional("tree_shape_", shape)

    @property
    def multi_strategy_(self) -> str:
        """How trees serve several outputs: "one_output_per_tree" or "multi_output_tree"."""
        strategy = None if self._fitted.has_other_learners else self._fitted.multi_strategy
        return self._optional("multi_strategy_", strategy)

    @property
    def projection_strength_(self) -> float:
        """Share of the historical component that was removed from the gradient before trees were grown."""
        return self._optional("projection_strength_", self._fitted.projection_strength)

    @property
    def engine_(self) -> EngineName | None:
        """Engine that grew the trees; None for other learners and if a model file does not state it."""
        return self._fitted.engine

    @property
    def training_log_(self) -> dict[str, npt.NDArray[Any]]:
        """Measurements of every round."""
        return dict(self._fitted.training_log)

    @property
    def stop_reason_(self) -> str:
        """Why fewer rounds than requested were run; empty otherwise."""
        return self._fitted.stop_reason

    @property
    def selection_log_(self) -> dict[str, npt.NDArray[Any]]:
        """Validation loss of the fold models, if the number of rounds was selected by cross-validation."""
        return self._optional("selection_log_", dict(self._fitted.selection.log) or None)

    @property
    def selected_features_(self) -> IntArray:
        """Positions of the features that trees may use, if some were excluded."""
        return np.array(self._optional("selected_features_", self._fitted.selected_features or None), dtype=np.intp)

    @property
    def categorical_splits_(self) -> str:
        """How categorical features are split, if there are any."""
        return self._optional("categorical_splits_", self._fitted.selection.categorical_splits)

    @property
    def weighting_result_(self) -> Weights:
        """Tree weights with their optimality gap, if weights were learned."""
        return self._optional("weighting_result_", self._fitted.weighting_result)

    @property
    def target_name_(self) -> str | tuple[str, ...]:
        """Name of the target column, or names of several, if set."""
        names = self._optional("target_name_", self._fitted.target_names or None)
        return names[0] if len(names) == 1 else names

    @target_name_.setter
    def target_name_(self, name: str | Sequence[str]) -> None:
        names: str | tuple[str, ...] = name if isinstance(name, str) else tuple(name)
        self._model = replace(self._fitted, target_name=names)

    @property
    def weights_(self) -> Float64Array:
        """Weight of each tree, of shape (n_rounds,), or (n_rounds, n_classes) for several outputs."""
        return self._fitted.weights

    @property
    def intercept_(self) -> Float64Array:
        """Constant part of the raw score, of shape (n_outputs,)."""
        return np.array(self._fitted.ensemble.intercept, dtype=np.float64)

    @property
    def estimators_(self) -> list[Any]:
        """Fitted learners, if ``estimator`` was given."""
        return self._fitted.learners()

    @property
    def feature_importances_(self) -> Float64Array:
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
        """Write the model to a file that both :func:`scboost.load_model` and XGBoost can read.

        The file is a native XGBoost model: ``xgboost.Booster(model_file=path)`` predicts the same margins. Parameters,
        class labels, categories, weights and dropped rounds are stored in its attributes. It contains no pickle or
        other executable content.

        Parameters
        ----------
        path : str or Path
            Name of the file; it must end in ``.json`` (text) or ``.ubj`` (binary, smaller and faster).
        """
        from scboost._estimators.model_file import save_model

        save_model(self._fitted, self.__stored_parameters__(), type(self), path)

    def to_xgboost(self) -> xgboost.XGBClassifier | xgboost.XGBRegressor:
        """Convert the model to XGBoost's scikit-learn class, for tools that expect one.

        Returns
        -------
        xgboost.XGBClassifier or xgboost.XGBRegressor
            With the same predictions up to float32 precision. The classifier's labels are positions in ``classes_``.
            Several quantiles are not sorted. If X has dates or ordered categories, it takes
            ``encode_features(model, X)`` instead of X.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> from scboost import SCBoostClassifier
        >>> exported = SCBoostClassifier(n_estimators=5).fit(X, y).to_xgboost()
        >>> exported.predict_proba(X).shape
        (150, 3)
        """
        from scboost._model.exports import to_xgboost

        return to_xgboost(self._fitted, n_jobs=self.n_jobs)

    @overload
    def compress(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        library: Literal["scboost"] = "scboost",
        **options: Any,
    ) -> Compressed[Self]: ...
    @overload
    def compress(
        self, X: ArrayLike, y: ArrayLike | None = None, *, library: Literal["xgboost"], **options: Any
    ) -> Compressed[xgboost.XGBClassifier | xgboost.XGBRegressor]: ...
    def compress(self, X: ArrayLike, y: ArrayLike | None = None, **options: Any) -> Compressed[Any]:
        """Compress the model into a few trees, with a certificate of its fidelity.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples, such as the training set; they need no labels.
        y : array-like of shape (n_samples,), optional
            Labels or targets, to report losses.
        **options
            Options of :func:`scboost.compress`, such as ``max_trees``.

        Returns
        -------
        Compressed
            Its attribute ``model`` is the small model.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from scboost import SCBoostClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = SCBoostClassifier(n_estimators=100).fit(X, y)
        >>> model.compress(X, max_trees=5, random_state=0).model.n_estimators_
        5
        """
        from scboost._estimators.compression import compress

        return compress(self, X, y, **options)

    def calibrate(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Calibrate prediction intervals or label sets on held-out data.

        Required if ``fit`` did not cross-validate (``preset="fast"``, an explicit ``n_estimators``, Dask and Spark, a
        compressed or pruned model). For other models, it replaces out-of-fold estimates by a split conformal guarantee:
        on average over calibration sets, the coverage of new samples from the same distribution is at least the nominal
        one. With sample weights, this holds approximately. Predictions do not change.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Calibration set, not used in ``fit``. Use 200 samples or more; fewer than about ``1 / (1 - coverage)`` give
            infinite intervals or sets of all labels.
        y : array-like of shape (n_samples,)
            Class labels, or target values for regression.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights; coverage then refers to the weighted distribution.

        Returns
        -------
        self
            The calibrated estimator.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from scboost import SCBoostRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = SCBoostRegressor(preset="fast").fit(X[:200], y[:200]).calibrate(X[200:400], y[200:400])
        >>> model.predict_interval(X[400:], coverage=0.9).shape
        (42, 2)
        """
        from scboost._estimators.uncertainty import calibrate

        self._model = calibrate(self._fitted, X, y, sample_weight, self._n_threads())
        return self

    def prediction_uncertainty(self, X: ArrayLike) -> PredictionUncertainty:
        """Estimate the aleatoric (data) and epistemic (model) uncertainty of predictions.

        Requires a model that averages fold models: that of ``preset="best"`` (ten of them) or of the default settings
        (three to five, up to 20,000 samples). The epistemic part is the disagreement of the fold models: it is large
        where training samples are scarce and decreases with more of them, unlike the aleatoric part. Fold models share
        most of the samples on which their trees are grown, and their leaf values are refitted on all samples, so it
        tends to underestimate the model uncertainty; use it to compare samples.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        PredictionUncertainty
            ``aleatoric`` and ``epistemic``, each of shape (n_samples,). For regression, in squared units of y: the mean
            squared out-of-fold error at similar predictions, and the variance of the fold models' predictions. For
            classification, in nats: the mean entropy of the fold models' probabilities, and the entropy of their mean
            minus this mean entropy (the mutual information between label and model).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from scboost import SCBoostClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = SCBoostClassifier(preset="best", random_state=0).fit(X, y)
        >>> aleatoric, epistemic = model.prediction_uncertainty(X)
        >>> aleatoric.shape, epistemic.shape
        ((150,), (150,))
        """
        return PredictionUncertainty(*self._fitted.uncertainty(X, self._n_threads()))

    def shap_values(self, X: ArrayLike) -> Float64Array:
        """Return exact TreeSHAP values: how much each feature contributes to the raw score.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples to explain.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1), or (n_samples, n_classes, n_features + 1) for several classes
            The last entry is the expected raw score; the sum over the last axis is the raw score. The value of a date
            is the sum of the values of its parts.
        """
        return self._fitted.shap_values(X, self._n_threads())

    def __fitted_model__(self) -> FittedModel:
        """Return the fitted model, for modules that do not depend on the estimators."""
        return self._fitted

    def __with_fitted_model__(self, model: FittedModel, resumable: Resumable | None = None) -> Self:
        """Set the fitted state."""
        self._model, self._resumable = model, resumable
        return self

    def __check_parameters__(self) -> None:
        """Validate each parameter, as ``fit`` does."""
        self._validate_params()

    def __selected_settings__(self) -> list[tuple[str, str, str]]:
        """Return the settings that were selected automatically: name, value and reason."""
        return selected_settings(self._fitted, self.get_params(deep=False))

    def __str__(self) -> str:
        if self._model is None:
            return repr(self)
        settings = self.__selected_settings__()
        return "\n".join([repr(self), *(["selected automatically:", as_text(settings)] if settings else [])])

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return scikit-learn's display, followed by the automatically selected settings."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if self._model is not None:
            bundle["text/plain"] = str(self)
            if "text/html" in bundle:
                rows = "".join(
                    f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in entry)}</tr>"
                    for entry in self.__selected_settings__()
                )
                if rows:
                    bundle["text/html"] += f"<table><caption>Selected automatically</caption>{rows}</table>"
        return bundle

    def __stored_parameters__(self) -> dict[str, Any]:
        """Return the parameters of the library's own class, which a model file stores."""
        return {name: getattr(self, name) for name in self._parameter_constraints}

    def __resumable__(self) -> Resumable | None:
        """Return the state of the last fit for resuming, if it was kept."""
        return self._resumable

    def __tree_ensemble__(self) -> EnsembleReader:
        return read_trees(self._fitted, self._n_threads())

    def __with_tree_weights__(self, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> SCBoost:
        return copy.copy(self).__with_fitted_model__(self._fitted.with_tree_weights(kept, weights, intercept))

    def _raw_scores(self, X: ArrayLike) -> Float64Array:
        """Raw scores, of shape (n_outputs, n)."""
        return self._fitted.raw_scores(X, self._n_threads())

    def _staged_raw_scores(self, X: ArrayLike) -> Iterator[Float64Array]:
        """Raw scores after 1, 2, ... rounds, of shape (n_outputs, n)."""
        return self._fitted.staged_raw_scores(X, self._n_threads())


def _fitted(init_model: Any) -> SCBoost:
    """Return a fitted estimator, loaded if a path is given."""
    if isinstance(init_model, str | os.PathLike):
        from scboost._estimators.model_file import load_model

        init_model = load_model(init_model)
    if not isinstance(init_model, SCBoost):
        raise TypeError(
            f"init_model must be a fitted SCBoostClassifier or SCBoostRegressor, or the path of a model file, got "
            f"{type(init_model).__name__}."
        )
    check_is_fitted(init_model)
    return init_model
