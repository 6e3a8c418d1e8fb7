"""Parameters of the estimators: documentation and allowed values."""

from __future__ import annotations

import inspect
from numbers import Integral, Real
from typing import Any, TypeVar

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

_Class = TypeVar("_Class", bound=type)


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads as XGBoost counts them: 0 for all."""
    return 0 if n_jobs is None or n_jobs < 0 else int(n_jobs)


PARAMETERS = """\
    preset : {"default", "fast", "best"}, default="default"
        Trade-off between accuracy and time; sets the meaning of "auto".

        - "default": the number of boosting rounds, the shape and size of the trees, the projection strength and the
          feature subset are selected by cross-validation. Candidates compete by successive halving: all start with a
          few rounds on the first folds, and the best go on. A classifier or regressor is then the average of the fold
          models, whose leaf values are refitted on all samples, and of a model fitted to all samples. It is a single
          model with more than 20,000 samples, a given ``learning_rate`` or ``n_estimators``, batches, several targets,
          a class below 0.5 % or a loss without a Hessian; so are the models of other tasks. All trees are rescaled by
          one factor estimated out of fold.
        - "fast": 100 rounds in a single fit. "auto" is then ``projection_strength=0.7`` for every loss that is
          projected, and the learning rate is 0.8 times the usual one.
        - "best": averages a model fitted to all samples with small steps and ten fold models, at about three times the
          cost of "default". Rounds and tree weights of the fold models are selected out of fold; their leaf values are
          then refitted on all samples.
    n_estimators : int or "auto", default="auto"
        Number of boosting rounds. "auto" selects it, up to 1,000, by the loss on ``X_val`` if given, else by
        cross-validation (see ``cv``): up to 500 in each of the averaged models. With fewer than 20 distinct samples,
        or a class of a single sample, "auto" is 100. Pass a number to control the cost or the size of the model.
    learning_rate : float or "auto", default="auto"
        Shrinkage factor of every tree. "auto" derives it from the numbers of samples and rounds. With
        ``n_estimators`` of 500 or more it is selected by cross-validation, so that more rounds take smaller steps; not
        with ``X_val``, ``early_stopping``, ``weighting``, ``warm_start``, ``init_model`` or ``estimator``. The value
        used is ``learning_rate_``.
    max_depth : int, None or "auto", default="auto"
        Maximum depth of a tree; None means no limit other than ``max_leaves``. "auto" is 6 for classification; for
        regression None, or 6 if trees do not grow leaf-wise. If rounds are selected by cross-validation, shallower
        trees (down to depth 2, up to 20,000 samples) and, with ``tree_shape="auto"``, larger ones (depth 10 or 12, or
        up to 255 leaves: the more samples, the larger) compete with it. For several targets whose
        trees share, or may share, their splits (``multi_strategy``), "auto" is 4, and 6 and 8 compete with it above
        2,000 samples. The value used is ``max_depth_``. Lower it to reduce overfitting.
    max_leaves : int, None or "auto", default=<max_leaves>
        Maximum number of leaves of a tree; None means no limit. "auto" is 31 for leaf-wise trees, and no limit for
        others. If a number is given, trees grow leaf-wise unless ``tree_shape`` is given, too.
    tree_shape : {"auto", "depth-wise", "leaf-wise", "symmetric", "alternating"}, default="auto"
        How trees grow.

        - "depth-wise": level by level; every leaf has its own best split.
        - "leaf-wise": the leaf with the largest gain is split next, up to ``max_leaves``.
        - "symmetric": one split for all leaves of a level, as in CatBoost. Such trees are simpler: they overfit less,
          and need more rounds. They are stored as ordinary trees.
        - "alternating": depth-wise and symmetric trees in turn.

        "symmetric" and "alternating" need ``engine="native"``. "auto" is leaf-wise with ``max_leaves``, else
        depth-wise; if rounds are selected by cross-validation with the native engine and ``max_leaves`` is not a
        number, all shapes compete from 2,000 samples on. Trees that share, or may share, their splits
        (``multi_strategy``) are by default symmetric for several targets and alternating otherwise. The value used is
        ``tree_shape_``.
    multi_strategy : {"auto", "one_output_per_tree", "multi_output_tree"}, default="auto"
        Whether the trees of a round share their splits if there are several outputs: several targets or labels, more
        than two classes, several quantiles, or the parameters of a distribution. No effect with one output.

        - "one_output_per_tree": each output has a tree with splits of its own.
        - "multi_output_tree": the trees of a round have the same splits, chosen for all outputs together, and leaf
          values of their own. Rounds are cheaper, especially with many outputs, and outputs that depend on the same
          features in a similar way learn from each other. Requires ``engine="native"``; not available with
          ``monotone_constraints`` or ``estimator``. With more than four classes, whose Hessians are smaller,
          ``reg_lambda`` is multiplied by 4 / n_classes.

        "auto" is "one_output_per_tree", with two exceptions if ``n_estimators="auto"``, ``preset`` is not "fast" and
        the engine is native: it is "multi_output_tree" for more than four classes; for several targets or labels it is
        selected by cross-validation, or "multi_output_tree" if a validation set stops the fit. The value used is
        ``multi_strategy_``.
    max_trees : int or None, default=None
        If given, the fitted model is compressed into at most this many trees (for each class, if there are more than
        two), as by :func:`scboost.compress`. ``training_log_`` then holds the divergence from the full model by number
        of trees, and ``stop_reason_`` the certificate. Use it for small and fast models.
    min_child_weight : float or "auto", default="auto"
        Minimum sum of Hessians in a leaf. "auto" is 0.1 in classification, where the Hessian of a sample is at most
        1/4 and falls to 0 as predictions become certain, and 1 in regression; for quantiles and absolute error, whose
        Hessian is 1 per sample, it is 20, or more for extreme quantiles, so that two samples of a leaf lie beyond the
        quantile. Increase it for noisy data.
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
        gradient's own noise; leaf values are computed without it. It regularizes long fits. The noise is a hash of
        feature values and ``random_state``, so the order of the samples does not matter. For classification it
        decreases with the square root of the training loss. "auto" is 0.7 for classification, 0.3 for regression, and
        0 for quantiles and absolute error; 0 disables it.
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
        cross-validation and subset splits have the lower validation loss. The value used is ``categorical_splits_``.
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
        are used from 1,000 samples on, and one from 20,000. Folds are assigned by a hash of the features: equal
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
        scikit-learn scorer, such as "roc_auc", a name of other libraries ("auc", "aucpr", "logloss", "error", "rmse",
        "mae", "mape"), or a scorer made by :func:`sklearn.metrics.make_scorer`. The logs then hold the score under the
        scorer's name, "validation_roc_auc", in place of "validation_loss"; over several folds it is their weighted
        mean.
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
        Scikit-learn regressor used as base learner instead of the built-in trees. ``max_depth``, ``max_leaves``,
        ``min_child_weight``, ``max_bin`` and ``device`` are then ignored; features cannot be sampled or constrained.
    warm_start : bool, default=False
        Whether another call of ``fit`` with more rounds continues the previous one. The result is bit-identical to a
        single fit with all rounds; ``learning_rate="auto"`` keeps its value. Data and parameters must be the same,
        except the number of rounds, early stopping, the penalties of the weights and ``n_jobs``.
    callbacks : list of callables, default=None
        Called after every round as ``callback(model)`` with an estimator that has the model so far and can predict.
        Training stops if a callback returns a true value.
    n_jobs : int or None, default=None
        Number of threads. None means one thread for small training sets (below two million values) and all cores
        otherwise; negative values mean all cores.
        Results are bit-identical for any number of threads.
    engine : {"auto", "native", "xgboost"}, default="auto"
        Library that grows the trees. "native" are the compiled kernels of scboost: the same kind of trees in a fraction
        of the time, in memory and on the CPU of one machine. "auto" uses them if possible, and XGBoost for batches,
        distributed fits, other devices, and if the kernels are not installed. Results of the two engines differ
        slightly, because "native" places bin edges halfway between values. The engine used is ``engine_``; set this
        parameter to get the same trees on all machines.
    device : str, default="cpu"
        Device on which XGBoost grows trees: "cpu", "cuda" or "cuda:0". Only "cpu" is covered by tests. Predictions of
        this library are computed on the CPU; ``get_booster()`` returns a booster with this device.
    random_state : int, RandomState or None, default=None
        Seed of exploration, sampling, folds and held-out data. None is a fixed seed: fits are reproducible by
        default, as in XGBoost and LightGBM. Pass different integers to see how much results vary.
    verbose : bool, int or None, default=None
        Whether to show progress. None shows it on terminals and in notebooks if a fit takes more than three seconds,
        and never in log files. False never shows it; True always shows it, in log files as a line every ten seconds.
