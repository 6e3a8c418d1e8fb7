"""Tables of any library (pandas, polars, PyArrow, ...), read through narwhals.

A table becomes a :class:`Table`: column names and narwhals series. Everything that narwhals does not know but that
exports the Arrow C stream (PyArrow record batches and readers, DuckDB relations) is read through PyArrow. What remains
specific to a library is how a column becomes numbers, instants or category codes, the functions at the end of this
module. An array or list that holds strings or dates is a table without column names.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse

Kind = Literal["number", "category", "ordinal", "date", "empty"]
"""Kind of a column: numeric or boolean, categorical, ordered categorical, dates, or without any value and type."""

Series: TypeAlias = "nw.Series[Any] | npt.NDArray[np.object_] | npt.NDArray[np.datetime64]"
FloatArray = npt.NDArray[np.floating]
_DATES = dt.date | np.datetime64  # a datetime, a pandas.Timestamp and pandas.NaT are dates, too


@dataclass(frozen=True)
class Table:
    """Columns of a table, by position: names may repeat.

    Attributes
    ----------
    names : tuple
        Column names.
    columns : tuple of narwhals.Series or ndarray of objects
        Values.
    n_rows : int
        Number of rows.
    """

    names: tuple[Hashable, ...]
    columns: tuple[Series, ...]
    n_rows: int

    def __iter__(self) -> Iterator[tuple[Hashable, Series]]:
        return zip(self.names, self.columns, strict=True)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Column names if all are strings, None if none is."""
        kinds = sorted({type(name).__name__ for name in self.names if not isinstance(name, str)})
        if not kinds:
            return tuple(str(name) for name in self.names) or None
        if not any(isinstance(name, str) for name in self.names):
            return None
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{['str', *kinds]} as feature name / column name types. If you want feature names to be stored and "
            "validated, you must convert them all to strings, by using X.columns = X.columns.astype(str) for example."
        )


def materialize(X: Any) -> Any:
    """Return X, or the PyArrow table of an Arrow stream, which may be read only once."""
    if isinstance(X, np.ndarray | list | tuple) or sparse.issparse(X) or not hasattr(X, "__arrow_c_stream__"):
        return X
    if nw.dependencies.is_into_series(X) or nw.dependencies.is_into_dataframe(X):
        return X
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            f"X is a {type(X).__name__}, which is read through the Arrow C stream interface; this needs PyArrow: "
            "pip install pyarrow."
        ) from error
    return pa.table(X)


def as_table(X: Any, *, objects: bool = False) -> Table | None:
    """Return the columns of a table or of an array with strings or dates; None for anything else.

    Parameters
    ----------
    X : any
        What the user gave.
    objects : bool, default=False
        Whether an array of objects is a table even if none of them is a string or a date.

    Raises
    ------
    TypeError
        If X is a lazy frame.
    """
    if isinstance(X, np.ndarray | list | tuple):
        return _of_array(X, objects=objects)
    if sparse.issparse(X) or nw.dependencies.is_into_series(X):
        return None
    if nw.dependencies.is_polars_lazyframe(X):
        raise TypeError("X is a polars LazyFrame, which has not been computed; call its collect() first.")
    if nw.dependencies.is_pandas_like_dataframe(X):
        columns = tuple(_of_pandas(X.iloc[:, j]) for j in range(X.shape[1]))
        return Table(tuple(X.columns), columns, len(X))
    if nw.dependencies.is_polars_dataframe(X):
        return Table(tuple(X.columns), tuple(nw.from_native(X, eager_only=True).iter_columns()), len(X))
    X = materialize(X)
    if not nw.dependencies.is_pyarrow_table(X):
        return None
    columns = tuple(nw.from_native(column, series_only=True) for column in X.columns)
    return Table(tuple(X.schema.names), columns, X.num_rows)


def _of_array(X: npt.NDArray[Any] | list[Any] | tuple[Any, ...], *, objects: bool) -> Table | None:
    """Columns of an array or list with strings, dates or, if allowed, with any other objects; else None."""
    if isinstance(X, np.ma.MaskedArray):
        return None
    if not isinstance(X, np.ndarray):
        try:
            kind = np.asarray(X).dtype.kind
            X = np.asarray(X, dtype=object) if kind in "OUT" else np.asarray(X) if kind == "M" else np.empty(0)
        except ValueError:  # rows of several lengths
            return None
    if X.ndim != 2 or X.dtype.kind not in "OUTM":
        return None
    if X.dtype.kind == "M":
        return Table(tuple(range(X.shape[1])), tuple(X.T), len(X))
    if X.dtype.kind == "O" and not objects and not any(isinstance(value, str | _DATES) for value in X.flat):
        return None
    if X.dtype.kind != "O":
        _refuse_numbers_as_strings(X)
    columns = tuple(X[:, j].astype(object) for j in range(X.shape[1]))
    return Table(tuple(range(X.shape[1])), columns, len(X))


