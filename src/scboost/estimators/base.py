"""scikit-learn estimators."""

from __future__ import annotations

import copy
import inspect
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.utils import check_array, check_random_state, compute_class_weight, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from scboost._arrays import FloatArray, IntArray
from scboost.boosting.ensemble import Ensemble, EstimatorEnsemble
from scboost.boosting.learners import Engine, EstimatorEngine
from scboost.boosting.loop import Dials, start
from scboost.boosting.losses import HuberLoss, LogisticLoss, Loss, PoissonLoss, QuantileLoss, SoftmaxLoss, SquaredLoss
from scboost.boosting.training import Rows, Stopping, Training, train
from scboost.estimators.callbacks import CallbackSupportMixin, Tasks, with_callbacks
from scboost.estimators.columns import Columns, is_table, readable_by_scikit_learn
from scboost.estimators.progress import Progress
from scboost.estimators.trees import read_trees, reweight_trees
from scboost.redundancy import EnsembleReader
from scboost.weighting import Weights, learn_weights
from scboost.weighting.losses import margin_loss
from scboost.xgb.engine import XGBoostEngine
from scboost.xgb.ensemble import TreeEnsemble

if TYPE_CHECKING:
    import xgboost

ArrayLike = Any
_Self = TypeVar("_Self", bound="_SCBoost")
_DEFAULT_MEMORY = 5
# Targets are float32 in the loop, and so are their squares: outside of these sizes they would over- or underflow.
_TARGET_SIZES = (1e-15, 1e15)


def auto_learning_rate(n_samples: float, n_estimators: int, *, many_classes: bool = False) -> float:
    """Learning rate that suits a number of rows and of rounds: CatBoost's rule, at most 0.5.

    Parameters
    ----------
    n_samples : float
        Number of training rows, or the sum of their weights.
    n_estimators : int
        Number of rounds.
    many_classes : bool, default=False
        Whether there are more than two classes, whose steps are damped by an upper bound of the curvature.

    Returns
    -------
    float
        ``exp(0.246 ln n - 5.127) (T / 1000)^-0.451``, or ``exp(0.051 ln n - 3.001) (T / 1000)^-0.449``.
    """
    a, b, c = (0.051, -3.001, -0.449) if many_classes else (0.246, -5.127, -0.451)
    return min(float(np.exp(a * np.log(n_samples) + b) * (n_estimators / 1000) ** c), 0.5)


_PARAMETERS = """\
    n_estimators : int, default=100
        Number of boosting rounds.
    learning_rate : float or "auto", default="auto"
        Factor of every tree. "auto" sets it from the number of rows and of rounds: more rows and fewer rounds allow
        larger steps.
    max_depth : int or None, default=<max_depth>
        Largest depth of a tree.
    max_leaves : int or None, default=<max_leaves>
        Largest number of leaves; if given, the leaf with the largest gain is split next.
    min_child_weight : float, default=1.0
        Smallest sum of curvatures in a leaf.
    reg_lambda : float, default=3.0
        L2 penalty on leaf values.
    projection_strength : float in [0, 1], default=<projection_strength>
        Share of the historical component that is removed from the residual: gamma. 0 is plain Newton boosting.
    energy_threshold : float in (0, 1], default=0.9
        Share of the history's energy that is projected away: alpha.
    memory : int, "auto" or "all", default="auto"
        How many of the latest trees make up the history. "auto" is 5, or fewer if there are fewer rounds.
    leaf_rule : {"newton", "mean"}, default="newton"
        Leaf values: Newton steps on the full residual, or means of the projected one (the paper's).
    init : {"prior", "zero"}, default="prior"
        Raw score to start from: the best constant, or 0.
    subsample : float in (0, 1], default=1.0
        Share of the rows that each round is grown on.
    colsample : float in (0, 1], default=1.0
        Share of the columns offered to each round.
    max_bin : int, default=256
        Number of histogram bins of a column.
    weighting : {"simplex", "nonnegative"} or None, default=None
        How the finished trees are weighted: not at all; on the probability simplex (the paper's); or with non-negative
        weights of free scale and an intercept, pulled towards the learning rate. The last two use rows that the trees
        have not seen and penalise the covariance of the trees.
    weighting_rows : {"holdout", "out_of_fold", "fold_average"}, default="holdout"
        Where these rows come from: a part held out; cross-validation, after which one model is grown on all rows; or
        cross-validation, after which the fold models are kept and averaged.
    covariance_penalty : float, default=0.0
        Factor of the covariance penalty: lambda.
    weight_pull : float, default=0.1
        Strength of the pull towards equal weights, for ``weighting="nonnegative"``.
    n_folds : int, default=5
        Number of folds of the last two kinds of ``weighting_rows``.
    early_stopping : bool, default=False
        Whether to stop when the loss on validation rows no longer improves. Trees after the best round get weight 0.
    n_iter_no_change : int, default=10
        Number of rounds without improvement after which to stop.
    tol : float, default=1e-7
        Smallest decrease of the validation loss that counts as improvement.
    validation_fraction : float in (0, 1), default=0.2
        Share of the rows held out for early stopping and for weighting, if ``fit`` is not given validation rows. The
        trees never see them.
    monotone_constraints : array-like or dict, default=None
        For each column, or by column name, 1 if the raw score must not fall with it, -1 if it must not rise, else 0.
    interaction_constraints : list of lists, default=None
        Groups of columns, by number or name, that may appear together on a path.
    estimator : regressor or None, default=None
        A scikit-learn regressor to use as the learner in place of XGBoost's trees; the parameters of the trees above
        then do not apply.
    warm_start : bool, default=False
        Whether a second ``fit`` with more rounds goes on where the first stopped. The result is the same, bit for bit,
        as with all rounds at once; ``learning_rate="auto"`` stays what it was in the first ``fit``.
    callbacks : list of callables, default=None
        Called as ``callback(self)`` after every round, when the estimator can already predict; a true answer stops.
    n_jobs : int or None, default=None
        Number of threads; None and negative numbers mean all. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of row and column sampling and of the held-out part.
    verbose : int, default=0
        Whether to show a progress bar.
"""
_ATTRIBUTES = """\
    weights_ : ndarray of shape (n_trees,)
        Weight of every tree grown; of shape (n_rounds, n_classes) for more than two classes.
    intercept_ : ndarray of shape (n_outputs,)
        Constant part of the raw score.
    rounds_ : dict of ndarrays
        The story round by round: training "loss" before the round, "components" k that were projected away,
        "energy_kept" share of the history they hold, "energy_removed" share of the residual they spanned,
        "validation_loss" after the round. ``pandas.DataFrame(model.rounds_)`` is a tidy table.
    n_estimators_ : int
        Number of rounds done.
    stop_reason_ : str
        Why fewer rounds than asked for were done; empty otherwise.
    weighting_result_ : Weights
        Weights with their optimality gap, if ``weighting`` is not None.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the total gain. The number of splits is
        ``get_booster().get_score(importance_type="weight")``; see :func:`sklearn.inspection.permutation_importance` for
        what a column is worth on other rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, if X had them.
"""