"""
ATTRIBUTES = """\
    n_estimators_ : int
        Number of boosting rounds in use, those of all averaged models together. The rounds of averaged models are
        interleaved, so that the first rounds have a share of each.
    learning_rate_ : float
        Learning rate in use.
    max_depth_ : int or None
        Maximum tree depth in use; None for no limit. Not with ``estimator``.
    tree_shape_ : {"depth-wise", "leaf-wise", "symmetric", "alternating"}
        How the trees grew. Not with ``estimator``, nor for a compressed model.
    multi_strategy_ : {"one_output_per_tree", "multi_output_tree"}
        Whether the trees of a round share their splits. Not with ``estimator``, nor for a compressed model.
    engine_ : {"native", "xgboost"} or None
        Engine that grew the trees. None with ``estimator``, and for models of earlier versions.
    best_iteration_ : int
        Index of the last round in use, counted from 0 as in XGBoost.
    weights_ : ndarray of shape (n_rounds,)
        Weight of every tree; of shape (n_rounds, n_classes) for more than two classes. If the number of rounds was
        selected by cross-validation, the learning rate times the factor estimated out of fold.
    intercept_ : ndarray of shape (n_outputs,)
        Constant part of the raw score.
    training_log_ : dict of ndarrays
        One entry per round of the model fitted to all samples: training "loss" and "validation_loss" after the round
        (the latter under the name of ``early_stopping_metric``, if there is one), number of "components" projected on,
        "energy_kept" (fraction of the energy of the history that these hold), and "energy_removed" (fraction of the
        energy of the gradient in their span).
        ``pandas.DataFrame(model.training_log_)`` is a tidy table.
    selection_log_ : dict of ndarrays
        "validation_loss", or the score of ``early_stopping_metric`` under its name, of the fold models after each
        "round", if the number of rounds was selected by cross-validation.
    selected_features_ : ndarray of int
        Positions of the features that trees may use, if some were excluded. The model still expects all features.
    categorical_splits_ : {"one-vs-rest", "subset"}
        How categorical features are split, if there are any.
    stop_reason_ : str
        Why fewer rounds than requested were run; empty otherwise.
    weighting_result_ : Weights
        Tree weights with their optimality gap, if ``weighting`` was requested.
    feature_importances_ : ndarray of shape (n_features,)
        Fraction of the total gain due to each feature, that of a date being the sum over its parts. Split counts are
        ``get_booster().get_score(importance_type="weight")``; see :func:`sklearn.inspection.permutation_importance` for
        the importance on held-out data.
    target_name_ : str or tuple of str
        Name of the target column, or names of several, if the model was trained by the command line.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Feature names, if X had them.
    model_feature_names_ : ndarray of shape (n_model_features,)
        Names of the features that the trees split on, if X had feature names: the same, but a date "sold" is replaced
        by its parts "sold: year", "sold: month" and so on, and an ordered categorical feature "size" by "size: order".
