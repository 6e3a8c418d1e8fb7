"""``scboost predict``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost import SCBoostClassifier, SCBoostDistribution, SCBoostRanker, SCBoostRegressor, SCBoostSurvival
from scboost.cli.console import Progress, add_model_and_data
from scboost.cli.models import Model, UnseenCategories, columns_of, read_model
from scboost.cli.output import Output, check_output
from scboost.cli.tables import Source, pyarrow
from scboost.cli.text import DataError, TextFormat

SUMMARY = "predict the rows of a table of any size"
EXAMPLES = (
    "scboost predict model.json new.csv -o predictions.csv",
    "scboost predict model.json new.parquet -o predictions.parquet --proba --keep customer_id",
    "scboost predict prices.ubj new.csv -o predictions.csv --interval 0.9",
    "scboost predict survival.json new.csv -o predictions.csv --time 30 --time 365 --quantile 0.5",
)

_NOUNS: dict[type[Model], str] = {
    SCBoostClassifier: "classifier",
    SCBoostRegressor: "regressor",
    SCBoostDistribution: "distribution model",
    SCBoostSurvival: "survival model",
    SCBoostRanker: "ranking model",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_and_data(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="table of predictions: .csv or .tsv (also compressed), .parquet, .feather or .arrow",
    )
    parser.add_argument("--proba", action="store_true", help="add the probability of each class")
    parser.add_argument(
        "--interval",
        type=float,
        metavar="COVERAGE",
        help="add the bounds of prediction intervals (regression, distribution) with this coverage, such as 0.9",
    )
    parser.add_argument(
        "--quantile",
        type=float,
        action="append",
        default=[],
        metavar="Q",
        help="add this quantile of the predicted distribution (distribution, survival); may be repeated",
    )
    parser.add_argument(
        "--time",
        type=float,
        action="append",
        default=[],
        metavar="T",
        help="add the probability that the event occurs after this time (survival); may be repeated",
    )
    parser.add_argument(
        "--keep", action="append", default=[], metavar="COLUMN", help="copy this column of DATA; may be repeated"
    )


def run(arguments: argparse.Namespace) -> int:
    """Predict chunk by chunk: memory does not grow with the table."""
    check_output(arguments.output, [arguments.model, arguments.data])
    model = read_model(arguments.model, arguments.data, arguments.threads)
    _check_options(model, arguments)
    source = Source(arguments.data, TextFormat.of(arguments))
    columns, kinds = columns_of(model, source)
    keep = list(dict.fromkeys(arguments.keep))
    new = list(_predictions(model, None, arguments))
    for name in keep:
        if name in new:
            raise DataError(
                f"--keep {name}: the output has a column of predictions with this name; rename that of DATA"
            )
    kept = [name for name in keep if name not in columns]
    kinds = replace(kinds, labels=frozenset(kept))
    unseen = UnseenCategories(model, columns)
    with Output(arguments.output) as output, Progress("rows predicted") as progress:
        for _, table in source.chunks([*columns, *kept], kinds):
            unseen.add(table)
            X = table.select(columns) if len(table) else None
            found = _predictions(model, X, arguments)
            output.write(pyarrow().table({**{name: table.column(name) for name in keep}, **found}))
            progress.add(len(table))
    unseen.report()
    return 0


def _check_options(model: Model, arguments: argparse.Namespace) -> None:
    """Refuse what the model cannot predict before any row is read."""
    supported: dict[str, tuple[type[Model], ...]] = {
        "proba": (SCBoostClassifier,),
        "interval": (SCBoostRegressor, SCBoostDistribution),
        "quantile": (SCBoostDistribution, SCBoostSurvival),
        "time": (SCBoostSurvival,),
    }
    for option, owners in supported.items():
        if getattr(arguments, option) not in (None, False, []) and not isinstance(model, owners):
            needed = " or ".join(f"a {_NOUNS[owner]}" for owner in owners)
            raise DataError(f"{arguments.model} is a {_NOUNS[type(model)]}: --{option} needs {needed}")
    wrong = next((time for time in arguments.time if not time >= 0), None)
    if wrong is not None:
        raise DataError(f"--time {wrong:g}: a time must be at least 0")
    shares = [("interval", arguments.interval), *(("quantile", q) for q in arguments.quantile)]
    for option, value in shares:
        if value is not None and not 0 < value < 1:
            raise DataError(f"--{option} {value:g}: must be between 0 and 1, such as 0.9")
    if arguments.interval is not None and isinstance(model, SCBoostRegressor):
        fitted = model.__fitted_model__()
        fitted.require_one_target("--interval")
        if fitted.conformal is None:
            raise DataError(
                f"{arguments.model} has no out-of-fold predictions, which --interval needs: train it without "
                "n_estimators, or call calibrate(X_cal, y_cal) in Python and save the model again"
            )


def _predictions(model: Model, X: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """Columns of predictions and what the options add; without rows if X is None."""
    found = {**_point_predictions(model, X, proba=arguments.proba), **_uncertainty(model, X, arguments)}
    return {name: pyarrow().array(column) for name, column in found.items()}


def _uncertainty(model: Model, X: Any, arguments: argparse.Namespace) -> dict[str, npt.NDArray[Any]]:
    """Columns of standard deviations, bounds of intervals, quantiles and survival probabilities."""
    names = {
        "std": ["std"] if isinstance(model, SCBoostDistribution) else [],
        "interval": ["lower", "upper"] if arguments.interval is not None else [],
        "quantile": [f"quantile_{q:g}" for q in arguments.quantile],
        "time": [f"survival_{time:g}" for time in arguments.time],
    }
    if X is None:
        return {name: np.zeros(0) for part in names.values() for name in part}
    values: list[npt.NDArray[Any]] = []
    if isinstance(model, SCBoostDistribution):
        predicted = model.predict_distribution(X)
        values = [predicted.std()]
        values += [*predicted.interval(arguments.interval).T] if names["interval"] else []
        values += [predicted.quantile(q) for q in arguments.quantile]
    elif isinstance(model, SCBoostSurvival):
        values = [model.predict_quantile(X, q) for q in arguments.quantile]
        values += [*model.predict_survival_function(X, arguments.time).T] if arguments.time else []
    elif isinstance(model, SCBoostRegressor) and names["interval"]:
        values = [*model.predict_interval(X, arguments.interval).T]
    return dict(zip([name for part in names.values() for name in part], values, strict=True))


def _point_predictions(model: Model, X: Any, *, proba: bool) -> dict[str, npt.NDArray[Any]]:
    """Columns of labels, probabilities, values or quantiles; without rows if X is None."""
    fitted = model.__fitted_model__()
    if fitted.n_targets > 1:
        method = model.predict_proba if proba and isinstance(model, SCBoostClassifier) else model.predict
        values = np.zeros((0, fitted.n_targets)) if X is None else method(X)
        names = fitted.target_names or tuple(map(str, range(fitted.n_targets)))
        kind = "probability" if proba else "prediction"
        return {f"{kind}_{name}": column for name, column in zip(names, values.T, strict=True)}
    if isinstance(model, SCBoostClassifier):
        labels = model.classes_.tolist()
        if not proba:
            return {"prediction": model.classes_[:0] if X is None else model.predict(X)}
        p = np.zeros((0, len(labels))) if X is None else model.predict_proba(X)
        columns = {f"probability_{label}": p[:, k] for k, label in enumerate(labels)}
        return {"prediction": model.classes_[p.argmax(axis=1)], **columns}
    if isinstance(model, SCBoostRegressor) and isinstance(model.quantile, list | tuple):
        values = np.zeros((0, len(model.quantile))) if X is None else model.predict(X)
        return {f"quantile_{q}": column for q, column in zip(model.quantile, values.T, strict=True)}
    return {"prediction": np.zeros(0) if X is None else model.predict(X)}
