"""Models as source code: one readable file in C99, JavaScript or SQL without dependencies.

Other tools, tested in November 2026 on models of XGBoost 3.2 format:

- **treelite 4.8 with tl2cgen 1.0** compiles SCBoost's trees to C with equal predictions. It takes categories as codes,
  without a lookup by name, and samples as an array of unions; for 20 trees of 64 leaves it writes 220 kB in two files
  and takes 1.4 times as long per sample. Use :func:`scboost.to_treelite` for its models. It writes no JavaScript or
  SQL.
- **m2cgen 0.10** (2022) stops with an error on every such model, because base scores are lists. It handles missing
  values, but has no categorical splits and writes no SQL.
- **xgb2sql 0.120 and xgboost2sql 0.1** write SQL from XGBoost's dumps. Both apply the logistic link to every model and
  lose the intercept, their code for categorical splits is not valid SQL, names are not quoted, and doubles are compared
  with float32 thresholds, which sends values next to a threshold the wrong way.
- **orbital 0.6** translates scikit-learn pipelines to SQL through ONNX; it raises NotImplementedError for splits whose
  missing values follow the condition, which trees of XGBoost have.

Models of other libraries are not exported here; :func:`scboost.to_onnx` and their own tools serve them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np

from scboost._arrays import FloatArray
from scboost._model.codegen import c, javascript, sql
from scboost._model.codegen.program import LinkName, Program, read_program
from scboost._model.fitted import FittedModel, HasFittedModel, fitted_model


def export_c(model: HasFittedModel, path: str | os.PathLike[str] | None = None, *, name: str = "model") -> str:
    """Export a fitted model to C99, as one header without dependencies.

    The header defines ``<name>_predict`` and, for classifiers, ``<name>_predict_proba``. Samples are arrays of doubles
    with NAN for missing values; ``<name>_category(feature, "text")`` gives the code of a category. Predictions are
    those of the model up to the rounding of float32 sums. With 20 trees of 64 leaves a prediction takes about
    0.26 microseconds.

    Parameters
    ----------
    model : SCBoostClassifier or SCBoostRegressor
        Fitted, with tree learners.
    path : path-like, optional
        File to write, usually ``model.h``.
    name : str, default="model"
        Prefix of all names in the header: a C identifier. Choose different ones to use several models in one program.

    Returns
    -------
    str
        The header.

    See Also
    --------
    export_js, export_sql : The same for JavaScript and for databases.
    to_onnx, to_treelite : For run times with many trees and many samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import scboost
    >>> X, y = load_iris(return_X_y=True)
    >>> header = scboost.export_c(scboost.SCBoostClassifier(n_estimators=2, random_state=0).fit(X, y), name="iris")
    >>> "void iris_predict_proba(const double *x, double *p)" in header
    True
    """
    return c.export_c(program_of(model, "export_c"), path, name)


def export_js(model: HasFittedModel, path: str | os.PathLike[str] | None = None) -> str:
    """Export a fitted model to JavaScript, as one ES module without dependencies.

    The module exports ``predict(sample)``, for classifiers also ``predictProba(sample)``, and ``rawScores``,
    ``features`` and ``classes``. A sample is an object with the features by name, or an array in the order of
    ``features``; categories are strings, null and NaN are missing values.

    Parameters
    ----------
    model : SCBoostClassifier or SCBoostRegressor
        Fitted, with tree learners.
    path : path-like, optional
        File to write, usually ``model.mjs``.

    Returns
    -------
    str
        The module.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import scboost
    >>> X, y = load_iris(return_X_y=True)
    >>> module = scboost.export_js(scboost.SCBoostClassifier(n_estimators=2, random_state=0).fit(X, y))
    >>> "export function predictProba(sample)" in module
    True
    """
    return javascript.export_js(program_of(model, "export_js"), path)


def export_sql(
    model: HasFittedModel,
    path: str | os.PathLike[str] | None = None,
    *,
    table: str | Sequence[str],
    dialect: Literal["duckdb", "postgresql", "sqlite"] = "duckdb",
    keep: Sequence[str] = (),
) -> str:
    """Export a fitted model to SQL, as one SELECT.

    The query has a column ``prediction``, for classifiers also ``probability_<class>`` for each class, or
    ``quantile_<q>`` for several quantiles. NULL and NaN are missing values; SQLite also takes strings in a numeric
    feature as missing. Integer categories may be stored as integers, floats or strings. The query can be used as it is,
    in ``CREATE VIEW ... AS`` or ``INSERT INTO ...``.

    Parameters
    ----------
    model : SCBoostClassifier or SCBoostRegressor
        Fitted on data with feature names, with tree learners.
    path : path-like, optional
        File to write, usually ``model.sql``.
    table : str or sequence of str
        Table or view with the features as columns, named as in ``model.model_feature_names_``: the parts of a date in
        place of the date. ``("schema", "table")`` for one in a schema.
    dialect : {"duckdb", "postgresql", "sqlite"}, default="duckdb"
        Database. SQLite needs its mathematical functions, which are built in since version 3.35.
    keep : sequence of str
        Columns of the table that the result repeats, such as a key.

    Returns
    -------
    str
        The query, with a semicolon at the end.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import scboost
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = scboost.SCBoostRegressor(n_estimators=2, random_state=0).fit(X, y)
    >>> query = scboost.export_sql(model, table="flowers", dialect="sqlite", keep=["id"])
    >>> print(query[query.rindex("SELECT"):])
    SELECT
        kept0 AS "id",
        raw0 AS prediction
    FROM scboost_raw;
    """
    program = program_of(model, "export_sql")
    if model.__fitted_model__().encoder.feature_names is None:
        raise ValueError(
            "export_sql needs the names of the columns, but the model was fitted without feature names; fit it on a "
            "DataFrame."
        )
    return sql.export_sql(program, path, table, dialect, keep)


def program_of(model: HasFittedModel, function: str) -> Program:
    """Read a fitted estimator.

    Parameters
    ----------
    model : SCBoostClassifier or SCBoostRegressor
        Fitted.
    function : str
        Caller, for error messages.
    """
    fitted = fitted_model(model, function)
    fitted.require_one_target(function)
    fitted.values_only(function)
    ensemble, encoder = fitted.trees(function), fitted.encoder
    return read_program(
        ensemble.centred_document(),
        ensemble.intercept,
        _link(fitted, function),
        features=encoder.features.names,
        categories=encoder.features.categories,
        whole=encoder.integer_features,
        classes=None if fitted.classes is None else list(fitted.classes),
        quantiles=getattr(fitted.loss, "quantiles", ()) if ensemble.n_outputs > 1 else (),
        zero_is_missing=encoder.sparse,
    )


def _link(fitted: FittedModel, function: str) -> LinkName:
    """Return the name of the link of a model; raise an error for user-defined links."""
    n_outputs = fitted.ensemble.n_outputs
    raw = np.linspace(-3.0, 2.0, 4 * n_outputs).reshape(4, n_outputs).T[::-1].copy()
    found = np.asarray(fitted.loss.link.inverse(raw)).reshape(4, -1)
    second = 1 / (1 + np.exp(-raw[0]))
    parts = np.exp(raw)
    expected: dict[LinkName, FloatArray] = {
        "logistic": np.stack([1 - second, second], axis=1),
        "softmax": (parts / parts.sum(axis=0)).T,
        "identity": raw[:1].T,
        "exp": parts[:1].T,
        "sorted": np.sort(raw, axis=0).T,
    }
    for link, values in expected.items():
        if values.shape == found.shape and np.allclose(values, found, rtol=1e-9):
            return link
    raise ValueError(
        f"{function} supports the links of the built-in losses; this model was fitted with "
        f"{type(fitted.loss).__name__}, which has another one."
    )
