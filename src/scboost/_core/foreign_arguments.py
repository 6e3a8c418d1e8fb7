"""Arguments of other boosting libraries and their equivalents here, for error messages and for the documentation."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Foreign(NamedTuple):
    """An argument of other libraries.

    Attributes
    ----------
    names : tuple of str
        Names of the argument, all with the same meaning.
    libraries : str
        Which libraries have it.
    here : str
        The equivalent here, or that there is none.
    """

    names: tuple[str, ...]
    libraries: str
    here: str


def _foreign(names: str, libraries: str, here: str) -> Foreign:
    return Foreign(tuple(names.split()), libraries, here)


_ROWS_OF_CATEGORIES = (
    'string and categorical columns of a table are categorical: give a pandas column the dtype "category".'
)
FOREIGN = (
    _foreign("iterations num_boost_round num_iterations num_trees max_iter n_iter", "XLCS", "use n_estimators."),
    _foreign("eta", "XLC", "use learning_rate."),
    _foreign("depth", "C", "use max_depth."),
    _foreign("num_leaves max_leaf_nodes", "LS", "use max_leaves."),
    _foreign(
        "min_child_samples min_data_in_leaf min_samples_leaf",
        "LCS",
        "use min_child_weight, a sum of Hessians: per sample 1 for squared error, p (1 - p) for two classes.",
    ),
    _foreign("min_sum_hessian_in_leaf", "L", "use min_child_weight."),
    _foreign("lambda_l2 l2_leaf_reg l2_regularization lambda", "XLCS", "use reg_lambda."),
    _foreign("alpha lambda_l1", "XL", "use reg_alpha."),
    _foreign("gamma min_split_gain min_gain_to_split", "XL", "use min_split_loss."),
    _foreign(
        "max_delta_step max_leaf_output", "XL", "there is none; reg_lambda and min_child_weight damp leaf values."
    ),
    _foreign("bagging_fraction", "L", "use subsample."),
    _foreign(
        "bagging_freq subsample_freq", "L", "leave it out: with subsample below 1, samples are drawn in every round."
    ),
    _foreign(
        "bagging_temperature bootstrap_type sampling_method mvs_reg sampling_unit sampling_frequency",
        "XC",
        "there is none; see subsample.",
    ),
    _foreign("feature_fraction rsm", "LC", "use colsample_bytree."),
    _foreign("feature_fraction_bynode max_features", "LS", "use colsample_bynode."),
    _foreign("max_bins border_count", "CS", "use max_bin."),
    _foreign(
        "subsample_for_bin validate_parameters", "XL", "leave it out: all samples are binned, all arguments checked."
    ),
    _foreign(
        "feature_border_type per_float_feature_quantization input_borders output_borders fixed_binary_splits "
        "target_border",
        "C",
        "there is none; see max_bin.",
    ),
    _foreign(
        "random_strength",
        "C",
        "use exploration, the standard deviation of the noise added to the gradient when splits are chosen.",
    ),
    _foreign(
        "random_score_type langevin diffusion_temperature posterior_sampling model_shrink_rate model_shrink_mode",
        "C",
        "there is none; see exploration.",
    ),
    _foreign(
        "objective loss_function application",
        "XLC",
        "use loss= of SCBoostRegressor, a name or a scboost.losses.Loss; SCBoostClassifier reads the classes from y; "
        "SCBoostSurvival has loss='cox' and 'aft', SCBoostRanker loss='lambdarank', 'pairwise' and 'xendcg', "
        "SCBoostDistribution distribution='normal' and others. "
        "Several targets (MultiRMSE, MultiLogloss): pass y with several columns.",
    ),
    _foreign("num_class classes_count class_names", "XLC", "leave it out: the classes are those of y."),
    _foreign("use_label_encoder", "X", "leave it out: labels may be of any type."),
    _foreign("tweedie_variance_power", "XL", "use tweedie_power= of SCBoostRegressor, with loss='tweedie'."),
    _foreign("expectile_alpha", "X", "use expectile= of SCBoostRegressor, with loss='expectile'."),
    _foreign("quantile_alpha", "X", "use quantile= of SCBoostRegressor, a number or a list, with loss='quantile'."),
    _foreign("huber_slope", "X", "use huber_delta= of SCBoostRegressor, with loss='huber'."),
    _foreign(
        "aft_loss_distribution",
        "X",
        "use aft_distribution= of SCBoostSurvival, with loss='aft'.",
    ),
    _foreign("Dist", "N", "use distribution= of SCBoostDistribution, such as 'normal' or 'gamma'."),
    _foreign("Score natural_gradient", "N", "leave it out: SCBoostDistribution minimizes the log-score."),
    _foreign("Base", "N", "use max_depth and the other parameters of trees, or estimator."),
    _foreign("minibatch_frac", "N", "use subsample."),
    _foreign("col_sample", "N", "use colsample_bytree."),
    _foreign("Y Y_val", "N", "use y and y_val= in fit."),
    _foreign("val_sample_weight", "N", "use sample_weight_val= in fit."),
    _foreign("train_loss_monitor val_loss_monitor", "N", "use early_stopping_metric, a scorer of scikit-learn."),
    _foreign(
        "lambdarank_truncation_level lambdarank_num_pair_per_sample",
        "XL",
        "use truncation= of SCBoostRanker, with loss='lambdarank'.",
    ),
    _foreign(
        "eval_at ndcg_eval_at",
        "L",
        "use early_stopping_metric='ndcg@10' of SCBoostRanker, or k= of its score.",
    ),
    _foreign(
        "ndcg_exp_gain label_gain",
        "XL",
        "there is none: the gain of a relevance r is 2^r - 1; transform y for other gains.",
    ),
    _foreign(
        "lambdarank_norm lambdarank_normalization lambdarank_score_normalization",
        "XL",
        "leave it out: with loss='lambdarank', the gradients of each query are normalized.",
    ),
    _foreign("lambdarank_pair_method", "X", "leave it out: pairs have one of the top documents; see truncation."),
    _foreign(
        "lambdarank_unbiased lambdarank_bias_norm lambdarank_position_bias_regularization",
        "XL",
        "there is none: position bias is not modelled.",
    ),
    _foreign("aft_loss_distribution_scale", "X", "use aft_scale= of SCBoostSurvival, with loss='aft'."),
    _foreign(
        "early_stopping_rounds early_stopping_round od_wait od_pval od_type",
        "XLC",
        "use early_stopping=True, n_iter_no_change=50 in the constructor, and X_val=, y_val= in fit; with "
        "n_estimators='auto', the default, no validation set is needed.",
    ),
    _foreign(
        "eval_metric metric custom_metric custom_loss scoring",
        "XLCS",
        "use early_stopping_metric, a scorer of scikit-learn such as 'roc_auc'; the loss by default.",
    ),
    _foreign("use_best_model", "C", "leave it out: with a validation set, the rounds up to the best are used."),
    _foreign(
        "eval_set eval_X eval_y",
        "XLC",
        "use X_val=, y_val= in fit (one set). The loss on them is training_log_['validation_loss'].",
    ),
    _foreign("eval_fraction", "C", "use validation_fraction, with early_stopping=True."),
    _foreign("sample_weight_eval_set eval_sample_weight", "XL", "use sample_weight_val= in fit."),
    _foreign("eval_names eval_class_weight eval_init_score", "L", "there is none; see X_val=, y_val= in fit."),
    _foreign(
        "scale_pos_weight",
        "XLC",
        "use class_weight={0: 1, 1: w} of SCBoostClassifier, with the labels of y as keys.",
    ),
    _foreign("is_unbalance auto_class_weights", "LC", "use class_weight='balanced' of SCBoostClassifier."),
    _foreign("class_weights", "C", "use class_weight={label: weight, ...} of SCBoostClassifier."),
    _foreign(
        "tree_method booster boosting_type boosting",
        "XLC",
        "leave it out: trees are always histogram trees; see engine.",
    ),
    _foreign("grow_policy", "XC", "use tree_shape."),
    _foreign("num_parallel_tree", "X", "there is none: one tree a round and output."),
    _foreign("num_target", "X", "leave it out: y may have several columns."),
    _foreign("base_score boost_from_average", "XLC", "use init='prior' (the best constant, the default) or 'zero'."),
    _foreign(
        "base_margin base_margin_eval_set init_score baseline",
        "XLC",
        "there is none: every sample starts at the same raw score; see init.",
    ),
    _foreign(
        "missing nan_mode", "XC", "leave it out: NaN is missing, and each split learns a default direction for it."
    ),
    _foreign(
        "enable_categorical cat_features categorical_feature categorical_features feature_types",
        "XLCS",
        _ROWS_OF_CATEGORIES,
    ),
    _foreign("max_cat_to_onehot max_cat_threshold one_hot_max_size max_cat_group", "XLC", "use categorical_splits."),
    _foreign("cat_smooth cat_l2", "L", "there is none; see categorical_splits."),
    _foreign(
        "counter_calc_method ctr_leaf_count_limit store_all_simple_ctr max_ctr_complexity final_ctr_computation_mode "
        "simple_ctr combinations_ctr per_feature_ctr ctr_description ctr_target_border_count ctr_history_unit has_time "
        "fold_permutation_block fold_len_multiplier approx_on_full_history model_size_reg",
        "C",
        "there is none: categories are not encoded by target statistics; see categorical_splits.",
    ),
    _foreign(
        "text_features tokenizers dictionaries feature_calcers text_processing embedding_features graph",
        "C",
        "there is none: convert texts, embeddings and graphs to numeric features first.",
    ),
    _foreign("feature_name feature_names feature_weights", "XLC", "give X as a table with named columns."),
    _foreign("ignored_features column_description", "C", "drop these columns from X."),
    _foreign("monotonic_cst", "S", "use monotone_constraints."),
    _foreign("interaction_cst", "S", "use interaction_constraints."),
    _foreign("random_seed seed", "XLC", "use random_state."),
    _foreign("nthread num_threads thread_count", "XLC", "use n_jobs; -1 means all cores."),
    _foreign(
        "verbosity silent verbose_eval logging_level metric_period",
        "XLC",
        "use verbose=True or False.",
    ),
    _foreign(
        "device_type task_type gpu_id predictor devices device_config",
        "XLC",
        "use device, which is handed to XGBoost: 'cuda' or 'cuda:0'. Only 'cpu' is covered by tests.",
    ),
    _foreign(
        "importance_type", "XL", "leave it out: feature_importances_ is the share of each feature in the total gain."
    ),
    _foreign("xgb_model", "X", "use init_model= in fit, a model or the file of one."),
    _foreign(
        "extra_trees linear_tree path_smooth leaf_estimation_method leaf_estimation_iterations "
        "leaf_estimation_backtracking score_function penalties_coefficient first_feature_use_penalties "
        "per_object_feature_penalties best_model_min_trees allow_const_label name metadata used_ram_limit gpu_ram_part "
        "pinned_memory_size gpu_cat_features_storage data_partition dev_score_calc_obj_block_size dev_efb_max_buckets "
        "sparse_features_conflict_fraction log_cout log_cerr",
        "LC",
        "there is none.",
    ),
    _foreign(
        "group qid eval_group eval_qid group_id",
        "XLC",
        "see SCBoostRanker, whose fit takes qid= or group=; groups= in fit of other estimators keeps samples "
        "together in cross-validation.",
    ),
    _foreign("callback", "C", "use callbacks, a list."),
    _foreign("save_snapshot snapshot_file snapshot_interval", "C", "use callbacks=[scboost.Checkpoint(path)]."),
    _foreign("train_dir allow_writing_files", "C", "leave it out: nothing is written by default; see Checkpoint."),
    _foreign("plot plot_file", "C", "there is none; plot training_log_ after the fit."),
)
"""The table, in the order of the documentation."""

ATTRIBUTES = (
    _foreign("best_iteration get_best_iteration", "XLC", "use best_iteration_."),
    _foreign(
        "best_ntree_limit n_iter_ tree_count_ num_trees num_boosted_rounds n_trees_", "XLCS", "use n_estimators_."
    ),
    _foreign(
        "best_score best_score_ get_best_score",
        "XLC",
        "use min(training_log_['validation_loss']), the lowest loss on the validation set.",
    ),
    _foreign(
        "evals_result evals_result_ get_evals_result evals_log_ train_score_ validation_score_ loss_curve_",
        "XLCS",
        "use training_log_, a dict with the measurements of every round such as 'validation_loss'.",
    ),
    _foreign("booster_", "L", "use get_booster(), the native XGBoost model."),
    _foreign(
        "get_score get_fscore get_feature_importance feature_importance feature_importance_ feature_importances",
        "XLC",
        "use feature_importances_, or shap_values(X) for single samples.",
    ),
    _foreign("feature_name_ feature_names_ feature_name feature_names", "XLC", "use feature_names_in_."),
    _foreign("dump_model get_dump trees_to_dataframe", "XLC", "use get_booster().trees_to_dataframe()."),
    _foreign("plot_tree plot_importance", "XLC", "use scboost.plotting.plot_importance(model)."),
)
"""Attributes and methods of other libraries' models."""

