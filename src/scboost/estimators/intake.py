"""Intake: what users give, checked and turned into rows of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import _check_sample_weight, _num_samples, column_or_1d, validate_data

from scboost._arrays import ArrayLike, BoolArray, FloatArray, IntArray
from scboost.boosting.training import Rows
from scboost.boosting.workers import agreed, workers
from scboost.estimators.columns import Columns, Kind, is_table, readable_by_scikit_learn


def encode(estimator: Any, X: ArrayLike, *, fitting: bool, check_finite: bool = True, like: Any = None) -> Any:
    """Check rows and turn them into a float matrix (dense or CSR) with category codes.

    Parameters
    ----------
    estimator : estimator
        Whose ``_columns`` and ``_sparse`` are set when fitting, and read when not.
    X : array-like, sparse matrix or table of shape (n, d)
        Rows.
    fitting : bool
        Whether the columns are learnt from these rows.
    check_finite : bool, default=True
        Whether to look for infinite values.
    like : estimator, optional
        A fitted model whose categories are taken over when fitting.
    """
    dtype = np.float32 if estimator.estimator is None else np.float64
    allowed = estimator.__sklearn_tags__().input_tags
    finite = "allow-nan" if allowed.allow_nan else True
    checks: dict[str, Any] = {
        "ensure_all_finite": finite if check_finite else False,
        "ensure_min_samples": 0 if workers().size > 1 else 2 if fitting else 1,
    }
    columns: Columns | None = None
    if is_table(X):
        with agreed() if fitting else nullcontext():
            validate_data(estimator, readable_by_scikit_learn(X), reset=fitting, skip_check_array=True)
            columns = _columns(estimator, X, like) if fitting else estimator._columns or Columns([None] * X.shape[1])
        if fitting:
            columns = _agreed_columns(estimator, X, columns)
    elif fitting and workers().size > 1:
        _agreed_columns(estimator, X, None)
    with agreed() if fitting else nullcontext():
        matrix = _matrix(estimator, X, columns, dtype, checks, accepts_sparse=allowed.sparse, fitting=fitting)
    if fitting:
        if dtype == np.float32:
            check_size(matrix)
        estimator._columns = columns if columns is not None and columns.categorical is not None else None
        estimator._sparse = sparse.issparse(matrix)
    return _stored_as_in_fit(matrix, as_sparse=estimator._sparse)


def _matrix(
    estimator: Any,
    X: Any,
    columns: Columns | None,
    dtype: npt.DTypeLike,
    checks: dict[str, Any],
    *,
    accepts_sparse: bool,
    fitting: bool,
) -> Any:
    """Rows as numbers; columns are None if X is no table."""
    with np.errstate(invalid="ignore"):  # scikit-learn adds up all values, which may pass both infinities
        if columns is not None:
            return check_array(columns.encode(X, dtype), estimator=estimator, input_name="X", **checks)
        if not fitting and estimator._columns is not None:
            raise TypeError(
                f"X is a {type(X).__name__} but the model was fitted on a table with categorical columns; "
                "give a table with the same columns."
            )
        types = [dtype, np.float32, np.float64]
        accepted = "csr" if accepts_sparse else False
        return validate_data(estimator, X, reset=fitting, accept_sparse=accepted, dtype=types, **checks)


def _agreed_columns(estimator: Any, X: Any, own: Columns | None) -> Columns | None:
    """Columns with the categories of all workers, which must have the same names and kinds of columns."""
    others = workers()
    if others.size == 1:
        return own
    names = None if own is None else list(getattr(estimator, "feature_names_in_", range(X.shape[1])))
    shape = "table" if own is not None else "sparse matrix" if sparse.issparse(X) else "array"
    found = others.gather((shape, X.shape[1], names, own, None if own is None else own.kinds(X)))
    for rank, (kind, n_columns, others_names, _, _) in enumerate(found):
        first = found[0]
        if (kind, n_columns, others_names) != first[:3]:
            raise ValueError(
                f"Partitions of X differ: worker 0 has a {first[0]} of {first[1]} columns {first[2] or ''}, worker "
                f"{rank} a {kind} of {n_columns} columns {others_names or ''}."
            )
    return None if own is None else Columns.joined(names or [], [part[3:] for part in found])


def _columns(estimator: Any, X: Any, like: Any) -> Columns:
    """Return the columns of a model to go on from where it has categories, and else those of the rows."""
    known: Columns | None = getattr(like, "_columns", None)
    if known is not None and len(known.categories) == estimator.n_features_in_:
        return known
    return Columns.learn(X)


def learn_columns(
    estimator: Any, X: Any, known: tuple[Columns, list[Kind]] | None, like: Any
) -> tuple[Columns, list[Kind]]:
    """Return the columns of a batch of a table, joined with those of the batches before it, and their kinds."""
    columns = _columns(estimator, X, like)
    kinds = columns.kinds(X)
    if known is None:
        return columns, kinds
    names = list(getattr(estimator, "feature_names_in_", range(X.shape[1])))
    joined = Columns.joined(names, [known, (columns, kinds)])
    return joined, [now if before == "empty" else before for before, now in zip(known[1], kinds, strict=True)]


def check_size(matrix: Any, name: str = "X") -> None:
    """Refuse numbers that XGBoost's bins cannot hold."""
    values = matrix.data if hasattr(matrix, "indptr") else matrix
    largest = max(
        float(np.fmax.reduce(values, axis=None, initial=0)), -float(np.fmin.reduce(values, axis=None, initial=0))
    )
    limit = float(np.finfo(np.float32).max) / 2  # XGBoost puts the last bin of a column at twice the largest value
    if largest > limit:
        raise ValueError(
            f"{name} has a value of size {largest:.3g}; the trees hold numbers up to {limit:.3g}: rescale it."
        )