"""


def documented(cls: _Class) -> _Class:
    """Insert the shared parameters into a class docstring, with the defaults of the class."""
    if cls.__doc__ is not None:
        shared = PARAMETERS
        for name, parameter in inspect.signature(cls).parameters.items():
            shared = shared.replace(f"default=<{name}>", f"default={parameter.default!r}".replace("'", '"'))
        text = inspect.cleandoc(cls.__doc__)  # Python 3.13 strips the indentation, older versions keep it
        text = text.replace("<shared parameters>\n", inspect.cleandoc(shared) + "\n")
        cls.__doc__ = text.replace("<shared attributes>\n", inspect.cleandoc(ATTRIBUTES) + "\n")
    return cls


CONSTRAINTS: dict[str, list[Any]] = {
    "preset": [StrOptions({"default", "fast", "best"})],
    "n_estimators": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None, StrOptions({"auto"})],
    "max_leaves": [Interval(Integral, 2, None, closed="left"), None, StrOptions({"auto"})],
    "tree_shape": [StrOptions({"auto", "depth-wise", "leaf-wise", "symmetric", "alternating"})],
    "multi_strategy": [StrOptions({"auto", "one_output_per_tree", "multi_output_tree"})],
    "max_trees": [Interval(Integral, 1, None, closed="left"), None],
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
    "engine": [StrOptions({"auto", "native", "xgboost"})],
    "device": [str],
    "random_state": ["random_state"],
    "verbose": ["verbose", None],
}
"""Parameter constraints in scikit-learn's declarative form."""
