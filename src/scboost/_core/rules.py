"""Checks of combinations of parameters that are valid on their own but not together."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from scboost._core.parameters import Parameters, Request
from scboost._core.spec import Strategy


def check_parameters(p: Parameters) -> None:
    """Reject combinations of parameters that are invalid for any data."""
    leaves_unlimited = p.max_leaves is None or (p.max_leaves == "auto" and p.tree_shape not in {"auto", "leaf-wise"})
    if p.max_depth is None and leaves_unlimited:
        raise ValueError(
            f"max_depth=None and max_leaves={p.max_leaves} do not limit the size of trees; set at least one."
        )
    for callback in p.callbacks or ():
        if not callable(callback):
            raise TypeError(
                f"callbacks must be functions of the estimator, got {callback!r}; callbacks of other libraries and "
                "learning-rate schedules are not supported."
            )
        if (getattr(callback, "__module__", None) or "").startswith(("xgboost", "lightgbm", "catboost")):
            raise TypeError(
                f"{callback!r} is a callback of another library; pass a function of the estimator. Learning-rate "
                "schedules are not supported: learning_rate is the same in every round."
            )
    if p.weighting == "simplex" and p.weighting_data != "holdout":
        raise ValueError(
            f"weighting_data={p.weighting_data!r} needs weighting='nonnegative'; weights on the simplex are learned on "
            "a 'holdout'."
        )
    if p.max_trees is not None:
        _check_compression(p)
    if p.estimator is not None:
        _check_learner(p)


def _check_compression(p: Parameters) -> None:
    """Reject parameters that cannot be combined with ``max_trees``."""
    constrained = "the compressed trees would not satisfy the constraints"
    problems = {
        "warm_start": p.warm_start and "a compressed model cannot be continued",
        "monotone_constraints": p.monotone_constraints is not None and constrained,
        "interaction_constraints": p.interaction_constraints is not None and constrained,
        "estimator": p.estimator is not None and "compress the fitted model: model.compress(X)",
    }
    _refuse(p, problems, f"max_trees={p.max_trees}")


def _check_learner(p: Parameters) -> None:
    """Reject parameters that cannot be combined with ``estimator``."""
    is_tree = hasattr(p.estimator, "apply") and not hasattr(p.estimator, "n_estimators")
    if p.leaf_rule == "newton" and not is_tree:
        raise ValueError(f"leaf_rule='newton' needs a tree as estimator, got {p.estimator!r}; use leaf_rule='mean'.")
    if p.monotone_constraints is not None or p.interaction_constraints is not None:
        raise ValueError("monotone_constraints and interaction_constraints need estimator=None.")
    for name in ("colsample_bytree", "colsample_bylevel", "colsample_bynode"):
        if getattr(p, name) < 1:
            raise ValueError(f"{name}={getattr(p, name)} needs estimator=None; sample features in the estimator.")
    if p.tree_shape != "auto":
        raise ValueError(f"tree_shape={p.tree_shape!r} needs estimator=None.")
    if p.min_split_loss > 0:
        raise ValueError(f"min_split_loss={p.min_split_loss} needs estimator=None; set it in the estimator.")


def check_request(p: Parameters, request: Request, strategy: Strategy) -> None:
    """Reject invalid combinations of parameters and arguments of ``fit``, before any data are read."""
    if request.n_workers > 1:
        check_distributed(p)
    if request.in_batches:
        _check_batches(p, request)
    if strategy.weighting is not None and not request.supports_weighting:
        raise ValueError(_no_hessian(p))
    if strategy.grows_folds:
        _check_folds(p, request, strategy)
    elif request.has_groups:
        raise ValueError("groups was given but no cross-validation is run; use n_estimators='auto'.")
    if isinstance(p.cv, str) and p.cv != "auto":
        raise ValueError(f"cv must be 'auto', a number of folds, a splitter or a list of (train, test), got {p.cv!r}.")
    if request.has_groups and isinstance(p.cv, str | Integral):
        raise ValueError(f"groups need a splitter that uses them, such as GroupKFold, got cv={p.cv!r}.")
    if request.has_base and (p.warm_start or strategy.grows_folds or p.callbacks):
        raise ValueError(
            "init_model adds rounds to a fitted model: set n_estimators to a number (or pass X_val, y_val), without "
            "warm_start, fold models and callbacks."
        )
    if p.early_stopping_metric is not None and strategy.early_stopping is None and not strategy.selects_rounds:
        raise ValueError(_metric_without_use(p))


def _no_hessian(p: Parameters) -> str:
    if p.weighting is None:
        return (
            "preset='best' weights trees, which needs a loss with a Hessian; quantile and absolute error have none. "
            "Use another preset or another loss."
        )
    return (
        f"weighting={p.weighting!r} needs a loss with a Hessian, which quantile and absolute error do not have; use "
        "weighting=None or another loss."
    )


def _metric_without_use(p: Parameters) -> str:
    return (
        f"early_stopping_metric={p.early_stopping_metric!r} needs a validation set for early stopping or for selecting "
        "the number of rounds: use n_estimators='auto', with at least 20 distinct samples, or early_stopping=True."
    )


def check_metric_is_used(p: Parameters) -> None:
    """Reject ``early_stopping_metric`` if there are too few samples to select the number of rounds."""
    if p.early_stopping_metric is not None:
        raise ValueError(_metric_without_use(p))


def _check_folds(p: Parameters, request: Request, strategy: Strategy) -> None:
    """Reject parameters that cannot be combined with fold models."""
    several = f"weighting_data={p.weighting_data!r} grows several models; use weighting_data='holdout'."
    if p.warm_start:
        reason = several if strategy.weights_folds else "n_estimators='auto' selects it; set n_estimators to a number."
        raise ValueError("warm_start=True continues one model with a given number of rounds, but " + reason)
    if p.early_stopping:
        raise ValueError(
            "early_stopping=True cannot be combined with fold models, which are stopped together: " + several
        )
    if request.has_validation:
        source = "preset='best'" if p.weighting is None else f"weighting_data={p.weighting_data!r}"
        raise ValueError(
            f"X_val cannot be used with {source}, which holds out each fold in turn; use weighting_data='holdout'."
        )


def check_distributed(p: Parameters) -> None:
    """Reject parameters that a distributed fit does not support."""
    problems = {
        "estimator": p.estimator is not None and "distributed fits support trees only",
        "early_stopping_metric": p.early_stopping_metric is not None
        and "a scorer needs all samples at once; leave it out to stop on the loss",
        "cv": not isinstance(p.cv, str | Integral) and "splitters need all samples in one table; set cv to an integer",
        "max_trees": p.max_trees is not None and "compress the fitted model: model.compress(X)",
    }
    _refuse(p, problems, "several workers")


def check_several_targets(p: Parameters, n_targets: int, *, has_missing: bool, distributed: bool) -> None:
    """Reject parameters that a model of several targets does not support."""
    if distributed:
        raise ValueError(
            f"y has {n_targets} targets, which a fit on several workers does not support; fit one model per target."
        )
    one = "it needs one target; fit one model per target"
    problems = {
        "weighting": p.weighting is not None and one,
        "preset": p.preset == "best" and "it weights trees, which needs one target; fit one model per target",
        "max_trees": p.max_trees is not None and one,
        "early_stopping_metric": p.early_stopping_metric is not None
        and "models of several targets stop on the mean loss over the targets; leave it out",
        "leaf_rule": has_missing and p.leaf_rule == "mean" and "missing targets (NaN) need leaf_rule='newton'",
    }
    _refuse(p, problems, f"{n_targets} targets")


def check_batch_arguments(given: dict[str, Any]) -> None:
    """Reject arguments of ``fit`` that the batches contain."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} cannot be given with batches: each of them is (X, y) or (X, y, sample_weight).")


def _check_batches(p: Parameters, request: Request) -> None:
    """Reject parameters that a fit to batches does not support."""
    weighting = p.weighting is not None
    folds = p.preset == "best" or (weighting and p.weighting_data != "holdout")
    held_out = not request.has_validation and "batches cannot be held out; pass X_val, which may be batches as well"
    problems = {
        "estimator": p.estimator is not None and "only XGBoost grows trees on data that are not in memory",
        "preset" if p.preset == "best" else "weighting_data": folds
        and "it needs the contribution of every tree to every sample in memory",
        "early_stopping": p.early_stopping and held_out,
        "weighting": weighting and held_out,
        "cv": not isinstance(p.cv, str | Integral) and "splitters need all samples in one table; set cv to an integer",
        "max_trees": p.max_trees is not None and "compress the fitted model on a sample: model.compress(X)",
    }
    _refuse(p, problems, "a fit to batches")


def _refuse(p: Parameters, problems: dict[str, Any], what: str) -> None:
    for name, problem in problems.items():
        if problem:
            raise ValueError(f"{name}={getattr(p, name)!r} cannot be used with {what}: {problem}.")
