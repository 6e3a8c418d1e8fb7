"""Gradient-boosted tree classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from scboost._arrays import ArrayLike, BoolArray, Float64Array, FloatArray
from scboost._core.conformal import SetMethod, checked_coverage
from scboost._core.foreign_arguments import explains_foreign_arguments
from scboost._core.losses import LogisticLoss, Loss, SoftmaxLoss
from scboost._core.parameters import Parameters
from scboost._data.samples import Samples
from scboost._engine.interface import Regressor
from scboost._estimators.intake import Target, make_samples
from scboost._estimators.parameters import CONSTRAINTS, documented
from scboost._estimators.targets import (
    SupportsTargets,
    check_indicators,
    checked_matrix,
    label_targets,
    supports_several_targets,
    target_matrix,
)
from scboost._runtime.communicator import Communicator, agreed


@documented
class SCBoostClassifier(ClassifierMixin, SupportsTargets):
    """Gradient-boosted tree classifier with settings selected by cross-validation.

    The number of rounds, the learning rate, the shape and depth of the trees and the features are selected by
    cross-validation; printing a fitted model shows them. String and categorical columns are categorical features, NaN
    is missing, dates are expanded.

    Before a tree is grown, part of the projection of the gradient on the predictions of the latest trees is removed
    (Spectral Residual Projection). Splits are chosen on the rest; leaf values are Newton steps on the full gradient.

    Parameters
    ----------
    <shared parameters>
    class_weight : dict, "balanced" or None, default=None
        Class weights, multiplied with ``sample_weight``; "balanced" gives all classes the same total weight. Predicted
        probabilities refer to the weighted class frequencies. To predict for a population with other frequencies, use
        the ratio of the frequency there to that in y.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels; for several labels, the positions of their columns in y.
    n_classes_ : int
        Number of classes, or of labels.
    <shared attributes>

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> model = SCBoostClassifier(random_state=0).fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    class_weight: Any

    @explains_foreign_arguments
    def __init__(
        self,
        *,
        preset: Literal["default", "fast", "best"] = "default",
        n_estimators: int | Literal["auto"] = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        max_depth: int | Literal["auto"] | None = "auto",
        max_leaves: int | Literal["auto"] | None = None,
        tree_shape: Literal["auto", "depth-wise", "leaf-wise", "symmetric", "alternating"] = "auto",
        multi_strategy: Literal["auto", "one_output_per_tree", "multi_output_tree"] = "auto",
        max_trees: int | None = None,
        min_child_weight: float | Literal["auto"] = "auto",
        reg_lambda: float = 3.0,
        reg_alpha: float = 0.0,
        min_split_loss: float = 0.0,
        projection_strength: float | Literal["auto"] = "auto",
        energy_threshold: float = 0.9,
        memory: int | Literal["auto", "all"] = "auto",
        exploration: float | Literal["auto"] = "auto",
        leaf_rule: Literal["newton", "mean"] = "newton",
        init: Literal["prior", "zero"] = "prior",
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        colsample_bylevel: float = 1.0,
        colsample_bynode: float = 1.0,
        max_bin: int | Literal["auto"] = "auto",
        categorical_splits: Literal["auto", "one-vs-rest", "subset"] = "auto",
        weighting: Literal["simplex", "nonnegative"] | None = None,
        weighting_data: Literal["holdout", "out_of_fold", "fold_average"] = "holdout",
        covariance_penalty: float = 0.0,
        weight_ridge: float = 0.1,
        cv: Any = "auto",
        feature_selection: bool = True,
        early_stopping: bool = False,
        early_stopping_metric: str | Callable[..., float] | None = None,
        n_iter_no_change: int | Literal["auto"] = "auto",
        tol: float = 1e-7,
        validation_fraction: float = 0.2,
        monotone_constraints: Any = None,
        interaction_constraints: Any = None,
        class_weight: Any = None,
        estimator: Regressor | None = None,
        warm_start: bool = False,
        callbacks: Sequence[Callable[[Any], Any]] | None = None,
        n_jobs: int | None = None,
        engine: Literal["auto", "native", "xgboost"] = "auto",
        device: str = "cpu",
        random_state: Any = None,
        verbose: int | None = None,
    ) -> None:
        self._set_parameters(locals())

    @classmethod
    def from_paper(cls, **overrides: Any) -> SCBoostClassifier:
        """Return the paper's Algorithm 1: full projection on the whole history, leaf means, weights on the simplex.

        The paper does not state the learning rate and the covariance coefficient; here both are 0.1.

        Parameters
        ----------
        **overrides
            Parameters that replace those of the paper, for example ``estimator=DecisionTreeRegressor(max_depth=5)`` for
            scikit-learn's exact trees.

        Returns
        -------
        SCBoostClassifier
            Unfitted.
        """
        paper = {
            "n_estimators": 100,
            "learning_rate": 0.1,
            "max_depth": 5,
            "max_leaves": None,
            "min_child_weight": 0.0,
            "reg_lambda": 0.0,
            "projection_strength": 1.0,
            "energy_threshold": 0.9,
            "memory": "all",
            "exploration": 0.0,
            "leaf_rule": "mean",
            "init": "zero",
            "subsample": 1.0,
            "colsample_bytree": 1.0,
            "max_bin": 256,
            "weighting": "simplex",
            "covariance_penalty": 0.1,
            "validation_fraction": 0.2,
            "random_state": 42,
        }
        return cls(**{**paper, **overrides})

    def _target_array(self, y: ArrayLike | None, X: Any, name: str) -> npt.NDArray[Any]:
        matrix = target_matrix(y)
        return super()._target_array(y, X, name) if matrix is None else checked_matrix(matrix, X.shape[0], name)

    def _learn_target(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        communicator: Communicator,
        base: Loss | None,
    ) -> Target:
        del base
        if y.ndim == 2:
            parameters = Parameters.of(self.__stored_parameters__())
            return label_targets(y, X, sample_weight, parameters, self.class_weight, communicator)
        with agreed(communicator):
            kinds = {type(label) for label in y.tolist()} if y.dtype.kind == "O" else set()
            if len(kinds) > 1:
                names = sorted(kind.__name__ for kind in kinds)
                raise TypeError(f"y has labels of several types, {names}; use one type.")
            whole = y.dtype.kind in "biu"
            if len(y) and not whole:
                check_classification_targets(y)
            labels = np.unique(y)
            if (
                whole and len(labels) > len(y) // 2
            ):  # avoids a second search for the labels in scikit-learn, and its warning
                check_classification_targets(y)
            samples = make_samples(X, np.searchsorted(labels, y).astype(np.float32), sample_weight, communicator)
            # Leaving out samples of weight 0 may remove a class.
            present = labels if len(samples) == len(y) else labels[np.unique(samples.y).astype(np.intp)]
        classes = _joined_labels(communicator.gather(present))
        if not np.array_equal(classes, labels):
            places = np.searchsorted(classes, labels) if len(labels) else np.zeros(0)
            samples = Samples(samples.X, places[samples.y.astype(np.intp)].astype(np.float32), samples.weight)
        K = len(classes)
        if K < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {K} class ({classes.tolist()[0]!r}) in "
                "y, among samples with positive weight."
            )
        if K > 2 and self.monotone_constraints is not None:
            raise ValueError(
                f"monotone_constraints need two classes, but y has {K}: each probability depends on all raw scores."
            )
        weights = self._class_weights(samples, classes, communicator)
        return Target(_weighted(samples, weights), LogisticLoss() if K == 2 else SoftmaxLoss(K), classes, weights)

    def _class_weights(
        self, samples: Samples, classes: npt.NDArray[Any], communicator: Communicator
    ) -> FloatArray | None:
        """Weight of each class, of shape (n_classes,)."""
        if self.class_weight is None:
            return None
        if self.class_weight == "balanced":
            counts = np.bincount(samples.y.astype(np.intp), weights=samples.weight, minlength=len(classes))
            totals = communicator.sum(counts.astype(np.float64))
            return np.asarray(totals.sum() / (len(totals) * totals))
        labels = classes.tolist()
        missing = [label for label in labels if label not in self.class_weight]
        unknown = [key for key in self.class_weight if key not in labels]
        if missing and unknown:
            raise ValueError(
                f"class_weight has no weight for the labels {missing} of y, but has the keys {unknown}, which are not "
                "labels; keys must be labels of the same type. Omitted labels have weight 1."
            )
        weights = [self.class_weight.get(label, 1.0) for label in labels]
        if not all(isinstance(weight, Real) and 0 < float(weight) < np.inf for weight in weights):
            raise ValueError(f"class_weight must be a positive number for every class, got {self.class_weight!r}.")
        return np.array(weights, dtype=np.float64)

    def _validation_samples(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        target: Target,
        communicator: Communicator,
    ) -> Samples:
        if y.ndim == 2 and not target.loss.independent_outputs:
            raise ValueError(f"y_val has {y.shape[1]} labels per sample, y has one.")
        if target.loss.independent_outputs:
            target.loss.check_target(y, "y_val")
            check_indicators(y, "y_val")
            return make_samples(X, y, sample_weight, communicator, "sample_weight_val")
        classes = np.asarray(target.classes)
        unknown = np.setdiff1d(y, classes)
        if len(unknown):
            raise ValueError(f"y_val has labels {unknown.tolist()} that y does not have; y has {classes.tolist()}.")
        codes = np.asarray(np.searchsorted(classes, y), dtype=np.float64)
        return _weighted(make_samples(X, codes, sample_weight, communicator, "sample_weight_val"), target.class_weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        several = self.class_weight is None and supports_several_targets(self)
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = several
        return tags

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Class labels, of shape (n_classes,); for several labels, the positions of their columns in y."""
        if self._fitted.n_targets > 1:
            return np.arange(self._fitted.n_targets)
        return np.asarray(self._fitted.classes)

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return len(self.classes_)

    @explains_foreign_arguments
    def decision_function(self, X: ArrayLike) -> Float64Array:
        """Return raw scores: log-odds of the second class, or one score per class.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes
            Raw scores. For several labels, the log-odds of each, of shape (n_samples, n_labels).
        """
        return self._fitted.margins(self._raw_scores(X))

    @explains_foreign_arguments
    def predict_proba(self, X: ArrayLike) -> Float64Array:
        """Return class probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``. For several labels, the probability that each of them is 1, of shape
            (n_samples, n_labels), as :class:`sklearn.neural_network.MLPClassifier` returns them.
        """
        return self._fitted.means(self._raw_scores(X))

    @explains_foreign_arguments
    def predict(self, X: ArrayLike) -> npt.NDArray[Any]:
        """Return the most probable class of each sample.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_labels) for several labels
            Class labels; for several labels 0 or 1 each.
        """
        return self._fitted.labels(self._raw_scores(X))

    @explains_foreign_arguments
    def predict_set(
        self,
        X: ArrayLike,
        coverage: float | Sequence[float] = 0.9,
        *,
        method: SetMethod = "smallest",
        class_conditional: bool = False,
    ) -> BoolArray:
        """Predict sets of labels that contain the label of a new sample with a given probability.

        Sets are conformal: the threshold of the predicted probabilities is a quantile over the out-of-fold predictions
        of the training samples or, after ``calibrate``, over the calibration set. Coverage is marginal: it holds on
        average over samples. Without ``calibrate``, it is approximate.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.
        coverage : float in (0, 1) or list of these, default=0.9
            Nominal coverage for samples from the distribution of the training set, or of the calibration set.
        method : {"smallest", "adaptive"}, default="smallest"
            "smallest" includes all labels whose probability exceeds a common threshold, which gives the smallest sets
            on average if the probabilities are correct. A set is empty if no label reaches the threshold; expect this
            if ``coverage`` is below the accuracy. "adaptive" includes the most probable labels until their total
            probability exceeds a common threshold: sets are never empty, larger for ambiguous samples, and cover more
            than the nominal coverage if it is below the accuracy.
        class_conditional : bool, default=False
            Whether to target the coverage within each class rather than on average. Sets are larger; a class with fewer
            than about ``1 / (1 - coverage)`` samples is in every set.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes), or (n_samples, n_coverages, n_classes) for a list
            Whether each label, in the order of ``classes_``, is in the set.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = SCBoostClassifier(random_state=0).fit(X, y)
        >>> sets = model.predict_set(X, coverage=0.99, method="adaptive")
        >>> sets.shape, bool(sets.any(axis=1).all())
        ((150, 3), True)
        """
        coverages = checked_coverage(coverage)
        if method not in get_args(SetMethod):
            raise ValueError(f"method={method!r} must be one of {list(get_args(SetMethod))}.")
        raw = self._raw_scores(X)
        sets = [self._fitted.label_sets(raw, c, method, by_class=class_conditional) for c in coverages]
        return sets[0] if isinstance(coverage, Real) else np.stack(sets, axis=1)

    def staged_predict_proba(self, X: ArrayLike) -> Iterator[Float64Array]:
        """Yield class probabilities after each boosting round.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            After 1, 2, ... rounds.
        """
        yield from map(self._fitted.means, self._staged_raw_scores(X))

    def staged_predict(self, X: ArrayLike) -> Iterator[npt.NDArray[Any]]:
        """Yield the most probable classes after each boosting round.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Yields
        ------
        ndarray of shape (n_samples,)
            After 1, 2, ... rounds.
        """
        yield from map(self._fitted.labels, self._staged_raw_scores(X))


def _weighted(samples: Samples, class_weights: FloatArray | None) -> Samples:
    """Multiply sample weights by class weights."""
    if class_weights is None:
        return samples
    weight = class_weights[samples.y.astype(np.intp)]
    return samples.weighted(weight if samples.weight is None else weight * samples.weight)


def _joined_labels(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the sorted labels of all workers."""
    parts = [part for part in parts if len(part)] or parts[:1]
    kinds = {"number" if part.dtype.kind in "biuf" else part.dtype.kind for part in parts}
    if len(kinds) > 1:
        raise TypeError(f"y has labels of several types, {sorted({str(p.dtype) for p in parts})}; use one type.")
    return np.asarray(np.unique(np.concatenate(parts)) if len(parts) > 1 else parts[0])
