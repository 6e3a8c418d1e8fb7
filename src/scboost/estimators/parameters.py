"""Parameters of the estimators: what each means and may be, what they may be together, and the plan they make."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, TypeVar

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from scboost._core.autotune import FAST_ROUNDS, LARGEST_RATE, auto_learning_rate, loss_defaults
from scboost._core.loop import Settings
from scboost._core.losses import Loss
from scboost._core.samples import Samples
from scboost._core.stopping import EarlyStopping
from scboost._engine.interface import TreeOptions
from scboost._runtime.communicator import Communicator

_Class = TypeVar("_Class", bound=type)

MAX_ROUNDS = 1000
"""Most rounds that ``n_estimators="auto"`` chooses from."""
# What suits a number of rounds that nothing chooses: smaller steps, and a stronger projection.
_FAST_RATE, _FAST_GAMMA = 0.8, 0.7
FOLDS = 5
"""Folds that rows are cut into, if ``cv`` does not say otherwise."""

_BEST_FOLDS = 10  # whose models are kept by ``preset="best"``: each has seen nearly all rows

_DEFAULT_MEMORY = 5
_DEPTH = 6  # of trees whose leaves are not counted
# Depths that are tried in its place, and in place of no limit; and how many rounds of such trees go as far as one.
_DEPTHS, _DEPTHS_OF_NUMBERS = (3, 2), (4, 3, 2)
_PACE, _PACE_OF_NUMBERS = 2, 3
_SHALLOW_RATE = 2.0  # factor of their learning rate: they would need many rounds
# Patience while the number of rounds is chosen: rounds, and share of the best round so far.
_CHOOSING = EarlyStopping(patience=60, tol=0.0, share=0.2)
# Fold models that are not kept take larger steps and fewer of them: they find the best round at less cost, as well.
_CHOOSING_SPEED = 4
# Folds that choose the number of rounds, by the number of rows up to which: more rows decide as well with fewer folds.
_FOLDS_BY_ROWS = ((5_000, 5), (20_000, 3))
_ROUNDS_TO_CHOOSE_RATE = 500  # asked for, from which on folds, whose cost is then small, choose the learning rate
_FEWEST_FOR_GROUPS = 4  # of fewer categories, every group is one category or all others but one
# Columns and rows from which and up to which histograms, not rows, take the time of growing a tree.
_WIDE, _FEW_ROWS = 100, 10_000
_PATIENCE = 10

MAY_CHANGE_IN_WARM_START = frozenset(
    {
        "callbacks",
        "covariance_penalty",
        "n_estimators",
        "n_iter_no_change",
        "n_jobs",
        "tol",
        "verbose",
        "warm_start",
        "weight_ridge",
    }
)
"""Parameters that leave the rounds already done as they are; all others must stay between fits with ``warm_start``."""


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads as XGBoost counts them: 0 for all."""
    return 0 if n_jobs is None or n_jobs < 0 else int(n_jobs)


