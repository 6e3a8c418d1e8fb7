"""Models and the columns of files that they read."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost import load_model
from scboost.cli.tables import DataError, Kinds, Source


def read_model(arguments: argparse.Namespace) -> Any:
    """Read the model that the arguments name, with the number of threads that they ask for."""
    try:
        model = load_model(arguments.model)
    except ValueError as error:
        raise DataError(f"{arguments.model}: {error}") from error
    return model.set_params(n_jobs=arguments.threads)


def columns_of(model: Any, source: Source) -> tuple[list[str], Kinds]:
    """Return the columns of a file that a model reads, and their kinds.

    A model that was fitted without column names takes the columns of the file by their order.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        columns = [name for name in source.names if name != getattr(model, "target_name_", None)]
        if len(columns) != model.n_features_in_:
            raise DataError(
                f"{source.path}: the model knows {model.n_features_in_} columns without names, the file has "
                f"{len(columns)}"
            )
    else:
        columns = [str(name) for name in names]
    known = model.__fitted_model__().encoder.categorical
    is_category = np.zeros(len(columns), bool) if known is None else known
    categorical = frozenset(name for name, c in zip(columns, is_category, strict=True) if c)
    return columns, Kinds(numeric=frozenset(columns) - categorical, categorical=categorical)


def target_of(model: Any, arguments: argparse.Namespace) -> str:
    """Return the name of the target column."""
    name = arguments.target or getattr(model, "target_name_", None)
    if name is None:
        raise DataError(f"{arguments.model} does not say which column it predicts: give --target COLUMN")
    return str(name)


def with_target(model: Any, kinds: Kinds, target: str, weight: str | None) -> Kinds:
    """Add target and weights to the kinds of the columns."""
    numeric = kinds.numeric | ({weight} if weight else set())
    if hasattr(model, "classes_") and model.classes_.dtype.kind not in "iuf":
        return Kinds(numeric, kinds.categorical, kinds.labels | {target})
    return Kinds(numeric | {target}, kinds.categorical, kinds.labels)


def target_values(model: Any, source: Source, name: str, column: Any, first_row: int) -> npt.NDArray[Any]:
    """Return the target as numbers, or as labels that the model knows, one a row."""
    check_no_gap(source, name, column, first_row)
    if not hasattr(model, "classes_"):
        return np.asarray(column.to_numpy())
    by_text = {_label_text(label): label for label in model.classes_.tolist()}
    factor = column.combine_chunks().dictionary_encode()
    codes = factor.indices.to_numpy()
    levels = [_label_text(level) for level in factor.dictionary.to_pylist()]
    for code, text in enumerate(levels):
        if text not in by_text:
            raise DataError(
                f"{source.path}: row {first_row + int(np.argmax(codes == code))}, column {name!r}: {text!r} is none of "
                f"the model's classes {model.classes_.tolist()}"
            )
    return np.asarray(np.array([by_text[text] for text in levels], dtype=model.classes_.dtype)[codes])


def _label_text(label: Any) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def check_no_gap(source: Source, name: str, column: Any, first_row: int) -> None:
    """Raise DataError that names the first row without a value."""
    gaps = column.is_null(nan_is_null=True).to_numpy()
    if gaps.any():
        row = first_row + int(np.argmax(gaps))
        raise DataError(f"{source.path}: row {row}, column {name!r}: no value, but every row needs one")
