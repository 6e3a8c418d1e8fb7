"""Gradient-boosted trees for ranking."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval, StrOptions

from scboost._arrays import ArrayLike, Float64Array, FloatArray
from scboost._core.foreign_arguments import explains_foreign_arguments
from scboost._core.losses import LambdaRankLoss, Loss, PairwiseLoss, RankingLoss, XENDCGLoss
from scboost._core.ranking import ALL, ndcg_by_query, precision_by_query, reciprocal_rank_by_query
from scboost._core.run import ValidationMetric
from scboost._data.batches import Batches
from scboost._data.hashing import mix64
from scboost._data.samples import Samples
from scboost._data.validation import target_vector
from scboost._engine.interface import Regressor
from scboost._estimators.intake import Target, make_samples, numbers
from scboost._estimators.parameters import CONSTRAINTS, documented
from scboost._estimators.restricted import RestrictedSCBoost
from scboost._runtime.communicator import Communicator, agreed

if TYPE_CHECKING:
    from scboost._estimators.base import SCBoost

_METRICS = {"ndcg": ndcg_by_query, "map": precision_by_query, "mrr": reciprocal_rank_by_query}
_TRUNCATION = 30
_Self = TypeVar("_Self", bound="SCBoostRanker")


@documented
class SCBoostRanker(RestrictedSCBoost):
    """Gradient-boosted trees that rank the documents of each query by relevance.

    Cross-validation and validation splits never divide a query. The number of rounds is selected by cross-validation on
    the loss; for ``loss="lambdarank"``, on NDCG itself.

    Tree weights (``weighting``, ``preset="best"``) minimize the loss of held-out queries. LambdaRank is not the
    gradient of a convex loss: for ``loss="lambdarank"``, the weights minimize the logistic loss of document pairs, each
    weighted by the change of NDCG if the pair is swapped in the ranking of the unweighted model. Batches and Spark are
    not supported; for Dask, see :class:`scboost.dask.SCBoostRanker`.

    Parameters
    ----------
    loss : {"lambdarank", "pairwise", "xendcg"}, default="lambdarank"
        "lambdarank" optimizes NDCG through LambdaRank gradients; "pairwise" minimizes the logistic loss of document
        pairs (RankNet); "xendcg" minimizes a cross-entropy that bounds NDCG (XE-NDCG), at a lower cost for queries with
        many documents.
    truncation : int or None, default=None
        Truncation level of NDCG for ``loss="lambdarank"``: the number of top-ranked documents that are considered. None
        means 30. To optimize NDCG@k, use a value somewhat larger than k.
    <shared parameters>

    Attributes
    ----------
    <shared attributes>

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(600, 3)), np.repeat(np.arange(60), 10)
    >>> y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=600), [0.5, 1.5])
    >>> model = SCBoostRanker(n_estimators=20).fit(X[:400], y[:400], qid=qid[:400])
    >>> bool(model.score(X[400:], y[400:], qid=qid[400:]) > 0.8)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "loss": [StrOptions({"lambdarank", "pairwise", "xendcg"})],
        "truncation": [Interval(Integral, 1, None, closed="left"), None],
    }

    _distributes = True

    loss: Literal["lambdarank", "pairwise", "xendcg"]
    truncation: int | None

    @explains_foreign_arguments
    def __init__(
        self,
        *,
        loss: Literal["lambdarank", "pairwise", "xendcg"] = "lambdarank",
        truncation: int | None = None,
        preset: Literal["default", "fast", "best"] = "default",
        n_estimators: int | Literal["auto"] = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        max_depth: int | Literal["auto"] | None = "auto",
        max_leaves: int | Literal["auto"] | None = "auto",
        tree_shape: Literal["auto", "depth-wise", "leaf-wise", "symmetric", "alternating"] = "auto",
        multi_strategy: Literal["auto", "one_output_per_tree", "multi_output_tree"] = "auto",
        max_trees: int | None = None,
        min_child_weight: float | Literal["auto"] = "auto",
        reg_lambda: float = 3.0,
        reg_alpha: float = 0.0,
        min_split_loss: float = 0.0,
        projection_strength: float | Literal["auto"] = "auto",
        energy_threshold: float = 0.9,
        memory: int | Literal["auto", "all"] = "auto",
        exploration: float | Literal["auto"] = "auto",
        leaf_rule: Literal["newton", "mean"] = "newton",
        init: Literal["prior", "zero"] = "prior",
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        colsample_bylevel: float = 1.0,
        colsample_bynode: float = 1.0,
        max_bin: int | Literal["auto"] = "auto",
        categorical_splits: Literal["auto", "one-vs-rest", "subset"] = "auto",
        weighting: Literal["simplex", "nonnegative"] | None = None,
        weighting_data: Literal["holdout", "out_of_fold", "fold_average"] = "holdout",
        covariance_penalty: float = 0.0,
        weight_ridge: float = 0.1,
        cv: Any = "auto",
        feature_selection: bool = True,
        early_stopping: bool = False,
        early_stopping_metric: str | Callable[..., float] | None = None,
        n_iter_no_change: int | Literal["auto"] = "auto",
        tol: float = 1e-7,
        validation_fraction: float = 0.2,
        monotone_constraints: Any = None,
        interaction_constraints: Any = None,
        estimator: Regressor | None = None,
        warm_start: bool = False,
        callbacks: Sequence[Callable[[Any], Any]] | None = None,
        n_jobs: int | None = None,
        engine: Literal["auto", "native", "xgboost"] = "auto",
        device: str = "cpu",
        random_state: Any = None,
        verbose: int | None = None,
    ) -> None:
        self._set_parameters(locals())

    def fit(  # type: ignore[override] # noqa: PYI019 - rankings need queries; typing.Self came with Python 3.11
        self: _Self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        qid_val: ArrayLike | None = None,
        group_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        init_model: SCBoost | str | os.PathLike[str] | None = None,
    ) -> _Self:
        """Fit the model to a training set.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Documents; see :meth:`SCBoostRegressor.fit`.
        y : array-like of shape (n_samples,)
            Relevance of each document, from 0 to 50. The gain of a relevance r is ``2^r - 1``.
        sample_weight : array-like of shape (n_samples,) or (n_queries,), optional
            Weights of the documents, or of the queries in order of first appearance. The weight of a pair is the
            product of the weights of its documents, divided by the mean weight of the query.
        qid : array-like of shape (n_samples,)
            Query of each document, in any order. Pass either ``qid`` or ``group``.
        group : array-like of shape (n_queries,)
            Number of documents of each query; the documents of a query must be contiguous.
        X_val, y_val, qid_val, group_val, sample_weight_val : optional
            Validation set.
        init_model : estimator, str or Path, optional
            Fitted model to continue training from.

        Returns
        -------
        self
            The fitted estimator.
        """
        if any(isinstance(part, Batches) for part in (X, X_val)):
            raise ValueError(
                "SCBoostRanker does not support a fit to Batches: its loss compares all documents of a query. Pass a "
                "table or an array, for example of a sample of the queries."
            )
        query = query_numbers(qid, group, X, "")
        validation = None if X_val is None else query_numbers(qid_val, group_val, X_val, "_val")
        super().fit(
            X,
            document_targets(y, query, X, "y"),
            _document_weights(sample_weight, query),
            X_val=X_val,
            y_val=None if validation is None else document_targets(y_val, validation, X_val, "y_val"),
            sample_weight_val=None if validation is None else _document_weights(sample_weight_val, validation),
            groups=query if not isinstance(self.cv, str) and hasattr(self.cv, "split") else None,
            init_model=init_model,
        )
        return self

    def _target_array(self, y: ArrayLike | None, X: Any, name: str) -> npt.NDArray[Any]:
        del X, name
        return np.asarray(y)

    def _learn_target(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        communicator: Communicator,
        base: Loss | None,
    ) -> Target:
        del base
        if self.truncation is not None and self.loss != "lambdarank":
            raise ValueError(f"truncation={self.truncation} needs loss='lambdarank', got loss={self.loss!r}.")
        loss = named_ranking_loss(vars(self))
        with agreed(communicator):
            samples = self._samples(y, X, sample_weight, loss, communicator, "")
        loss.require_pairs(samples.y, "y", communicator)
        return Target(samples, loss)

    def _validation_samples(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        target: Target,
        communicator: Communicator,
    ) -> Samples:
        loss = cast("RankingLoss", target.loss)
        samples = self._samples(y, X, sample_weight, loss, communicator, "_val")
        if communicator.size == 1:
            loss.require_pairs(samples.y, "y_val")
        return samples

    @staticmethod
    def _samples(
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        loss: Loss,
        communicator: Communicator,
        suffix: str,
    ) -> Samples:
        """Return samples whose folds keep queries whole."""
        samples = make_samples(X, y, sample_weight, communicator, f"sample_weight{suffix}")
        loss.check_target(samples.y, f"y{suffix}")
        samples.groups = mix64(samples.y[:, 1].astype(np.uint64) + np.uint64(1))
        return samples

    def _metric(self, scoring: str | Callable[..., float], target: Target) -> ValidationMetric:
        del target
        return RankingMetric(scoring)

    def predict(self, X: ArrayLike) -> Float64Array:
        """Predict a score for each document; within a query, a higher score means more relevant.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Documents.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores; those of different queries are not comparable.
        """
        return self._fitted.means(self._raw_scores(X))

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        k: int | None = None,
    ) -> float:
        """Return the mean NDCG over the queries.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Documents.
        y : array-like of shape (n_samples,)
            Relevance of each document.
        sample_weight : array-like of shape (n_samples,) or (n_queries,), optional
            Weights; the weight of a query is the mean weight of its documents.
        qid, group : array-like
            Queries, as in ``fit``.
        k : int, optional
            Truncation level: only the k top-ranked documents of each query are considered. All by default.

        Returns
        -------
        float
            NDCG with exponential gains, in [0, 1]. Queries without a relevant document are ignored.
        """
        query = query_numbers(qid, group, X, "")
        documents = document_targets(y, query, X, "y")
        weight = _document_weights(sample_weight, query)
        return mean_by_query(ndcg_by_query, documents, self.predict(X), weight, ALL if k is None else k)

    def staged_predict(self, X: ArrayLike) -> Iterator[Float64Array]:
        """Yield the scores after each boosting round.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Documents.

        Yields
        ------
        ndarray of shape (n_samples,)
            After 1, 2, ... rounds.
        """
        yield from map(self._fitted.means, self._staged_raw_scores(X))


