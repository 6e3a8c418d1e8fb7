"""Arguments of other libraries: errors name the equivalent here."""

import inspect
import re

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import get_scorer_names

import coming_from
from data_makers import three_classes, two_classes
from scboost import SCBoostClassifier, SCBoostDistribution, SCBoostRanker, SCBoostRegressor, SCBoostSurvival, plotting
from scboost._core.foreign_arguments import ATTRIBUTES, FOREIGN, METRICS, PREDICT

NAMES = [name for foreign in FOREIGN for name in foreign.names]
CLASSES = (SCBoostClassifier, SCBoostDistribution, SCBoostRanker, SCBoostRegressor, SCBoostSurvival)
OURS = {name for cls in CLASSES for name in inspect.signature(cls).parameters}


@pytest.mark.parametrize("cls", [SCBoostClassifier, SCBoostDistribution, SCBoostRegressor, SCBoostSurvival])
def test_the_constructor_answers_every_argument_of_the_table(cls):
    for foreign in FOREIGN:
        for name in foreign.names:
            with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'") as caught:
                cls(**{name: 1})
            assert foreign.here in str(caught.value)


def test_fit_answers_every_argument_of_the_table():
    X, y = two_classes(n=40)
    for foreign in FOREIGN:
        for name in foreign.names:
            with pytest.raises(TypeError, match=name) as caught:
                SCBoostClassifier().fit(X, y, **{name: 1})
            assert foreign.here in str(caught.value)


def test_set_params_answers_as_the_constructor_and_stays_an_error_of_value():
    with pytest.raises(ValueError, match=r"Invalid parameter 'num_leaves'.*use max_leaves"):
        SCBoostClassifier().set_params(num_leaves=7)
    assert SCBoostClassifier().set_params(max_leaves=7).max_leaves == 7


def test_all_unknown_arguments_are_explained_at_once_and_typos_are_suggested():
    with pytest.raises(TypeError, match=r"use max_leaves.*use reg_lambda"):
        SCBoostClassifier(num_leaves=7, l2_leaf_reg=1)
    with pytest.raises(TypeError, match="did you mean 'max_depth'"):
        SCBoostClassifier(maxdepth=3)
    with pytest.raises(TypeError, match="'zzz' is unknown; there are preset, "):
        SCBoostClassifier(zzz=3)


def test_an_argument_in_the_wrong_place_is_sent_to_the_right_one():
    X, y = two_classes(n=40)
    with pytest.raises(TypeError, match=r"SCBoostClassifier\(verbose=\.\.\.\)"):
        SCBoostClassifier().fit(X, y, verbose=1)
    with pytest.raises(TypeError, match="is an argument of fit"):
        SCBoostClassifier(X_val=X)


def test_the_table_has_unique_foreign_arguments_and_existing_parameters():
    assert not set(NAMES) & OURS
    assert len(NAMES) == len(set(NAMES))
    fit = inspect.signature(SCBoostClassifier.fit).parameters
    for foreign in FOREIGN:
        if foreign.here.startswith("use "):
            first = foreign.here.split()[1].strip(".,;").partition("=")[0]
            assert first in OURS | set(fit), foreign


PEERS = {
    "X": [xgboost.XGBClassifier, xgboost.XGBRegressor, xgboost.XGBModel],
    "L": [lightgbm.LGBMClassifier],
    "C": [catboost.CatBoostClassifier, catboost.CatBoostRegressor],
    "S": [HistGradientBoostingClassifier, HistGradientBoostingRegressor],
}


def test_every_argument_of_ngboost_is_supported_or_explained():
    ngboost = pytest.importorskip("ngboost")
    given = {
        *inspect.signature(ngboost.NGBRegressor).parameters,
        *inspect.signature(ngboost.NGBRegressor.fit).parameters,
    }
    known = OURS | set(inspect.signature(SCBoostClassifier.fit).parameters) | set(NAMES)
    assert not given - known