PREDICT = (
    _foreign(
        "output_margin raw_score",
        "XL",
        "use decision_function(X) of a classifier; the raw score of a regressor is predict(X) before its link.",
    ),
    _foreign("prediction_type", "C", "use predict, predict_proba or decision_function."),
    _foreign(
        "iteration_range ntree_limit num_iteration start_iteration ntree_start ntree_end",
        "XLC",
        "use staged_predict(X) or staged_predict_proba(X), which yield predictions after 1, 2, ... rounds.",
    ),
    _foreign("pred_contrib pred_contribs", "XL", "use shap_values(X)."),
    _foreign("pred_leaf", "XL", "use apply(X)."),
    _foreign("base_margin", "X", "there is none: add the margin to decision_function(X)."),
    _foreign(
        "validate_features predict_disable_shape_check",
        "XL",
        "leave it out: feature names and their number are always checked.",
    ),
)
"""Arguments of other libraries' ``predict``."""

METRICS = {
    "auc": "roc_auc",
    "roc_auc_score": "roc_auc",
    "aucpr": "average_precision",
    "average_precision_score": "average_precision",
    "logloss": "neg_log_loss",
    "log_loss": "neg_log_loss",
    "binary_logloss": "neg_log_loss",
    "mlogloss": "neg_log_loss",
    "multi_logloss": "neg_log_loss",
    "multiclass": "neg_log_loss",
    "crossentropy": "neg_log_loss",
    "error": "accuracy",
    "merror": "accuracy",
    "binary_error": "accuracy",
    "multi_error": "accuracy",
    "rmse": "neg_root_mean_squared_error",
    "mse": "neg_mean_squared_error",
    "l2": "neg_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "l1": "neg_mean_absolute_error",
    "mape": "neg_mean_absolute_percentage_error",
}
"""Names of metrics in other libraries, in lower case, and the scikit-learn scorer with the same order of models."""