class RankingMetric:
    """Minus the mean of a metric over queries.

    Parameters
    ----------
    scoring : str
        "ndcg", "map" or "mrr", with "@k" for the first k documents.

    Attributes
    ----------
    name : str
        Name of the score in logs.
    """

    def __init__(self, scoring: str | Callable[..., float]) -> None:
        found = re.fullmatch(r"(ndcg|map|mrr)(?:@([1-9]\d{0,8}))?", scoring) if isinstance(scoring, str) else None
        if found is None:
            raise ValueError(
                f"early_stopping_metric={scoring!r} is not a metric of rankings; use 'ndcg', 'map' or 'mrr', or "
                "'ndcg@10' for the first ten documents."
            )
        self.name = found.group(0)
        self._metric, self._k = _METRICS[found.group(1)], int(found.group(2) or ALL)

    def mean(self, y: FloatArray, F: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return minus the metric of raw scores F, of shape (1, n)."""
        return -mean_by_query(self._metric, y, F[0].astype(np.float64), sample_weight, self._k)


def mean_by_query(
    metric: Callable[..., FloatArray],
    documents: FloatArray,
    score: FloatArray,
    sample_weight: FloatArray | None,
    k: int,
) -> float:
    """Return the mean of a metric over the queries for which it is defined, weighted by their mean weights."""
    query = np.unique(documents[:, 1], return_inverse=True)[1].reshape(-1)
    values = metric(documents[:, 0], score, query, k)
    weight = np.ones(len(score)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    weight = np.bincount(query, weights=weight) / np.bincount(query)
    defined = ~np.isnan(values) & (weight > 0)
    if not defined.any():
        raise ValueError("no query has a relevant document (relevance above 0): the metric is not defined.")
    return float(np.average(values[defined], weights=weight[defined]))


def named_ranking_loss(parameters: Mapping[str, Any]) -> RankingLoss:
    """Return the loss that ``loss`` and ``truncation`` name."""
    if parameters["loss"] == "lambdarank":
        given = parameters["truncation"]
        return LambdaRankLoss(_TRUNCATION if given is None else given)
    return PairwiseLoss() if parameters["loss"] == "pairwise" else XENDCGLoss()


def query_numbers(qid: ArrayLike | None, group: ArrayLike | None, X: Any, suffix: str) -> npt.NDArray[np.float64]:
    """Return the number of the query of each document, in the order in which queries appear."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if (qid is None) == (group is None):
        raise ValueError(f"SCBoostRanker needs the queries of the documents: give either qid{suffix} or group{suffix}.")
    if group is not None:
        sizes = np.asarray(group)
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any() or sizes.sum() != n:
            raise ValueError(
                f"group{suffix} must be numbers of documents that sum to the {n} rows of X{suffix}, got {group!r:.80}; "
                f"to name the query of each document, use qid{suffix}."
            )
        return np.repeat(np.arange(len(sizes)), sizes).astype(np.float64)
    ids = np.asarray(qid)
    if ids.shape != (n,):
        raise ValueError(f"qid{suffix} must have shape ({n},), one for each row of X{suffix}, got {ids.shape}.")
    _, first, place = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(first))
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[place.reshape(-1)])


def document_targets(y: ArrayLike | None, query: FloatArray, X: Any, name: str) -> npt.NDArray[np.float64]:
    """Return relevance and query of each document, of shape (n, 2)."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    return np.stack([numbers(target_vector(y, X, name), name), query], axis=1)


def _document_weights(sample_weight: ArrayLike | None, query: FloatArray) -> FloatArray | None:
    """Return the weight of each document, where weights may be those of queries."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    n_queries = int(query.max()) + 1
    return weight[query.astype(np.intp)] if weight.shape == (n_queries,) != query.shape else weight