PARAMETERS = """\
    preset : {"default", "fast", "best"}, default="default"
        Trade-off between accuracy and time; sets the meaning of "auto".

        - "default": the number of boosting rounds, the tree depth and the feature subset are selected by
          cross-validation, then one model is fitted to all samples. All its trees are rescaled by one factor estimated
          out of fold. About three times the cost of a single fit.
        - "fast": 100 rounds in a single fit. "auto" is then ``projection_strength=0.7`` for every loss that is
          projected, and the learning rate is 0.8 times the usual one.
        - "best": ten fold models, with rounds and weights determined out of fold, are kept; their average is averaged
          with the model of "default", at twice its cost.
    n_estimators : int or "auto", default="auto"
        Number of boosting rounds. "auto" selects it, up to 1,000, by the loss on ``X_val`` if given, else by
        cross-validation (see ``cv``). With fewer than 20 distinct samples, or a class of a single sample, "auto" is
        100. Pass a number to control the cost or the size of the model.
    learning_rate : float or "auto", default="auto"
        Shrinkage factor of every tree. "auto" derives it from the numbers of samples and rounds. With
        ``n_estimators`` of 500 or more it is selected by cross-validation, so that more rounds take smaller steps; not
        with ``X_val``, ``early_stopping``, ``weighting``, ``warm_start``, ``init_model`` or ``estimator``. The value
        used is ``learning_rate_``.
    max_depth : int, None or "auto", default="auto"
        Maximum depth of a tree; None means no limit other than ``max_leaves``. "auto" is 6 for classification; for
        regression None, or 6 if ``max_leaves`` is None. If rounds are selected by cross-validation on at most 20,000
        samples, shallower trees (down to depth 2) are used if they lower the validation loss by more than 1.5 standard
        errors. The value used is ``max_depth_``. Lower it to reduce overfitting.
    max_leaves : int or None, default=<max_leaves>
        Maximum number of leaves of a tree. If given, trees grow best-first: the leaf with the largest gain is split
        next. None grows trees level by level.
    min_child_weight : float or "auto", default="auto"
        Minimum sum of Hessians in a leaf. "auto" is 1; for quantiles and absolute error, whose Hessian is 1 per
        sample, 20 or as many samples as leave two of them beyond the quantile. Increase it for noisy data.
    reg_lambda : float, default=3.0
        L2 regularization of leaf values. Increase it to shrink leaf values of few samples.
    reg_alpha : float, default=0.0
        L1 regularization of leaf values, as in XGBoost: the gradient sum of a leaf is soft-thresholded. Leaf values
        of quantiles and absolute error are not regularized.
    min_split_loss : float, default=0.0
        Minimum gain of a split, as in XGBoost, measured on the projected gradient. Increase it to prune trees.
    projection_strength : float in [0, 1] or "auto", default="auto"
        Fraction gamma of the historical component that is removed from the gradient before a tree is grown; the
        historical component is the part of the gradient that the latest trees span. 0 is ordinary Newton boosting.
        "auto" is 0.5 for classification, 0.7 for regression, and 0 for quantiles and absolute error.
    energy_threshold : float in (0, 1], default=0.9
        Fraction alpha of the energy of the history that the projection covers. Lower values project on fewer
        components.
    memory : int, "auto" or "all", default="auto"
        Number of latest trees that form the history. "auto" is 5; "all" is the paper's, at a cost that grows with the
        number of rounds.
    exploration : float or "auto", default="auto"
        Standard deviation of the Gaussian noise added to the gradient when splits are chosen, in units of the
        gradient's own noise; leaf values do not see it. It regularizes long fits. The noise is a hash of feature values
        and ``random_state``, so the order of the samples does not matter. For classification it decreases with the
        square root of the training loss. "auto" is 0.7 for classification, 0.3 for regression, and 0 for quantiles and
        absolute error; 0 disables it.
    leaf_rule : {"newton", "mean"}, default="newton"
        Leaf values: Newton steps on the full gradient, or means of the projected residuals (the paper's rule).
    init : {"prior", "zero"}, default="prior"
        Initial raw score: the constant that minimizes the loss, or 0 (the paper's).
    subsample : float in (0, 1], default=1.0
        Fraction of the samples used in each round. Samples with equal features are drawn together.
    colsample_bytree : float in (0, 1], default=1.0
        Fraction of the features available to each round.
    colsample_bylevel : float in (0, 1], default=1.0
        Fraction of these features available to each tree level. Values below 1 make rounds slower, because XGBoost's
        sampler is restarted in each of them for bit-exact resuming.
    colsample_bynode : float in (0, 1], default=1.0
        Fraction of these features available to each split, at the same cost.
    max_bin : int or "auto", default="auto"
        Maximum number of histogram bins per feature. "auto" is 256, or 64 for 100 or more features and fewer than
        10,000 samples (sum of weights), which is up to three times faster at the same accuracy.
    categorical_splits : {"auto", "one-vs-rest", "subset"}, default="auto"
        How categorical features are split: one category against all others, or any subset of the categories. Subset
        splits need fewer splits but overfit rare categories. "auto" is one-vs-rest, unless rounds are selected by
        cross-validation on at most 20,000 samples and subset splits lower the validation loss by more than two standard
        errors. The value used is ``categorical_splits_``.
    weighting : {"simplex", "nonnegative"} or None, default=None
        How the fitted trees are reweighted on held-out data, with a penalty on the covariance of their predictions:
        not at all; by weights on the probability simplex (the paper's); or by non-negative weights of free scale and
        an intercept, with a ridge penalty towards the learning rate.
    weighting_data : {"holdout", "out_of_fold", "fold_average"}, default="holdout"
        Held-out data for ``weighting``: a validation set; out-of-fold predictions, after which one model is grown on
        all samples; or out-of-fold predictions, after which the fold models are kept and averaged.
    covariance_penalty : float, default=0.0
        Coefficient lambda of the covariance penalty of ``weighting``.
    weight_ridge : float, default=0.1
        Coefficient of the ridge penalty towards equal weights, for ``weighting="nonnegative"``.
    cv : int, splitter, iterable or "auto", default="auto"
        Cross-validation that selects the number of rounds and provides out-of-fold predictions: a number of folds, a
        scikit-learn splitter, or an iterable of (train, test) indices. "auto" is five folds, and ten for
        ``preset="best"`` (five if a class has fewer than ten samples); to select the rounds only, three of five folds
        are used from 5,000 samples on, and one from 20,000. Folds are assigned by a hash of the features: equal
        samples share a fold.
    feature_selection : bool, default=True
        Whether features are selected by cross-validation, if it selects the number of rounds on at most 20,000
        samples: fold models are grown again without the features of lowest gain, which are excluded from the final
        model if this lowers the validation loss by more than two standard errors. See ``selected_features_``. Not with
        ``early_stopping_metric``, ``X_val`` or ``estimator``.
    early_stopping : bool, default=False
        Whether to stop when the validation loss no longer improves, and to keep the rounds up to the best one. Useful
        with a fixed ``n_estimators`` as upper bound.
    early_stopping_metric : str, callable or None, default=None
        Metric that replaces the loss for early stopping and for selecting the number of rounds: the name of a
        scikit-learn scorer, such as "roc_auc", or a scorer made by :func:`sklearn.metrics.make_scorer`. In the logs,
        "validation_loss" is then the negative score; over several folds it is their weighted mean.
    n_iter_no_change : int or "auto", default="auto"
        Number of rounds without improvement after which to stop. "auto" is 10; while the number of rounds is selected,
        60 or a fifth of the best round so far, whichever is larger.
    tol : float, default=1e-7
        Minimum decrease of the validation loss that counts as an improvement.
    validation_fraction : float in (0, 1), default=0.2
        Fraction of the samples held out for early stopping and for ``weighting`` if no validation set is passed to
        ``fit``. They are stratified by class and chosen by a hash of the features: equal samples stay together.
    monotone_constraints : array-like or dict, default=None
        Constraint of each feature, by position or by name: 1 if the raw score must not decrease with it, -1 if it must
        not increase, 0 for none. Not for more than two classes.
    interaction_constraints : list of lists, default=None
        Groups of features, by position or by name, that may occur together on a path of a tree.
    estimator : regressor or None, default=None
        Scikit-learn regressor used as base learner instead of XGBoost's trees. ``max_depth``, ``max_leaves``,
        ``min_child_weight``, ``max_bin`` and ``device`` are then ignored; features cannot be sampled or constrained.
    warm_start : bool, default=False
        Whether another call of ``fit`` with more rounds continues the previous one. The result is bit-identical to a
        single fit with all rounds; ``learning_rate="auto"`` keeps its value. Data and parameters must be the same,
        except the number of rounds, early stopping, the penalties of the weights and ``n_jobs``.
    callbacks : list of callables, default=None
        Called after every round as ``callback(model)`` with an estimator that has the model so far and can predict.
        Training stops if a callback returns a true value.
    n_jobs : int or None, default=None
        Number of threads. None and negative values mean all cores, unlike in scikit-learn, where None means one.
        Results are bit-identical for any number of threads.
    device : str, default="cpu"
        Device on which XGBoost grows trees: "cpu", "cuda" or "cuda:0". Only "cpu" is covered by tests. Predictions of
        this library are computed on the CPU; ``get_booster()`` returns a booster with this device.
    random_state : int, RandomState or None, default=None
        Seed of exploration, sampling, folds and held-out data. Pass an int for reproducible results.
    verbose : int, default=0
        Whether to show a progress bar.
"""
ATTRIBUTES = """\
    n_estimators_ : int
        Number of boosting rounds in use.
    learning_rate_ : float
        Learning rate in use.
    max_depth_ : int or None
        Maximum tree depth in use; None for no limit. Not with ``estimator``.
    best_iteration_ : int
        Index of the last round in use, counted from 0 as in XGBoost.
    weights_ : ndarray of shape (n_rounds,)
        Weight of every tree; of shape (n_rounds, n_classes) for more than two classes. If the number of rounds was
        selected by cross-validation, the learning rate times the factor estimated out of fold.
    intercept_ : ndarray of shape (n_outputs,)
        Constant part of the raw score.
    training_log_ : dict of ndarrays
        One entry per round: training "loss" before the round, number of "components" projected on, "energy_kept"
        (fraction of the energy of the history that these hold), "energy_removed" (fraction of the energy of the
        gradient in their span), and "validation_loss" after the round.
        ``pandas.DataFrame(model.training_log_)`` is a tidy table.
    selection_log_ : dict of ndarrays
        "validation_loss" of the fold models after each "round", if the number of rounds was selected by
        cross-validation.
    selected_features_ : ndarray of int
        Positions of the features that trees may use, if some were excluded. The model still expects all features.
    categorical_splits_ : {"one-vs-rest", "subset"}
        How categorical features are split, if there are any.
    stop_reason_ : str
        Why fewer rounds than requested were run; empty otherwise.
    weighting_result_ : Weights
        Tree weights with their optimality gap, if ``weighting`` was requested.
    feature_importances_ : ndarray of shape (n_features,)
        Fraction of the total gain due to each feature. Split counts are
        ``get_booster().get_score(importance_type="weight")``; see :func:`sklearn.inspection.permutation_importance` for
        the importance on held-out data.
    target_name_ : str
        Name of the target column, if the model was trained by the command line.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Feature names, if X had them.
"""