def _refuse_numbers_as_strings(X: npt.NDArray[Any]) -> None:
    """Refuse arrays of strings with columns of numbers, which NumPy makes of arrays that mix both."""
    for j in range(X.shape[1]):
        try:
            X[:, j].astype(np.float64)
        except ValueError:
            continue
        if len(X):
            raise ValueError(
                f"X is an array with dtype {X.dtype} whose column {j} holds numbers written as strings "
                f"({str(X[0, j])!r}). Pass a table or an array with dtype object (np.array(..., dtype=object)), in "
                "which numbers are numbers and strings are categories."
            )


def _of_pandas(column: Any) -> nw.Series[Any]:
    """Column of a pandas-like frame; Arrow's own where the frame only wraps it, because pandas cannot factorize all."""
    if type(column.dtype).__name__ == "ArrowDtype":
        import pyarrow as pa

        return nw.from_native(pa.chunked_array([pa.array(column)]), series_only=True)
    return nw.from_native(column, series_only=True)


def kind_of(name: Hashable, column: Series) -> Kind:
    """Whether a column holds numbers, categories, dates or nothing at all.

    Raises
    ------
    TypeError
        If it holds anything else, such as durations or lists.
    """
    if isinstance(column, np.ndarray):
        return "date" if column.dtype.kind == "M" else _kind_of_objects(name, column.astype(object, copy=False))
    native = column.to_native()
    if column.implementation.is_pandas_like():
        kind, dtype = _pandas_kind(native, column.dtype), native.dtype
    else:
        dtype = native.type if column.implementation.is_pyarrow() else native.dtype
        kind = "empty" if str(dtype).lower() == "null" else _narwhals_kind(column.dtype, dtype)
    if kind is None:
        if _is_span(column):
            raise TypeError(
                f"Column {name!r} has type {dtype}: durations and times of day are not features. Convert it to a "
                f"number such as hours (in pandas X[{name!r}] / pd.Timedelta(hours=1) for durations), or leave it out."
            )
        raise TypeError(
            f"Column {name!r} has type {dtype} and values that are neither numbers, booleans, dates, strings nor "
            "categories; convert it to one of these, or leave it out."
        )
    return kind


