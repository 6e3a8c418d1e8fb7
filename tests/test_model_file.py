"""The model file: what is read is what was written, to every bit; plain XGBoost reads it; a broken one is refused."""

import base64
import copy
import functools
import importlib.util
import json
import re
import stat
import warnings
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
from sklearn.tree import DecisionTreeRegressor

import scboost
from data_makers import FAST, real_target, three_classes, two_classes
from scboost import SCBoostClassifier, SCBoostRegressor, encode_features, load_model
from scboost._estimators import model_file
from scboost._model import atomic, file, packing, ubjson
from scboost._model.document import Document, constant

pd = pytest.importorskip("pandas")


def mixed(n=300):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            'a "quoted" name': rng.normal(size=n),
            "färbe": pd.Categorical(rng.choice(["rot", "grün", "blau", "weiß"], size=n)),
            "code": pd.Categorical(rng.choice([100, 20, 3, 7], size=n)),
        }
    )
    return table, (table["x"].fillna(1) + 2 * (table["färbe"] == "rot") - (table["code"] == 20) > 0).to_numpy()


def labelled(kind):
    X, y = three_classes()
    return X, {
        "text": np.array(["ape", "bee", "cat"])[y],
        "object": np.array(["ape", "bee", "cat"], dtype=object)[y],
        "int8": y.astype(np.int8),
        "float": 2.0 * y,
        "bool": y > 0,
    }[kind]


CASES = {
    "binary": (SCBoostClassifier, {}, two_classes),
    "classes": (SCBoostClassifier, {}, three_classes),
    "text": (SCBoostClassifier, {}, lambda: labelled("text")),
    "object": (SCBoostClassifier, {}, lambda: labelled("object")),
    "int8": (SCBoostClassifier, {}, lambda: labelled("int8")),
    "float": (SCBoostClassifier, {}, lambda: labelled("float")),
    "bool": (SCBoostClassifier, {"class_weight": {False: 2.0, True: 1.0}}, lambda: labelled("bool")),
    "categories": (SCBoostClassifier, {}, mixed),
    "regression": (SCBoostRegressor, {"monotone_constraints": [1, 0, 0, -1]}, real_target),
    "far away": (SCBoostRegressor, {}, lambda: (real_target()[0], real_target()[1] + 1e9)),
    "huber": (SCBoostRegressor, {"loss": "huber"}, real_target),
    "quantile": (SCBoostRegressor, {"loss": "quantile", "quantile": 0.2}, real_target),
    "poisson": (SCBoostRegressor, {"loss": "poisson"}, lambda: (real_target()[0], np.abs(real_target()[1]))),
    "weighted": (SCBoostRegressor, {"weighting": "nonnegative", "covariance_penalty": 0.3}, real_target),
    "dropped": (SCBoostClassifier, {"weighting": "simplex", "covariance_penalty": 1.0}, two_classes),
    "stopped": (SCBoostClassifier, {"early_stopping": True, "n_iter_no_change": 2, "n_estimators": 30}, two_classes),
    "stopped classes": (SCBoostClassifier, {"early_stopping": True, "n_estimators": 30}, three_classes),
    "folds": (SCBoostClassifier, {"weighting": "nonnegative", "weighting_data": "fold_average"}, two_classes),
}


@functools.cache
def fitted(case):
    cls, params, make = CASES[case]
    X, y = make()
    return cls(**{**FAST, **params}).fit(X, y), X