def _documented(cls: type[_Self]) -> type[_Self]:
    """Write what the estimators share into a class docstring, once, with the defaults of the class."""
    if cls.__doc__ is not None:
        shared = _PARAMETERS
        for name, parameter in inspect.signature(cls).parameters.items():
            shared = shared.replace(f"default=<{name}>", f"default={parameter.default!r}")
        # Python 3.13 takes the indentation out of docstrings, earlier versions leave it in.
        text = inspect.cleandoc(cls.__doc__).replace("<shared parameters>", inspect.cleandoc(shared))
        cls.__doc__ = text.replace("<shared attributes>", inspect.cleandoc(_ATTRIBUTES))
    return cls


class _SCBoost(CallbackSupportMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What the classifier and the regressor share."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 - scikit-learn's declarative table
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "max_leaves": [Interval(Integral, 2, None, closed="left"), None],
        "min_child_weight": [Interval(Real, 0, None, closed="left")],
        "reg_lambda": [Interval(Real, 0, None, closed="left")],
        "projection_strength": [Interval(Real, 0, 1, closed="both")],
        "energy_threshold": [Interval(Real, 0, 1, closed="right")],
        "memory": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto", "all"})],
        "leaf_rule": [StrOptions({"newton", "mean"})],
        "init": [StrOptions({"prior", "zero"})],
        "subsample": [Interval(Real, 0, 1, closed="right")],
        "colsample": [Interval(Real, 0, 1, closed="right")],
        "max_bin": [Interval(Integral, 2, None, closed="left")],
        "weighting": [StrOptions({"simplex", "nonnegative"}), None],
        "weighting_rows": [StrOptions({"holdout", "out_of_fold", "fold_average"})],
        "covariance_penalty": [Interval(Real, 0, None, closed="left")],
        "weight_pull": [Interval(Real, 0, None, closed="neither")],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "early_stopping": ["boolean"],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "monotone_constraints": ["array-like", dict, None],
        "interaction_constraints": [list, tuple, None],
        "estimator": [HasMethods(["fit", "predict"]), None],
        "warm_start": ["boolean"],
        "callbacks": [list, tuple, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    if TYPE_CHECKING:
        # Set by the subclasses' __init__, with their own defaults.
        n_estimators: int
        learning_rate: float | Literal["auto"]
        max_depth: int | None
        max_leaves: int | None
        min_child_weight: float
        reg_lambda: float
        projection_strength: float
        energy_threshold: float
        memory: int | Literal["auto", "all"]
        leaf_rule: Literal["newton", "mean"]
        init: Literal["prior", "zero"]
        subsample: float
        colsample: float
        max_bin: int
        weighting: Literal["simplex", "nonnegative"] | None
        weighting_rows: Literal["holdout", "out_of_fold", "fold_average"]
        covariance_penalty: float
        weight_pull: float
        n_folds: int
        early_stopping: bool
        n_iter_no_change: int
        tol: float
        validation_fraction: float
        monotone_constraints: Any
        interaction_constraints: Any
        estimator: Any
        warm_start: bool
        callbacks: Sequence[Callable[[Any], Any]] | None
        n_jobs: int | None
        random_state: Any
        verbose: int
        # Set by fit.
        _columns: Columns | None
        _ensemble: Ensemble
        _fingerprint: int
        _loss: Loss
        _seed: int
        _sparse: bool
        _tasks: Tasks
        _training: Training

    def _keep(self, parameters: dict[str, Any]) -> None:
        """Set the parameters of ``__init__``, given as its ``locals()``, as attributes."""
        self.__dict__.update({name: value for name, value in parameters.items() if name not in {"self", "__class__"}})

    # --- data in -----------------------------------------------------------------------------------------------

    def _encode(self, X: ArrayLike, *, reset: bool, seek_infinity: bool = True) -> Any:
        """Check rows and turn them into a float matrix (dense or CSR) with category codes."""
        dtype = np.float32 if self.estimator is None else np.float64
        allowed = self.__sklearn_tags__().input_tags
        finite = "allow-nan" if allowed.allow_nan else True
        checks: dict[str, Any] = {
            "ensure_all_finite": finite if seek_infinity else False,
            "ensure_min_samples": 2 if reset else 1,
        }
        if is_table(X):
            validate_data(self, readable_by_scikit_learn(X), reset=reset, skip_check_array=True)
            columns = Columns.learn(X) if reset else self._columns or Columns([None] * X.shape[1])
            matrix = check_array(columns.encode(X, dtype), estimator=self, input_name="X", **checks)
        else:
            if not reset and self._columns is not None:
                raise TypeError(
                    f"X is a {type(X).__name__} but the model was fitted on a table with categorical columns; "
                    "give a table with the same columns."
                )
            columns = None
            types = [dtype, np.float32, np.float64]
            accepted = "csr" if allowed.sparse else False
            matrix = validate_data(self, X, reset=reset, accept_sparse=accepted, dtype=types, **checks)
        if reset:
            self._columns = columns if columns is not None and columns.categorical is not None else None
            self._sparse = sparse.issparse(matrix)
        return self._stored_as_in_fit(matrix)

    def _stored_as_in_fit(self, matrix: Any) -> Any:
        """Give equal rows equal meaning, sparse or dense: where the model saw sparse rows, zeros are missing."""
        is_sparse: bool = sparse.issparse(matrix)
        if not self._sparse:
            return matrix.toarray() if is_sparse else matrix
        if not is_sparse:
            return sparse.csr_matrix(matrix)
        if not np.all(matrix.data):
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        return matrix

    def _rows(self, X: Any, y: FloatArray, sample_weight: ArrayLike | None, name: str = "sample_weight") -> Rows:
        """Rows with checked weights; those with weight 0 are left out, as if they had not been given."""
        if sample_weight is None:
            return Rows(X, y, None)
        weight = _weights(sample_weight, X, name)
        if not weight.any():
            raise ValueError(f"{name} is zero for every row; at least one of the weights must be non-zero.")
        rows = Rows(X, y, weight)
        return rows if weight.all() else rows.take(np.flatnonzero(weight))

    @abstractmethod
    def _learn_target(self, y: npt.NDArray[Any], X: Any, sample_weight: ArrayLike | None) -> tuple[Rows, Loss]:
        """Return the training rows, with the target as the loss takes it, and the loss."""

    @abstractmethod
    def _validation_rows(self, y: npt.NDArray[Any], X: Any, sample_weight: ArrayLike | None) -> Rows:
        """Return the validation rows, with the target as the loss takes it."""

    # --- fitting -------------------------------------------------------------------------------------------------

    @with_callbacks  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(  # noqa: PYI019 - typing.Self came with Python 3.11
        self: _Self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> _Self:
        """Fit to training rows.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            NaN is a value of its own; infinity is refused here, and is the largest number when predicting. In a sparse
            matrix, zeros, stored or not, count as missing. String and categorical columns of a pandas, polars or
            pyarrow table are categorical, without order; a category that was not seen in ``fit`` counts as missing when
            predicting.
        y : array-like of shape (n_samples,)
            Class labels or numbers.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights; weight 0 is the same as leaving the row out, an integer the same as repeating it.
        X_val, y_val, sample_weight_val : optional
            Validation rows for early stopping and for the weights of the trees; held out from X if not given. The trees
            are grown on the other rows only, whatever the validation labels are.

        Returns
        -------
        self
            The fitted estimator. If the fit is interrupted from the keyboard, the estimator keeps the rounds finished.
        """
        self._check_consistency()
        matrix = self._encode(X, reset=True)
        rows, loss = self._learn_target(_vector(y, matrix), matrix, sample_weight)
        if self.weighting is not None:
            try:
                margin_loss(loss)
            except ValueError as error:
                raise ValueError(f"weighting={self.weighting!r}: {error}") from error
        validation = None
        if X_val is not None or y_val is not None:
            if X_val is None or y_val is None:
                raise ValueError("X_val and y_val must be given together.")
            held_out = self._encode(X_val, reset=False)
            validation = self._validation_rows(_vector(y_val, held_out, "y_val"), held_out, sample_weight_val)
        elif sample_weight_val is not None:
            raise ValueError("sample_weight_val needs X_val and y_val.")
        self._loss = loss
        folds = self.n_folds + (self.weighting_rows == "out_of_fold") if self._uses_folds() else 1
        self._tasks = Tasks(self, X, y, sample_weight, folds * self.n_estimators)
        try:
            self._fit_rows(rows, loss, validation)
            self._tasks.end_fit()
        finally:
            del self._tasks
            if not self.warm_start:
                self.__dict__.pop("_training", None)
        return self

    # --- the parts of a fit --------------------------------------------------------------------------------------

    def _check_consistency(self) -> None:
        """Reject values that are legal one by one but not together."""
        if isinstance(self.memory, Integral) and self.memory > self.n_estimators:
            raise ValueError(
                f"memory={self.memory} is more than n_estimators={self.n_estimators}: "
                "a history cannot hold more learners than are grown. Use memory <= n_estimators, 'all' or 'auto'."
            )
        if self.max_depth is None and self.max_leaves is None:
            raise ValueError("max_depth=None and max_leaves=None leave trees without limit; set at least one.")
        if self.weighting == "simplex" and self.weighting_rows != "holdout":
            raise ValueError(
                f"weighting_rows={self.weighting_rows!r} needs weighting='nonnegative'; "
                "weights on the simplex are learnt on a 'holdout'."
            )
        if self._uses_folds() and self.early_stopping:
            raise ValueError(
                f"early_stopping=True cannot be combined with weighting_rows={self.weighting_rows!r}: "
                "fold models must have the same rounds."
            )
        if self._uses_folds() and self.warm_start:
            raise ValueError(
                f"warm_start=True cannot be combined with weighting_rows={self.weighting_rows!r}, which grows several "
                "models; use weighting_rows='holdout'."
            )
        for callback in self.callbacks or ():
            if not callable(callback):
                raise TypeError(f"callbacks must be callables that take the estimator, got {callback!r}.")
        if self.estimator is not None:
            is_tree = hasattr(self.estimator, "apply") and not hasattr(self.estimator, "n_estimators")
            if self.leaf_rule == "newton" and not is_tree:
                raise ValueError(
                    f"leaf_rule='newton' needs one tree as estimator, got {self.estimator!r}; use leaf_rule='mean'."
                )
            if self.monotone_constraints is not None or self.interaction_constraints is not None:
                raise ValueError("monotone_constraints and interaction_constraints need estimator=None.")
            if self.colsample < 1:
                raise ValueError(f"colsample={self.colsample} needs estimator=None; sample columns in the estimator.")

    def _uses_folds(self) -> bool:
        return self.weighting is not None and self.weighting_rows != "holdout"

    def _n_threads(self) -> int:
        """Threads as XGBoost counts them: 0 for all."""
        return 0 if self.n_jobs is None or self.n_jobs < 0 else int(self.n_jobs)

    def _dials(self, rows: Rows, seed: int) -> Dials:
        rate = self.learning_rate
        n = len(rows) if rows.weight is None else float(rows.weight.sum())
        many = isinstance(self._loss, SoftmaxLoss)
        eta = auto_learning_rate(n, self.n_estimators, many_classes=many) if isinstance(rate, str) else float(rate)
        memory = min(_DEFAULT_MEMORY, self.n_estimators) if self.memory == "auto" else self.memory
        return Dials(
            eta=eta,
            alpha=float(self.energy_threshold),
            gamma=float(self.projection_strength),
            memory=None if isinstance(memory, str) else int(memory),
            leaf_rule=self.leaf_rule,
            l2=float(self.reg_lambda),
            subsample=float(self.subsample),
            seed=seed,
        )

    def _engine(self, rows: Rows, n_outputs: int) -> Engine:
        if self.estimator is not None:
            weighted = rows.weight is not None or self.leaf_rule == "newton" or self.subsample < 1
            return EstimatorEngine(rows.X, self._make_learner, sample_weighted=weighted)
        params: dict[str, Any] = {
            "max_depth": self.max_depth or 0,
            "max_leaves": self.max_leaves or 0,
            "grow_policy": "lossguide" if self.max_leaves else "depthwise",
            "min_child_weight": self.min_child_weight,
            "lambda": self.reg_lambda,
        }
        if self.monotone_constraints is not None:
            params["monotone_constraints"] = self._monotone_signs()
        if self.interaction_constraints is not None:
            params["interaction_constraints"] = self._interaction_groups()
        return XGBoostEngine(
            rows.X,
            n_outputs,
            params,
            categorical=self._categorical,
            colsample=self.colsample,
            sample_weight=rows.weight,
            max_bin=self.max_bin,
            n_jobs=self._n_threads(),
        )

    def _make_learner(self, seed: int) -> Any:
        learner = clone(self.estimator)
        if "random_state" in learner.get_params() and learner.get_params()["random_state"] is None:
            learner.set_params(random_state=seed)
        return learner

    def _column_numbers(self, name: str) -> dict[Any, int]:
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            raise ValueError(f"{name} refers to columns by name, but X has no column names; use column numbers.")
        return {n: i for i, n in enumerate(names)}

    def _monotone_signs(self) -> tuple[int, ...]:
        given = self.monotone_constraints
        d = self.n_features_in_
        if isinstance(given, Mapping):
            numbers = self._column_numbers("monotone_constraints")
            unknown = [key for key in given if key not in numbers]
            if unknown:
                raise ValueError(f"monotone_constraints names unknown columns {unknown!r}; X has {list(numbers)!r}.")
            signs = np.zeros(d)
            for key, sign in given.items():
                signs[numbers[key]] = sign
        else:
            signs = np.asarray(given)
        if signs.shape != (d,) or not np.isin(signs, (-1, 0, 1)).all():
            raise ValueError(f"monotone_constraints must give -1, 0 or 1 for each of the {d} columns, got {given!r}.")
        if self._categorical is not None and (bad := np.flatnonzero((signs != 0) & self._categorical)).size:
            raise ValueError(f"monotone_constraints on categorical column {int(bad[0])}: categories have no order.")
        return tuple(int(s) for s in signs)

    def _interaction_groups(self) -> list[list[int]]:
        groups = []
        for group in self.interaction_constraints:
            if not isinstance(group, Sequence | np.ndarray) or isinstance(group, str):
                raise TypeError(
                    "interaction_constraints must be a list of groups, each a list of columns, got "
                    f"{self.interaction_constraints!r}."
                )
            if any(isinstance(c, str) for c in group):
                numbers = self._column_numbers("interaction_constraints")
                unknown = [c for c in group if c not in numbers]
                if unknown:
                    raise ValueError(f"interaction_constraints names unknown columns {unknown!r}.")
                groups.append([numbers[c] for c in group])
            else:
                groups.append([int(c) for c in group])
            if not all(0 <= c < self.n_features_in_ for c in groups[-1]):
                raise ValueError(
                    f"interaction_constraints must hold column numbers from 0 to {self.n_features_in_ - 1}, "
                    f"got {group!r}."
                )
        return groups

    @property
    def _categorical(self) -> npt.NDArray[np.bool_] | None:
        return None if self._columns is None else self._columns.categorical

    def _new_ensemble(self, intercept: FloatArray, loss: Loss) -> Ensemble:
        if self.estimator is not None:
            return EstimatorEnsemble(self.n_features_in_, intercept)
        names = getattr(self, "feature_names_in_", None)
        objective = {
            LogisticLoss: "binary:logistic",
            SoftmaxLoss: "multi:softprob",
            PoissonLoss: "count:poisson",
        }
        ensemble = TreeEnsemble(
            self.n_features_in_,
            intercept,
            objective=objective.get(type(loss), "reg:squarederror"),
            categorical=self._categorical,
            feature_names=None if names is None else [str(name) for name in names],
            tables=None if self._columns is None else self._columns.tables,
        )
        ensemble.n_jobs = self._n_threads()
        return ensemble

    def _grow(
        self,
        rows: Rows,
        loss: Loss,
        seed: int,
        *,
        validation: Rows | None = None,
        label: str = "scboost",
        resume: Training | None = None,
    ) -> Training:
        """Train one ensemble on ``rows``; ``validation`` is only watched."""
        engine = self._engine(rows, loss.n_outputs)
        dials = self._dials(rows, seed)
        if resume is not None and self.learning_rate == "auto":  # its rounds are part of what "auto" depends on
            dials = replace(dials, eta=float(resume.grown[0][0, 0]) if resume.grown else dials.eta)
        prior = loss.initial_score(rows.y, rows.weight) if self.init == "prior" else np.zeros(loss.n_outputs)
        # Where only differences matter, the loop works on the centred target: a large mean would cost float32 digits.
        shift = prior[0] if loss.translation_invariant else 0.0
        rows = Rows(rows.X, (rows.y - shift).astype(engine.dtype), rows.weight)

        def begin() -> Training:
            if resume is not None:
                for history in resume.state.histories:
                    history.reserve(self.n_estimators if dials.memory is None else dials.memory)
                return resume
            state = start(loss, rows.y, rows.weight, dials, engine, prior - shift, self.n_estimators)
            return Training(self._new_ensemble(prior, loss), state)

        with Progress(self.n_estimators, label, enabled=bool(self.verbose)) as progress:

            def watch(training: Training) -> bool:
                progress.step(f"loss {training.loss[-1]:.4f}")
                if self.callbacks or self._tasks.watched:
                    self._publish(training)
                stop = self._tasks.end_round()
                for callback in self.callbacks or ():
                    stop = bool(callback(self)) or stop
                return stop

            return train(
                rows,
                loss=loss,
                dials=dials,
                engine=engine,
                n_rounds=self.n_estimators,
                begin=begin,
                validation=validation,
                stopping=Stopping(self.n_iter_no_change, self.tol) if self.early_stopping else None,
                before=self._tasks.begin_round,
                watch=watch,
            )

    def _publish(self, training: Training) -> None:
        """Set the fitted attributes from a training, finished or not."""
        self._training = training
        self._ensemble = training.ensemble
        self.rounds_ = training.rounds()
        self.stop_reason_ = training.stop_reason
        self.n_estimators_ = training.ensemble.n_rounds

    def _fit_rows(self, rows: Rows, loss: Loss, validation: Rows | None) -> None:
        """Fit on encoded rows. Validation rows, given or held out, never reach a tree."""
        generator = check_random_state(self.random_state)
        seed = int(generator.randint(np.iinfo(np.int32).max))
        resume: Training | None = getattr(self, "_training", None) if self.warm_start else None
        fingerprint = crc32(rows.y.tobytes(), 0 if rows.weight is None else crc32(rows.weight.tobytes()))
        if resume is not None:
            if resume.ensemble.n_rounds > self.n_estimators:
                raise ValueError(
                    f"n_estimators={self.n_estimators} is less than the {resume.ensemble.n_rounds} rounds already "
                    "done; with warm_start=True it can only grow."
                )
            if fingerprint != self._fingerprint:
                raise ValueError(
                    "warm_start=True goes on with the first fit and needs its rows, but y or sample_weight have "
                    "changed; use warm_start=False, or a clone, to start anew."
                )
            seed = self._seed
        self._seed, self._fingerprint = seed, fingerprint
        if self._uses_folds():
            if validation is not None:
                raise ValueError(
                    f"X_val cannot be used with weighting_rows={self.weighting_rows!r}, which holds out each fold in "
                    "turn; use weighting_rows='holdout'."
                )
            self._fit_folds(rows, loss, seed)
            return
        if validation is None and (self.early_stopping or self.weighting is not None):
            rows, validation = self._hold_out(rows, loss)
        elif validation is not None and self.weighting is not None:
            self._check_classes(validation, loss, "X_val and y_val")
        training = self._grow(rows, loss, seed, validation=validation, resume=resume)
        ensemble = training.ensemble
        if self.weighting is not None and validation is not None and not training.interrupted:
            self._weigh(ensemble, loss, validation)
        elif self.early_stopping and training.validation_loss:
            weights = ensemble.weights.copy()
            weights[int(np.argmin(training.validation_loss)) + 1 :] = 0
            ensemble.reweight(weights, ensemble.intercept)
        self._publish(training)
        if training.interrupted:
            raise KeyboardInterrupt(f"the model keeps the {ensemble.n_rounds} rounds finished so far")

    def _hold_out(self, rows: Rows, loss: Loss) -> tuple[Rows, Rows]:
        stratify = rows.y if _n_classes(loss) else None
        try:
            kept, held_out = train_test_split(
                np.arange(len(rows)),
                test_size=self.validation_fraction,
                stratify=stratify,
                random_state=self.random_state if isinstance(self.random_state, Integral) else self._seed,
            )
        except ValueError as error:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} of {len(rows)} rows cannot be held out: {error} "
                "Give X_val and y_val, or use neither early_stopping nor weighting."
            ) from error
        if self.weighting is not None:
            part = f"validation_fraction={self.validation_fraction} of {len(rows)} rows"
            self._check_classes(rows.take(held_out), loss, part)
        return rows.take(kept), rows.take(held_out)

    def _check_classes(self, validation: Rows, loss: Loss, origin: str) -> None:
        """Weights of trees that are learnt without a class would know nothing of it."""
        n_classes = _n_classes(loss)
        missing = np.setdiff1d(np.arange(n_classes), validation.y)
        if len(missing):
            raise ValueError(
                f"weighting={self.weighting!r} needs every class among the validation rows, but {origin} have only "
                f"{n_classes - len(missing)} of the {n_classes} classes; hold out more rows, or give others."
            )

    def _weigh(self, ensemble: Ensemble, loss: Loss, rows: Rows) -> None:
        """Covariance-regularized weights of an ensemble, learnt on rows it has not seen."""
        if ensemble.n_rounds == 0:
            return
        on_simplex = self.weighting == "simplex"
        A = _contributions(ensemble, rows.X, weighted=not on_simplex)
        result = self._learn_weights(A, rows, ensemble.intercept, loss)
        weights = (np.ones_like(ensemble.weights) if on_simplex else ensemble.weights) * result.weights[:, None]
        ensemble.reweight(weights, ensemble.intercept + result.intercept)

    def _learn_weights(self, A: FloatArray, rows: Rows, start: FloatArray, loss: Loss) -> Weights:
        self.weighting_result_ = learn_weights(
            A,
            rows.y,
            loss=loss,
            start=start,
            sample_weight=rows.weight,
            method=self.weighting or "nonnegative",
            covariance_penalty=self.covariance_penalty,
            pull=self.weight_pull,
        )
        self._warn_if_not_converged(self.weighting_result_)
        return self.weighting_result_

    def _warn_if_not_converged(self, result: Weights) -> None:
        if not result.converged:
            warnings.warn(
                f"The weights are {result.gap:.2g} from the optimum after {result.n_iterations} iterations.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _fit_folds(self, rows: Rows, loss: Loss, seed: int) -> None:
        """Weights by round from rows that each fold's model has not seen.

        Then either one model is grown on all rows and its rounds take these weights, or the fold models are kept and
        averaged, each with these weights.
        """
        K = loss.n_outputs
        smallest = np.unique(rows.y, return_counts=True)[1].min() if _n_classes(loss) else len(rows)
        if smallest < self.n_folds:
            kind = "rows of the rarest class" if _n_classes(loss) else "rows"
            raise ValueError(f"n_folds={self.n_folds} is more than the {smallest} {kind} among {len(rows)}.")
        splitter: Any = StratifiedKFold if _n_classes(loss) else KFold
        folds = list(splitter(self.n_folds, shuffle=True, random_state=seed % 2**32).split(rows.X, rows.y))
        A = np.zeros((len(rows), K, self.n_estimators), dtype=np.float32)
        offset = np.zeros((len(rows), K))
        models = []
        for i, (kept, held_out) in enumerate(folds):
            label = f"scboost, fold {i + 1} of {self.n_folds}"
            training = self._grow(rows.take(kept), loss, seed + i, label=label)
            if training.interrupted:
                raise KeyboardInterrupt(f"interrupted in fold {i + 1} of {self.n_folds}: there is no model yet")
            ensemble = training.ensemble
            A[held_out, :, : ensemble.n_rounds] = _contributions(ensemble, rows.X[held_out], weighted=True)
            offset[held_out] = ensemble.intercept
            models.append(training)
        result = self._learn_weights(A, rows, offset, loss)
        if self.weighting_rows == "out_of_fold":
            training = self._grow(rows, loss, seed, label="scboost, all rows")
            ensemble = training.ensemble
            weights = ensemble.weights * result.weights[: ensemble.n_rounds, None]
            ensemble.reweight(weights, ensemble.intercept + result.intercept)
        else:
            for model in models:
                own = model.ensemble
                share = result.weights[: own.n_rounds, None] / self.n_folds
                own.reweight(own.weights * share, (own.intercept + result.intercept) / self.n_folds)
            training = models[0]
            for model in models[1:]:
                training.ensemble.extend(model.ensemble)
        self._publish(training)
        if training.interrupted:
            raise KeyboardInterrupt(f"the model keeps the {training.ensemble.n_rounds} rounds finished so far")

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
        return self._trees("get_booster").booster()

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
            With the same predictions up to float32. The classifier's labels are the positions in ``classes_``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
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
        shares = self._trees("shap_values").explain(self._encode(X, reset=False))
        return shares[:, 0] if shares.shape[1] == 1 else shares

    def __tree_ensemble__(self) -> EnsembleReader:
        check_is_fitted(self)
        classes = getattr(self, "classes_", None)
        return read_trees(self._ensemble, self._loss, lambda X: self._encode(X, reset=False), classes)

    def __with_tree_weights__(self, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> _SCBoost:
        new = copy.deepcopy(self)
        reweight_trees(new._ensemble, kept, weights, intercept)  # noqa: SLF001 - of the same class
        return new

    def _scores(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        self._ensemble.n_jobs = self._n_threads()
        # XGBoost orders infinite values like all others, and to look for them costs up to a fifth of the prediction.
        return self._ensemble.scores(self._encode(X, reset=False, seek_infinity=self.estimator is not None))

    def _staged_scores(self, X: ArrayLike) -> Iterator[FloatArray]:
        check_is_fitted(self)
        self._ensemble.n_jobs = self._n_threads()
        return self._ensemble.staged(self._encode(X, reset=False))


@_documented
class SCBoostClassifier(ClassifierMixin, _SCBoost):  # type: ignore[misc]
    """Boosted trees that do not repeat each other, for classification.

    Before a tree is grown, the part of the residual that the latest trees already span is (partly) projected away, so
    that the structure of the new tree is chosen on what is new; its leaf values are Newton steps on the full residual.

    Parameters
    ----------
    <shared parameters>
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with ``sample_weight``; "balanced" gives all classes the same total weight.
        The probabilities are then those of data with these prevalences: to predict for a population with other class
        shares, give each class the weight (share there) / (share in y).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
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

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **_SCBoost._parameter_constraints,  # noqa: SLF001
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    if TYPE_CHECKING:
        class_weight: Any

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float | Literal["auto"] = "auto",
        max_depth: int | None = 6,
        max_leaves: int | None = None,
        min_child_weight: float = 1.0,
        reg_lambda: float = 3.0,
        projection_strength: float = 0.5,
        energy_threshold: float = 0.9,
        memory: int | Literal["auto", "all"] = "auto",
        leaf_rule: Literal["newton", "mean"] = "newton",
        init: Literal["prior", "zero"] = "prior",
        subsample: float = 1.0,
        colsample: float = 1.0,
        max_bin: int = 256,
        weighting: Literal["simplex", "nonnegative"] | None = None,
        weighting_rows: Literal["holdout", "out_of_fold", "fold_average"] = "holdout",
        covariance_penalty: float = 0.0,
        weight_pull: float = 0.1,
        n_folds: int = 5,
        early_stopping: bool = False,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        validation_fraction: float = 0.2,
        monotone_constraints: Any = None,
        interaction_constraints: Any = None,
        class_weight: Any = None,
        estimator: Any = None,
        warm_start: bool = False,
        callbacks: Sequence[Callable[[Any], Any]] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def from_paper(cls, **overrides: Any) -> SCBoostClassifier:
        """Make the paper's Algorithm 1: full projection on all history, leaf means, weights on the simplex.

        The paper leaves the learning rate and the covariance coefficient open; here they are 0.1 each.

        Parameters
        ----------
        **overrides
            Parameters to set differently, for example ``estimator=DecisionTreeRegressor(max_depth=5)`` for the exact
            trees of scikit-learn.

        Returns
        -------
        SCBoostClassifier
            Unfitted.
        """
        paper = {
            "learning_rate": 0.1,
            "max_depth": 5,
            "max_leaves": None,
            "min_child_weight": 0.0,
            "reg_lambda": 0.0,
            "projection_strength": 1.0,
            "energy_threshold": 0.9,
            "memory": "all",
            "leaf_rule": "mean",
            "init": "zero",
            "subsample": 1.0,
            "colsample": 1.0,
            "weighting": "simplex",
            "covariance_penalty": 0.1,
            "validation_fraction": 0.2,
            "random_state": 42,
        }
        return cls(**{**paper, **overrides})

    def _learn_target(self, y: npt.NDArray[Any], X: Any, sample_weight: ArrayLike | None) -> tuple[Rows, Loss]:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        rows = self._rows(X, codes.astype(np.float64), sample_weight)
        present = np.unique(rows.y)
        if len(present) < len(self.classes_):  # a class may have weight 0 throughout
            self.classes_ = self.classes_[present.astype(np.intp)]
            rows = Rows(rows.X, np.searchsorted(present, rows.y).astype(np.float64), rows.weight)
        K = len(self.classes_)
        if K < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {K} class ({self.classes_[0]!r}) in y, among "
                "rows with positive weight."
            )
        if K > 2 and self.monotone_constraints is not None:
            raise ValueError(
                f"monotone_constraints need two classes, y has {K}: a probability depends on the raw scores of all."
            )
        self._class_weights = self._weights_of_classes(rows)
        return self._weigh_classes(rows), LogisticLoss() if K == 2 else SoftmaxLoss(K)

    def _weights_of_classes(self, rows: Rows) -> FloatArray | None:
        """Weight of each class, of shape (n_classes,)."""
        if self.class_weight is None:
            return None
        if self.class_weight == "balanced":
            counts = np.bincount(rows.y.astype(np.intp), weights=rows.weight)
            return np.asarray(counts.sum() / (len(counts) * counts))
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise ValueError(f"class_weight must be positive for every class, got {self.class_weight!r}.")
        return np.asarray(weights)

    def _weigh_classes(self, rows: Rows) -> Rows:
        if self._class_weights is None:
            return rows
        weight = self._class_weights[rows.y.astype(np.intp)]
        return Rows(rows.X, rows.y, weight if rows.weight is None else weight * rows.weight)

    def _validation_rows(self, y: npt.NDArray[Any], X: Any, sample_weight: ArrayLike | None) -> Rows:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y_val has labels {unknown.tolist()} that y does not have; y has {self.classes_.tolist()}."
            )
        codes = np.asarray(np.searchsorted(self.classes_, y), dtype=np.float64)
        return self._weigh_classes(self._rows(X, codes, sample_weight, "sample_weight_val"))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Raw scores: log-odds of the second class, of shape (n_samples,), or (n_samples, n_classes).

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray
            Raw scores.
        """
        F = self._scores(X)
        return F[0] if len(F) == 1 else np.ascontiguousarray(F.T)

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probabilities of the classes, of shape (n_samples, n_classes).

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        F = self._scores(X)
        return self._loss.inverse_link(F.astype(np.float64))

    def predict(self, X: ArrayLike) -> npt.NDArray[Any]:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        F = self._scores(X)
        return np.asarray(self.classes_[self._winners(F)])

    def staged_predict_proba(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield the probabilities after each round.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to score.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            After 1, 2, ... rounds.
        """
        for F in self._staged_scores(X):
            yield self._loss.inverse_link(F)

    def staged_predict(self, X: ArrayLike) -> Iterator[npt.NDArray[Any]]:
        """Yield the most probable classes after each round.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to classify.

        Yields
        ------
        ndarray of shape (n_samples,)
            After 1, 2, ... rounds.
        """
        for F in self._staged_scores(X):
            yield np.asarray(self.classes_[self._winners(F)])

    @staticmethod
    def _winners(F: FloatArray) -> npt.NDArray[np.intp]:
        return np.asarray(F[0] > 0, dtype=np.intp) if len(F) == 1 else np.asarray(np.argmax(F, axis=0))


@_documented
class SCBoostRegressor(RegressorMixin, _SCBoost):  # type: ignore[misc]
    """Boosted trees that do not repeat each other, for regression.

    Before a tree is grown, the part of the residual that the latest trees already span is (partly) projected away, so
    that the structure of the new tree is chosen on what is new; its leaf values are steps on the full residual.

    Its trees of 31 leaves and strength of 0.7 differ from the classifier's: they had the lower RMSE on 4 of 5 tables.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "quantile", "poisson"}, default="squared_error"
        What the model estimates: the mean; the median; something between the two, robust to outliers; a quantile; or
        the mean of counts, as the exponential of the raw score.
    quantile : float in (0, 1) or None, default=None
        The quantile that ``loss="quantile"`` estimates, and needs.
    huber_delta : float or None, default=None
        Residual, in units of y, beyond which ``loss="huber"`` is linear. None takes the 0.9 quantile of the distances
        from the median of y that are not zero.
    <shared parameters>

    Attributes
    ----------
    <shared attributes>

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import train_test_split
    >>> X_train, X_test, y_train, y_test = train_test_split(*load_diabetes(return_X_y=True), random_state=0)
    >>> model = SCBoostRegressor(learning_rate=0.05, max_depth=3, random_state=0).fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.2)
    True

    What is the body mass index, column 2, worth on rows that the model has not seen?

    >>> from sklearn.inspection import permutation_importance
    >>> worth = permutation_importance(model, X_test, y_test, random_state=0).importances_mean
    >>> bool(worth[2] > 0.05)
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **_SCBoost._parameter_constraints,  # noqa: SLF001
        "loss": [StrOptions({"squared_error", "absolute_error", "huber", "quantile", "poisson"})],
        "quantile": [Interval(Real, 0, 1, closed="neither"), None],
        "huber_delta": [Interval(Real, 0, None, closed="neither"), None],
    }

    if TYPE_CHECKING:
        loss: str
        quantile: float | None
        huber_delta: float | None

    def __init__(
        self,
        *,
        loss: Literal["squared_error", "absolute_error", "huber", "quantile", "poisson"] = "squared_error",
        quantile: float | None = None,
        huber_delta: float | None = None,
        n_estimators: int = 100,
        learning_rate: float | Literal["auto"] = "auto",
        max_depth: int | None = None,
        max_leaves: int | None = 31,
        min_child_weight: float = 1.0,
        reg_lambda: float = 3.0,
        projection_strength: float = 0.7,
        energy_threshold: float = 0.9,
        memory: int | Literal["auto", "all"] = "auto",
        leaf_rule: Literal["newton", "mean"] = "newton",
        init: Literal["prior", "zero"] = "prior",
        subsample: float = 1.0,
        colsample: float = 1.0,
        max_bin: int = 256,
        weighting: Literal["simplex", "nonnegative"] | None = None,
        weighting_rows: Literal["holdout", "out_of_fold", "fold_average"] = "holdout",
        covariance_penalty: float = 0.0,
        weight_pull: float = 0.1,
        n_folds: int = 5,
        early_stopping: bool = False,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        validation_fraction: float = 0.2,
        monotone_constraints: Any = None,
        interaction_constraints: Any = None,
        estimator: Any = None,
        warm_start: bool = False,
        callbacks: Sequence[Callable[[Any], Any]] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._keep(locals())

    def _learn_target(self, y: npt.NDArray[Any], X: Any, sample_weight: ArrayLike | None) -> tuple[Rows, Loss]:
        if (self.quantile is not None) != (self.loss == "quantile"):
            raise ValueError(
                f"quantile={self.quantile!r} with loss={self.loss!r}: give a quantile if and only if loss='quantile'."
            )
        if self.huber_delta is not None and self.loss != "huber":
            raise ValueError(f"huber_delta={self.huber_delta!r} needs loss='huber', got loss={self.loss!r}.")
        if self.loss == "poisson" and self.leaf_rule == "mean":
            raise ValueError(
                "leaf_rule='mean' with loss='poisson' would add means of counts to a logarithm; use leaf_rule='newton'."
            )
        rows = self._rows(X, self._numbers(y, "y"), sample_weight)
        if self.loss == "squared_error":
            return rows, SquaredLoss()
        if self.loss == "poisson":
            if not rows.y.any():
                raise ValueError(
                    "loss='poisson' needs a positive sum of y, but y is 0 in every row with positive weight."
                )
            return rows, PoissonLoss()
        if self.loss == "huber":
            return rows, HuberLoss(_huber_delta(rows) if self.huber_delta is None else float(self.huber_delta))
        return rows, QuantileLoss(0.5 if self.quantile is None else float(self.quantile))

    def _validation_rows(self, y: npt.NDArray[Any], X: Any, sample_weight: ArrayLike | None) -> Rows:
        return self._rows(X, self._numbers(y, "y_val"), sample_weight, "sample_weight_val")

    def _numbers(self, y: npt.NDArray[Any], name: str) -> FloatArray:
        """Check that a target consists of numbers that the loss is defined for."""
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numbers for regression, got {y.dtype} ({error}).") from error
        if self.loss == "poisson" and (y < 0).any():
            raise ValueError(f"loss='poisson' needs {name} >= 0, got {y.min():g}.")
        size = float(np.ptp(y))
        low, high = _TARGET_SIZES
        if size and not low < size < high:
            raise ValueError(f"{name} spans {size:.3g}; rescale it to span between {low:g} and {high:g}.")
        return y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted value of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            On the scale of y.
        """
        F = self._scores(X)
        return self._loss.inverse_link(F.astype(np.float64))

    def staged_predict(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield the predicted values after each round.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.

        Yields
        ------
        ndarray of shape (n_samples,)
            After 1, 2, ... rounds.
        """
        for F in self._staged_scores(X):
            yield self._loss.inverse_link(F)


def _contributions(ensemble: Ensemble, X: Any, *, weighted: bool) -> FloatArray:
    """Contribution of every round to every raw score, of shape (n, K, rounds)."""
    H = ensemble.contributions(X)
    if weighted:
        H = H * ensemble.weights[:, :, None].astype(H.dtype)
    return H.transpose(2, 1, 0)


def _n_classes(loss: Loss) -> int:
    """Count the classes, 0 for regression."""
    return {LogisticLoss: 2, SoftmaxLoss: loss.n_outputs}.get(type(loss), 0)


def _huber_delta(rows: Rows) -> float:
    """Weighted 0.9 quantile of the distances from the median that are not zero; 1 if all are."""
    distance = np.abs(rows.y - QuantileLoss(0.5).initial_score(rows.y, rows.weight)[0])
    away = distance > 0
    weight = None if rows.weight is None else rows.weight[away]
    return float(QuantileLoss(0.9).initial_score(distance[away], weight)[0]) if away.any() else 1.0


def _weights(sample_weight: ArrayLike, X: Any, name: str) -> FloatArray:
    """Check sample weights."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if weight.min() < 0:
        raise ValueError(f"Negative values in {name}: the smallest is {weight.min():g}; weights must be >= 0.")
    return np.asarray(weight)


def _vector(y: ArrayLike, X: Any, name: str = "y") -> npt.NDArray[Any]:
    """One-dimensional target of the length of X, without missing values."""
    if y is None:
        raise ValueError(f"This estimator requires {name} to be passed, but the target {name} is None.")
    y = column_or_1d(y, warn=True)
    if len(y) != X.shape[0]:
        raise ValueError(f"{name} has {len(y)} entries but X has {X.shape[0]} rows.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"Input {name} contains NaN or infinity; every row needs a finite target.")
    if y.dtype.kind == "O" and any(_is_missing(v) for v in y):
        raise ValueError(f"Input {name} contains NaN or None; every row needs a label.")
    return np.asarray(y)


def _is_missing(value: Any) -> bool:
    # pandas.NA answers no comparison with True or False; NaN differs from itself.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)  # noqa: PLR0124
