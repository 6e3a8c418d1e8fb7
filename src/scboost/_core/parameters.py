"""The parameters of a fit as the user gave them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from scboost._engine.interface import Regressor


@dataclass(frozen=True)
class Parameters:
    """Parameters that the estimators share, each already validated; documented at the estimators."""

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

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Parameters:
        """Take the shared parameters from all parameters of an estimator."""
        return cls(**{field.name: values[field.name] for field in fields(cls)})

    @property
    def n_threads(self) -> int:
        """Number of threads as XGBoost counts them: 0 for all."""
        return 0 if self.n_jobs is None or self.n_jobs < 0 else int(self.n_jobs)


@dataclass(frozen=True)
class Request:
    """Facts about a fit besides its parameters, known before any data are read.

    Attributes
    ----------
    has_validation, has_groups, has_base : bool
        Whether a validation set, groups and a model to continue are given.
    in_batches : bool
        Whether the training set is given in batches.
    n_workers : int
        Number of workers of a distributed fit.
    supports_weighting : bool
        Whether tree weights can be learned with the loss.
    """

    has_validation: bool = False
    has_groups: bool = False
    has_base: bool = False
    in_batches: bool = False
    n_workers: int = 1
    supports_weighting: bool = True