def scorer_name(metric: str, n_classes: int | None) -> str:
    """Return the name of the scorer for a metric of another library; other names as they are.

    Parameters
    ----------
    metric : str
        As the user wrote it, such as "auc".
    n_classes : int or None
        Number of classes; None for regression.
    """
    name = METRICS.get(metric.lower(), metric)
    return "roc_auc_ovr" if name == "roc_auc" and n_classes is not None and n_classes > 2 else name


def attribute_advice(name: str) -> str | None:
    """Return what to use in place of an attribute of another library; None if the name is not one."""
    return _advice_from(ATTRIBUTES, name, "attribute")


def _advice_from(table: tuple[Foreign, ...], name: str, kind: str) -> str | None:
    for foreign in table:
        if name in foreign.names:
            return f"{name!r} is an {kind} of {spelled(foreign.libraries)}; here, {foreign.here}"
    return None


LIBRARIES = {"X": "XGBoost", "L": "LightGBM", "C": "CatBoost", "S": "scikit-learn", "N": "NGBoost"}
"""Names of the libraries by their letters in the table."""


def advice(name: str, known: list[str], table: tuple[Foreign, ...] = FOREIGN) -> str:
    """Return what to write in place of an argument that does not exist.

    Parameters
    ----------
    name : str
        The argument.
    known : list of str
        Valid arguments.
    table : tuple of Foreign
        Arguments of other libraries.
    """
    answer = _advice_from(table, name, "argument")
    if answer:
        return answer
    close = difflib.get_close_matches(name, known, n=1)
    return f"{name!r} is unknown" + (f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}.")


