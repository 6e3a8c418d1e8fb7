"""What the folds that choose the number of rounds choose besides: a set for each that makes them choose it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from data_makers import additive, grouped, mostly_noise
from scboost import SCBoostClassifier, SCBoostRegressor


@dataclass(frozen=True)
class Choice:
    """What is chosen, where it is told, and what it is without a choice.

    Attributes
    ----------
    cls : type
        The estimator.
    make : callable
        Returns X and y, of few values: the same bins, however rows are repeated or spread.
    attribute : str
        Where the estimator tells what was chosen.
    otherwise : object
        Its value where there are no folds; None if it is then missing.
    tolerance : float
        Of predictions that differ by the order in which rows are added up.
    """

    cls: type
    make: Callable[[], tuple[Any, Any]]
    attribute: str
    otherwise: Any = None
    tolerance: float = 1e-6

    def of(self, model: Any) -> Any:
        """What was chosen, as something that compares."""
        return np.asarray(getattr(model, self.attribute)).tolist()


def few_values_of_groups():
    """Return samples with many categories of two kinds."""
    pytest.importorskip("pandas")
    X, y = grouped(500)
    return X.assign(x=X["x"].round(1)), y


CHOICES = {
    "columns": Choice(SCBoostClassifier, mostly_noise, "selected_features_"),
    "categories": Choice(SCBoostRegressor, few_values_of_groups, "categorical_splits_", "one-vs-rest", 1e-5),
    "depth": Choice(SCBoostClassifier, partial(additive, 600), "max_depth_", 6),
}


def predictions(model, X):
    """Probabilities, or predictions of a number."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def some_rows(X, rows):
    """Rows of an array or a table."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