def documented(cls: _Class) -> _Class:
    """Write what the estimators share into a class docstring, once, with the defaults of the class."""
    if cls.__doc__ is not None:
        shared = PARAMETERS
        for name, parameter in inspect.signature(cls).parameters.items():
            shared = shared.replace(f"default=<{name}>", f"default={parameter.default!r}")
        text = inspect.cleandoc(cls.__doc__)  # Python 3.13 strips the indentation, older versions keep it
        text = text.replace("<shared parameters>\n", inspect.cleandoc(shared) + "\n")
        cls.__doc__ = text.replace("<shared attributes>\n", inspect.cleandoc(ATTRIBUTES) + "\n")
    return cls


CONSTRAINTS: dict[str, list[Any]] = {
    "preset": [StrOptions({"default", "fast", "best"})],
    "n_estimators": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None, StrOptions({"auto"})],
    "max_leaves": [Interval(Integral, 2, None, closed="left"), None],
    "min_child_weight": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    "reg_lambda": [Interval(Real, 0, None, closed="left")],
    "reg_alpha": [Interval(Real, 0, None, closed="left")],
    "min_split_loss": [Interval(Real, 0, None, closed="left")],
    "projection_strength": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
    "energy_threshold": [Interval(Real, 0, 1, closed="right")],
    "memory": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto", "all"})],
    "exploration": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    "leaf_rule": [StrOptions({"newton", "mean"})],
    "init": [StrOptions({"prior", "zero"})],
    "subsample": [Interval(Real, 0, 1, closed="right")],
    "colsample_bytree": [Interval(Real, 0, 1, closed="right")],
    "colsample_bylevel": [Interval(Real, 0, 1, closed="right")],
    "colsample_bynode": [Interval(Real, 0, 1, closed="right")],
    "max_bin": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
    "categorical_splits": [StrOptions({"auto", "one-vs-rest", "subset"})],
    "weighting": [StrOptions({"simplex", "nonnegative"}), None],
    "weighting_data": [StrOptions({"holdout", "out_of_fold", "fold_average"})],
    "covariance_penalty": [Interval(Real, 0, None, closed="left")],
    "weight_ridge": [Interval(Real, 0, None, closed="neither")],
    "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split"]), "array-like", StrOptions({"auto"})],
    "feature_selection": ["boolean"],
    "early_stopping": ["boolean"],
    "early_stopping_metric": [str, callable, None],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "tol": [Interval(Real, 0, None, closed="left")],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "monotone_constraints": ["array-like", dict, None],
    "interaction_constraints": [list, tuple, None],
    "estimator": [HasMethods(["fit", "predict"]), None],
    "warm_start": ["boolean"],
    "callbacks": [list, tuple, None],
    "n_jobs": [Integral, None],
    "device": [str],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
