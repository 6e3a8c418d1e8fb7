"""The specification of a fit: every parameter resolved.

A :class:`Strategy` follows from the parameters alone, before any data are read; it decides once whether a fit grows
several models. A :class:`FitSpec` adds what depends on the loss and the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

from scboost._arrays import BoolArray, FloatArray
from scboost._core import autotune
from scboost._core.loop import Settings
from scboost._core.losses import Loss
from scboost._core.parameters import Parameters, Request
from scboost._core.race import Candidate
from scboost._core.run import ValidationMetric
from scboost._core.stopping import EarlyStopping
from scboost._engine.ensemble import Ensemble
from scboost._engine.factory import EngineSpec
from scboost._engine.interface import TreeOptions, TreeShape


@dataclass(frozen=True)
class Weighting:
    """How trees are weighted.

    Attributes
    ----------
    method : {"simplex", "nonnegative"}
        The set of weights.
    source : {"holdout", "out_of_fold", "fold_average"}
        Source of the held-out samples, and which models are kept.
    covariance_penalty, ridge : float
        Strength of the two penalties.
    """

    method: Literal["simplex", "nonnegative"]
    source: Literal["holdout", "out_of_fold", "fold_average"]
    covariance_penalty: float
    ridge: float


@dataclass(frozen=True)
class Strategy:
    """How the number of rounds and the tree weights are found.

    Attributes
    ----------
    n_rounds : int
        Maximum number of rounds of a model.
    n_rounds_given : int or None
        Number of rounds of the model on all samples, if it is given; the learning rate is scaled accordingly.
    fast : bool
        Whether the number of rounds is that of ``preset="fast"``.
    open_rounds : bool
        Whether the number of rounds is determined by the data.
    selects_rounds : bool
        Whether the number of rounds is selected by cross-validation.
    early_stopping : EarlyStopping or None
        When to stop on a validation set.
    weighting : Weighting or None
        How the trees are weighted.
    adds_full_model : bool
        Whether the average of the weighted fold models is averaged with a model on all samples.
    may_average : bool
        Whether the fold models that select the number of rounds may become part of the model.
    corrects_quantiles : bool
        Whether fold models with a fixed number of rounds estimate how far quantiles must be shifted.
    """

    n_rounds: int
    n_rounds_given: int | None
    fast: bool
    open_rounds: bool
    selects_rounds: bool
    early_stopping: EarlyStopping | None
    weighting: Weighting | None
    adds_full_model: bool
    may_average: bool = False
    corrects_quantiles: bool = False

    @classmethod
    def of(cls, p: Parameters, request: Request) -> Strategy:
        """Derive the strategy from the parameters."""
        weighting = _weighting(p)
        fast = p.n_estimators == "auto" and p.preset == "fast"
        is_open = p.n_estimators == "auto" and not fast
        rescales = _rescales_rounds(p, request, weighting)
        stops = p.early_stopping or (is_open and request.has_validation)
        selects = (is_open or rescales) and not stops
        if fast:
            n_rounds = autotune.FAST_ROUNDS
        else:
            n_rounds = autotune.MAX_ROUNDS if p.n_estimators == "auto" or rescales else int(p.n_estimators)
        return cls(
            n_rounds=n_rounds,
            n_rounds_given=int(p.n_estimators) if rescales and p.n_estimators != "auto" else None,
            fast=fast,
            open_rounds=is_open,
            selects_rounds=selects,
            early_stopping=autotune.early_stopping(p.n_iter_no_change, p.tol, is_open=is_open) if stops else None,
            weighting=weighting,
            adds_full_model=p.preset == "best" and p.weighting is None and selects,
            may_average=is_open and selects and weighting is None and _may_average(p, request),
            corrects_quantiles=fast and not stops and _corrects_quantiles(p, request),
        )

    @property
    def weights_folds(self) -> bool:
        """Whether tree weights are learned out of fold."""
        return self.weighting is not None and self.weighting.source != "holdout"

    @property
    def keeps_weighted_folds(self) -> bool:
        """Whether the fold models, with tree weights learned out of fold, are part of the model."""
        return self.weighting is not None and self.weighting.source == "fold_average"

    @property
    def grows_folds(self) -> bool:
        """Whether the fit grows several models, one per fold."""
        return self.selects_rounds or self.weights_folds or self.corrects_quantiles

    @property
    def needs_validation(self) -> bool:
        """Whether one model needs a validation set, given or held out."""
        return self.early_stopping is not None or (self.weighting is not None and not self.weights_folds)


def _may_average(p: Parameters, request: Request) -> bool:
    """Whether the leaf values of fold models can be refitted on all samples."""
    return p.estimator is None and request.supports_weighting and not request.in_batches


def _corrects_quantiles(p: Parameters, request: Request) -> bool:
    """Whether fold models may correct the quantiles of a fixed number of rounds, which overfit."""
    return not (request.supports_weighting or p.warm_start or request.has_base or request.has_validation)


def _weighting(p: Parameters) -> Weighting | None:
    if p.weighting is not None:
        return Weighting(p.weighting, p.weighting_data, float(p.covariance_penalty), float(p.weight_ridge))
    if p.preset == "best":
        return Weighting("nonnegative", "fold_average", float(p.covariance_penalty), float(p.weight_ridge))
    return None


def _rescales_rounds(p: Parameters, request: Request, weighting: Weighting | None) -> bool:
    """Whether ``n_estimators`` is large and given, so that cross-validation selects the learning rate."""
    return (
        p.n_estimators != "auto"
        and int(p.n_estimators) >= autotune.ROUNDS_TO_SELECT_RATE
        and p.learning_rate == "auto"
        and weighting is None
        and not (p.warm_start or p.early_stopping or request.has_validation or request.has_base)
        and p.estimator is None
        and p.early_stopping_metric is None
    )


@dataclass(frozen=True)
class Facts:
    """Facts about the data that determine the values of "auto".

    Attributes
    ----------
    n_features : int
        Number of features.
    total_weight : float
        Sum of the sample weights.
    effective_size : float
        The larger of the number of samples and the sum of their weights.
    max_categories : int
        Number of categories of the feature with the most.
    rarest_class : float
        Share of the samples in the class with the fewest; 1 for regression.
    """

    n_features: int
    total_weight: float
    effective_size: float
    max_categories: int = 0
    rarest_class: float = 1.0


@dataclass(frozen=True)
class RoundSelection:
    """How cross-validation selects the number of rounds and the options of the trees.

    Attributes
    ----------
    stopping : EarlyStopping
        When fold models stop.
    speedup : int
        Ratio of the learning rate of fold models to that of the final model, and of the numbers of rounds.
    selects_features : bool
        Whether feature subsets are tried.
    candidates : tuple of Candidate
        Candidate options, in the order of their cost.
    scales_rate : bool
        Whether the learning rate may be derived from the selected number of rounds.
    averages : bool
        Whether the fold models, with leaf values refitted on all samples, are averaged with a model on all samples that
        has the same learning rate.
    thorough : bool
        Whether features and candidates are compared after more rounds: for more folds with fewer held-out samples each.
    """

    stopping: EarlyStopping
    speedup: int
    selects_features: bool
    candidates: tuple[Candidate, ...]
    scales_rate: bool
    averages: bool = False
    thorough: bool = False


@dataclass(frozen=True)
class FoldSpec:
    """How samples are split.

    Attributes
    ----------
    cv : int, "auto", splitter or iterable of (train, test)
        The parameter of that name.
    n_folds, n_used : int
        Number of folds, and how many of them are held out in turn.
    validation_fraction : float
        Share of the samples held out as validation set.
    """

    cv: Any
    n_folds: int
    n_used: int
    validation_fraction: float


@dataclass(frozen=True)
class FitSpec:
    """Everything that determines a fit besides the data.

    Attributes
    ----------
    strategy : Strategy
        How the number of rounds and the tree weights are found.
    loss : Loss
        The loss.
    settings : Settings
        Settings of the loop.
    from_zero : bool
        Whether to start at the raw score 0 in place of the best constant.
    selection : RoundSelection or None
        How the number of rounds is selected by cross-validation; None if it is not.
    folds : FoldSpec
        How samples are split.
    options : TreeOptions
        Options of the trees, unless cross-validation selects others.
    engine : EngineSpec
        Parameters of the tree engine.
    new_ensemble : callable
        Returns an empty ensemble with the intercept given.
    metric : ValidationMetric or None
        Metric of validation sets and held-out folds in place of the loss.
    """

    strategy: Strategy
    loss: Loss
    settings: Settings
    from_zero: bool
    selection: RoundSelection | None
    folds: FoldSpec
    options: TreeOptions
    engine: EngineSpec
    new_ensemble: Callable[[FloatArray], Ensemble]
    metric: ValidationMetric | None = None

    @property
    def fold_rounds(self) -> int:
        """Maximum number of rounds of a fold model.

        If the learning rate is "auto", fold models may run more rounds than the model on all samples, which then has a
        larger learning rate.
        """
        if self.selection is None:
            return self.strategy.n_rounds
        farther = autotune.FARTHER if self.selection.scales_rate and self.strategy.weighting is None else 1
        return farther * self.strategy.n_rounds // self.selection.speedup

    def without_selection(self) -> FitSpec:
        """Return the specification for data with too few samples to select the number of rounds."""
        n_rounds = self.strategy.n_rounds_given or autotune.FAST_ROUNDS
        strategy = replace(
            self.strategy,
            n_rounds=n_rounds,
            selects_rounds=False,
            adds_full_model=False,
            may_average=False,
            corrects_quantiles=False,
        )
        return replace(self, strategy=strategy, selection=None)


def resolve(
    p: Parameters,
    strategy: Strategy,
    loss: Loss,
    facts: Facts,
    seed: int,
    *,
    new_ensemble: Callable[[FloatArray], Ensemble],
    categorical: BoolArray | None = None,
    monotone: tuple[int, ...] | None = None,
    interactions: list[list[int]] | None = None,
    make_learner: Callable[[int], Any] | None = None,
    engine: Literal["xgboost", "native"] = "xgboost",
    metric: ValidationMetric | None = None,
) -> FitSpec:
    """Resolve everything that is "auto".

    Parameters
    ----------
    p : Parameters
        Parameters of the estimator.
    strategy : Strategy
        How the number of rounds and the tree weights are found.
    loss : Loss
        The loss.
    facts : Facts
        Size of the data.
    seed : int
        Seed of everything random.
    new_ensemble : callable
        Returns an empty ensemble with the intercept given.
    categorical : ndarray of bool, optional
        Which features are categorical.
    monotone : tuple of int, optional
        Sign of the monotone constraint of each feature.
    interactions : list of lists of int, optional
        Groups of features that may interact.
    make_learner : callable, optional
        ``make_learner(seed)`` returns a scikit-learn regressor to use as the learner.
    engine : {"xgboost", "native"}, default="xgboost"
        Which engine grows the trees.
    metric : ValidationMetric, optional
        Metric of validation sets in place of the loss.
    """
    defaults, rate = _defaults_and_rate(p, strategy, loss, facts)
    sharing = _sharing(p, strategy, loss, engine, constrained=any(monotone or ()))
    options = _options(p, loss, engine, shared=sharing)
    engine_spec = EngineSpec(
        name=engine,
        n_outputs=loss.n_outputs,
        min_child_weight=_or_default(p.min_child_weight, defaults.min_child_weight),
        l2=float(p.reg_lambda),
        l1=float(p.reg_alpha),
        min_split_loss=float(p.min_split_loss),
        colsample_bytree=float(p.colsample_bytree),
        colsample_bylevel=float(p.colsample_bylevel),
        colsample_bynode=float(p.colsample_bynode),
        max_bin=autotune.max_bin(facts.n_features, facts.total_weight) if p.max_bin == "auto" else int(p.max_bin),
        n_threads=p.n_threads,
        device=p.device,
        categorical=categorical,
        monotone=monotone,
        interactions=interactions,
        make_learner=make_learner,
        weighted_learner=p.leaf_rule == "newton" or p.subsample < 1,
    )
    return FitSpec(
        strategy=strategy,
        loss=loss,
        settings=_settings(p, defaults, rate, seed, autotune.leaf_penalty(loss, shared=options.shared)),
        from_zero=p.init == "zero",
        selection=_selection(p, strategy, loss, facts, rate, options, engine) if strategy.selects_rounds else None,
        folds=_folds(p, strategy, loss, facts),
        options=options,
        engine=engine_spec,
        new_ensemble=new_ensemble,
        metric=metric,
    )


def _defaults_and_rate(
    p: Parameters, strategy: Strategy, loss: Loss, facts: Facts
) -> tuple[autotune.LossDefaults, float]:
    """Return the default values for the loss, and the learning rate."""
    defaults = autotune.loss_defaults(loss)
    factor = defaults.rate if strategy.open_rounds or strategy.n_rounds_given else 1.0
    if strategy.fast and defaults.projection_strength > 0:
        defaults = replace(defaults, projection_strength=autotune.FAST_PROJECTION)
        factor = autotune.FAST_RATE
    if p.learning_rate != "auto":
        return defaults, float(p.learning_rate)
    return defaults, _auto_rate(strategy, loss, facts, factor)


def _settings(p: Parameters, defaults: autotune.LossDefaults, rate: float, seed: int, leaf_penalty: float) -> Settings:
    memory = autotune.MEMORY if p.memory == "auto" else p.memory
    return Settings(
        eta=rate,
        alpha=float(p.energy_threshold),
        gamma=_or_default(p.projection_strength, defaults.projection_strength),
        memory=None if memory == "all" else int(memory),
        leaf_rule=p.leaf_rule,
        l2=float(p.reg_lambda) * leaf_penalty,
        l1=float(p.reg_alpha),
        subsample=float(p.subsample),
        nu=_or_default(p.exploration, defaults.exploration),
        seed=seed,
    )


def _or_default(value: float | str, default: float) -> float:
    return default if isinstance(value, str) else float(value)


def _auto_rate(strategy: Strategy, loss: Loss, facts: Facts, factor: float) -> float:
    to_the_end = strategy.early_stopping is None and not strategy.selects_rounds
    rate = autotune.auto_learning_rate(
        facts.total_weight,
        strategy.n_rounds,
        many_classes=loss.n_classes > 2,
        two_classes_to_the_end=loss.classifies and loss.n_classes <= 2 and to_the_end,
    )
    return min(factor * rate, autotune.LARGEST_RATE)


def _sharing(p: Parameters, strategy: Strategy, loss: Loss, engine: str, *, constrained: bool) -> bool:
    """Whether the trees of several outputs have one structure, unless cross-validation selects others."""
    obstacles = {
        "estimator": p.estimator is not None and "which grows one model per output; leave one of them out",
        "engine": engine != "native" and "which grows one tree per output; use engine='native', in memory on the CPU",
        "monotone_constraints": constrained
        and "which constrain the values of each output; use multi_strategy='one_output_per_tree'",
    }
    found = [f"{name}={getattr(p, name)!r}, {problem}" for name, problem in obstacles.items() if problem]
    if p.multi_strategy == "multi_output_tree":
        if found:
            raise ValueError(f"multi_strategy='multi_output_tree' cannot be used with {found[0]}.")
        return loss.n_outputs > 1
    return p.multi_strategy == "auto" and strategy.open_rounds and not found and autotune.shares_structure(loss)


def _options(p: Parameters, loss: Loss, engine: str, *, shared: bool) -> TreeOptions:
    """Return the options of the trees, unless cross-validation selects others."""
    shape: TreeShape = "depth-wise"
    if p.tree_shape != "auto":
        shape = p.tree_shape
    elif shared and not isinstance(p.max_leaves, Integral) and p.max_depth is not None:
        shape = "symmetric" if loss.independent_outputs else "alternating"
    elif isinstance(p.max_leaves, Integral) or (
        p.max_leaves == "auto" and (p.max_depth is None or not loss.classifies)
    ):
        shape = "leaf-wise"
    if shape in {"symmetric", "alternating"} and engine != "native":
        raise ValueError(
            f"tree_shape={shape!r} needs engine='native', but this fit uses XGBoost, which grows 'depth-wise' and "
            "'leaf-wise' trees."
        )
    if p.max_leaves == "auto":
        leaves = autotune.LEAVES if shape == "leaf-wise" else None
    else:
        leaves = None if p.max_leaves is None else int(p.max_leaves)
    if p.max_depth != "auto":
        depth = None if p.max_depth is None else int(p.max_depth)
    else:
        limited = shape == "leaf-wise" and leaves is not None and not loss.classifies
        simple = shape == "symmetric" and shared and loss.independent_outputs
        depth = None if limited else autotune.DEPTH_OF_TARGETS if simple else autotune.DEPTH
    return TreeOptions((), p.categorical_splits == "subset", depth, leaves, shape, shared)


def _selection(
    p: Parameters, strategy: Strategy, loss: Loss, facts: Facts, rate: float, options: TreeOptions, engine: str
) -> RoundSelection:
    stopping = autotune.selection_stopping(p.n_iter_no_change, p.tol)
    averages = strategy.may_average and p.learning_rate == "auto" and loss.task == "regression"
    speedup = 1
    if (
        strategy.weighting is None or strategy.adds_full_model
    ):  # fold models that are not kept may have a larger learning rate
        few = averages and facts.effective_size <= autotune.FEW_SAMPLES
        speedup = autotune.selection_speedup(rate, facts.rarest_class, few_averaged=few)
        stopping = replace(stopping, patience=-(-stopping.patience // speedup))
    by_loss = p.estimator is None and p.early_stopping_metric is None
    few_samples = facts.effective_size <= autotune.MAX_SELECTION_SIZE
    free = autotune.Free(
        depth=p.max_depth == "auto",
        shape=engine == "native"
        and p.tree_shape == "auto"
        and not isinstance(p.max_leaves, Integral)
        and autotune.shapes_compete(loss, facts.effective_size),
        projection=engine == "native" and p.projection_strength == "auto",
        subset_splits=p.categorical_splits == "auto" and facts.max_categories >= autotune.FEWEST_CATEGORIES_FOR_SUBSETS,
        rate=p.learning_rate == "auto" and facts.rarest_class >= autotune.RARE_CLASS,
        sharing=p.multi_strategy == "auto",
    )
    competes = by_loss and (few_samples or engine == "native")
    return RoundSelection(
        stopping=stopping,
        speedup=speedup,
        selects_features=by_loss and few_samples and p.feature_selection,
        candidates=autotune.candidates(options, loss, facts.effective_size, free)
        if competes
        else (Candidate(options),),
        scales_rate=free.rate,
        averages=averages and free.rate and speedup > 1,
        thorough=strategy.adds_full_model,
    )


def _folds(p: Parameters, strategy: Strategy, loss: Loss, facts: Facts) -> FoldSpec:
    n_folds = autotune.BEST_FOLDS if strategy.adds_full_model else autotune.FOLDS
    if isinstance(p.cv, Integral):
        n_folds = int(p.cv)
    all_used = not isinstance(p.cv, str) or strategy.weights_folds
    n_used = n_folds if all_used else autotune.selection_folds(facts.effective_size, loss.n_outputs)
    if strategy.corrects_quantiles and isinstance(p.cv, str) and n_used > 1:
        n_folds = n_used = autotune.FAST_FOLDS
    return FoldSpec(p.cv, n_folds, n_used, float(p.validation_fraction))
