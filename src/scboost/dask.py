"""The estimators on a Dask cluster: samples distributed over workers, the same method, the same model.

Every worker keeps its own samples; the workers grow trees together through XGBoost's collective, as in
:mod:`xgboost.dask`, and add up a few hundred numbers a round. The fitted model is an ordinary one.

Partitions go to workers in order, so that a fit can be repeated; samples stored elsewhere are moved once. Use at least
as many partitions as workers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from scboost._arrays import ArrayLike
from scboost._core.foreign_arguments import explains_foreign_arguments
from scboost._core.parameters import Parameters
from scboost._core.rules import check_distributed, check_parameters
from scboost._engine.xgboost.collective import tracking
from scboost._estimators import classifier, ranker, regressor
from scboost._estimators.base import SCBoost
from scboost._estimators.fitting import draw_seed
from scboost._estimators.sharing import Outcome, Part, fit_part, missing_estimator
from scboost._runtime.communicator import WorkerError
from scboost.diagnostics._redundancy import RedundancyReport, make_report, warn_if_few_samples
from scboost.diagnostics._registry import read_ensemble
from scboost.diagnostics._statistics import collect_statistics, combine

try:
    import dask.array as da
    import dask.dataframe as dd
    import distributed
    from dask import delayed
    from dask.dataframe.dispatch import concat as concat_tables
except ImportError as error:  # pragma: no cover - the tests install it
    raise ImportError("scboost.dask needs Dask: pip install 'scboost[dask]'.") from error

__all__ = ["SCBoostClassifier", "SCBoostRanker", "SCBoostRegressor", "redundancy_report"]

_PATIENCE = 5.0  # seconds that other workers have to report the round in which one was lost
_ADDED_AT_ONCE = 8  # sums of partitions that one task of a report adds up
_PARTS = ("X", "y", "sample_weight")


class _OnDask(SCBoost):
    """Base class of the Dask estimators: distributed fits and lazy predictions."""

    _local_class: type[SCBoost]
    _client: Any = None

    @property
    def client(self) -> Any:
        """The client to use; the current one of this process if it was not set."""
        return distributed.get_client() if self._client is None else self._client

    @client.setter
    def client(self, client: Any) -> None:
        self._client = client

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_client", None)
        return state

    @explains_foreign_arguments
    def fit(  # type: ignore[override] # groups and init_model need the samples of one process
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        timeout: int = 300,
        resume_from: str | os.PathLike[str] | None = None,
    ) -> _OnDask:
        """Fit on the workers of the client.

        Parameters
        ----------
        X : dask DataFrame or Array of shape (n_samples, n_features)
            Samples. Columns of a DataFrame may be categories or strings; partitions may differ in them, or be empty.
        y : dask Series or Array of shape (n_samples,)
            Class labels or target values, with the same partitions as X.
        sample_weight : dask Series or Array of shape (n_samples,), optional
            Sample weights.
        X_val, y_val, sample_weight_val : optional
            Validation set, as Dask collections or in memory.
        timeout : int, default=300
            Seconds after which the fit fails if a worker does not respond.
        resume_from : str or Path, optional
            A checkpoint to resume, written by the first worker with ``callbacks=[Checkpoint(path)]`` into a folder
            that this process can read. With the same samples and number of workers, the result equals that of an
            uninterrupted fit.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._fit_collections(
            dict(zip(_PARTS, (X, y, sample_weight), strict=True)),
            dict(zip(_PARTS, (X_val, y_val, sample_weight_val), strict=True)),
            timeout,
            resume_from,
        )

    def _fit_collections(
        self,
        training: dict[str, Any],
        validation: dict[str, Any],
        timeout: int,
        resume_from: str | os.PathLike[str] | None,
    ) -> _OnDask:
        """Fit to collections by the name of their argument."""
        local = self._unfitted_local()
        parameters = Parameters.of(local.get_params(deep=False))
        check_parameters(parameters)
        check_distributed(parameters)
        if self.warm_start:
            raise ValueError("warm_start=True needs the samples of one process; use callbacks=[Checkpoint(path)].")
        y = training["y"]
        if getattr(y, "ndim", 1) == 2 and y.shape[1] > 1:
            raise ValueError(
                f"y has {y.shape[1]} columns; several targets are fitted in one process: use SCBoostRegressor or "
                "SCBoostClassifier, or fit one model per target."
            )
        resume = None if resume_from is None else Path(resume_from).read_bytes()
        if isinstance(self.random_state, np.random.RandomState):  # workers draw the seed from copies of it
            draw_seed(self.random_state)
        parts = self._prepared(_partitions(training.items()), "")
        held_out = self._prepared(_partitions((f"{name}_val", v) for name, v in validation.items()), "_val")
        outcome = _Fit(self.client, local, timeout).run(parts, held_out, resume)
        self.__with_fitted_model__(outcome.into(self).__fitted_model__())
        self.traffic_ = outcome.traffic
        return self

    def _prepared(self, parts: list[dict[str, Any]], suffix: str) -> list[dict[str, Any]]:
        """Return partitions of training or validation samples as workers take them."""
        del suffix
        return parts

    def _unfitted_local(self) -> SCBoost:
        return self._local_class(
            **{name: clone(value, safe=False) for name, value in self.get_params(deep=False).items()}
        )

    def to_local(self) -> SCBoost:
        """Return the fitted model as an ordinary estimator, which needs no Dask.

        Returns
        -------
        SCBoostClassifier, SCBoostRegressor or SCBoostRanker
            Of :mod:`scboost`, with the same predictions and the same model file.
        """
        return self._unfitted_local().__with_fitted_model__(self.__fitted_model__())

    def _lazily(self, X: Any, method: str, dtype: Any, columns: list[Any] | None = None) -> Any:
        """Lazily call a method of the local model on each partition.

        A table gives a table with its index: a Series, or a DataFrame if there are names of columns.
        """
        predict = getattr(self.to_local().set_params(callbacks=None), method)
        if isinstance(X, da.Array):
            X = X.rechunk({1: -1})
            if columns is None:
                empty = np.empty(0, dtype=dtype)
                return X.map_blocks(_predicted_block, predict, empty, drop_axis=1, dtype=dtype)
            empty = np.empty((0, len(columns)), dtype=dtype)
            chunks = X.chunks[0], (len(columns),)
            return X.map_blocks(_predicted_block, predict, empty, chunks=chunks, dtype=dtype)
        if isinstance(X, dd.DataFrame):
            import pandas as pd

            meta = pd.Series(dtype=dtype) if columns is None else pd.DataFrame(columns=columns, dtype=dtype)
            return X.map_partitions(_predicted, predict, meta, meta=meta)
        return predict(X)