@pytest.mark.parametrize("letter", PEERS)
def test_every_argument_of_other_libraries_is_supported_or_explained(letter):
    known = OURS | set(inspect.signature(SCBoostClassifier.fit).parameters) | set(NAMES) | {"kwargs"}
    unanswered = set()
    for cls in PEERS[letter]:
        unanswered |= {*inspect.signature(cls).parameters, *inspect.signature(cls.fit).parameters} - known
    assert not unanswered


def test_scikit_learn_sees_the_parameters_through_the_answering_constructor():
    model = SCBoostClassifier(max_depth=3)
    assert model.get_params()["max_depth"] == 3
    assert clone(model).max_depth == 3
    assert next(iter(inspect.signature(SCBoostClassifier).parameters)) == "preset"
    assert "X_val" in inspect.signature(SCBoostClassifier.fit).parameters


def test_the_page_is_that_of_the_table():
    assert coming_from.PAGE.read_text() == coming_from.page(), "run tools/coming_from.py"


@pytest.fixture(scope="module")
def fitted():
    X, y = two_classes(n=60)
    X = pd.DataFrame(X).rename(columns=str)
    return SCBoostClassifier(n_estimators=3).fit(X, y), X


def test_attributes_of_other_libraries_are_answered_with_ones_that_exist(fitted):
    model, _ = fitted
    for foreign in ATTRIBUTES:
        for name in foreign.names:
            assert not hasattr(model, name)
            with pytest.raises(AttributeError, match=f"'{name}'") as caught:
                getattr(model, name)
            assert foreign.here in str(caught.value)
        used = re.search(r"\b(\w+_|get_booster|plot_importance)\b", foreign.here)[1]
        assert hasattr(model, used) or hasattr(plotting, used), foreign


def test_other_unknown_attributes_keep_their_own_messages(fitted):
    model, _ = fitted
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = model.nonsense
    with pytest.raises(AttributeError, match="This SCBoostClassifier has no attribute 'weighting_result_'"):
        _ = model.weighting_result_


def test_predict_answers_arguments_of_other_libraries(fitted):
    model, X = fitted
    for foreign in PREDICT:
        for name in foreign.names:
            with pytest.raises(TypeError, match=rf"predict_proba\(\) got an unexpected.*'{name}'") as caught:
                model.predict_proba(X, **{name: 1})
            assert foreign.here in str(caught.value)
    peers = (xgboost.XGBClassifier, lightgbm.LGBMClassifier, catboost.CatBoostClassifier)
    given = {name for cls in peers for name in inspect.signature(cls.predict).parameters}
    answered = {name for foreign in (*PREDICT, *FOREIGN) for name in foreign.names}
    assert not given - answered - {"self", "X", "data", "kwargs", "verbose"}


@pytest.mark.parametrize("name", sorted(METRICS))
def test_metrics_of_other_libraries_are_scorers(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    regression = METRICS[name] in get_scorer_names() and "error" in METRICS[name]
    y = X[:, 0] if regression else (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    cls = SCBoostRegressor if regression else SCBoostClassifier
    kept = {"n_estimators": 4, "early_stopping": True}
    given = cls(**kept, early_stopping_metric=name.upper()).fit(X, y).training_log_
    expected = cls(**kept, early_stopping_metric=METRICS[name]).fit(X, y).training_log_
    np.testing.assert_array_equal(given[f"validation_{METRICS[name]}"], expected[f"validation_{METRICS[name]}"])


def test_auc_of_several_classes_is_one_against_the_rest():
    X, y = three_classes(n=120)
    log = SCBoostClassifier(n_estimators=4, early_stopping=True, early_stopping_metric="auc").fit(X, y).training_log_
    assert "validation_roc_auc_ovr" in log


def test_an_unknown_metric_is_refused_with_the_closest_name():
    X, y = two_classes(n=60)
    with pytest.raises(ValueError, match=r"early_stopping_metric='roc_acu' is not.*did you mean 'roc_auc'"):
        SCBoostClassifier(n_estimators=3, early_stopping=True, early_stopping_metric="roc_acu").fit(X, y)