def _kind_of_objects(name: Hashable, column: npt.NDArray[np.object_]) -> Kind:
    values = [value for value in column if not is_missing(value)]
    if not values:
        return "empty"
    if all(isinstance(value, str) for value in values):
        return "category"
    if all(isinstance(value, _DATES) for value in values):
        return "date"
    odd = next((value for value in values if not isinstance(value, Real | Decimal | np.bool_)), None)
    if odd is None:
        return "number"
    raise TypeError(
        f"Column {name!r} has the value {odd!r:.60} of type {type(odd).__name__} among others; a column must hold "
        "either numbers and booleans, strings, or dates."
    )


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas.NA."""
    # pandas.NA answers no comparison with True or False; NaN differs from itself.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)  # noqa: PLR0124


def _is_span(column: nw.Series[Any]) -> bool:
    """Whether a column holds durations or times of day."""
    if column.dtype in (nw.Duration, nw.Time):
        return True
    native = column.to_native()
    return column.implementation.is_pandas_like() and _inferred(native) in {"time", "timedelta", "timedelta64"}


def _inferred(column: Any) -> str:
    """Type of the objects in a column of pandas; empty if it holds no objects."""
    if not (isinstance(column.dtype, np.dtype) and column.dtype.kind == "O"):
        return ""
    from pandas.api.types import infer_dtype

    return str(infer_dtype(column, skipna=True))


def _narwhals_kind(dtype: Any, native: Any) -> Kind | None:
    if dtype.is_numeric() or dtype == nw.Boolean:
        return "number"
    if dtype in (nw.Date, nw.Datetime):
        return "date"
    return _category(native) if dtype in (nw.Categorical, nw.Enum, nw.String) else None


def _pandas_kind(column: Any, dtype: Any) -> Kind | None:
    inferred = _inferred(column)
    if not inferred:
        if dtype in (nw.Categorical, nw.Enum, nw.String):
            return _category(column.dtype)
        if dtype == nw.Datetime:
            return "date"
        return "number" if column.dtype.kind in "biuf" else None
    if inferred in {"integer", "floating", "mixed-integer-float", "decimal", "boolean"}:
        return "number"
    if inferred in {"date", "datetime", "datetime64"}:
        return "date"
    return {"string": "category", "empty": "empty"}.get(inferred)  # type: ignore[return-value]


def _category(dtype: Any) -> Kind:
    """Kind of a categorical column: ordered categories of pandas and Arrow are ordinal."""
    return "ordinal" if getattr(dtype, "ordered", False) else "category"


# --- values, by library ----------------------------------------------------------------------------------------------


def numbers(column: Series) -> FloatArray:
    """Values of a numeric column as float64; missing ones are NaN."""
    if isinstance(column, np.ndarray):
        return np.array([np.nan if is_missing(value) else float(value) for value in column])
    native = column.to_native()
    if column.implementation.is_pandas_like():
        return np.asarray(native.to_numpy(dtype=np.float64, na_value=np.nan))
    if column.implementation.is_polars():
        return np.asarray(column.cast(nw.Float64).to_numpy())
    return np.asarray(native.cast("float64", safe=False).to_numpy())


def instants(column: Series) -> npt.NDArray[np.datetime64]:
    """Values of a column of dates in microseconds; those with a time zone in UTC, missing ones NaT."""
    if isinstance(column, np.ndarray):
        return column.astype("datetime64[us]") if column.dtype.kind == "M" else _instants_of_objects(column)
    native = column.to_native()
    if column.implementation.is_pandas_like():
        if native.dtype.kind == "O":
            return _instants_of_objects(native.to_numpy())
        zoned = getattr(native.dtype, "tz", None) is not None
        plain = native.dt.tz_convert("UTC").dt.tz_localize(None) if zoned else native
        return np.asarray(plain.to_numpy(), dtype="datetime64[us]")
    if column.implementation.is_polars():
        import polars as pl

        if getattr(native.dtype, "time_zone", None) is not None:
            native = native.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return np.asarray(native.cast(pl.Datetime("us")).to_numpy(), dtype="datetime64[us]")
    import pyarrow as pa

    return np.asarray(native.cast(pa.timestamp("us"), safe=False).to_numpy(), dtype="datetime64[us]")


def _instants_of_objects(values: npt.NDArray[Any]) -> npt.NDArray[np.datetime64]:
    found = np.full(len(values), np.datetime64("NaT", "us"))
    for i, value in enumerate(values):
        if is_missing(value):
            continue
        zoned = isinstance(value, dt.datetime) and value.tzinfo is not None
        found[i] = np.datetime64(value.astimezone(dt.timezone.utc).replace(tzinfo=None) if zoned else value, "us")
    return found


def ordered_levels(column: Series) -> list[Any]:
    """Categories of an ordered categorical column in their order, those without a row included."""
    if isinstance(column, np.ndarray):
        raise TypeError("an array has no ordered categories")
    native = column.to_native()
    if column.implementation.is_pandas_like():
        return list(native.cat.categories)
    chunks = native.unify_dictionaries().chunks
    return chunks[0].dictionary.to_pylist() if chunks else []


def factorize(column: Series) -> tuple[list[Any], npt.NDArray[np.intp]]:
    """Distinct values of a categorical column, and the position of each row's value among them (-1 if missing)."""
    if isinstance(column, np.ndarray):
        return _factorize_array(column)
    native = column.to_native()
    if column.implementation.is_pandas_like():
        try:
            factor = native.astype("category").cat
        except UnicodeEncodeError:  # pandas 3.1 holds no lone surrogates: the caller names the category
            return _factorize_array(native.to_numpy())
        levels, codes = list(factor.categories), factor.codes.to_numpy().astype(np.intp)
        return (levels, codes) if hasattr(native, "cat") else _without_merged(native, levels, codes)
    if column.implementation.is_polars():
        return _factorize_polars(native)
    return _factorize_arrow(native)


def _factorize_array(values: npt.NDArray[Any]) -> tuple[list[Any], npt.NDArray[np.intp]]:
    codes: dict[Any, int] = {}
    places = [-1 if is_missing(value) else codes.setdefault(value, len(codes)) for value in values]
    return list(codes), np.array(places, dtype=np.intp)


def _without_merged(
    column: Any, levels: list[Any], codes: npt.NDArray[np.intp]
) -> tuple[list[Any], npt.NDArray[np.intp]]:
    """Return a factorization of strings by pandas, made again if it merged some: pandas compares up to a NUL."""
    values, present = column.to_numpy(dtype=object), codes >= 0
    if np.array_equal(values[present], np.array([*levels, None], dtype=object)[codes[present]]):
        return levels, codes
    return _factorize_array(values)


def _factorize_polars(column: Any) -> tuple[list[Any], npt.NDArray[np.intp]]:
    import polars as pl

    texts = column.cast(pl.String)
    levels = texts.drop_nulls().unique().to_list()
    codes = texts.replace_strict(levels, range(len(levels)), default=-1, return_dtype=pl.Int64)
    return levels, codes.to_numpy().astype(np.intp)


def _factorize_arrow(column: Any) -> tuple[list[Any], npt.NDArray[np.intp]]:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    factor = column.combine_chunks().dictionary_encode()
    return factor.dictionary.to_pylist(), factor.indices.fill_null(-1).to_numpy().astype(np.intp)
