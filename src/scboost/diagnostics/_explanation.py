"""Feature importances as a picture, and SHAP values for the plots of the shap package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from scboost._arrays import ArrayLike, Float64Array
from scboost._data.tables import as_table, materialize
from scboost.diagnostics._plots import _hide_spines, _new_axes

if TYPE_CHECKING:
    import shap


class _HasImportances(Protocol):
    """A fitted model of any library."""

    @property
    def feature_importances_(self) -> npt.NDArray[Any]: ...


class _HasShapValues(Protocol):
    """A fitted model of scboost."""

    def shap_values(self, X: ArrayLike) -> Float64Array: ...


def _feature_names(model: object, n_features: int) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    return [f"feature {j}" for j in range(n_features)] if names is None else [str(name) for name in names]


def plot_importance(model: _HasImportances, *, max_features: int = 20, ax: Any = None) -> Any:
    """Plot the feature importances of a fitted model, the largest at the top.

    Parameters
    ----------
    model : estimator
        Fitted model with ``feature_importances_``: of scboost, XGBoost, LightGBM, CatBoost or scikit-learn.
    max_features : int, default=20
        Most features to show; those of lowest importance are left out.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from scboost import SCBoostClassifier
    >>> from scboost.plotting import plot_importance
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> axes = plot_importance(SCBoostClassifier(n_estimators=5).fit(X, y), max_features=2)
    >>> len(axes.patches)
    2
    """
    if max_features < 1:
        raise ValueError(f"max_features must be at least 1, got {max_features}.")
    importances = np.asarray(model.feature_importances_, dtype=np.float64)
    names = _feature_names(model, len(importances))
    shown = np.argsort(-importances, kind="stable")[:max_features][::-1]
    ax = _new_axes(ax)
    ax.barh(range(len(shown)), importances[shown])
    ax.set(yticks=range(len(shown)), yticklabels=[names[j] for j in shown], xlabel="feature importance")
    return _hide_spines(ax)


def shap_explanation(model: _HasShapValues, X: ArrayLike) -> shap.Explanation:
    """Return SHAP values as the plots of the shap package take them.

    ``shap.TreeExplainer`` recognizes models by their classes, which do not include those of scboost. The values here
    are the same, for any X that the model predicts, strings and missing values included.

    Parameters
    ----------
    model : SCBoostClassifier or SCBoostRegressor
        Fitted.
    X : array-like, sparse matrix or table of shape (n_samples, n_features)
        Samples to explain.

    Returns
    -------
    shap.Explanation
        With values of shape (n_samples, n_features), or (n_samples, n_features, n_classes) for more than two classes,
        on the scale of the raw score.

    Examples
    --------
    >>> import shap  # doctest: +SKIP
    >>> shap.plots.beeswarm(shap_explanation(model, X_test))  # doctest: +SKIP
    """
    try:
        import shap
    except ImportError as error:
        raise ImportError("shap_explanation needs the package shap: `pip install shap`.") from error
    X = materialize(X)
    values = model.shap_values(X)
    if values.ndim == 3:  # (n, K, d + 1)
        values = np.moveaxis(values, 1, 2)
    table = as_table(X)
    if table is not None:
        data = np.array([np.asarray(column, dtype=object) for column in table.columns], dtype=object).T
    else:
        data = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    names = _feature_names(model, values.shape[1] - 1)
    return shap.Explanation(values[:, :-1], base_values=values[:, -1], data=data, feature_names=names)