def spelled(letters: str) -> str:
    """Names of libraries, from their letters: ``"XL"`` is "XGBoost and LightGBM"."""
    names = [LIBRARIES[letter] for letter in letters]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def explains_foreign_arguments(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a constructor or a method: errors about unknown keyword arguments suggest a replacement."""
    known = [
        name
        for name, parameter in inspect.signature(method).parameters.items()
        if name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    ]

    @functools.wraps(method)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        unknown = [name for name in kwargs if name not in known]
        if unknown:
            said = " ".join(_advice_with_place(name, type(args[0]), method.__name__, known) for name in unknown)
            called = type(args[0]).__name__ + ("" if method.__name__ == "__init__" else f".{method.__name__}")
            raise TypeError(f"{called}() got an unexpected keyword argument {unknown[0]!r}. {said}")
        return method(*args, **kwargs)

    return checked


def _advice_with_place(name: str, cls: type[Any], method: str, known: list[str]) -> str:
    """Advice on an argument that may exist elsewhere in the same class."""
    if method == "fit" and name in inspect.signature(cls).parameters:
        return f"{name!r} is an argument of the constructor: {cls.__name__}({name}=...)."
    if method == "__init__" and name in inspect.signature(cls.fit).parameters:
        return f"{name!r} is an argument of fit: {cls.__name__}().fit(X, y, {name}=...)."
    return advice(name, known, FOREIGN if method in {"fit", "__init__"} else PREDICT)
