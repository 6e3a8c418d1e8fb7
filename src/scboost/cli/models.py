"""Models, and the columns of tables that they read."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost import (
    SCBoostClassifier,
    SCBoostDistribution,
    SCBoostRanker,
    SCBoostRegressor,
    SCBoostSurvival,
    load_model,
)
from scboost.cli.console import warn
from scboost.cli.output import MODEL_ENDINGS
from scboost.cli.tables import Kinds, Source, format_of, pyarrow
from scboost.cli.text import DataError

Model = SCBoostClassifier | SCBoostRegressor | SCBoostRanker | SCBoostSurvival | SCBoostDistribution


def read_model(path: str, data: str | None = None, threads: int | None = None) -> Model:
    """Read a model file.

    Parameters
    ----------
    path : str
        The file.
    data : str, optional
        The table of the same command, to notice swapped arguments.
    threads : int, optional
        Number of threads for predictions; all cores by default.
    """
    if data is not None and Path(data).suffix.lower() in MODEL_ENDINGS and _is_table(path):
        raise DataError(f"MODEL is {path!r} and DATA is {data!r}: the two seem to be swapped, MODEL comes first")
    try:
        model: Model = load_model(path)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    return model.set_params(n_jobs=threads)


def _is_table(path: str) -> bool:
    try:
        format_of(Path(path))
    except DataError:
        return False
    return True


def columns_of(model: Model, source: Source) -> tuple[list[str], Kinds]:
    """Return the columns of a table that a model reads, and their kinds.

    A model that was fitted without feature names takes the columns in their order.
    """
    encoder = model.__fitted_model__().encoder
    if encoder.feature_names is None:
        columns = [name for name in source.names if name not in model.__fitted_model__().target_names]
        if len(columns) != encoder.n_features:
            raise DataError(
                f"{source.path}: the model was fitted on {encoder.n_features} features without names, the table has "
                f"{len(columns)} columns"
            )
    else:
        columns = list(encoder.feature_names)
        source.require(columns)
    by_kind: dict[str, set[str]] = {kind: set() for kind in ("number", "category", "ordinal", "date")}
    for name, kind in zip(columns, encoder.column_kinds, strict=True):
        by_kind[kind].add(name)
    return columns, Kinds(
        numeric=frozenset(by_kind["number"]),
        categorical=frozenset(by_kind["category"] | by_kind["ordinal"]),
        dates=frozenset(by_kind["date"]),
    )


class UnseenCategories:
    """Counts categories that the model does not know, which it treats as missing values.

    Parameters
    ----------
    model : estimator
        Fitted.
    columns : list of str
        Names of its features.
    """

    def __init__(self, model: Model, columns: list[str]) -> None:
        known = model.__fitted_model__().encoder.categories or ()
        self._known = {name: set(texts) for name, texts in zip(columns, known, strict=False) if texts is not None}
        self._unseen: dict[str, Counter[str]] = {name: Counter() for name in self._known}
        self._n = 0

    def add(self, table: Any) -> None:
        """Count the values of a chunk."""
        self._n += len(table)
        types = pyarrow().types
        for name, known in self._known.items():
            column = table.column(name)
            if types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            for entry in column.value_counts().to_pylist():
                if entry["values"] is not None and (text := label_text(entry["values"])) not in known:
                    self._unseen[name][text] += entry["counts"]

    def report(self) -> None:
        """Warn about the columns that have unseen categories."""
        for name, found in self._unseen.items():
            if found:
                n = found.total()
                shown = ", ".join(repr(text) for text, _ in found.most_common(3))
                warn(
                    f"column {name!r}: {n:,} of {self._n:,} rows ({n / self._n:.2%}) have categories that were not "
                    f"seen in training and count as missing: {shown}{', ...' if len(found) > 3 else ''}"
                )


def require_labels_or_values(model: Model, arguments: argparse.Namespace) -> None:
    """Refuse a model whose target is not one column of class labels or values, before any table is read."""
    command = f"scboost {arguments.command}"
    if not isinstance(model, SCBoostClassifier | SCBoostRegressor):
        raise DataError(
            f"{arguments.model} is a {type(model).__name__}: {command} supports classification and regression"
        )
    model.__fitted_model__().require_one_target(command)


def require_compressible(model: Model, arguments: argparse.Namespace) -> None:
    """Refuse a model that cannot be compressed, before any table is read."""
    command = f"scboost {arguments.command}"
    if isinstance(model, SCBoostDistribution):
        raise DataError(
            f"{arguments.model} is a SCBoostDistribution: {command} supports classification, regression, ranking and "
            "survival analysis"
        )
    model.__fitted_model__().require_one_target(command)


def target_of(model: Model, arguments: argparse.Namespace) -> str:
    """Return the name of the target column of a model with one."""
    known = model.__fitted_model__().target_names
    name = arguments.target or (known[0] if known else None)
    if name is None:
        raise DataError(f"{arguments.model} does not name its target column: give --target COLUMN")
    return str(name)


def has_text_labels(model: Model) -> bool:
    """Whether the target of a model is read as text: classes that are not numbers."""
    return isinstance(model, SCBoostClassifier) and len(model.classes_) > 0 and model.classes_.dtype.kind not in "iuf"


def with_target(model: Model, kinds: Kinds, target: str, weight: str | None) -> Kinds:
    """Add target and weights to the kinds of the columns."""
    numeric = kinds.numeric | ({weight} if weight else set())
    if has_text_labels(model):
        return replace(kinds, numeric=numeric, labels=kinds.labels | {target})
    return replace(kinds, numeric=numeric | {target})


def target_values(model: Model, source: Source, name: str, column: Any, first_row: int) -> npt.NDArray[Any]:
    """Return the target as numbers, or as class labels that the model knows."""
    check_no_missing(source, name, column, first_row)
    if not isinstance(model, SCBoostClassifier):
        return np.asarray(column.to_numpy())
    by_text = {label_text(label): label for label in model.classes_.tolist()}
    factor = column.combine_chunks().dictionary_encode()
    codes = factor.indices.to_numpy()
    levels = [label_text(level) for level in factor.dictionary.to_pylist()]
    for code, text in enumerate(levels):
        if text not in by_text:
            raise DataError(
                f"{source.path}: row {first_row + int(np.argmax(codes == code))}, column {name!r}: {text!r} is none of "
                f"the model's classes {model.classes_.tolist()}"
            )
    return np.asarray(np.array([by_text[text] for text in levels], dtype=model.classes_.dtype)[codes])


def label_text(label: Any) -> str:
    """Text of a category or class label; 1.0 is 1, because a missing value turns integers into floats."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def check_no_missing(source: Source, name: str, column: Any, first_row: int) -> None:
    """Raise DataError that names the first row without a value."""
    missing = column.is_null(nan_is_null=True).to_numpy()
    if missing.any():
        row = first_row + int(np.argmax(missing))
        raise DataError(f"{source.path}: row {row}, column {name!r}: missing value, but every row needs one")