def scores(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def native_rows(model, X):
    """Rows as plain XGBoost takes them: codes, because XGBoost before 3.4 reads names in other scripts wrongly."""
    categorical = model._model.encoder.features.categorical
    types = None if categorical is None else ["c" if c else "float" for c in categorical]
    return xgb.DMatrix(encode_features(model, X), feature_types=types, enable_categorical=True)


@pytest.fixture(params=[".json", ".ubj"])
def path(request, tmp_path):
    return tmp_path / f"model{request.param}"


@pytest.mark.parametrize("case", CASES)
def test_model_file_restores_the_model_bit_identically(case, path):
    model, X = fitted(case)
    model.save_model(path)
    again = load_model(path)
    assert type(again) is type(model)
    for name, value in model.get_params().items():
        np.testing.assert_equal(again.get_params()[name], value)
    np.testing.assert_array_equal(scores(again, X), scores(model, X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.predict(X).dtype == model.predict(X).dtype
    np.testing.assert_array_equal(again.weights_, model.weights_)
    np.testing.assert_array_equal(again.intercept_, model.intercept_)
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    for a, b in zip(again.staged_predict(X), model.staged_predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_equal(
        {n: v for n, v in vars(again).items() if n.endswith("_") and n != "weighting_result_"},
        {n: v for n, v in vars(model).items() if n.endswith("_") and n != "weighting_result_"},
    )
    if "weighting" in CASES[case][1]:
        np.testing.assert_equal(vars(again.weighting_result_), vars(model.weighting_result_))
    assert again.get_booster().save_raw("ubj") == model.get_booster().save_raw("ubj")


@pytest.mark.parametrize("case", CASES)
def test_plain_xgboost_reads_the_same_model(case, path):
    model, X = fitted(case)
    model.save_model(path)
    native = xgb.Booster(model_file=path)
    margin = native.predict(native_rows(model, X), output_margin=True, validate_features=False)
    np.testing.assert_allclose(margin, scores_on_link(model, X), rtol=1e-6, atol=1e-5)
    native.set_attr(scboost=None, scboost_checksum=None)
    assert native.save_raw("ubj") == model.get_booster().save_raw("ubj")


def scores_on_link(model, X):
    return np.log(model.predict(X)) if getattr(model, "loss", "") == "poisson" else scores(model, X)


def test_the_two_formats_hold_the_same(tmp_path):
    model, _ = fitted("categories")
    for suffix in (".json", ".ubj"):
        model.save_model(tmp_path / f"a{suffix}")
        load_model(tmp_path / f"a{suffix}").save_model(tmp_path / f"b{suffix}")
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    text, binary = (file.parse((tmp_path / f"a{suffix}").read_bytes()) for suffix in (".json", ".ubj"))
    assert text.encode() == binary.encode()


def test_json_may_be_laid_out_anew(tmp_path):
    model, X = fitted("classes")
    model.save_model(tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "b.json").write_text(json.dumps(content, indent=2))
    np.testing.assert_array_equal(scores(load_model(tmp_path / "b.json"), X), scores(model, X))


@pytest.mark.filterwarnings("ignore:The model has no trees")
def test_a_model_without_trees_is_kept(tmp_path):
    X = np.zeros((20, 2))
    y = np.arange(20) % 2
    model = SCBoostClassifier(**FAST).fit(X, y)
    assert model.n_estimators_ == 0
    model.save_model(tmp_path / "a.ubj")
    np.testing.assert_array_equal(load_model(tmp_path / "a.ubj").predict_proba(X), model.predict_proba(X))


def test_models_of_sparse_data_predict_the_same_after_loading(tmp_path):
    from scipy import sparse

    X, y = two_classes()
    X = sparse.csr_matrix(np.where(np.abs(X) < 0.5, 0, X))
    model = SCBoostClassifier(**FAST).fit(X, y)
    model.save_model(tmp_path / "a.ubj")
    again = load_model(tmp_path / "a.ubj")
    np.testing.assert_array_equal(again.predict_proba(X.toarray()), model.predict_proba(X))


def test_unsupported_models_cannot_be_saved(tmp_path):
    X, y = two_classes()
    other = SCBoostClassifier.from_paper(estimator=DecisionTreeRegressor(max_depth=2), n_estimators=2).fit(X, y)
    with pytest.raises(AttributeError, match=r"save_model\(\) needs the built-in trees"):
        other.save_model(tmp_path / "a.ubj")
    with pytest.raises(ValueError, match=r"must end in one of .json, .ubj"):
        SCBoostClassifier(**FAST).fit(X, y).save_model(tmp_path / "a.pkl")
    with pytest.raises(FileNotFoundError, match=r"The folder of '.*missing.a\.ubj' does not exist; create it first"):
        SCBoostClassifier(**FAST).fit(X, y).save_model(tmp_path / "missing" / "a.ubj")
    drawn = SCBoostClassifier(**{**FAST, "random_state": np.random.RandomState(0)}).fit(X, y)
    with pytest.warns(UserWarning, match=r"random_state=RandomState.* cannot be stored"):
        drawn.save_model(tmp_path / "a.ubj")
    assert load_model(tmp_path / "a.ubj").random_state is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.ubj"]


class Derived(SCBoostClassifier):
    """A class of a user's, with a parameter of its own."""

    def __init__(self, *, depth=2, n_estimators=5):
        super().__init__(n_estimators=n_estimators, max_depth=depth, n_jobs=1, random_state=0)
        self.depth = depth


def test_a_model_of_a_derived_class_is_stored_as_that_of_the_library(tmp_path):
    X, y = two_classes()
    model = Derived(depth=3).fit(X, y)
    with pytest.warns(UserWarning, match="A Derived is stored as the SCBoostClassifier that it is derived from"):
        model.save_model(tmp_path / "model.ubj")
    again = load_model(tmp_path / "model.ubj")
    assert type(again) is SCBoostClassifier
    assert again.max_depth == 3
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_symbolic_link_is_followed(tmp_path):
    model, X = fitted("binary")
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a.ubj", tmp_path / "link.ubj"
    target.write_bytes(b"old")
    link.symlink_to(target)
    model.save_model(link)
    assert link.is_symlink()
    assert [p.name for p in (tmp_path / "real").iterdir()] == ["a.ubj"]
    np.testing.assert_array_equal(scores(load_model(target), X), scores(model, X))


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    model, _ = fitted("binary")
    path = tmp_path / "a.ubj"
    model.save_model(path)
    before = path.read_bytes()
    monkeypatch.setattr(atomic.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        model.save_model(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.ubj"]
    assert stat.S_ISREG(path.stat().st_mode)


# --- files of released schemas ----------------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden"
KEPT = [
    (expected, name)
    for pattern in ("schema?.json", "release-*.*[0-9].json")
    for expected in sorted(GOLDEN.glob(pattern))
    for name in json.loads(expected.read_text())
]


def golden_rows(model):
    spec = importlib.util.spec_from_file_location("golden", GOLDEN / "make.py")
    golden = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(golden)
    table, _ = golden.rows()
    return golden.categorical(table) if hasattr(model, "feature_names_in_") else table.to_numpy()[:, :4].astype(float)


@pytest.mark.parametrize(("expected", "name"), KEPT, ids=[f"{e.stem} {n}" for e, n in KEPT])
def test_files_of_every_schema_and_release_are_read(expected, name):
    wanted = json.loads(expected.read_text())[name]
    model = load_model(GOLDEN / f"{expected.stem}-{name}")
    X = golden_rows(model)
    found = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    np.testing.assert_allclose(found, wanted["predictions"], rtol=1e-6, atol=1e-7)
    for values, known in [(model.predict(X), "labels"), (list(model.staged_predict(X))[1], "after two rounds")]:
        if hasattr(model, "classes_"):
            assert values.tolist() == wanted[known]
        else:
            np.testing.assert_allclose(values, wanted[known], rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(model.weights_, wanted["weights"])


def test_there_is_a_file_of_this_schema():
    assert (GOLDEN / f"schema{file.SCHEMA}.json").exists()


# --- broken files ----------------------------------------------------------------------------------------------------


def resealed(document):
    """The file with the right checksum for its content: what a forger would write."""
    attributes = {**document.attributes, "scboost_checksum": file.checksum(document)}
    return document.with_learner(attributes=attributes).encode()


def with_own(document, change):
    own = json.loads(document.attributes["scboost"])
    change(own)
    return document.with_learner(attributes={**document.attributes, "scboost": json.dumps(own)})


def test_every_flipped_bit_is_found(tmp_path):
    model, _ = fitted("binary")
    model.save_model(tmp_path / "a.ubj")
    data = (tmp_path / "a.ubj").read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.choice(len(data), 300, replace=False):
        broken = bytearray(data)
        broken[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "b.ubj").write_bytes(broken)
        with pytest.raises(ValueError, match=r"'.*b\.ubj' (is corrupt|was not written by scboost)"):
            load_model(tmp_path / "b.ubj")
    for size in rng.choice(len(data), 50, replace=False):
        (tmp_path / "b.ubj").write_bytes(data[:size])
        with pytest.raises(ValueError, match="is corrupt"):
            load_model(tmp_path / "b.ubj")


def test_a_plain_xgboost_model_is_named_as_such(tmp_path):
    model, _ = fitted("binary")
    for suffix in (".json", ".ubj"):
        model.get_booster().save_model(tmp_path / f"a{suffix}")
        with pytest.raises(ValueError, match="was not written by scboost"):
            load_model(tmp_path / f"a{suffix}")


def _schema(value):
    return lambda own: own.update(schema=value)


def _array(name, change):
    def apply(own):
        values = packing.unpack(own[name])
        own[name] = packing.pack(change(values))

    return apply


def _drop(name):
    return lambda own: own.pop(name)


def _fitted(name, value):
    return lambda own: own["fitted"].update({name: value})


FORGERIES = {
    "newer schema": (_schema(file.SCHEMA + 1), "Install a newer scboost"),
    "schema of another type": (_schema("1"), "its schema is '1'"),
    "no schema": (_drop("schema"), "KeyError"),
    "estimator": (lambda own: own.update(estimator="SCBoostClassifier"), r"unknown entries \['estimator'\]"),
    "unknown parameter": (lambda own: own["parameters"].update(tree_colour="x"), "unknown parameters"),
    "illegal parameter": (lambda own: own["parameters"].update(max_bin=-3), "max_bin"),
    "callbacks": (lambda own: own["parameters"].update(callbacks=[1]), "never stored"),
    "loss": (lambda own: own["loss"].update(name="SquaredLoss"), "corrupt"),
    "loss that is no loss": (lambda own: own["loss"].update(name="np"), "unknown loss"),
    "abstract loss": (lambda own: own["loss"].update(name="Loss"), "unknown loss"),
    "classes": (_fitted("classes_", {"array": "U", "values": ["a", "a", "b"]}), "a class comes twice"),
    "too few classes": (_fitted("classes_", {"array": "U", "values": ["a", "b"]}), "there are not 3 classes"),
    "features": (_fitted("n_features_in_", 4), r"unknown attributes \['n_features_in_'\]"),
    "two NaN classes": (_fitted("classes_", packing.pack(np.array([1.0, np.nan, np.nan]))), "a class"),
    "fewer rounds": (_fitted("n_estimators_", 3), "later rounds have weights"),
    "no rounds": (_fitted("n_estimators_", 0), "later rounds have weights"),
    "negative rounds": (_fitted("n_estimators_", -1), "n_estimators_ is -1"),
    "rounds as text": (_fitted("n_estimators_", "6"), "n_estimators_ is '6'"),
    "rounds as boolean": (_fitted("n_estimators_", True), "n_estimators_ is True"),
    "rate as boolean": (_fitted("learning_rate_", True), "learning_rate_ is True"),
    "uneven log": (_fitted("training_log_", packing.pack({"a": np.zeros(2), "b": np.zeros(3)})), "lengths"),
    "huge weights": (_array("weights", lambda w: w * 1e300), "not that of these weights"),
    "method": (_fitted("predict", 4), r"unknown attributes \['predict'\]"),
    "property": (_fitted("weights_", 4), "unknown attributes"),
    "weights": (_array("weights", lambda w: 2 * w), "not that of these weights"),
    "fewer weights": (_array("weights", lambda w: w[:-1]), f"trees for {FAST['n_estimators'] - 1} rounds"),
    "infinite weights": (_array("weights", lambda w: w * np.inf), "not finite"),
    "weights of float32": (_array("weights", lambda w: w.astype(np.float32)), "float64"),
    "intercept": (_array("intercept", lambda b: b + 1), "not that of these weights"),
    "NaN intercept": (_array("intercept", lambda b: b * np.nan), "intercept is not finite"),
    "leaves": (_array("leaf_values", lambda v: v[::-1]), "not that of these weights"),
    "fewer leaves": (_array("leaf_values", lambda v: v[1:]), "leaf values for"),
    "huge array": (lambda own: own["weights"].update(shape=[2**39, 3]), "bytes"),
    "negative shape": (lambda own: own["weights"].update(shape=[-1, 3]), "shape"),
    "objects": (lambda own: own["weights"].update(array="|O8"), "unknown type of array"),
    "unknown tag": (lambda own: own.update(weights={"pickle": "gASVAAAA"}), "unknown kind of value"),
    "no list of trees": (
        lambda own: own.update(dropped_trees=base64.b64encode(ubjson.encode({})).decode()),
        "not a list",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_with_the_right_checksum_is_refused(name, tmp_path):
    model, _ = fitted("classes")
    change, problem = FORGERIES[name]
    document = with_own(model_file.to_document(model._model, model.get_params(deep=False)), change)
    path = tmp_path / "forged.ubj"
    path.write_bytes(resealed(document))
    with pytest.raises(ValueError, match=problem):
        load_model(path)


def _forged(case, change):
    model, _ = fitted(case)
    return with_own(model_file.to_document(model._model, model.get_params(deep=False)), change)


CONTRADICTIONS = {
    "other intercept": ("far away", _array("intercept", lambda b: b + 99), "not that of these weights"),
    "intercept and leaves that cancel": ("far away", _array("intercept", lambda b: b * 2), "not that of these weights"),
    "sparse with categories": ("categories", lambda own: own.update(sparse=True), "sparse data have no categories"),
    "quantile": ("quantile", lambda own: own["parameters"].update(quantile=0.3), r"the parameters name .*0\.3"),
    "quantile of the loss": ("quantile", lambda own: own["loss"]["numbers"].update(quantile=0.3), "parameters name"),
    "name of the loss": ("huber", lambda own: own["parameters"].update(loss="poisson"), "the parameters name"),
    "delta of the loss": ("huber", lambda own: own["parameters"].update(huber_delta=0.125), "the parameters name"),
    "link": ("poisson", lambda own: own.update(loss={"name": "SquaredLoss", "numbers": {}}), "corrupt"),
    "other codes": ("categories", lambda own: own["columns"]["categories"][2].reverse(), "not that of these weights"),
    "numbers for texts": ("categories", lambda own: own["columns"]["whole"].clear(), "not that of these weights"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_file_that_contradicts_itself_is_refused(name, tmp_path):
    case, change, problem = CONTRADICTIONS[name]
    (tmp_path / "forged.ubj").write_bytes(resealed(_forged(case, change)))
    with pytest.raises(ValueError, match=problem):
        load_model(tmp_path / "forged.ubj")


@pytest.mark.parametrize("case", ["binary", "classes", "far away", "poisson", "categories"])
def test_the_intercept_is_one_number_that_old_versions_read(case, tmp_path):
    """XGBoost before 3.1 takes brackets, a tenth digit and "E+1" for 0.5, without a word."""
    model, X = fitted(case)
    model.save_model(tmp_path / "a.json")
    text = json.loads((tmp_path / "a.json").read_text())["learner"]["learner_model_param"]["base_score"]
    assert re.fullmatch(r"-?\d\.\d{8}E-?\d+", text)
    margin = xgb.Booster(model_file=tmp_path / "a.json").predict(
        native_rows(model, X), output_margin=True, validate_features=False
    )
    raw = model._raw_scores(X)
    np.testing.assert_allclose(margin.reshape(raw.T.shape), raw.T, atol=2e-6 * (1 + np.abs(raw).max()))


def test_the_largest_leaf_value_is_compared_like_any_other(tmp_path):
    """The spacing of float32 at its largest number is infinite: it must not be a tolerance."""
    document = copy.deepcopy(_forged("far away", lambda own: own))
    tree = document.trees[0]
    tree["split_conditions"][np.flatnonzero(tree["left_children"] == -1)[0]] = np.finfo(np.float32).max
    (tmp_path / "forged.ubj").write_bytes(resealed(document))
    with pytest.raises(ValueError, match="the native model is not that of these weights"):
        load_model(tmp_path / "forged.ubj")


def test_covers_that_do_not_add_up_are_refused(tmp_path):
    """SHAP values would depend on where the intercept is."""
    document = copy.deepcopy(_forged("classes", lambda own: own))
    document.trees[0]["sum_hessian"][0] *= -1
    (tmp_path / "forged.ubj").write_bytes(resealed(document))
    with pytest.raises(ValueError, match="the covers of two children do not add up"):
        load_model(tmp_path / "forged.ubj")


def test_an_intercept_that_outgrows_the_leaves_is_refused(tmp_path):
    """Weighted leaves and intercept may add up to the native leaves, and yet lose all digits in between."""
    X, y = three_classes()
    document = Document.new(
        [constant(0.0)] * 3, objective="multi:softprob", n_outputs=3, base_score=0.0, n_features=X.shape[1]
    )
    model = SCBoostClassifier(**{**FAST, "n_estimators": 1}).fit(X, y)
    own = json.loads(model_file.to_document(model._model, model.get_params(deep=False)).attributes["scboost"])
    own |= {
        "weights": packing.pack(np.ones((1, 3))),
        "intercept": packing.pack(np.full(3, 1e30).astype(np.float32).astype(float)),
        "leaf_values": packing.pack(np.full(3, -1e30, dtype=np.float32)),
    }
    forged = document.with_learner(attributes={"scboost": json.dumps(own)})
    (tmp_path / "forged.ubj").write_bytes(resealed(forged))
    with pytest.raises(ValueError, match="the intercept is not that of the native model"):
        load_model(tmp_path / "forged.ubj")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text.replace('"sparse": false', '"sparse": true, "sparse": false'), "A key comes twice"),
        (lambda text: text.replace('"learning_rate_": ', '"learning_rate_": NaN, "x": '), "NaN is not a JSON number"),
        (lambda text: text[:-1] + ', "more": 1}', "unknown entries"),
    ],
)
def test_metadata_is_strict_json(change, problem, tmp_path):
    document = _forged("binary", lambda own: own)
    text = change(document.attributes["scboost"])
    (tmp_path / "a.ubj").write_bytes(resealed(document.with_learner(attributes={"scboost": text})))
    with pytest.raises(ValueError, match=problem):
        load_model(tmp_path / "a.ubj")


def test_parameters_that_no_longer_name_the_loss_are_not_saved(tmp_path):
    X, y = real_target()
    model = SCBoostRegressor(**FAST, loss="quantile", quantile=0.2).fit(X, y).set_params(quantile=0.4)
    with pytest.raises(ValueError, match=r"the parameters name the loss .*0\.4.* fitted with .*0\.2"):
        model.save_model(tmp_path / "a.ubj")


@pytest.mark.parametrize("case", ["binary", "classes", "regression", "categories"])
def test_trees_that_xgboost_would_read_otherwise_are_refused(case, tmp_path):
    """XGBoost takes the node after the left child for the right one, and the id of a tree for its place."""
    model, _ = fitted(case)
    document = copy.deepcopy(model_file.to_document(model._model, model.get_params(deep=False)))
    tree = document.trees[0]
    for name in ("left_children", "right_children"):
        tree[name][0] = 3 - tree[name][0]
    (tmp_path / "a.ubj").write_bytes(resealed(document))
    with pytest.raises(ValueError, match="in tree 0, a right child does not follow the left one"):
        load_model(tmp_path / "a.ubj")
    document = copy.deepcopy(model_file.to_document(model._model, model.get_params(deep=False)))
    document.trees[0]["id"], document.trees[1]["id"] = 1, 0
    (tmp_path / "a.ubj").write_bytes(resealed(document))
    with pytest.raises(ValueError, match="in tree 0, id is 1"):
        load_model(tmp_path / "a.ubj")


def test_a_forged_tree_with_the_right_checksum_is_refused(tmp_path):
    model, _ = fitted("classes")
    document = copy.deepcopy(model_file.to_document(model._model, model.get_params(deep=False)))
    document.trees[4]["split_conditions"][-1] += 1
    (tmp_path / "a.ubj").write_bytes(resealed(document))
    with pytest.raises(ValueError, match="not that of these weights"):
        load_model(tmp_path / "a.ubj")
    document = copy.deepcopy(model_file.to_document(model._model, model.get_params(deep=False)))
    document.trees[4]["left_children"][0] = 0
    (tmp_path / "a.ubj").write_bytes(resealed(document))
    with pytest.raises(ValueError, match="corrupt: in tree 4, a child"):
        load_model(tmp_path / "a.ubj")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"null", b"[]", b"{}", b'{"learner": 3}', b"[" * 100000, b"{L", b"\x80" * 40]
)
def test_other_content_is_corrupt(text, tmp_path):
    (tmp_path / "a.json").write_bytes(text)
    with pytest.raises(ValueError, match="is corrupt"):
        load_model(tmp_path / "a.json")


def test_the_public_names_are_those_of_the_package():
    assert scboost.load_model is model_file.load_model


@pytest.mark.parametrize("engine", ["xgboost", "native"])
@pytest.mark.parametrize("seed", [0, 11])
@pytest.mark.filterwarnings("ignore")
def test_a_fit_whose_hessians_overflow_survives_its_file(engine, seed, tmp_path):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 3)), np.round(np.exp(rng.normal(20, 1, 30)))
    diverging = {"loss": "poisson", "learning_rate": 5.0, "n_estimators": 8, "max_bin": 2, "random_state": 0}
    model = SCBoostRegressor(**diverging, engine=engine, n_jobs=1).fit(X, y)
    model.save_model(tmp_path / "model.ubj")
    np.testing.assert_array_equal(load_model(tmp_path / "model.ubj").predict(X), model.predict(X))


def test_models_whose_covers_exceed_the_largest_number_are_loaded(tmp_path):
    """A diverging fit: the Hessian of a node is larger than float32 holds."""
    X = np.array([1.77, -0.21, 0.98, -0.16, -0.37, -0.82, -0.04, 1.49])[:, None]
    y = np.array([69.49, 1.04, 19.17, 0.3, 36.56, 1104.38, 12.88, 703.3])
    weight = 1e12 * np.array([1.243, 1.203, 1.317, 0.574, 1.481, 1.352, 1.458, 1.03])
    model = SCBoostRegressor(loss="gamma", learning_rate=3.0, n_estimators=6)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, weight)
    path = tmp_path / "model.json"
    model.save_model(path)
    trees = json.loads(path.read_text())["learner"]["gradient_booster"]["model"]["trees"]
    assert max(max(tree["sum_hessian"]) for tree in trees) > 3.4e38
    np.testing.assert_array_equal(load_model(path).predict(X), model.predict(X))