def _stored_as_in_fit(matrix: Any, *, as_sparse: bool) -> Any:
    """Give equal rows equal meaning, sparse or dense: where the model saw sparse rows, zeros are missing."""
    is_sparse: bool = sparse.issparse(matrix)
    if not as_sparse:
        return matrix.toarray() if is_sparse else matrix
    if not is_sparse:
        return sparse.csr_matrix(matrix)
    if not np.all(matrix.data):
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def target_vector(y: ArrayLike, X: Any, name: str = "y") -> npt.NDArray[Any]:
    """Return a one-dimensional target of the length of X, without missing values."""
    if y is None:
        raise ValueError(f"This estimator requires {name} to be passed, but the target {name} is None.")
    y = column_or_1d(y, warn=True)
    if len(y) != X.shape[0]:
        raise ValueError(f"{name} has {len(y)} entries but X has {X.shape[0]} rows.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"Input {name} contains NaN or infinity; every row needs a finite target.")
    if y.dtype.kind == "O" and any(_is_missing(v) for v in y):
        raise ValueError(f"Input {name} contains NaN or None; every row needs a label.")
    return np.asarray(y)


def _is_missing(value: Any) -> bool:
    # pandas.NA answers no comparison with True or False; NaN differs from itself.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)  # noqa: PLR0124


def numbers(y: npt.NDArray[Any], name: str) -> FloatArray:
    """Return a target as numbers, or say that it is none."""
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers for regression, got {y.dtype} ({error}).") from error


def without_weightless(X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[Any, Any, Any, Any, IntArray | None]:
    """Leave out rows of weight 0, so that not even their categories are learnt, and return the numbers of the others.

    What is not in order is returned as it is: :func:`make_rows` says what is wrong with it.
    """
    weight = np.asarray(sample_weight) if sample_weight is not None else np.ones(1)
    if weight.ndim != 1 or weight.dtype.kind not in "biuf" or weight.all() or not weight.any():
        return X, y, sample_weight, groups, None
    if any(_num_samples(given) != len(weight) for given in (X, y, groups) if given is not None):
        return X, y, sample_weight, groups, None
    kept = np.flatnonzero(weight)
    if len(kept) < 2 and workers().size == 1:
        raise ValueError(f"sample_weight is positive for {len(kept)} of {len(weight)} rows; at least 2 need weight.")
    X, y, groups = (None if given is None else _safe_indexing(given, kept) for given in (X, y, groups))
    return X, y, weight[kept], groups, kept


# Weights are float32 in XGBoost, and so are their products with gradients.
_LARGEST_WEIGHT = 1e30
_WEIGHT_RATIO = 1e15


def make_rows(X: Any, y: FloatArray, sample_weight: ArrayLike | None, name: str = "sample_weight") -> Rows:
    """Return rows with checked weights; those with weight 0 are left out, as if they had not been given."""
    if sample_weight is None:
        return Rows(X, y, None)
    weight = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
    if workers().size > 1 and not weight.any():  # other workers may have rows with weight
        return Rows(X, y, weight).take(np.flatnonzero(weight))
    if weight.min() < 0:
        raise ValueError(f"Negative values in {name}: the smallest is {weight.min():g}; weights must be >= 0.")
    if not weight.any():
        raise ValueError(f"{name} is zero for every row; at least one of the weights must be non-zero.")
    smallest, largest = float(weight[weight > 0].min()), float(weight.max())
    if largest > _LARGEST_WEIGHT or largest / smallest > _WEIGHT_RATIO:
        raise ValueError(
            f"{name} runs from {smallest:g} to {largest:g}; allowed are weights up to {_LARGEST_WEIGHT:g} whose ratio "
            f"is at most {_WEIGHT_RATIO:g}."
        )
    rows = Rows(X, y, weight)
    return rows if weight.all() else rows.take(np.flatnonzero(weight))


def used_groups(groups: ArrayLike, X: Any, sample_weight: ArrayLike | None) -> npt.NDArray[Any]:
    """Return the groups of the rows that have weight, which are those that :func:`make_rows` keeps."""
    groups = np.asarray(groups)
    if groups.shape != (X.shape[0],):
        raise ValueError(f"groups must have shape ({X.shape[0]},), one for each row of X, got {groups.shape}.")
    return np.asarray(groups if sample_weight is None else groups[np.asarray(sample_weight) != 0])


def monotone_signs(given: Any, n_columns: int, names: Sequence[Any] | None, categorical: BoolArray | None) -> Any:
    """Return -1, 0 or 1 for each column."""
    if isinstance(given, Mapping):
        positions = _positions(names, "monotone_constraints")
        unknown = [key for key in given if key not in positions]
        if unknown:
            raise ValueError(f"monotone_constraints names unknown columns {unknown!r}; X has {list(positions)!r}.")
        signs = np.zeros(n_columns)
        for key, sign in given.items():
            signs[positions[key]] = sign
    else:
        signs = np.asarray(given)
    if signs.shape != (n_columns,) or not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError(
            f"monotone_constraints must give -1, 0 or 1 for each of the {n_columns} columns, got {given!r}."
        )
    if categorical is not None and (bad := np.flatnonzero((signs != 0) & categorical)).size:
        raise ValueError(f"monotone_constraints on categorical column {int(bad[0])}: categories have no order.")
    return tuple(int(s) for s in signs)


def interaction_groups(given: Any, n_columns: int, names: Sequence[Any] | None) -> list[list[int]]:
    """Return groups of column numbers."""
    groups = []
    for group in given:
        if not isinstance(group, Sequence | np.ndarray) or isinstance(group, str):
            raise TypeError(f"interaction_constraints must be a list of groups, each a list of columns, got {given!r}.")
        if any(isinstance(c, str) for c in group):
            positions = _positions(names, "interaction_constraints")
            unknown = [c for c in group if c not in positions]
            if unknown:
                raise ValueError(f"interaction_constraints names unknown columns {unknown!r}.")
            groups.append([positions[c] for c in group])
        else:
            groups.append([int(c) for c in group])
        if not all(0 <= c < n_columns for c in groups[-1]):
            raise ValueError(
                f"interaction_constraints must hold column numbers from 0 to {n_columns - 1}, got {group!r}."
            )
    return groups


def _positions(names: Sequence[Any] | None, parameter: str) -> dict[Any, int]:
    if names is None:
        raise ValueError(f"{parameter} refers to columns by name, but X has no column names; use column numbers.")
    return {name: i for i, name in enumerate(names)}
