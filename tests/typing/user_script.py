"""A program as a user would write it; test_typing.py runs type checkers in strict mode on it."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import scboost
from scboost import Batches, Checkpoint, SCBoostClassifier, SCBoostRegressor, compress, defaults, load_model
from scboost.losses import SquaredLoss
from scboost.weighting import Weights, learn_weights

Floats = npt.NDArray[np.float64]


def make_data(n_samples: int, seed: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 4))
    return X, (X[:, 0] + X[:, 1] > 0).astype(np.int64)


def make_batches() -> Iterator[tuple[Floats, npt.NDArray[np.int64]]]:
    for seed in range(3):
        yield make_data(1000, seed)


def log_loss(model: SCBoostClassifier, X: Floats, y: npt.NDArray[np.int64]) -> float:
    probabilities: Floats = model.predict_proba(X)
    return float(-np.log(probabilities[np.arange(len(y)), y]).mean())


def best_round(model: SCBoostClassifier, X: Floats, y: npt.NDArray[np.int64]) -> int:
    errors = [float((labels != y).mean()) for labels in model.staged_predict(X)]
    return int(np.argmin(errors)) + 1


X, y = make_data(500, seed=0)
as_in_0_2 = SCBoostClassifier(**defaults.parameters("0.2", SCBoostClassifier))
classifier = SCBoostClassifier(n_estimators=50, max_depth=4, engine="xgboost", random_state=0)
classifier = classifier.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
log = f"{log_loss(classifier, X, y):.3f} after {best_round(classifier, X, y)} of {classifier.n_estimators_} rounds"

regressor = SCBoostRegressor(loss="huber", callbacks=[Checkpoint("fit.checkpoint", every=20)])
prediction: Floats = regressor.set_params(n_estimators=30).fit(X, X[:, 0]).predict(X)
importances: Floats = regressor.feature_importances_
explained: Floats = regressor.shap_values(X)
history: Floats = regressor.training_log_["loss"]
SCBoostClassifier().fit(Batches(make_batches, folder="."))

small = classifier.compress(X, max_trees=5)
labels = small.model.predict(X)
bound: str = str(small.certificate)
in_xgboost = compress(classifier, X, library="xgboost")
weights: Weights = learn_weights(X, y, loss=SquaredLoss(), ridge=0.1)

classifier.save_model("model.ubj")
loaded = load_model("model.ubj")
if isinstance(loaded, SCBoostClassifier):
    assert loaded.predict_proba(X).shape == (500, len(loaded.classes_))
report = scboost.redundancy_report(loaded, X)
