"""Alternatives of the study of compression do what their names say, and leave the library as it was."""

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from scboost import SCBoostClassifier, compress
from scboost._compress import backfitting, compression, grower
from scboost._compress.student import Problem
from scboost_lab.compress_variants import by_row, changed, out_of_fold


@pytest.fixture(scope="module")
def fitted():
    X, y = make_classification(600, 6, n_informative=4, flip_y=0.1, random_state=0)
    X = pd.DataFrame(X, columns=list("abcdef"))
    return SCBoostClassifier(n_estimators=40, random_state=0, n_jobs=1).fit(X[:400], y[:400]), X, y


def labels_of(fitted):
    model, X, y = fitted
    return by_row(X[:400], model.__fitted_model__().encoder, y[:400])


def compressed(fitted, **params):
    model, X, y = fitted
    with changed(params, lambda: labels_of(fitted)):
        return compress(model, X[:400], y[:400], max_trees=4, n_synthetic=800, random_state=0)


def test_settings_are_restored():
    owners = (backfitting, "_PASSES"), (grower, "_BINS"), (grower, "_RIDGE")
    owned = [*owners, (Problem, "weight"), (compression, "Search"), (compression, "select_ridge")]
    before = [getattr(*owner) for owner in owned]
    params = {"passes": 0, "bins": 64, "ridge": 7.0, "real_weight": 2.0, "label_share": 0.5}
    with changed(params, dict):
        assert [getattr(*owner) for owner in owners] == [0, 64, {True: 7.0, False: 7.0}]
        assert Problem.weight is not before[-3]
        assert compression.Search is not before[-2]
    assert [getattr(*owner) for owner in owned] == before


def test_labels_move_the_model_towards_them_by_their_share(fitted):
    _, X, y = fitted
    losses = [log_loss(y[:400], compressed(fitted, label_share=a).model.predict_proba(X[:400])) for a in (0, 0.4, 1)]
    assert losses[0] > losses[1] > losses[2]
    default = compressed(fitted).model.decision_function(X)
    assert np.allclose(compressed(fitted, label_share=0.0).model.decision_function(X), default, atol=0.2)


def test_out_of_fold_scores_are_those_of_training_samples_only(fitted):
    model, X, y = fitted
    teacher, link = out_of_fold(model, X[:400], y[:400], "binary", 0)
    assert link == "logit"
    seen, unseen = (teacher(X[part]).ravel() for part in (slice(400), slice(400, None)))
    assert np.allclose(unseen, special.logit(model.predict_proba(X[400:])[:, 1]), atol=1e-4)
    assert log_loss(y[:400], special.expit(seen)) > log_loss(y[:400], model.predict_proba(X[:400])) + 0.05
