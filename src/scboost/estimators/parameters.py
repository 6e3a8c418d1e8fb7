"""Parameters of the estimators: what each means and may be, what they may be together, and the plan they make."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, TypeVar

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from scboost.boosting.learners import Offer
from scboost.boosting.loop import Settings
from scboost.boosting.losses import Loss
from scboost.boosting.training import Rows, Stopping

_Class = TypeVar("_Class", bound=type)

MAX_ROUNDS = 1000
"""Most rounds that ``n_estimators="auto"`` chooses from."""
FAST_ROUNDS = 100
"""Rounds of ``preset="fast"``."""
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
_CHOOSING = Stopping(patience=60, tol=0.0, share=0.2)
# Fold models that are not kept take larger steps and fewer of them: they find the best round at less cost, as well.
_CHOOSING_SPEED = 4
# Folds that choose the number of rounds, by the number of rows up to which: more rows decide as well with fewer folds.
_FOLDS_BY_ROWS = ((5_000, 5), (20_000, 3))
_LARGEST_RATE = 0.5
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


def auto_learning_rate(
    n_samples: float, n_estimators: int, *, many_classes: bool = False, two_classes_to_the_end: bool = False
) -> float:
    """Learning rate that suits a number of rows and of rounds, at most 0.5.

    Its growth with the rows is that of CatBoost's rule at 1,000 rounds; with fewer rounds the rate is larger.

    Parameters
    ----------
    n_samples : float
        Number of training rows, or the sum of their weights.
    n_estimators : int
        Number of rounds.
    many_classes : bool, default=False
        Whether there are more than two classes, whose steps are damped by an upper bound of the curvature.
    two_classes_to_the_end : bool, default=False
        Whether there are two classes and no held-out rows that would end the rounds before they do harm. More than 100
        rounds then take smaller steps: 1,000 rounds those of CatBoost's rule, in between by interpolation.

    Returns
    -------
    float
        ``exp(0.246 ln n - 5.127) (T / 1000)^-0.627``, or ``exp(0.051 ln n - 3.001) (T / 1000)^-0.627``; to the end,
        at 1,000 rounds, ``exp(0.427 ln n - 7.525)``.
    """
    a, b = (0.051, -3.001) if many_classes else (0.246, -5.127)

    def rate(rounds: int) -> float:
        return float(np.exp(a * np.log(n_samples) + b) * (rounds / 1000) ** -0.627)

    if two_classes_to_the_end and n_estimators > FAST_ROUNDS:
        few, many = rate(FAST_ROUNDS), float(np.exp(0.427 * np.log(n_samples) - 7.525))
        share = float(np.log10(n_estimators / FAST_ROUNDS))
        return float(min(few * (many / few) ** share, _LARGEST_RATE))
    return min(rate(n_estimators), _LARGEST_RATE)


PARAMETERS = """\
    preset : {"default", "fast", "best"}, default="default"
        What "auto" stands for. "default": the data choose the number of rounds on held-out rows, then one model is
        fitted on all rows, whose trees get the common factor that the held-out rows ask for, and, where that is surely
        better, are shallow, or without columns that do no good; about three times the cost of one fit. "fast": 100
        rounds, one fit; "auto" is then 0.7 for the projection of every loss that has one, and four fifths of the usual
        learning rate.
        "best": ten fold models, whose rounds are chosen and weighted out of fold, are kept, and their average is
        averaged with the model of "default", at twice its cost.
    n_estimators : int or "auto", default="auto"
        Number of boosting rounds. "auto" chooses it, up to 1,000, by the loss on rows that the trees have not seen:
        those of ``X_val`` if given, else those that ``cv`` holds out; see also ``preset``. It is 100 where fewer than
        20 rows differ, or a class has a single row.
    learning_rate : float or "auto", default="auto"
        Factor of every tree. "auto" sets it from the number of rows and of rounds: more rows and fewer rounds allow
        larger steps. From 500 rounds asked for, folds choose it: the rounds together go as far as those that "auto"
        would choose, in smaller steps (but not with ``X_val``, ``early_stopping``, ``weighting``, ``warm_start``,
        ``init_model`` or ``estimator``). What is used is ``learning_rate_``.
    max_depth : int, None or "auto", default="auto"
        Largest depth of a tree; None for no limit but ``max_leaves``. "auto" is 6 for classes, and for numbers None, or
        6 if ``max_leaves`` is None, too; unless the folds that choose the number of rounds show that held-out rows are
        better off with 3 (4 for numbers), or fewer down to 2, by one and a half standard errors (up to 20,000 rows; see
        ``max_depth_``).
    max_leaves : int or None, default=<max_leaves>
        Largest number of leaves; if given, the leaf with the largest gain is split next.
    min_child_weight : float or "auto", default="auto"
        Smallest sum of curvatures in a leaf. "auto" is 1; for quantiles and absolute error, whose curvature is 1 for
        every row, 20 rows or as many as leave two of them beyond the quantile.
    reg_lambda : float, default=3.0
        L2 penalty on leaf values.
    reg_alpha : float, default=0.0
        L1 penalty on leaf values, as in XGBoost: a leaf whose residuals add up to less does not move. Structure is
        chosen under it on the target of the tree, the projected residual. The leaf values of quantiles and absolute
        error know neither penalty.
    min_split_loss : float, default=0.0
        Smallest gain of a split, as in XGBoost. The gain is that on the target of the tree: the projected residual.
    projection_strength : float in [0, 1] or "auto", default="auto"
        Share of the historical component that is removed from the residual: gamma. 0 is plain Newton boosting. "auto"
        is 0.5 for classes, 0.7 for numbers, and 0 for quantiles and absolute error.
    energy_threshold : float in (0, 1], default=0.9
        Share of the history's energy that is projected away: alpha.
    memory : int, "auto" or "all", default="auto"
        How many of the latest trees make up the history. "auto" is 5.
    exploration : float or "auto", default="auto"
        Size of the noise under which the structure of a tree is chosen, in units of the noise that the residuals
        themselves carry. Leaf values do not see it. It makes many rounds safe; 0 switches it off. The noise follows
        from the values in a row and ``random_state``: the order of rows does not matter. For classes this is the size
        in the first round, which falls with the root of the training loss: easy data need little noise. "auto" is 0.7
        for classes, 0.3 for numbers, and 0 for quantiles and absolute error.
    leaf_rule : {"newton", "mean"}, default="newton"
        Leaf values: Newton steps on the full residual, or means of the projected one (the paper's).
    init : {"prior", "zero"}, default="prior"
        Raw score to start from: the best constant, or 0.
    subsample : float in (0, 1], default=1.0
        Share of the rows that each round is grown on; rows with equal values are drawn together.
    colsample_bytree : float in (0, 1], default=1.0
        Share of the columns offered to each round.
    colsample_bylevel : float in (0, 1], default=1.0
        Share of these columns that each level of a tree may use. Below 1, a round costs more than otherwise: XGBoost's
        sampler is started anew in each, so that a fit can be resumed bit for bit.
    colsample_bynode : float in (0, 1], default=1.0
        Share of these columns that each split may use, at the same cost.
    max_bin : int or "auto", default="auto"
        Number of histogram bins of a column. "auto" is 256; 64 for 100 columns or more with fewer than 10,000 rows
        (the sum of their weights), which is as exact and up to three times faster.
    categorical_splits : {"auto", "one-vs-rest", "subset"}, default="auto"
        What a split of a column of categories parts from the others: one category, or any group of them. Groups take
        fewer splits, but follow chance where a category has few rows. "auto" is one category, unless the folds that
        choose the number of rounds show that held-out rows are surely better off with groups, by two standard errors
        (up to 20,000 rows; see ``categorical_splits_``).
    weighting : {"simplex", "nonnegative"} or None, default=None
        How the finished trees are weighted: not at all; on the probability simplex (the paper's); or with non-negative
        weights of free scale and an intercept, pulled towards the learning rate. The last two use rows that the trees
        have not seen and penalise the covariance of the trees.
    weighting_data : {"holdout", "out_of_fold", "fold_average"}, default="holdout"
        Where these rows come from: a part held out; cross-validation, after which one model is grown on all rows; or
        cross-validation, after which the fold models are kept and averaged.
    covariance_penalty : float, default=0.0
        Factor of the covariance penalty: lambda.
    weight_ridge : float, default=0.1
        Strength of the pull towards equal weights, for ``weighting="nonnegative"``.
    cv : int, splitter, iterable or "auto", default="auto"
        Folds on which rounds are chosen and trees are weighted, as in scikit-learn: a number of folds, or how to split.
        "auto" is five folds, and ten for ``preset="best"`` (five where a class has fewer rows than ten); where they
        only choose the rounds, three of five are used from 5,000 rows on, and one from 20,000. Folds are cut by the
        values in the rows: equal rows share a fold.
    feature_selection : bool, default=True
        Whether the folds that choose the number of rounds choose the columns, too, up to 20,000 rows: the fold models
        are grown again without the columns that had the least gain, and if held-out rows are surely better off, by two
        standard errors, the model on all rows is offered the other columns only. See ``selected_features_``. With
        ``early_stopping_metric``, ``X_val`` or ``estimator``, all columns stay.
    early_stopping : bool, default=False
        Whether to stop when the loss on validation rows no longer improves, and keep the rounds up to the best.
    early_stopping_metric : str, callable or None, default=None
        What is watched on validation rows, and on folds that choose the number of rounds, in place of the loss: the
        name of a scikit-learn scorer, such as "roc_auc", or one made by :func:`sklearn.metrics.make_scorer`. Then
        "validation_loss" is minus the score; that of several folds is their mean, by the weight of their rows.
    n_iter_no_change : int or "auto", default="auto"
        Number of rounds without improvement after which to stop. "auto" is 10; while rounds are chosen, 60 or a fifth
        of the best round so far, whichever is more.
    tol : float, default=1e-7
        Smallest decrease of the validation loss that counts as improvement.
    validation_fraction : float in (0, 1), default=0.2
        Share of the rows held out for early stopping and for weighting, if ``fit`` is not given validation rows. The
        trees never see them. They are drawn by the values in the rows, class by class: equal rows stay together.
    monotone_constraints : array-like or dict, default=None
        For each column, or by column name, 1 if the raw score must not fall with it, -1 if it must not rise, else 0.
    interaction_constraints : list of lists, default=None
        Groups of columns, by number or name, that may appear together on a path.
    estimator : regressor or None, default=None
        A scikit-learn regressor to use as the learner in place of XGBoost's trees. Then ``max_depth``, ``max_leaves``,
        ``min_child_weight``, ``max_bin`` and ``device`` have no effect, and columns cannot be sampled or constrained.
    warm_start : bool, default=False
        Whether a second ``fit`` with more rounds goes on where the first stopped. The result is the same, bit for bit,
        as with all rounds at once; ``learning_rate="auto"`` stays what it was in the first ``fit``. The rows and all
        parameters but the number of rounds, its stopping, the penalties of the weights and ``n_jobs`` must stay.
    callbacks : list of callables, default=None
        Called as ``callback(self)`` after every round, when the estimator can already predict; a true answer stops.
    n_jobs : int or None, default=None
        Number of threads; None and negative numbers mean all, unlike in scikit-learn, where None is one. The result
        does not depend on it.
    device : str, default="cpu"
        Where XGBoost grows trees: "cpu", "cuda" or "cuda:0", handed to XGBoost as it is; ``get_booster()`` has the same
        setting, while this library predicts on the CPU. No GPU was at hand to test others than "cpu".
    random_state : int, RandomState or None, default=None
        Seed of exploration, of row and column sampling and of the held-out part.
    verbose : int, default=0
        Whether to show a progress bar.
"""
ATTRIBUTES = """\
    n_estimators_ : int
        Number of rounds in use.
    learning_rate_ : float
        Learning rate in use.
    max_depth_ : int or None
        Largest depth of a tree in use; None for no limit. Not with ``estimator``.
    best_iteration_ : int
        Number of the last round in use, counted from 0 as in XGBoost.
    weights_ : ndarray of shape (n_trees,)
        Weight of every tree grown; of shape (n_rounds, n_classes) for more than two classes. Where the data chose the
        number of rounds, it is the learning rate times the factor that the held-out rows ask for.
    intercept_ : ndarray of shape (n_outputs,)
        Constant part of the raw score.
    training_log_ : dict of ndarrays
        Numbers of every round: training "loss" before the round, "components" k that were projected away,
        "energy_kept" share of the history they hold, "energy_removed" share of the residual they spanned,
        "validation_loss" after the round. ``pandas.DataFrame(model.training_log_)`` is a tidy table.
    selection_log_ : dict of ndarrays
        If the data chose the number of rounds: "validation_loss" of the fold models after each "round".
    selected_features_ : ndarray of int
        Numbers of the columns that trees were offered, if some were left out. The model still takes all columns.
    categorical_splits_ : {"one-vs-rest", "subset"}
        What splits of columns of categories part from the others; only where there are such columns.
    stop_reason_ : str
        Why fewer rounds than asked for were done; empty otherwise.
    weighting_result_ : Weights
        Weights with their optimality gap, if the trees are weighted.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the total gain. The number of splits is
        ``get_booster().get_score(importance_type="weight")``; see :func:`sklearn.inspection.permutation_importance` for
        what a column is worth on other rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, if X had them.
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
    choosing : Stopping or None
        How the number of rounds is chosen on folds; None if it is given, or if validation rows decide.
    choosing_speed : int
        How many rounds of the model one round of a fold model stands for, at a learning rate as many times as large.
    stopping : Stopping or None
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
    offer : Offer
        What the trees may use, unless folds choose something else.
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
    choosing: Stopping | None
    choosing_speed: int
    stopping: Stopping | None
    weighting: Weighting | None
    joins_all_rows: bool
    n_folds: int
    n_folds_used: int
    min_child_weight: float
    n_threads: int
    max_bin: int
    selects_columns: bool
    offer: Offer
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
    estimator: Any, loss: Loss, rows: Rows, seed: int, *, has_validation: bool, has_base: bool, most_categories: int
) -> Plan:
    """Resolve what is "auto" and check what parameters may be together.

    Parameters
    ----------
    estimator : estimator
        Whose parameters have been checked one by one.
    loss : Loss
        The loss.
    rows : Rows
        Training rows.
    seed : int
        Seed of everything random.
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
            stopping = Stopping(int(patience), tol)
        else:
            stopping = Stopping(_CHOOSING.patience, tol, _CHOOSING.share) if open_number else Stopping(_PATIENCE, tol)
    elif open_number or spreads:
        choosing = _CHOOSING if patience == "auto" else Stopping(int(patience), float(estimator.tol))
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
    suggested = loss.suggested
    factor = suggested.rate if open_number or spreads else 1.0
    if fast and suggested.gamma > 0:
        suggested, factor = replace(suggested, gamma=_FAST_GAMMA), _FAST_RATE
    rate = estimator.learning_rate
    if rate == "auto":
        rate = auto_learning_rate(
            rows.total_weight(),
            n_rounds,
            many_classes=loss.n_classes > 2,
            two_classes_to_the_end=loss.n_classes == 2 and stopping is None and choosing is None,
        )
        rate = min(factor * rate, _LARGEST_RATE)
    joins_all_rows = estimator.preset == "best" and estimator.weighting is None and choosing is not None
    speed = 1
    if choosing is not None and (weighting is None or joins_all_rows):
        speed = min(_CHOOSING_SPEED, max(int(_LARGEST_RATE / rate), 1))
        choosing = replace(choosing, patience=-(-choosing.patience // speed))
    n_folds = _BEST_FOLDS if joins_all_rows else FOLDS
    if isinstance(estimator.cv, Integral):
        n_folds = int(estimator.cv)
    folds_judge = (
        choosing is not None
        and estimator.estimator is None
        and estimator.early_stopping_metric is None
        and rows.size() <= _FOLDS_BY_ROWS[-1][0]  # beyond, a single fold would judge, and noise does less harm
    )
    tries_depths = folds_judge and estimator.max_depth == "auto"
    memory = _DEFAULT_MEMORY if estimator.memory == "auto" else estimator.memory
    return Plan(
        settings=Settings(
            eta=float(rate),
            alpha=float(estimator.energy_threshold),
            gamma=_or_suggested(estimator.projection_strength, suggested.gamma),
            memory=None if memory == "all" else int(memory),
            leaf_rule=estimator.leaf_rule,
            l2=float(estimator.reg_lambda),
            l1=float(estimator.reg_alpha),
            subsample=float(estimator.subsample),
            nu=_or_suggested(estimator.exploration, suggested.nu),
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
        n_folds_used=n_folds if not isinstance(estimator.cv, str) or on_folds else _folds_used(rows.size()),
        min_child_weight=_or_suggested(estimator.min_child_weight, suggested.min_child_weight),
        n_threads=thread_count(estimator.n_jobs),
        selects_columns=folds_judge and estimator.feature_selection,
        offer=Offer(groups=estimator.categorical_splits == "subset", depth=_depth(estimator, loss)),
        depths=(_DEPTHS if loss.n_classes else _DEPTHS_OF_NUMBERS) if tries_depths else (),
        shallow_pace=_PACE if loss.n_classes else _PACE_OF_NUMBERS,
        shallow_rate=_SHALLOW_RATE if loss.n_classes and estimator.learning_rate == "auto" else 1.0,
        tries_groups=folds_judge and estimator.categorical_splits == "auto" and most_categories >= _FEWEST_FOR_GROUPS,
        max_bin=_bins(rows) if estimator.max_bin == "auto" else int(estimator.max_bin),
    )


def _or_suggested(value: float | str, suggested: float) -> float:
    return suggested if isinstance(value, str) else float(value)


def _depth(estimator: Any, loss: Loss) -> int | None:
    if estimator.max_depth != "auto":
        return None if estimator.max_depth is None else int(estimator.max_depth)
    return _DEPTH if loss.n_classes or estimator.max_leaves is None else None


def _bins(rows: Rows) -> int:
    return 64 if rows.X.shape[1] >= _WIDE and rows.total_weight() < _FEW_ROWS else 256


def _folds_used(n: float) -> int:
    return next((folds for most, folds in _FOLDS_BY_ROWS if n <= most), 1)


def _grows_several(weighting: Weighting | None) -> str:
    source = "" if weighting is None else weighting.source
    return f"weighting_data={source!r} grows several models; use weighting_data='holdout'."


def _weighting(estimator: Any, loss: Loss) -> Weighting | None:
    method, source = estimator.weighting, estimator.weighting_data
    if estimator.preset == "best" and method is None:
        if not loss.weighable:
            raise ValueError(
                "preset='best' weights trees, which needs a loss with curvature; quantile and absolute error have "
                "none. Use another preset or another loss."
            )
        method, source = "nonnegative", "fold_average"
    if method is None:
        return None
    if not loss.weighable:
        raise ValueError(
            f"weighting={method!r} needs a loss with curvature, which quantile and absolute error do "
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