def _predicted_block(block: Any, predict: Callable[[Any], Any], empty: Any) -> Any:
    """Return predictions of a block of an array, which may be empty."""
    return predict(block) if block.shape[0] else empty


def _predicted(part: Any, predict: Callable[[Any], Any], empty: Any) -> Any:
    """Return predictions of a table, with its index, as a table like the empty one."""
    if not len(part):
        return empty
    columns = {} if empty.ndim == 1 else {"columns": empty.columns}
    return type(empty)(predict(part), index=part.index, **columns)


class SCBoostClassifier(_OnDask, classifier.SCBoostClassifier):
    """:class:`scboost.SCBoostClassifier` for samples on a Dask cluster.

    Parameters, attributes and methods are those of the local class; ``estimator``, ``warm_start``,
    ``early_stopping_metric``, splitters as ``cv`` and ``init_model`` need the samples of one process. Without a
    validation set, held-out samples are selected by a hash of their features. Other attributes:

    Attributes
    ----------
    client : distributed.Client
        The client to use; the current one if it was not set.
    traffic_ : dict of str to float
        Collective calls of this library's part of the fit, their bytes and seconds, and the number of rounds.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client, LocalCluster
    >>> from scboost.dask import SCBoostClassifier
    >>> if __name__ == "__main__":  # doctest: +SKIP
    ...     with LocalCluster(n_workers=2) as cluster, Client(cluster):
    ...         X = da.random.normal(size=(10_000, 5), chunks=(2_500, 5))
    ...         y = (X[:, 0] + X[:, 1] > 0).astype(int)
    ...         model = SCBoostClassifier(n_estimators=50).fit(X, y)
    ...         model.predict_proba(X).compute()
    ...         model.to_local().save_model("model.ubj")
    """

    _local_class = classifier.SCBoostClassifier

    def predict(self, X: ArrayLike) -> Any:
        """Return the most probable class of each sample; lazily for Dask collections.

        Parameters
        ----------
        X : dask DataFrame or Array, or data in memory, of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask Series or Array, or ndarray, of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        return self._lazily(X, "predict", self.classes_.dtype)

    def predict_proba(self, X: ArrayLike) -> Any:
        """Return class probabilities; lazily for Dask collections.

        Parameters
        ----------
        X : dask DataFrame or Array, or data in memory, of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask DataFrame or Array, or ndarray, of shape (n_samples, n_classes)
            In the order of ``classes_``, which are the column names of a DataFrame.
        """
        check_is_fitted(self)
        return self._lazily(X, "predict_proba", np.float64, self.classes_.tolist())


class SCBoostRegressor(_OnDask, regressor.SCBoostRegressor):
    """:class:`scboost.SCBoostRegressor` for samples on a Dask cluster; see :class:`scboost.dask.SCBoostClassifier`.

    Attributes
    ----------
    client : distributed.Client
        The client to use; the current one if it was not set.
    traffic_ : dict of str to float
        Collective calls of this library's part of the fit, their bytes and seconds, and the number of rounds.
    """

    _local_class = regressor.SCBoostRegressor

    def predict(self, X: ArrayLike) -> Any:
        """Return the predicted value of each sample; lazily for Dask collections.

        Parameters
        ----------
        X : dask DataFrame or Array, or data in memory, of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask Series or Array, or ndarray, of shape (n_samples,)
            On the scale of y; of shape (n_samples, n_quantiles) for several quantiles.
        """
        columns = list(self.quantile) if isinstance(self.quantile, Sequence) else None
        return self._lazily(X, "predict", np.float64, columns)


class SCBoostRanker(_OnDask, ranker.SCBoostRanker):
    """:class:`scboost.SCBoostRanker` for samples on a Dask cluster; see :class:`scboost.dask.SCBoostClassifier`.

    All documents of a query must be in one partition.

    Attributes
    ----------
    client : distributed.Client
        The client to use; the current one if it was not set.
    traffic_ : dict of str to float
        Collective calls of this library's part of the fit, their bytes and seconds, and the number of rounds.
    """

    _local_class = ranker.SCBoostRanker

    @explains_foreign_arguments
    def fit(  # type: ignore[override] # group and init_model need the samples of one process
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        qid: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
        sample_weight_val: Any = None,
        timeout: int = 300,
        resume_from: str | os.PathLike[str] | None = None,
    ) -> SCBoostRanker:
        """Fit on the workers of the client.

        Parameters
        ----------
        X : dask DataFrame or Array of shape (n_samples, n_features)
            Documents.
        y : dask Series or Array of shape (n_samples,)
            Relevance of each document, with the same partitions as X.
        sample_weight : dask Series or Array of shape (n_samples,), optional
            Weights of the documents.
        qid : dask Series or Array of shape (n_samples,)
            Query of each document. A query must not be divided between partitions.
        X_val, y_val, qid_val, sample_weight_val : optional
            Validation set, as Dask collections or in memory.
        timeout, resume_from : optional
            See :meth:`scboost.dask.SCBoostClassifier.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        missing = "qid" if qid is None else "qid_val" if X_val is not None and qid_val is None else ""
        if missing:
            raise ValueError(f"scboost.dask.SCBoostRanker needs the queries of the documents: give {missing}.")
        training = {"X": X, "y": y, "sample_weight": sample_weight, "qid": qid}
        validation = {"X": X_val, "y": y_val, "sample_weight": sample_weight_val, "qid": qid_val}
        self._fit_collections(training, validation, timeout, resume_from)
        return self

    def _prepared(self, parts: list[dict[str, Any]], suffix: str) -> list[dict[str, Any]]:
        """Return partitions whose queries are numbered in order of appearance, as in a local fit."""
        qid, y = f"qid{suffix}", f"y{suffix}"
        queries = self.client.gather(self.client.compute([delayed(_distinct)(part[qid]) for part in parts]))
        _refuse_divided(queries, qid)
        first = np.cumsum([0, *map(len, queries)])
        prepared = []
        for part, number in zip(parts, first, strict=False):
            documents = delayed(_documents)(part[y], part[qid], int(number), suffix)
            prepared.append({name: value for name, value in part.items() if name != qid} | {y: documents})
        return prepared

    def predict(self, X: ArrayLike) -> Any:
        """Return a score for each document; lazily for Dask collections.

        Parameters
        ----------
        X : dask DataFrame or Array, or data in memory, of shape (n_samples, n_features)
            Documents.

        Returns
        -------
        dask Series or Array, or ndarray, of shape (n_samples,)
            Scores; those of different queries are not comparable.
        """
        return self._lazily(X, "predict", np.float64)


def _distinct(qid: Any) -> Any:
    """Return the queries of a partition."""
    return np.unique(np.asarray(qid))


def _refuse_divided(queries: list[Any], name: str) -> None:
    """Raise ValueError if documents of one query are in several partitions."""
    if not queries:
        return
    distinct, counts = np.unique(np.concatenate(queries), return_counts=True)
    divided = distinct[counts > 1]
    if len(divided):
        found = [i for i, part in enumerate(queries) if np.isin(divided[0], part)]
        raise ValueError(
            f"{len(divided)} queries in {name} are divided between partitions: query {divided[0]} is in the partitions "
            f"{found}. All documents of a query must be in one partition: rechunk arrays at the ends of queries, or "
            "shuffle data frames on the query (frame.shuffle(on='qid'))."
        )


def _documents(y: Any, qid: Any, first: int, suffix: str) -> Any:
    """Return relevance and number of the query of each document of a partition; the numbers start at ``first``."""
    query = ranker.query_numbers(qid, None, y, suffix)
    return ranker.document_targets(y, query + first, y, f"y{suffix}")


def redundancy_report(model: object, X: Any, y: Any = None, *, name: str | None = None) -> RedundancyReport:
    """Measure how redundant the trees of a fitted ensemble are, on samples of a Dask cluster.

    The report of :func:`scboost.redundancy_report`. Workers process their partitions in place and return small sums.

    Parameters
    ----------
    model : object
        Any ensemble :func:`scboost.tree_matrix` reads, of this or another library.
    X : dask DataFrame or Array of shape (n_samples, n_features)
        Samples; partitions may be empty.
    y : dask Series or Array of shape (n_samples,), optional
        Labels or target values, with the same partitions as X.
    name : str, optional
        Name of the model in texts and legends; its class name by default.

    Returns
    -------
    RedundancyReport
    """
    ensemble = delayed(read_ensemble(model), traverse=False)
    parts = [delayed(collect_statistics)(ensemble, **part) for part in _partitions((("X", X), ("y", y)))]
    while len(parts) > 1:
        parts = [delayed(combine)(parts[i : i + _ADDED_AT_ONCE]) for i in range(0, len(parts), _ADDED_AT_ONCE)]
    report = make_report(parts[0].compute(), type(model).__name__ if name is None else name)
    warn_if_few_samples(report)
    return report


# --- samples ---------------------------------------------------------------------------------------------------------


def _partitions(collections: Any) -> list[dict[str, Any]]:
    """Partitions of several collections side by side: one dict of delayed values, or values, for each."""
    given = {name: value for name, value in collections if value is not None}
    if not given:
        return []
    columns = {name: _delayed(name, value) for name, value in given.items()}
    lengths = {name: len(parts) for name, parts in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(f"Collections must have the same partitions: {found}. Rechunk them like X.")
    return [dict(zip(columns, parts, strict=True)) for parts in zip(*columns.values(), strict=True)]


def _delayed(name: str, value: Any) -> list[Any]:
    if isinstance(value, da.Array):
        value = value if value.ndim == 1 else value.rechunk({1: -1})
        return list(value.to_delayed().ravel())
    if isinstance(value, dd.DataFrame | dd.Series):
        return list(value.to_delayed())
    if not name.endswith("_val"):
        raise TypeError(
            f"{name} is a {type(value).__name__}; scboost.dask needs Dask collections (dask.array.from_array, "
            "dask.dataframe.from_pandas), and scboost has estimators for data in memory."
        )
    return [delayed(value)]


def _joined(values: list[Any]) -> Any:
    """Return the samples of several partitions, one after the other."""
    from scipy import sparse

    if len(values) == 1:
        return values[0]
    if hasattr(values[0], "iloc"):
        return concat_tables(values)
    return sparse.vstack(values, format="csr") if sparse.issparse(values[0]) else np.concatenate(values)


# --- the fit ---------------------------------------------------------------------------------------------------------


class _Fit:
    """One fit on the workers of a client."""

    def __init__(self, client: Any, estimator: SCBoost, timeout: int) -> None:
        self._client, self._estimator, self._timeout = client, estimator, timeout

    def run(self, training: list[dict[str, Any]], validation: list[dict[str, Any]], resume: bytes | None) -> Outcome:
        threads = dict(sorted(self._client.nthreads().items()))
        if not threads:
            raise WorkerError("The Dask cluster has no workers.")
        addresses = list(threads)[: len(training)]
        n = len(addresses)
        futures = []
        with tracking(n, self._host(), self._timeout) as arguments:
            for rank, address in enumerate(addresses):
                estimator = clone(self._estimator)
                if estimator.n_jobs is None:
                    estimator.set_params(n_jobs=threads[address])
                own = [training[i] for i in _share(len(training), n, rank)]
                held_out = [validation[i] for i in _share(len(validation), n, rank)]
                # A worker without validation samples needs a table with their columns.
                template = validation[0] if validation and not held_out else None
                call = delayed(_fit_on_worker, pure=False)(
                    estimator, own, held_out, template, {**arguments, "dmlc_task_id": f"{rank:06d}"}, resume
                )
                futures.append(
                    self._client.compute(call, workers=[address], allow_other_workers=False, retries=0, priority=10)
                )
            try:
                return self._wait(futures, addresses)
            finally:
                self._client.cancel(futures)

    def _host(self) -> str:
        """Address of this process as the workers see it: the one it talks to the scheduler from."""
        from distributed.utils import get_ip

        address = self._client.scheduler.address
        host = address.split("://")[-1].rsplit(":", 1)[0]
        return "127.0.0.1" if address.startswith("inproc") else str(get_ip(host))

    def _wait(self, futures: list[Any], addresses: list[str]) -> Outcome:
        """Wait until all are done, one fails, or a worker is lost."""
        troubled_since: float | None = None
        present, next_look = self._client.nthreads(), 0.0
        while True:
            if all(future.status == "finished" for future in futures):
                outcome: Outcome = self._client.gather(futures[0])
                return outcome
            errors = [future.exception() for future in futures if future.status == "error"]
            if time.monotonic() > next_look:
                present, next_look = self._client.nthreads(), time.monotonic() + 0.5
            lost = [address for address in addresses if address not in present]
            if troubled_since is None and (errors or lost):
                troubled_since = time.monotonic()
            # The first error is often that another worker does not respond, whose own error follows.
            causes = [error for error in errors if not isinstance(error, WorkerError)]
            silent = _silent(futures, addresses, lost)
            if causes:
                raise causes[0]
            if troubled_since is not None and (not silent or time.monotonic() - troubled_since > _PATIENCE):
                self._raise(errors, lost, silent)
            time.sleep(0.05)

    @staticmethod
    def _raise(errors: list[Any], lost: list[str], silent: list[str]) -> None:
        error = errors[0] if errors else None
        who = f"Lost worker {', '.join(lost)}." if lost else f"No answer from worker {', '.join(silent)}."
        reason = "The fit ended." if error is None else str(error)
        raise WorkerError(f"{who} {reason} Resume from a checkpoint with fit(..., resume_from=path).") from error


def _silent(futures: list[Any], addresses: list[str], lost: list[str]) -> list[str]:
    """Return the connected workers that have not responded."""
    pairs = zip(addresses, futures, strict=True)
    return [address for address, future in pairs if future.status == "pending" and address not in lost]


def _share(n_parts: int, n_workers: int, rank: int) -> range:
    """Return the indices of the partitions of a worker: consecutive, and equally many for each worker."""
    return range(n_parts * rank // n_workers, n_parts * (rank + 1) // n_workers)


def _fit_on_worker(
    estimator: SCBoost,
    training: list[dict[str, Any]],
    validation: list[dict[str, Any]],
    template: dict[str, Any] | None,
    arguments: dict[str, Any],
    resume: bytes | None,
) -> Outcome | None:
    """Join the partitions of this worker and fit."""
    joined = {name: _joined([part[name] for part in training]) for name in training[0]}
    if validation:
        joined |= {name: _joined([part[name] for part in validation]) for name in validation[0]}
    elif template is not None:
        joined |= {name: value[:0] for name, value in template.items()}
    return fit_part(estimator, Part(**joined), arguments, resume)


def __getattr__(name: str) -> NoReturn:
    raise missing_estimator(__name__, name)
