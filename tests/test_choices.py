"""Selection by cross-validation does not depend on how samples are weighted, read or resumed."""

import numpy as np
import pytest

from choices import CHOICES, predictions, some_rows
from data_makers import QUICK
from scboost import Batches, Checkpoint, load_model

pytest.importorskip("xgboost")


@pytest.fixture(params=CHOICES)
def choice(request):
    return CHOICES[request.param]


@pytest.fixture
def chosen(choice):
    """Rows, and a model for which something was chosen."""
    X, y = choice.make()
    model = choice.cls(**QUICK).fit(X, y)
    assert choice.of(model) != choice.otherwise
    return X, y, model


def test_nothing_is_selected_without_cross_validation(choice):
    X, y = choice.make()
    model = choice.cls(**{**QUICK, "cv": "auto"}, n_estimators=5).fit(X, y)
    assert getattr(model, choice.attribute, None) == choice.otherwise


def test_batches_select_the_model_of_data_in_memory(choice, chosen, tmp_path):
    X, y, _ = chosen
    model = choice.cls(**QUICK, engine="xgboost").fit(X, y)  # the engine of batches
    parts = np.array_split(np.arange(len(y)), 3)
    batches = Batches(lambda: ((some_rows(X, rows), y[rows]) for rows in parts), folder=tmp_path)
    other = choice.cls(**QUICK).fit(batches)
    assert choice.of(other) == choice.of(model)
    np.testing.assert_array_equal(predictions(other, X), predictions(model, X))


def test_resumed_fit_keeps_the_selection(choice, chosen, tmp_path):
    X, y, model = chosen
    checkpoint = Checkpoint(tmp_path / "model", every=model.n_estimators_ // 2 + 1)
    choice.cls(**QUICK, callbacks=[checkpoint]).fit(X, y)
    partly = checkpoint.load()
    assert partly.n_estimators_ < model.n_estimators_
    resumed = partly.fit(X, y)
    assert choice.of(resumed) == choice.of(model)
    np.testing.assert_array_equal(predictions(resumed, X), predictions(model, X))


def test_model_file_keeps_the_selection(choice, chosen, tmp_path):
    X, _, model = chosen
    model.save_model(tmp_path / "model.ubj")
    loaded = load_model(tmp_path / "model.ubj")
    assert choice.of(loaded) == choice.of(model)
    np.testing.assert_array_equal(predictions(loaded, X), predictions(model, X))