"""What each parameter may be, in scikit-learn's declarative form."""


@dataclass(frozen=True)
class Weighting:
    """How finished trees are weighted.

    Attributes
    ----------
    method : {"simplex", "nonnegative"}
        The set of weights.
    source : {"holdout", "out_of_fold", "fold_average"}
        Where the rows that decide come from, and what is kept.
    covariance_penalty, pull : float
        Strength of the two penalties.
    """

    method: Literal["simplex", "nonnegative"]
    source: Literal["holdout", "out_of_fold", "fold_average"]
    covariance_penalty: float
    pull: float


@dataclass(frozen=True)
class Plan:
    """What a fit will do, decided before its first round.

    Attributes
    ----------
    settings : Settings
        Settings of the loop.
    n_rounds : int
        Most rounds of a model.
    spread : int or None
        Number of rounds over which a model on all rows spreads the steps of the rounds chosen, if it is given.
    from_zero : bool
        Whether to start at the raw score 0.
    choosing : EarlyStopping or None
        How the number of rounds is chosen on folds; None if it is given, or if validation rows decide.
    choosing_speed : int
        How many rounds of the model one round of a fold model stands for, at a learning rate as many times as large.
    stopping : EarlyStopping or None
        When to stop on validation rows.
    weighting : Weighting or None
        How the trees are weighted.
    joins_all_rows : bool
        Whether the fold models that are kept are averaged with a model on all rows.
    n_folds, n_folds_used : int
        Folds that rows are cut into, and how many of them are held out in turn.
    min_child_weight : float
        Smallest sum of curvatures in a leaf.
    n_threads : int
        Number of threads; 0 for all.
    max_bin : int
        Number of histogram bins of a column.
    selects_columns : bool
        Whether the folds that choose the number of rounds choose the columns, too.
    options : TreeOptions
        Options of the trees, unless cross-validation selects others.
    depths : tuple of int
        Largest depths of trees that the folds that choose the number of rounds try, as long as each is better.
    shallow_pace : int
        How many rounds of such trees go as far as one of the others.
    shallow_rate : float
        Factor of the learning rate of such trees in a model on all rows.
    tries_groups : bool
        Whether the folds that choose the number of rounds may allow groups of categories.
    """

    settings: Settings
    n_rounds: int
    spread: int | None
    from_zero: bool
    choosing: EarlyStopping | None
    choosing_speed: int
    stopping: EarlyStopping | None
    weighting: Weighting | None
    joins_all_rows: bool
    n_folds: int
    n_folds_used: int
    min_child_weight: float
    n_threads: int
    max_bin: int
    selects_columns: bool
    options: TreeOptions
    depths: tuple[int, ...]
    shallow_pace: int
    shallow_rate: float
    tries_groups: bool

    @property
    def uses_folds(self) -> bool:
        """Whether fold models are grown."""
        return self.choosing is not None or (self.weighting is not None and self.weighting.source != "holdout")

    @property
    def needs_validation(self) -> bool:
        """Whether validation rows are needed, given or held out."""
        return self.stopping is not None or (self.weighting is not None and self.weighting.source == "holdout")

    def without_choosing(self, n_rounds: int) -> Plan:
        """Return the plan for data that have too few rows to choose the number of rounds on."""
        n_rounds = self.spread or n_rounds
        nothing: dict[str, Any] = {
            "selects_columns": False,
            "tries_groups": False,
            "depths": (),
            "joins_all_rows": False,
        }
        return replace(self, n_rounds=n_rounds, choosing=None, choosing_speed=1, **nothing)


