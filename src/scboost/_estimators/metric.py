"""A metric in place of the loss on a validation set: any scorer of scikit-learn."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from scboost._arrays import FloatArray
from scboost._core.foreign_arguments import scorer_name
from scboost._core.losses import Loss


class Metric:
    """Minus the score of a scorer, to be minimized like a loss.

    Parameters
    ----------
    scoring : str or callable
        Name of a scorer, or ``scorer(estimator, X, y)``.
    loss : Loss
        Loss whose link maps raw scores to predictions.
    classes : ndarray of shape (n_classes,) or None
        Labels; None for regression.

    Attributes
    ----------
    name : str
        Name of the score in logs.
    """

    def __init__(self, scoring: str | Callable[..., float], loss: Loss, classes: npt.NDArray[Any] | None) -> None:
        if isinstance(scoring, str):
            scoring = scorer_name(scoring, None if classes is None else len(classes))
        self._scoring, self._scorer = scoring, _scorer(scoring)
        self.name = scoring if isinstance(scoring, str) else _name(scoring)
        self._classes = classes
        self._model = _Regressor(loss) if classes is None else _Classifier(loss, classes)

    def mean(self, y: FloatArray, F: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return minus the score of raw scores F, of shape (K, n), for encoded targets y."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        score = float(self._scorer(self._model, F.T, self._target(y), **weights))
        if np.isnan(score):
            raise ValueError(
                f"early_stopping_metric={self._scoring!r} is not defined on the {len(y)} held-out samples; pass other "
                "or more validation samples, or another metric."
            )
        return -score

    def _target(self, y: FloatArray) -> npt.NDArray[Any]:
        """Return targets in the form passed to ``fit``."""
        return y if self._classes is None else np.asarray(self._classes[y.astype(np.intp)])


def _scorer(scoring: str | Callable[..., float]) -> Callable[..., float]:
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        close = difflib.get_close_matches(scoring, get_scorer_names(), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ValueError(
            f"early_stopping_metric={scoring!r} is not a scikit-learn scorer, such as 'roc_auc' or "
            f"'neg_log_loss', nor one of 'auc', 'aucpr', 'logloss', 'error', 'rmse', 'mae', 'mape'{hint}"
        )
    scorer: Callable[..., float] = get_scorer(scoring)
    return scorer


def _name(scorer: Callable[..., float]) -> str:
    """Return the name of a scorer, or of the function that scikit-learn made it from."""
    name = getattr(getattr(scorer, "_score_func", scorer), "__name__", "")
    sign = "neg_" if getattr(scorer, "_sign", 1) < 0 else ""
    return f"{sign}{name}" if name.isidentifier() and name != "loss" else "metric"


class _Regressor(RegressorMixin, BaseEstimator):
    """A model during its fit; X are its raw scores."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.fitted_ = True

    def predict(self, scores: FloatArray) -> FloatArray:
        """Return the predicted values."""
        return self.loss.link.inverse(scores.T)


class _Classifier(ClassifierMixin, BaseEstimator):
    """A model during its fit; X are its raw scores."""

    def __init__(self, loss: Loss, classes: npt.NDArray[Any]) -> None:
        self.loss, self.classes = loss, classes
        self.classes_ = classes

    def decision_function(self, scores: FloatArray) -> FloatArray:
        """Return the raw scores."""
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities."""
        return self.loss.link.inverse(scores.T)

    def predict(self, scores: FloatArray) -> npt.NDArray[Any]:
        """Return the most probable classes."""
        return np.asarray(self.classes_[self.predict_proba(scores).argmax(axis=1)])
