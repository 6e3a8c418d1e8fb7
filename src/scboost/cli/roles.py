"""Columns of a table that are not features: targets, event indicator, query and sample weights."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost import SCBoostClassifier, SCBoostDistribution, SCBoostRanker, SCBoostRegressor, SCBoostSurvival
from scboost.cli.models import Model, check_no_missing, columns_of, has_text_labels, label_text, target_values
from scboost.cli.tables import Kinds, Source
from scboost.cli.text import DataError, TextFormat

ESTIMATORS: dict[str, type[Model]] = {
    "classification": SCBoostClassifier,
    "regression": SCBoostRegressor,
    "ranking": SCBoostRanker,
    "survival": SCBoostSurvival,
    "distribution": SCBoostDistribution,
}
"""Estimator of each task."""

# Options that belong to one task, and what the column is for.
_OWNERS = {"event": "survival", "group": "ranking", "distribution": "distribution"}
_NEEDED = {
    "survival": ("event", "which says whether the event was observed (1) or the time is censored (0)"),
    "ranking": ("group", "which holds the query of each row"),
}
_EVENTS = {"1": 1.0, "true": 1.0, "0": 0.0, "false": 0.0}


def task_name(text: str) -> str:
    """Return the name of a task; "rank" is short for "ranking"."""
    return {"rank": "ranking"}.get(text, text)


def task_of(model: Model) -> str:
    """Return the task of a model."""
    return next(task for task, estimator in ESTIMATORS.items() if isinstance(model, estimator))


def requested_task(arguments: argparse.Namespace) -> str:
    """Return the task given by the options of ``train``, "auto" if the target determines it; reject contradictions."""
    task = str(arguments.task)
    for option, owner in _OWNERS.items():
        if getattr(arguments, option) is not None:
            task = owner if task == "auto" else task
            if task != owner:
                raise DataError(f"--{option} belongs to --task {owner}, not to --task {task}")
    if task in _NEEDED and getattr(arguments, _NEEDED[task][0]) is None:
        option, what = _NEEDED[task]
        raise DataError(f"--task {task} needs --{option} COLUMN, {what}")
    if len(arguments.target) > 1 and task in _OWNERS.values():
        raise DataError(f"--task {task} takes one --target, got {', '.join(arguments.target)}")
    return task


@dataclass(frozen=True)
class Roles:
    """Columns that are not features.

    Attributes
    ----------
    task : str
        Name of the task; "auto" if it is not known yet.
    targets : tuple of str
        Targets: labels or values, times, or relevances.
    event, group, weight : str or None
        Event indicators of a survival model, queries of a ranking, sample weights.
    """

    task: str
    targets: tuple[str, ...]
    event: str | None = None
    group: str | None = None
    weight: str | None = None

    @classmethod
    def of(cls, task: str, arguments: argparse.Namespace) -> Roles:
        """Return the columns that the options name, each of them once."""
        roles = cls(task, tuple(arguments.target), arguments.event, arguments.group, arguments.weight)
        repeated = sorted({name for name in roles.columns if roles.columns.count(name) > 1})
        if repeated:
            raise DataError(f"column {repeated[0]!r} is named twice among --target, --event, --group and --weight")
        return roles

    @classmethod
    def of_model(cls, model: Model, arguments: argparse.Namespace) -> Roles:
        """Return the columns of the training table of a model, unless options name others."""
        fitted, task = model.__fitted_model__(), task_of(model)
        for option in ("event", "group"):
            if getattr(arguments, option) is not None and _OWNERS[option] != task:
                raise DataError(f"--{option} belongs to a {_OWNERS[option]} model; {arguments.model} is for {task}")
        known = list(fitted.target_names)
        others = {}
        if task in _NEEDED:
            option = _NEEDED[task][0]
            others[option] = getattr(arguments, option) or (known.pop() if len(known) == 2 else None)
            if others[option] is None:
                raise DataError(
                    f"{arguments.model} does not name the column {_NEEDED[task][1]}: give --{option} COLUMN"
                )
        targets = tuple(arguments.target or known)
        if not targets:
            raise DataError(f"{arguments.model} does not name its target column: give --target COLUMN")
        if len(targets) != fitted.n_targets:
            raise DataError(
                f"{arguments.model} has {fitted.n_targets} targets, but --target names {len(targets)}: "
                f"{', '.join(targets)}"
            )
        return cls(task, targets, others.get("event"), others.get("group"), arguments.weight)

    @classmethod
    def of_one_target(cls, model: Model, arguments: argparse.Namespace) -> Roles:
        """Return the same for a command whose ``--target`` names one column, and that takes no weights."""
        given = {**vars(arguments), "target": [arguments.target] if arguments.target else None, "weight": None}
        return cls.of_model(model, argparse.Namespace(**given))

    @property
    def columns(self) -> list[str]:
        """All columns, in the order in which they are read."""
        return [*self.targets, *(name for name in (self.event, self.group, self.weight) if name)]

    @property
    def stored(self) -> str | tuple[str, ...]:
        """The names that a model file keeps."""
        names = (*self.targets, *(name for name in (self.event, self.group) if name))
        return names[0] if len(names) == 1 else names

    def kinds(self, features: Kinds, *, text_target: bool = False) -> Kinds:
        """Add these columns to the kinds of features; the kind of a single label or value may be open."""
        numeric, labels = set(features.numeric), set(features.labels)
        if text_target:
            labels.update(self.targets)
        elif len(self.targets) > 1 or self.task not in {"auto", "classification", "regression"}:
            numeric.update(self.targets)
        numeric.update([self.weight] if self.weight else [])
        labels.update(name for name in (self.event, self.group) if name)
        return replace(features, numeric=frozenset(numeric), labels=frozenset(labels))

    def evaluated(self, model: Model, source: Source, table: Any, row: int) -> npt.NDArray[Any]:
        """Return the target of a chunk, whose first row has a number, as the estimator of a model takes it."""
        if len(self.targets) > 1:
            return several(table, self.targets)
        target = self.targets[0]
        values = target_values(model, source, target, table.column(target), row)
        if self.event:
            return np.column_stack([values, events(source, self.event, table.column(self.event), row)])
        return values

    def queries(self, source: Source, table: Any, row: int) -> npt.NDArray[Any] | None:
        """Return the query of each row as text; None if there are none."""
        if self.group is None:
            return None
        check_no_missing(source, self.group, table.column(self.group), row)
        return np.array([label_text(value) for value in table.column(self.group).to_pylist()], dtype=str)

    def weights(self, table: Any) -> npt.NDArray[Any] | None:
        """Return the sample weights; None if there are none."""
        return None if self.weight is None else np.asarray(table.column(self.weight).to_numpy())


def read_with_target(
    model: Model, path: str, roles: Roles, text: TextFormat
) -> tuple[Any, npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Read features, targets and queries of a table; no queries if the model is not a ranking."""
    source = Source(path, text)
    columns, kinds = columns_of(model, source)
    has_text = has_text_labels(model)
    kinds = roles.kinds(kinds, text_target=has_text)
    kinds = kinds if has_text else kinds.with_numeric(roles.targets)
    table = source.read([*columns, *roles.columns], kinds)
    first = source.first_row
    return table.select(columns), roles.evaluated(model, source, table, first), roles.queries(source, table, first)


def several(table: Any, targets: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return several targets, of shape (n, n_targets); missing values are NaN."""
    return np.column_stack([table.column(name).to_numpy().astype(np.float64) for name in targets])


def events(source: Source, name: str, column: Any, row: int) -> npt.NDArray[np.float64]:
    """Return event indicators as 0 and 1."""
    check_no_missing(source, name, column, row)
    texts = [label_text(value).strip().lower() for value in column.to_pylist()]
    wrong = next((i for i, text in enumerate(texts) if text not in _EVENTS), None)
    if wrong is not None:
        raise DataError(
            f"{source.path}: row {row + wrong}, column {name!r}: {column[wrong].as_py()!r}, where an event indicator "
            "is expected: 1 or true for an observed event, 0 or false for a censored time"
        )
    return np.array([_EVENTS[text] for text in texts])
