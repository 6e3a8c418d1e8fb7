"""scikit-learn estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.utils import check_array, check_random_state, compute_sample_weight
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from ._boosting import Dials, start
from ._columns import Columns, is_table
from ._engine import Engine, EstimatorEngine, XGBoostEngine
from ._ensemble import Ensemble, EstimatorEnsemble, TreeEnsemble
from ._loss import (
    FloatArray,
    HuberLoss,
    LogisticLoss,
    Loss,
    PoissonLoss,
    QuantileLoss,
    SoftmaxLoss,
    SquaredLoss,
)
from ._progress import Progress
from ._training import Rows, Stopping, Training, train
from ._weighting import LOGISTIC, SQUARED_ERROR, Weights, nonnegative_weights, simplex_weights

if TYPE_CHECKING:
    import xgboost

ArrayLike = Any
_DEFAULT_MEMORY = 5


def auto_learning_rate(n_samples: float, n_estimators: int) -> float:
    """Learning rate that suits a number of rows and of rounds: CatBoost's rule, at most 0.5.

    Parameters
    ----------
    n_samples : float
        Number of training rows, or the sum of their weights.
    n_estimators : int
        Number of rounds.

    Returns
    -------
    float
        ``exp(0.246 ln n - 5.127) (T / 1000)^-0.451``.
    """
    return min(float(np.exp(0.246 * np.log(n_samples) - 5.127) * (n_estimators / 1000) ** -0.451), 0.5)


class _SCBoost(BaseEstimator):  # type: ignore[misc]
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

    if TYPE_CHECKING:  # set by the subclasses' __init__, with their own defaults
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

    # --- data in -----------------------------------------------------------------------------------------------

    def _encode(self, X: ArrayLike, *, reset: bool) -> Any:
        """Check rows and turn them into a float matrix (dense or CSR) with category codes."""
        if not is_table(X):
            if not reset and self._columns is not None:
                raise TypeError(
                    f"X is a {type(X).__name__} but the model was fitted on a table with categorical columns; "
                    "give a table with the same columns."
                )
            self._columns = None if reset else self._columns
            return validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float32, np.float64],
                ensure_all_finite="allow-nan",
                ensure_min_samples=2 if reset else 1,
            )
        validate_data(self, X, reset=reset, skip_check_array=True)
        columns = Columns.learn(X) if reset else self._columns
        if columns is None:  # fitted on an array; a table with numeric columns is as good
            columns = Columns([None] * X.shape[1])
        matrix = columns.encode(X)
        if reset:
            self._columns = columns if columns.categorical is not None else None
        return check_array(
            matrix,
            dtype=np.float32,
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
            estimator=self,
            input_name="X",
        )

    def _rows(self, X: Any, y: FloatArray, sample_weight: ArrayLike | None) -> Rows:
        """Rows with checked weights; those with weight 0 are left out, as if they had not been given."""
        if sample_weight is None:
            return Rows(X, y, None)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight is zero for every row; at least one must be positive.")
        rows = Rows(X, y, weight)
        return rows if weight.all() else rows.take(np.flatnonzero(weight))

    # --- the parts of a fit --------------------------------------------------------------------------------------

    def _check_consistency(self) -> None:
        """Reject values that are legal one by one but not together."""
        if isinstance(self.memory, Integral) and self.memory > self.n_estimators:
            raise ValueError(
                f"memory={self.memory} is more than n_estimators={self.n_estimators}: "
                "a history cannot hold more learners than are grown. Use memory <= n_estimators, 'all' or 'auto'."
            )
        if self.max_depth is None and self.max_leaves is None:
            raise ValueError(
                "max_depth=None and max_leaves=None leave trees without limit; set at least one."
            )
        if self.weighting == "simplex" and self.weighting_rows != "holdout":
            raise ValueError(
                f"weighting_rows={self.weighting_rows!r} needs weighting='nonnegative'; "
                "weights on the simplex are learnt on a 'holdout'."
            )
        if self.weighting is not None and self.weighting_rows != "holdout" and self.early_stopping:
            raise ValueError(
                f"early_stopping=True cannot be combined with weighting_rows={self.weighting_rows!r}: "
                "fold models must have the same rounds."
            )
        if self.weighting is not None and self.warm_start:
            raise ValueError(f"warm_start=True cannot be combined with weighting={self.weighting!r}.")
        if self.estimator is not None:
            if self.leaf_rule == "newton" and not hasattr(self.estimator, "apply"):
                raise ValueError(
                    f"leaf_rule='newton' needs a tree as estimator, got {self.estimator!r}; use leaf_rule='mean'."
                )
            if self.monotone_constraints is not None or self.interaction_constraints is not None:
                raise ValueError("monotone_constraints and interaction_constraints need estimator=None.")
            if self.colsample < 1:
                raise ValueError(
                    f"colsample={self.colsample} needs estimator=None; sample columns in the estimator."
                )

    def _n_threads(self) -> int:
        """Threads as XGBoost counts them: 0 for all."""
        return 0 if self.n_jobs is None or self.n_jobs < 0 else int(self.n_jobs)

    def _dials(self, rows: Rows, seed: int) -> Dials:
        rate = self.learning_rate
        n = len(rows) if rows.weight is None else float(rows.weight.sum())
        eta = auto_learning_rate(n, self.n_estimators) if isinstance(rate, str) else float(rate)
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
            raise ValueError(
                f"{name} refers to columns by name, but X has no column names; use column numbers."
            )
        return {n: i for i, n in enumerate(names)}

    def _monotone_signs(self) -> tuple[int, ...]:
        given = self.monotone_constraints
        d = self.n_features_in_
        if isinstance(given, Mapping):
            numbers = self._column_numbers("monotone_constraints")
            unknown = [key for key in given if key not in numbers]
            if unknown:
                raise ValueError(
                    f"monotone_constraints names unknown columns {unknown!r}; X has {list(numbers)!r}."
                )
            signs = np.zeros(d, dtype=int)
            for key, sign in given.items():
                signs[numbers[key]] = sign
        else:
            signs = np.asarray(given)
        if signs.shape != (d,) or not np.isin(signs, (-1, 0, 1)).all():
            raise ValueError(
                f"monotone_constraints must give -1, 0 or 1 for each of the {d} columns, got {self.monotone_constraints!r}."
            )
        bad = np.flatnonzero((signs != 0) & self._categorical) if self._categorical is not None else []
        if len(bad):
            raise ValueError(
                f"monotone_constraints on categorical column {int(bad[0])}: categories have no order."
            )
        return tuple(int(s) for s in signs)

    def _interaction_groups(self) -> list[list[int]]:
        groups = []
        for group in self.interaction_constraints:
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
                    f"interaction_constraints must hold column numbers from 0 to {self.n_features_in_ - 1}, got {group!r}."
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
        return TreeEnsemble(
            self.n_features_in_,
            intercept,
            objective=objective.get(type(loss), "reg:squarederror"),
            categorical=self._categorical,
            feature_names=None if names is None else [str(name) for name in names],
        )

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
                stop = False
                for callback in self.callbacks or ():
                    self._publish(training)
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
                watch=watch,
            )

    def _publish(self, training: Training) -> None:
        """Set the fitted attributes from a training, finished or not."""
        self._ensemble = training.ensemble
        self.rounds_ = training.rounds()
        self.stop_reason_ = training.stop_reason
        self.n_estimators_ = training.ensemble.n_rounds
        if self.warm_start:
            self._training = training

    def _fit_rows(self, rows: Rows, loss: Loss, validation: Rows | None) -> None:
        """Fit on encoded rows. Validation rows, given or held out, never reach a tree."""
        generator = check_random_state(self.random_state)
        seed = int(generator.randint(np.iinfo(np.int32).max))
        resume = getattr(self, "_training", None) if self.warm_start else None
        if resume is not None:
            if resume.ensemble.n_rounds > self.n_estimators:
                raise ValueError(
                    f"n_estimators={self.n_estimators} is less than the {resume.ensemble.n_rounds} rounds already done; "
                    "with warm_start=True it can only grow."
                )
            if resume.state.F.shape[1] != len(rows):
                raise ValueError(
                    f"warm_start=True needs the rows of the first fit, got {len(rows)} other rows."
                )
            seed = self._seed
        self._seed = seed
        if self.weighting is not None and self.weighting_rows != "holdout":
            if validation is not None:
                raise ValueError(f"X_val cannot be used with weighting_rows={self.weighting_rows!r}.")
            self._fit_folds(rows, loss, seed)
            return
        if validation is None and (self.early_stopping or self.weighting is not None):
            rows, validation = self._hold_out(rows, loss)
        training = self._grow(rows, loss, seed, validation=validation, resume=resume)
        if self.weighting is not None and validation is not None:
            self._weigh(training.ensemble, loss, validation)
        elif self.early_stopping and training.validation_loss:
            best = int(np.argmin(training.validation_loss)) + 1
            ensemble = training.ensemble
            weights = np.full_like(ensemble.weights, self._dials(rows, seed).eta)
            weights[best:] = 0
            ensemble.reweight(weights, ensemble.intercept)
        self._publish(training)

    def _hold_out(self, rows: Rows, loss: Loss) -> tuple[Rows, Rows]:
        stratify = rows.y if isinstance(loss, LogisticLoss | SoftmaxLoss) else None
        try:
            kept, held_out = train_test_split(
                np.arange(len(rows)),
                test_size=self.validation_fraction,
                stratify=stratify,
                random_state=self._seed if self.random_state is None else self.random_state,
            )
        except ValueError as error:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} of {len(rows)} rows does not leave every class in both "
                f"parts: {error}"
            ) from error
        return rows.take(kept), rows.take(held_out)

    def _weigh(self, ensemble: Ensemble, loss: Loss, rows: Rows) -> None:
        """Covariance-regularized weights of an ensemble, learnt on rows it has not seen."""
        if ensemble.n_rounds == 0:
            return
        H = ensemble.contributions(rows.X)[:, 0].T
        offset = np.full(len(rows), ensemble.intercept[0])
        if self.weighting == "simplex":
            self.weighting_result_ = simplex_weights(
                H,
                rows.y,
                covariance_penalty=self.covariance_penalty,
                sample_weight=rows.weight,
                offset=offset,
                loss=self._margin_loss(loss),
            )
            weights = self.weighting_result_.weights
        else:
            eta = ensemble.weights[:, 0]
            self.weighting_result_ = self._nonnegative(H * eta.astype(H.dtype), rows, offset, loss)
            weights = eta * self.weighting_result_.weights
        self._warn_if_not_converged(self.weighting_result_)
        ensemble.reweight(weights[:, None], ensemble.intercept + self.weighting_result_.intercept)

    def _nonnegative(self, A: FloatArray, rows: Rows, offset: FloatArray, loss: Loss) -> Weights:
        return nonnegative_weights(
            A,
            rows.y,
            covariance_penalty=self.covariance_penalty,
            pull=self.weight_pull,
            sample_weight=rows.weight,
            offset=offset,
            loss=self._margin_loss(loss),
        )

    def _margin_loss(self, loss: Loss) -> Any:
        table = {LogisticLoss: LOGISTIC, SquaredLoss: SQUARED_ERROR}
        if type(loss) not in table:
            raise ValueError(
                f"weighting={self.weighting!r} is available for two classes and for squared error, not for "
                f"{type(loss).__name__}; use weighting=None."
            )
        return table[type(loss)]

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
        self._margin_loss(loss)
        splitter: Any = StratifiedKFold if isinstance(loss, LogisticLoss) else KFold
        folds = list(splitter(self.n_folds, shuffle=True, random_state=seed % 2**32).split(rows.X, rows.y))
        A = np.zeros((len(rows), self.n_estimators), dtype=np.float32)
        offset = np.zeros(len(rows))
        models = []
        for i, (kept, held_out) in enumerate(folds):
            label = f"scboost, fold {i + 1} of {self.n_folds}"
            training = self._grow(rows.take(kept), loss, seed + i, label=label)
            ensemble = training.ensemble
            A[held_out, : ensemble.n_rounds] = (
                ensemble.contributions(rows.X[held_out])[:, 0].T
            ) * ensemble.weights.T
            offset[held_out] = ensemble.intercept[0]
            models.append(training)
        self.weighting_result_ = result = self._nonnegative(A, rows, offset, loss)
        self._warn_if_not_converged(result)
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

    # --- fitted model ----------------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None
        tags.input_tags.sparse = self.estimator is None
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
        if not isinstance(self._ensemble, EstimatorEnsemble):
            raise AttributeError("estimators_ exists with estimator= only; see get_booster().")
        return self._ensemble.estimators

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
        check_is_fitted(self)
        if not isinstance(self._ensemble, TreeEnsemble):
            raise AttributeError(
                "get_booster() needs trees of the XGBoost engine; this model has estimator=."
            )
        return self._ensemble.booster()

    def _scores(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return self._ensemble.scores(self._encode(X, reset=False), self._n_threads())

    def _staged_scores(self, X: ArrayLike) -> Iterator[FloatArray]:
        check_is_fitted(self)
        return self._ensemble.staged(self._encode(X, reset=False))


class SCBoostClassifier(ClassifierMixin, _SCBoost):  # type: ignore[misc]
    """Boosted trees that do not repeat each other, for classification.

    Before a tree is grown, the part of the residual that the latest trees already span is (partly) projected away, so
    that the structure of the new tree is chosen on what is new; its leaf values are Newton steps on the full residual.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of boosting rounds.
    learning_rate : float or "auto", default="auto"
        Factor of every tree. "auto" sets it from the number of rows and of rounds: more rows and fewer rounds allow
        larger steps.
    max_depth : int or None, default=None
        Largest depth of a tree.
    max_leaves : int or None, default=31
        Largest number of leaves; if given, the leaf with the largest gain is split next.
    min_child_weight : float, default=1.0
        Smallest sum of curvatures in a leaf.
    reg_lambda : float, default=3.0
        L2 penalty on leaf values.
    projection_strength : float in [0, 1], default=0.7
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
    colsample : float in (0, 1], default=0.8
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
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with ``sample_weight``.
    estimator : regressor or None, default=None
        A scikit-learn regressor to use as the learner in place of XGBoost's trees; the parameters of the trees above then
        do not apply.
    warm_start : bool, default=False
        Whether a second ``fit`` with more rounds goes on where the first stopped. The result is the same, bit for bit, as
        with all rounds at once.
    callbacks : list of callables, default=None
        Called as ``callback(self)`` after every round, when the estimator can already predict; a true answer stops.
    n_jobs : int or None, default=None
        Number of threads; None and negative numbers mean all. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of row and column sampling and of the held-out part.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    weights_ : ndarray of shape (n_trees,)
        Weight of every tree grown; of shape (n_rounds, n_classes) for more than two classes.
    intercept_ : ndarray of shape (n_outputs,)
        Constant part of the raw score.
    rounds_ : dict of ndarrays
        The story round by round: training "loss" before the round, "components" k that were projected away, "energy_kept"
        share of the history they hold, "energy_removed" share of the residual they spanned, "validation_loss".
    n_estimators_ : int
        Number of rounds done.
    stop_reason_ : str
        Why fewer rounds than asked for were done; empty otherwise.
    weighting_result_ : Weights
        Weights with their optimality gap, if ``weighting`` is not None.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the total gain.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, if X had them.

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

    def __init__(
        self,
        *,
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
        colsample: float = 0.8,
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
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.projection_strength = projection_strength
        self.energy_threshold = energy_threshold
        self.memory = memory
        self.leaf_rule = leaf_rule
        self.init = init
        self.subsample = subsample
        self.colsample = colsample
        self.max_bin = max_bin
        self.weighting = weighting
        self.weighting_rows = weighting_rows
        self.covariance_penalty = covariance_penalty
        self.weight_pull = weight_pull
        self.n_folds = n_folds
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.monotone_constraints = monotone_constraints
        self.interaction_constraints = interaction_constraints
        self.class_weight = class_weight
        self.estimator = estimator
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_paper(cls, **overrides: Any) -> SCBoostClassifier:
        """Make the paper's Algorithm 1: full projection on all history, leaf means, weights on the simplex.

        The paper leaves the learning rate and the covariance coefficient open; here they are 0.1 each.

        Parameters
        ----------
        **overrides
            Parameters to set differently, for example ``estimator=DecisionTreeRegressor(max_depth=5)`` for the exact trees
            of scikit-learn.

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

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> SCBoostClassifier:
        """Fit to training rows.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            NaN is a value of its own. In a sparse matrix, entries that are not stored count as missing, as in XGBoost. String
            and categorical columns of a pandas, polars or pyarrow table are categorical.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights; weight 0 is the same as leaving the row out, an integer the same as repeating it.
        X_val, y_val, sample_weight_val : optional
            Validation rows for early stopping and for the weights of the trees; held out from X if not given.

        Returns
        -------
        SCBoostClassifier
            The fitted estimator.
        """
        self._check_consistency()
        matrix = self._encode(X, reset=True)
        y = _vector(y, matrix)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        weight = self._weight_of_classes(y, sample_weight)
        rows = self._rows(matrix, codes.astype(np.float64), weight)
        present = np.unique(rows.y)
        if len(present) < len(self.classes_):  # a class may have weight 0 throughout
            self.classes_ = self.classes_[present.astype(np.intp)]
            rows = Rows(rows.X, np.searchsorted(present, rows.y).astype(np.float64), rows.weight)
        if len(self.classes_) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class ({self.classes_[0]!r}) "
                "in y, among rows with positive weight."
            )
        loss: Loss = LogisticLoss() if len(self.classes_) == 2 else SoftmaxLoss(len(self.classes_))
        if self.weighting is not None:
            self._margin_loss(loss)
        validation = None
        if X_val is not None or y_val is not None:
            validation = self._validation_rows(X_val, y_val, sample_weight_val)
        self._fit_rows(rows, loss, validation)
        self._loss = loss
        return self

    def _weight_of_classes(self, y: npt.NDArray[Any], sample_weight: ArrayLike | None) -> ArrayLike | None:
        if self.class_weight is None:
            return sample_weight
        by_class = compute_sample_weight(self.class_weight, y)
        if sample_weight is None:
            return by_class
        return by_class * _check_sample_weight(sample_weight, y, dtype=np.float64)

    def _validation_rows(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Rows:
        if X is None or y is None:
            raise ValueError("X_val and y_val must be given together.")
        matrix = self._encode(X, reset=False)
        y = _vector(y, matrix, "y_val")
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y_val has labels {unknown!r} that y does not have; y has {self.classes_!r}.")
        codes = np.searchsorted(self.classes_, y).astype(np.float64)
        return self._rows(matrix, codes, sample_weight)

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
        return (F[0] > 0).astype(np.intp) if len(F) == 1 else np.argmax(F, axis=0)


def _vector(y: ArrayLike, X: Any, name: str = "y") -> npt.NDArray[Any]:
    """One-dimensional target of the length of X, without missing values."""
    if y is None:
        raise ValueError(f"This estimator requires {name} to be passed, but the target {name} is None.")
    y = column_or_1d(y, warn=True)
    if len(y) != X.shape[0]:
        raise ValueError(f"{name} has {len(y)} entries but X has {X.shape[0]} rows.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"Input {name} contains NaN or infinity; every row needs a finite target.")
    if y.dtype.kind == "O" and any(v is None or v != v for v in y):  # noqa: PLR0124 - NaN differs from itself
        raise ValueError(f"Input {name} contains NaN or None; every row needs a label.")
    return np.asarray(y)
