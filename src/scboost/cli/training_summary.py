"""What ``scboost train`` prints about a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from scboost import SCBoostClassifier, SCBoostDistribution, SCBoostRanker, SCBoostSurvival
from scboost.cli.console import say
from scboost.cli.models import Model
from scboost.cli.scores import predict, score


def show_settings(model: Model) -> None:
    """Print what was used, selected or given."""
    parts = [f"{model.n_estimators_} rounds", f"learning rate {model.learning_rate_:.4g}"]
    if getattr(model, "max_depth_", None) is not None:
        parts.append(f"max depth {model.max_depth_}")
    fitted = model.__fitted_model__()
    if fitted.tree_shape:
        parts.append(f"{fitted.tree_shape} trees")
    if fitted.selected_features:
        parts.append(f"{len(fitted.selected_features)} of {fitted.encoder.n_features} features")
    if fitted.selection.categorical_splits:
        parts.append(f"{fitted.selection.categorical_splits} categorical splits")
    say(f"settings: {', '.join(parts)}")


def show_validation(model: Model, y: npt.NDArray[Any], fit: dict[str, Any]) -> None:
    """Print the scores on the validation set, beside those of a constant prediction where it has some."""
    y_val, w, query = fit["y_val"], fit.get("sample_weight_val"), fit.get("qid_val")
    predicted = predict(model, fit["X_val"])
    scores = {name: f"{name} {value:.4g}" for name, value in score(model, y_val, predicted, w, query).items()}
    if not isinstance(model, SCBoostRanker | SCBoostSurvival):
        constant = np.broadcast_to(_constant(model, y, fit.get("sample_weight")), predicted.shape)
        for name, value in score(model, y_val, constant, w).items():
            scores[name] += f" (constant prediction: {value:.4g})"
    say(f"validation set: {', '.join(list(scores.values())[1:])}")


def _constant(model: Model, y: npt.NDArray[Any], w: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """Return the best constant prediction on the training set, in the form of ``scores.predict``."""
    fitted = model.__fitted_model__()
    raw = np.asarray(fitted.loss.initial_score(_encoded(model, y), w), np.float64).reshape(-1, 1)
    if isinstance(model, SCBoostDistribution):
        return raw[:, 0]
    constant: npt.NDArray[Any] = np.asarray(fitted.loss.link.inverse(raw))[0]
    return constant


def _encoded(model: Model, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the target as the loss takes it."""
    labels = isinstance(model, SCBoostClassifier) and y.ndim == 1
    return np.asarray(np.searchsorted(model.classes_, y) if labels else y, dtype=np.float64)


def show_cross_validation(model: Model, y: npt.NDArray[Any], w: npt.NDArray[Any] | None) -> None:
    """Print the loss of the fold models at the selected round, beside that of a constant prediction."""
    fitted = model.__fitted_model__()
    if not fitted.selection.log:
        say("no validation score: give --valid DATA, or leave n_estimators at its default")
        return
    column = next(name for name in fitted.selection.log if name != "round")
    if column != "validation_loss":  # a metric, of which higher is better
        best = float(np.max(fitted.selection.log[column]))
        say(f"cross-validation: {column.removeprefix('validation_')} {best:.4g}")
        return
    loss = float(np.min(fitted.selection.log[column]))
    if isinstance(model, SCBoostRanker | SCBoostSurvival):  # the loss depends on how the samples are split
        say(f"cross-validation: {_coupled_loss(model, loss)}")
        return
    target = _encoded(model, y)
    raw = np.asarray(fitted.loss.initial_score(target, w), dtype=np.float64)
    constant = float(fitted.loss.mean(target, np.tile(raw[:, None], len(y)), w))
    if isinstance(model, SCBoostClassifier):
        name = "log-loss"
    else:
        name = "negative log-likelihood" if isinstance(model, SCBoostDistribution) else f"{model.loss} loss"
    say(f"cross-validation: {name} {loss:.4g} (constant prediction: {constant:.4g})")


def _coupled_loss(model: SCBoostRanker | SCBoostSurvival, loss: float) -> str:
    """Return name and value of a loss that compares samples."""
    if isinstance(model, SCBoostSurvival):
        return f"negative log {'partial ' if model.loss == 'cox' else ''}likelihood {loss:.4g}"
    return f"NDCG {1 - loss:.4g}" if model.loss == "lambdarank" else f"{model.loss} loss {loss:.4g}"
