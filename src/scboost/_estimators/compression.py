"""Compression of fitted models: the function ``compress`` and the parameter ``max_trees``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
from sklearn.utils import check_random_state

from scboost._compress.compression import Options, compress_model
from scboost._compress.frontier import compressed_margins
from scboost._compress.result import Compressed
from scboost._core.losses import PoissonLoss
from scboost._estimators.classifier import SCBoostClassifier
from scboost._estimators.parameters import thread_count
from scboost._estimators.ranker import SCBoostRanker
from scboost._estimators.regressor import SCBoostRegressor
from scboost._estimators.survival import SCBoostSurvival
from scboost._estimators.survival_target import time_bounds
from scboost._model.fitted import FittedModel
from scboost._runtime.threads import single_threaded_blas
from scboost.diagnostics._frontier import COMPRESS, register_frontier_method

if TYPE_CHECKING:
    import xgboost

Compressible = SCBoostClassifier | SCBoostRegressor | SCBoostRanker | SCBoostSurvival
_Ordering = TypeVar("_Ordering", SCBoostRanker, SCBoostSurvival)

_LOSS_PARAMETERS = {
    SCBoostRegressor: ("loss", "quantile", "expectile", "tweedie_power", "huber_delta"),
    SCBoostRanker: ("loss", "truncation"),
    SCBoostSurvival: ("loss", "ties", "aft_distribution", "aft_scale"),
}

register_frontier_method(COMPRESS, compressed_margins)


@overload
def compress(
    model: _Ordering,
    X: Any,
    y: Any = None,
    *,
    max_trees: int = 20,
    max_leaves: int | Literal["auto"] = "auto",
    max_bytes: int | Literal["auto"] | None = "auto",
    confidence: float = 0.95,
    X_certify: Any = None,
    y_certify: Any = None,
    certify_fraction: float = 0.1,
    X_synthetic: Any | Callable[[int, np.random.Generator], Any] = None,
    n_synthetic: int | Literal["auto"] = "auto",
    link: Literal["auto", "identity", "log", "logit", "softmax"] = "auto",
    qid: Any = None,
    qid_certify: Any = None,
    library: Literal["scboost"] = "scboost",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Compressed[_Ordering]: ...
@overload
def compress(
    model: object,
    X: Any,
    y: Any = None,
    *,
    max_trees: int = 20,
    max_leaves: int | Literal["auto"] = "auto",
    max_bytes: int | Literal["auto"] | None = "auto",
    confidence: float = 0.95,
    X_certify: Any = None,
    y_certify: Any = None,
    certify_fraction: float = 0.1,
    X_synthetic: Any | Callable[[int, np.random.Generator], Any] = None,
    n_synthetic: int | Literal["auto"] = "auto",
    link: Literal["auto", "identity", "log", "logit", "softmax"] = "auto",
    qid: Any = None,
    qid_certify: Any = None,
    library: Literal["scboost"] = "scboost",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Compressed[SCBoostClassifier | SCBoostRegressor]: ...
@overload
def compress(
    model: object,
    X: Any,
    y: Any = None,
    *,
    max_trees: int = 20,
    max_leaves: int | Literal["auto"] = "auto",
    max_bytes: int | Literal["auto"] | None = "auto",
    confidence: float = 0.95,
    X_certify: Any = None,
    y_certify: Any = None,
    certify_fraction: float = 0.1,
    X_synthetic: Any | Callable[[int, np.random.Generator], Any] = None,
    n_synthetic: int | Literal["auto"] = "auto",
    link: Literal["auto", "identity", "log", "logit", "softmax"] = "auto",
    qid: Any = None,
    qid_certify: Any = None,
    library: Literal["xgboost"],
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Compressed[xgboost.XGBClassifier | xgboost.XGBRegressor]: ...
@single_threaded_blas()
def compress(
    model: object,
    X: Any,
    y: Any = None,
    *,
    max_trees: int = 20,
    max_leaves: int | Literal["auto"] = "auto",
    max_bytes: int | Literal["auto"] | None = "auto",
    confidence: float = 0.95,
    X_certify: Any = None,
    y_certify: Any = None,
    certify_fraction: float = 0.1,
    X_synthetic: Any | Callable[[int, np.random.Generator], Any] = None,
    n_synthetic: int | Literal["auto"] = "auto",
    link: Literal["auto", "identity", "log", "logit", "softmax"] = "auto",
    qid: Any = None,
    qid_certify: Any = None,
    library: Literal["scboost", "xgboost"] = "scboost",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Compressed[Any]:
    """Compress a fitted model of any library into a few trees, with a certificate of its fidelity.

    The raw score of the model (the teacher) is a noise-free function, so that it can be evaluated at any point. A few
    trees (the student) are fitted to it on the samples and on synthetic samples near them. Each tree is grown on the
    residual orthogonal to all leaves of the previous trees, then the leaf values of all trees are refitted jointly by
    ridge regression.

    Parameters
    ----------
    model : object
        The teacher: a fitted model of scboost, XGBoost, LightGBM, CatBoost or scikit-learn, any other estimator with
        ``predict_proba``, ``decision_function`` or ``predict``, or a function that returns raw scores (see `link`).
    X : array or table of shape (n_samples, n_features)
        Samples as expected by the model, such as its training set. Labels are not needed.
    y : array-like of shape (n_samples,), optional
        Labels or targets. Used to report losses, not for fitting. For a :class:`SCBoostSurvival`, times in one of its
        formats; for a :class:`SCBoostRanker`, relevances, together with `qid`.
    max_trees : int, default=20
        Maximum number of trees; per class if there are more than two classes.
    max_leaves : int or "auto", default="auto"
        Maximum number of leaves of a tree; "auto" is 64 for up to 20 trees and 96 for more. More leaves approximate
        the teacher more closely with as many trees, and take longer.
    max_bytes : int, "auto" or None, default="auto"
        Maximum size of the model file in UBJSON. To satisfy it, the number of leaves is reduced down to about 16, then
        the number of trees. "auto" is a tenth of the teacher's file, but at least 10,000, for models of scboost, and no
        limit for others; None is no limit.
    confidence : float, default=0.95
        Confidence of the bounds in the certificate.
    X_certify, y_certify : optional
        Held-out samples for the certificate, not used to fit the teacher. By default, a random part of X is held out
        from the student; if X is the teacher's training set, the certificate then refers to training samples.
    certify_fraction : float, default=0.1
        Share of X that is held out, if ``X_certify`` is not given.
    X_synthetic : array, table or callable, optional
        Synthetic samples like X, or a function ``X_synthetic(n_samples, rng)`` that draws them, in place of the
        built-in generator, which replaces about half of the values of a sample by those of a near neighbor.
    n_synthetic : int or "auto", default="auto"
        Number of synthetic samples. "auto" is 14 per sample of X in regression, but at least 20,000. In
        classification it is 8 per sample, but at least 10,000, if `max_trees` is at most 20; otherwise 6 per sample,
        but at least 8,000. It is at most 100,000.
    link : {"auto", "identity", "log", "logit", "softmax"}, default="auto"
        How raw scores become predictions. Needed if `model` is a function: it returns the log-odds of the second class
        ("logit"), one score for each class ("softmax"), predictions ("identity") or their logarithms ("log").
    qid, qid_certify : array-like of shape (n_samples,), optional
        Queries of X and X_certify, if the model is a :class:`SCBoostRanker`. The certificate then refers to pairs of
        documents of the same query, and whole queries are held out. By default, it refers to pairs of any two
        documents.
    library : {"scboost", "xgboost"}, default="scboost"
        Whether ``model`` of the result is one of scboost's estimators, or an ``XGBClassifier`` or ``XGBRegressor``.
    n_jobs : int or None, default=None
        Number of threads that grow trees; None for all cores.
    random_state : int, RandomState or None, default=None
        Seed of the held-out part and of the synthetic samples.

    Returns
    -------
    Compressed
        With the fields ``model``, ``certificate``, ``curve``, ``fidelity``, ``loss`` and others.

    Examples
    --------
    >>> import scboost
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_classification(2000, 8, n_informative=6, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=100, random_state=0).fit(X[:1000], y[:1000])
    >>> small = scboost.compress(forest, X[:1000], max_trees=10, X_certify=X[1000:], random_state=0)
    >>> small.n_trees
    10
    >>> print(small.certificate)
    At least 9... % of samples like these get the same label (95 % confidence).
    """
    if library not in {"scboost", "xgboost"}:
        raise ValueError(f"library={library!r} must be 'scboost' or 'xgboost'.")
    if isinstance(model, SCBoostSurvival):
        y = None if y is None else time_bounds(y, len(y), "y")
        y_certify = None if y_certify is None else time_bounds(y_certify, len(y_certify), "y_certify")
    options = Options(
        max_trees,
        max_leaves,
        max_bytes,
        confidence,
        X_certify,
        y_certify,
        certify_fraction,
        X_synthetic,
        n_synthetic,
        link,
        qid,
        qid_certify,
    )
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    found = compress_model(model, X, y, options, seed, thread_count(n_jobs)).result
    kept = random_state if isinstance(random_state, Integral) else None
    small = _estimator(model, found, {"random_state": kept, "n_jobs": n_jobs})
    return replace(found, model=small.to_xgboost() if library == "xgboost" else small)


def _estimator(teacher: object, found: Compressed[FittedModel], params: dict[str, Any]) -> Compressible:
    """Return the estimator of a compressed model, which keeps the loss of a teacher of scboost."""
    model = found.model
    shape: dict[str, Any] = {"n_estimators": found.n_trees, "max_leaves": found.max_leaves, "max_depth": None}
    if model.classes is not None:
        return SCBoostClassifier(**shape, **params).__with_fitted_model__(model)
    for cls, names in _LOSS_PARAMETERS.items():
        if isinstance(teacher, cls):
            own = {name: getattr(teacher, name) for name in names}
            return cls(**own, **shape, **params).__with_fitted_model__(model)
    loss: Any = "poisson" if isinstance(model.loss, PoissonLoss) else "squared_error"
    return SCBoostRegressor(loss=loss, **shape, **params).__with_fitted_model__(model)


def compressed(estimator: Compressible, X: Any, max_trees: int) -> FittedModel:
    """Return the compressed model of a fitted estimator, for the parameter ``max_trees``.

    Parameters
    ----------
    estimator : SCBoostClassifier, SCBoostRegressor, SCBoostRanker or SCBoostSurvival
        Fitted; ``max_leaves`` limits the leaves of the compressed trees, if it is a number.
    X : array, sparse matrix or table
        Training set.
    max_trees : int
        Maximum number of trees.
    """
    n_rounds = estimator.__fitted_model__().n_rounds
    small = compress(
        estimator,
        X,
        max_trees=max_trees,
        max_leaves=estimator.max_leaves if isinstance(estimator.max_leaves, int) else "auto",
        n_jobs=estimator.n_jobs,
        random_state=0
        if estimator.random_state is None
        else estimator.random_state,  # a fixed seed, for reproducible fits
    )
    log = {name: values for name, values in small.curve_arrays().items() if not np.isnan(values).any()}
    certificate = " ".join(str(small.certificate).splitlines())
    model = small.model.__fitted_model__()
    return replace(model, training_log=log, stop_reason=f"compressed from {n_rounds} rounds. {certificate}")