def make_plan(
    estimator: Any,
    loss: Loss,
    rows: Samples,
    seed: int,
    communicator: Communicator,
    *,
    has_validation: bool,
    has_base: bool,
    most_categories: int,
) -> Plan:
    """Resolve what is "auto" and check what parameters may be together.

    Parameters
    ----------
    estimator : estimator
        Whose parameters have been checked one by one.
    loss : Loss
        The loss.
    rows : Samples
        Training rows.
    seed : int
        Seed of everything random.
    communicator : Communicator
        The other workers.
    has_validation : bool
        Whether the user gives validation rows.
    has_base : bool
        Whether rounds are added to a finished model.
    most_categories : int
        How many the column with the most of them has.
    """
    weighting = _weighting(estimator, loss)
    on_folds = weighting is not None and weighting.source != "holdout"
    given = estimator.n_estimators
    fast = given == "auto" and estimator.preset == "fast"
    open_number = given == "auto" and not fast
    spreads = (
        given != "auto"
        and int(given) >= _ROUNDS_TO_CHOOSE_RATE
        and estimator.learning_rate == "auto"
        and weighting is None
        and not (estimator.warm_start or estimator.early_stopping or has_validation or has_base)
        and estimator.estimator is None
        and estimator.early_stopping_metric is None
    )
    n_rounds = FAST_ROUNDS if fast else MAX_ROUNDS if open_number or spreads else int(given)
    stops = estimator.early_stopping or (open_number and has_validation)
    patience = estimator.n_iter_no_change
    stopping = choosing = None
    if stops:
        tol = float(estimator.tol)
        if patience != "auto":
            stopping = EarlyStopping(int(patience), tol)
        else:
            stopping = (
                EarlyStopping(_CHOOSING.patience, tol, _CHOOSING.share)
                if open_number
                else EarlyStopping(_PATIENCE, tol)
            )
    elif open_number or spreads:
        choosing = _CHOOSING if patience == "auto" else EarlyStopping(int(patience), float(estimator.tol))
    if estimator.warm_start and (choosing is not None or on_folds):
        raise ValueError(
            "warm_start=True goes on with one model of a given number of rounds, but "
            + ("n_estimators='auto' chooses it; give a number." if not on_folds else _grows_several(weighting))
        )
    if stops and on_folds:
        raise ValueError(
            "early_stopping=True and validation rows cannot be combined with fold models, which are stopped together: "
            + _grows_several(weighting)
        )
    defaults = loss_defaults(loss)
    factor = defaults.rate if open_number or spreads else 1.0
    if fast and defaults.projection_strength > 0:
        defaults, factor = replace(defaults, projection_strength=_FAST_GAMMA), _FAST_RATE
    rate = estimator.learning_rate
    if rate == "auto":
        rate = auto_learning_rate(
            rows.total_weight(communicator),
            n_rounds,
            many_classes=loss.n_classes > 2,
            two_classes_to_the_end=loss.n_classes == 2 and stopping is None and choosing is None,
        )
        rate = min(factor * rate, LARGEST_RATE)
    joins_all_rows = estimator.preset == "best" and estimator.weighting is None and choosing is not None
    speed = 1
    if choosing is not None and (weighting is None or joins_all_rows):
        speed = min(_CHOOSING_SPEED, max(int(LARGEST_RATE / rate), 1))
        choosing = replace(choosing, patience=-(-choosing.patience // speed))
    n_folds = _BEST_FOLDS if joins_all_rows else FOLDS
    if isinstance(estimator.cv, Integral):
        n_folds = int(estimator.cv)
    folds_judge = (
        choosing is not None
        and estimator.estimator is None
        and estimator.early_stopping_metric is None
        and rows.effective_size(communicator)
        <= _FOLDS_BY_ROWS[-1][0]  # beyond, a single fold would judge, and noise does less harm
    )
    tries_depths = folds_judge and estimator.max_depth == "auto"
    memory = _DEFAULT_MEMORY if estimator.memory == "auto" else estimator.memory
    return Plan(
        settings=Settings(
            eta=float(rate),
            alpha=float(estimator.energy_threshold),
            gamma=_or_suggested(estimator.projection_strength, defaults.projection_strength),
            memory=None if memory == "all" else int(memory),
            leaf_rule=estimator.leaf_rule,
            l2=float(estimator.reg_lambda),
            l1=float(estimator.reg_alpha),
            subsample=float(estimator.subsample),
            nu=_or_suggested(estimator.exploration, defaults.exploration),
            seed=seed,
        ),
        n_rounds=n_rounds,
        spread=int(given) if spreads else None,
        from_zero=estimator.init == "zero",
        choosing=choosing,
        choosing_speed=speed,
        stopping=stopping,
        weighting=weighting,
        joins_all_rows=joins_all_rows,
        n_folds=n_folds,
        n_folds_used=n_folds
        if not isinstance(estimator.cv, str) or on_folds
        else _folds_used(rows.effective_size(communicator)),
        min_child_weight=_or_suggested(estimator.min_child_weight, defaults.min_child_weight),
        n_threads=thread_count(estimator.n_jobs),
        selects_columns=folds_judge and estimator.feature_selection,
        options=TreeOptions(subset_splits=estimator.categorical_splits == "subset", max_depth=_depth(estimator, loss)),
        depths=(_DEPTHS if loss.n_classes else _DEPTHS_OF_NUMBERS) if tries_depths else (),
        shallow_pace=_PACE if loss.n_classes else _PACE_OF_NUMBERS,
        shallow_rate=_SHALLOW_RATE if loss.n_classes and estimator.learning_rate == "auto" else 1.0,
        tries_groups=folds_judge and estimator.categorical_splits == "auto" and most_categories >= _FEWEST_FOR_GROUPS,
        max_bin=_bins(rows, communicator) if estimator.max_bin == "auto" else int(estimator.max_bin),
    )


def _or_suggested(value: float | str, suggested: float) -> float:
    return suggested if isinstance(value, str) else float(value)


def _depth(estimator: Any, loss: Loss) -> int | None:
    if estimator.max_depth != "auto":
        return None if estimator.max_depth is None else int(estimator.max_depth)
    return _DEPTH if loss.n_classes or estimator.max_leaves is None else None


def _bins(rows: Samples, communicator: Communicator) -> int:
    return 64 if rows.X.shape[1] >= _WIDE and rows.total_weight(communicator) < _FEW_ROWS else 256


def _folds_used(n: float) -> int:
    return next((folds for most, folds in _FOLDS_BY_ROWS if n <= most), 1)


def _grows_several(weighting: Weighting | None) -> str:
    source = "" if weighting is None else weighting.source
    return f"weighting_data={source!r} grows several models; use weighting_data='holdout'."


def _weighting(estimator: Any, loss: Loss) -> Weighting | None:
    method, source = estimator.weighting, estimator.weighting_data
    if estimator.preset == "best" and method is None:
        if not loss.supports_weighting:
            raise ValueError(
                "preset='best' weights trees, which needs a loss with a Hessian; quantile and absolute error have "
                "none. Use another preset or another loss."
            )
        method, source = "nonnegative", "fold_average"
    if method is None:
        return None
    if not loss.supports_weighting:
        raise ValueError(
            f"weighting={method!r} needs a loss with a Hessian, which quantile and absolute error do "
            "not have; use weighting=None or another loss."
        )
    if method == "simplex" and source != "holdout":
        raise ValueError(
            f"weighting_data={source!r} needs weighting='nonnegative'; "
            "weights on the simplex are learnt on a 'holdout'."
        )
    return Weighting(method, source, float(estimator.covariance_penalty), float(estimator.weight_ridge))


def check_shareable(estimator: Any) -> None:
    """Reject what rows that are spread over workers do not allow."""
    problems = {
        "estimator": estimator.estimator is not None and "only XGBoost's trees are grown by several workers",
        "early_stopping_metric": estimator.early_stopping_metric is not None
        and "a scorer needs all rows at once; leave it out to stop on the loss",
        "cv": not isinstance(estimator.cv, str | Integral) and "splitters count the rows of one table; give a number",
    }
    _refuse(estimator, problems, "several workers")


def check_batches(estimator: Any, given: dict[str, Any], *, has_validation: bool) -> None:
    """Reject what a fit to batches does not allow.

    Parameters
    ----------
    estimator : estimator
        About to be fitted.
    given : dict
        Arguments of ``fit`` that must be None.
    has_validation : bool
        Whether the user gives validation rows.
    """
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} cannot be given with batches: each of them is (X, y) or (X, y, sample_weight).")
    weighting = estimator.weighting is not None
    folds = estimator.preset == "best" or (weighting and estimator.weighting_data != "holdout")
    held_out = not has_validation and "rows of batches cannot be held out; give X_val, which may be batches, too"
    problems = {
        "estimator": estimator.estimator is not None
        and "only XGBoost's trees are grown on rows that are not in memory",
        "preset" if estimator.preset == "best" else "weighting_data": folds
        and "what every tree adds to every row would have to be in memory",
        "early_stopping": estimator.early_stopping and held_out,
        "weighting": weighting and held_out,
        "cv": not isinstance(estimator.cv, str | Integral) and "splitters count the rows of one table; give a number",
    }
    _refuse(estimator, problems, "a fit to batches")


def _refuse(estimator: Any, problems: dict[str, Any], what: str) -> None:
    for name, problem in problems.items():
        if problem:
            raise ValueError(f"{name}={getattr(estimator, name)!r} cannot be used with {what}: {problem}.")


def check_together(estimator: Any) -> None:
    """Reject values that are legal one by one but not together."""
    if estimator.max_depth is None and estimator.max_leaves is None:
        raise ValueError("max_depth=None and max_leaves=None leave trees without limit; set at least one.")
    for callback in estimator.callbacks or ():
        if not callable(callback):
            raise TypeError(f"callbacks must be callables that take the estimator, got {callback!r}.")
    learner = estimator.estimator
    if learner is None:
        return
    is_tree = hasattr(learner, "apply") and not hasattr(learner, "n_estimators")
    if estimator.leaf_rule == "newton" and not is_tree:
        raise ValueError(f"leaf_rule='newton' needs one tree as estimator, got {learner!r}; use leaf_rule='mean'.")
    if estimator.monotone_constraints is not None or estimator.interaction_constraints is not None:
        raise ValueError("monotone_constraints and interaction_constraints need estimator=None.")
    for name in ("colsample_bytree", "colsample_bylevel", "colsample_bynode"):
        if getattr(estimator, name) < 1:
            raise ValueError(
                f"{name}={getattr(estimator, name)} needs estimator=None; sample columns in the estimator."
            )
    if estimator.min_split_loss > 0:
        raise ValueError(f"min_split_loss={estimator.min_split_loss} needs estimator=None; set it in the estimator.")
