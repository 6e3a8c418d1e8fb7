"""``scboost.compress`` as a whole."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss

import scboost
from scboost import SCBoostClassifier, SCBoostRegressor, compress

FAST: dict = {"max_bytes": None, "n_synthetic": 2000, "random_state": 0}


@pytest.fixture(scope="module")
def binary():
    X, y = make_classification(2400, 8, n_informative=6, flip_y=0.05, random_state=0)
    model = SCBoostClassifier(n_estimators=60, random_state=0, n_jobs=1).fit(X[:1200], y[:1200])
    return model, X[:1200], y[:1200], X[1200:], y[1200:]


def test_the_student_is_a_fitted_estimator_close_to_its_teacher(binary):
    model, X, y, X_new, y_new = binary
    small = compress(model, X, y, max_trees=15, **FAST)
    assert isinstance(small.model, SCBoostClassifier)
    assert small.n_trees == small.model.n_estimators_ == 15
    assert small.fidelity > 0.9
    assert np.mean(small.model.predict(X_new) == model.predict(X_new)) > 0.93
    assert log_loss(y_new, small.model.predict_proba(X_new)) < log_loss(y_new, model.predict_proba(X_new)) + 0.03


def test_twenty_trees_are_nearer_to_the_teacher_than_twenty_rounds_of_boosting(binary):
    _, X, y, X_new, _ = binary
    model = SCBoostClassifier(n_estimators=300, random_state=0, n_jobs=1).fit(X, y)
    q = model.predict_proba(X_new)

    def divergence(student):
        return np.mean((q * np.log(q / student.predict_proba(X_new))).sum(axis=1))

    short = SCBoostClassifier(n_estimators=20, random_state=0, n_jobs=1).fit(X, y)
    assert divergence(compress(model, X, random_state=0).model) < 0.7 * divergence(short)


def test_the_curve_ends_at_the_model_and_falls(binary):
    model, X, y, X_new, y_new = binary
    small = compress(model, X, y, max_trees=8, X_certify=X_new, y_certify=y_new, **FAST)
    assert [point.n_trees for point in small.curve] == list(range(1, 9))
    assert small.curve[-1].n_leaves == small.n_leaves
    last = small.curve[-1]
    assert last.divergence < small.curve[0].divergence / 3
    p, q = (m.predict_proba(X_new) for m in (small.model, model))
    assert last.loss == small.loss == pytest.approx(log_loss(y_new, p), abs=1e-5)
    assert small.teacher_loss == pytest.approx(log_loss(y_new, q), abs=1e-5)
    assert last.agreement == small.certificate.agreement == np.mean(p.argmax(1) == q.argmax(1))
    assert last.divergence == pytest.approx(float(np.mean((q * np.log(q / p)).sum(1))), abs=1e-5)
    assert small.certificate.loss_rise == pytest.approx(small.loss - small.teacher_loss)
    assert small.certificate.loss_rise_bound > small.certificate.loss_rise
    assert set(small.curve_arrays()) == {"n_trees", "n_leaves", "divergence", "agreement", "loss"}


def test_certified_samples_are_not_used_for_fitting(binary):
    """The student depends on the samples to certify in no way."""
    model, X, _, X_new, _ = binary
    one = compress(model, X, max_trees=3, X_certify=X_new[:100], **FAST)
    other = compress(model, X, max_trees=3, X_certify=X_new[100:], **FAST)
    assert np.array_equal(one.model.decision_function(X), other.model.decision_function(X))
    assert one.certificate != other.certificate


def test_equal_seeds_give_equal_models(binary):
    model, X, *_ = binary
    a, b = (compress(model, X, max_trees=3, **FAST) for _ in range(2))
    assert np.array_equal(a.model.predict_proba(X), b.model.predict_proba(X))
    other = compress(model, X, max_trees=3, n_synthetic=2000, random_state=1)
    assert not np.array_equal(a.model.predict_proba(X), other.model.predict_proba(X))


def test_a_teacher_of_few_trees_is_reproduced():
    X, y = make_classification(2000, 5, n_redundant=0, random_state=0)
    X = np.round(X, 1)
    tree = {"max_depth": 2, "min_child_weight": 1.0}  # without leaves of few samples, which compress leaves out
    teacher = SCBoostClassifier(n_estimators=3, learning_rate=0.5, n_jobs=1, **tree).fit(X, y)
    small = compress(teacher, X, max_trees=10, **FAST)
    assert small.fidelity > 0.998
    assert small.certificate.agreement > 0.99


def test_a_student_splits_on_features_of_its_teacher_only():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 6))
    X[:, 1:4] = X[:, :1] + 0.05 * rng.standard_normal((1500, 3))  # nearly the same feature
    y = (X[:, 3] + X[:, 4] + 0.3 * rng.standard_normal(1500) > 0).astype(int)
    few = {"n_estimators": 4, "max_depth": 2, "n_jobs": 1}
    teacher = SCBoostClassifier(**few, interaction_constraints=[[2, 4]], random_state=0).fit(X, y)
    used = set(np.flatnonzero(teacher.feature_importances_))
    assert used < set(range(6))
    small = compress(teacher, X, max_trees=10, **FAST)
    assert set(np.flatnonzero(small.model.feature_importances_)) <= used
    assert small.fidelity > 0.95


def test_the_number_of_synthetic_samples_follows_that_of_the_samples(binary):
    model, X, y, *_ = binary
    assert compress(model, X, y, max_trees=2, random_state=0).n_synthetic == 10_000
    assert compress(model, X, y, max_trees=21, max_leaves=2, random_state=0).n_synthetic == 8_000
    many = np.repeat(X, 2, axis=0)
    assert compress(model, many, max_trees=2, random_state=0).n_synthetic == 8 * (len(many) - len(many) // 10)


def test_files_and_xgboost_predict_the_same(binary, tmp_path):
    model, X, *_ = binary
    small = compress(model, X, max_trees=5, **FAST)
    small.model.save_model(tmp_path / "small.ubj")
    p = small.model.predict_proba(X)
    assert np.array_equal(scboost.load_model(tmp_path / "small.ubj").predict_proba(X), p)
    native = compress(model, X, max_trees=5, library="xgboost", **FAST).model
    assert type(native).__name__ == "XGBClassifier"
    assert np.allclose(native.predict_proba(X), p, atol=1e-6)


def test_trees_are_redundant_less_than_those_of_boosting(binary):
    import xgboost

    model, X, y, X_new, _ = binary
    small = compress(model, X, **FAST).model
    boosted = xgboost.XGBClassifier(n_estimators=20, max_leaves=64, max_depth=0, grow_policy="lossguide", n_jobs=1)
    ours, theirs = (scboost.redundancy_report(m, X_new).redundancy for m in (small, boosted.fit(X, y)))
    assert ours < theirs


def test_max_bytes_bounds_the_model_file(binary, tmp_path):
    model, X, *_ = binary
    for size in (8_000, 30_000):
        small = compress(model, X, **{**FAST, "max_bytes": size})
        small.model.save_model(tmp_path / "small.ubj")
        assert (tmp_path / "small.ubj").stat().st_size <= small.n_bytes <= size
        assert small.n_bytes > size / 5


def test_max_leaves_bounds_every_tree(binary):
    model, X, *_ = binary
    small = compress(model, X, max_trees=4, max_leaves=5, **FAST)
    assert small.n_leaves <= 20


def test_trees_have_more_leaves_by_default_if_there_are_more_than_twenty(binary):
    model, X, *_ = binary
    few, many = (compress(model, X, max_trees=n, **FAST) for n in (20, 21))
    assert (few.max_leaves, many.max_leaves) == (64, 96)


def test_many_classes():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    forest = RandomForestClassifier(100, random_state=0).fit(X, labels)
    small = compress(forest, X, labels, max_trees=5, **FAST)
    assert small.model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert np.mean(small.model.predict(X) == forest.predict(X)) > 0.95
    assert small.n_trees == 5
    assert np.abs(small.model.predict_proba(X) - forest.predict_proba(X)).mean() < 0.05


def test_regression():
    X, y = make_regression(1500, 6, noise=5.0, random_state=0)
    y = 1e4 + 100 * y
    model = SCBoostRegressor(n_estimators=80, random_state=0, n_jobs=1).fit(X[:1000], y[:1000])
    small = compress(model, X[:1000], y[:1000], X_certify=X[1000:], y_certify=y[1000:], **FAST)
    assert isinstance(small.model, SCBoostRegressor)
    assert small.fidelity > 0.97
    difference = small.model.predict(X[1000:]) - model.predict(X[1000:])
    assert small.certificate.divergence == pytest.approx(np.mean(difference**2) / 2, rel=1e-3)
    assert small.certificate.agreement is None
    assert "root mean squared difference" in str(small)


def test_counts_on_the_log_scale():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 4))
    y = rng.poisson(np.exp(1 + X[:, 0] + np.sin(2 * X[:, 1])))
    model = SCBoostRegressor(loss="poisson", n_estimators=60, random_state=0, n_jobs=1).fit(X, y)
    small = compress(model, X, y, **FAST)
    assert small.model.get_params()["loss"] == "poisson"
    assert small.fidelity > 0.9
    assert (small.model.predict(X) > 0).all()


def test_several_quantiles():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 3))
    y = X[:, 0] + (1 + np.abs(X[:, 1])) * rng.standard_normal(1200)
    model = SCBoostRegressor(loss="quantile", quantile=[0.1, 0.5, 0.9], n_estimators=40, n_jobs=1).fit(X, y)
    small = compress(model, X, **FAST)
    assert small.model.predict(X).shape == (1200, 3)
    assert np.corrcoef(small.model.predict(X)[:, 2], model.predict(X)[:, 2])[0, 1] > 0.95
    with pytest.raises(ValueError, match="calibrate"):  # the errors of the large model are not those of the small one
        small.model.predict_interval(X, coverage=0.8)
    assert small.model.calibrate(X, y).predict_interval(X, coverage=0.8).shape == (1200, 2)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_tables_with_categories_and_missing_values(kind):
    rng = np.random.default_rng(0)
    n = 1200
    table = pd.DataFrame(
        {
            "city": rng.choice([f"c{i}" for i in range(12)], n),
            "age": rng.integers(18, 80, n),
            "income": np.where(rng.random(n) < 0.15, np.nan, rng.lognormal(10, 0.5, n)),
        }
    )
    score = (table["age"] - 45) / 20 + table["city"].isin(["c1", "c5", "c7"]) * 2 + table["income"].isna() - 1
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    if kind == "polars":
        import polars as pl

        table = pl.from_pandas(table)
    model = SCBoostClassifier(n_estimators=60, min_child_weight=1.0, random_state=0, n_jobs=1).fit(table, y)
    small = compress(model, table, y, **FAST)
    assert small.fidelity > 0.85
    assert np.mean(small.model.predict(table) == model.predict(table)) > 0.95
    assert small.model.feature_names_in_.tolist() == ["city", "age", "income"]


def test_functions_and_own_synthetic_samples():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 3))

    def teacher(X):
        return 4 * np.sin(3 * X[:, 0]) * X[:, 1]

    def generate(n, rng):
        return rng.uniform(-1, 1, (n, 3))

    fresh = rng.uniform(-1, 1, (2000, 3))
    near = compress(teacher, X, link="identity", X_certify=fresh, n_synthetic=0, random_state=0)
    drawn = compress(teacher, X, link="identity", X_certify=fresh, X_synthetic=generate, random_state=0)
    given = compress(teacher, X, link="identity", X_certify=fresh, X_synthetic=generate(20_000, rng), random_state=0)
    assert near.n_synthetic == 0
    assert drawn.n_synthetic == 20_000
    assert given.n_synthetic == 18_000
    assert near.fidelity < min(drawn.fidelity, given.fidelity)
    assert min(drawn.fidelity, given.fidelity) > 0.98


def test_certificates_cover():
    """Over resamplings, the bound on agreement is below the agreement on a large set at least as often as stated."""
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    forest = RandomForestClassifier(30, max_depth=3, random_state=0).fit(X[:300], y[:300])
    base = X[300:]
    small = compress(forest, X[:300], max_trees=2, max_leaves=3, X_certify=base, **FAST)
    same = small.model.predict(base) == forest.predict(base)
    from scboost._compress.certificate import clopper_pearson

    bounds = [clopper_pearson(int(rng.choice(same, 100).sum()), 100, 0.95) for _ in range(2000)]
    assert np.mean(np.array(bounds) <= same.mean()) >= 0.95 - 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_trees": 0}, "max_trees=0 must be an integer of at least 1"),
        ({"max_leaves": 1}, "max_leaves=1 must be an integer of at least 2"),
        ({"max_leaves": "many"}, "max_leaves='many' must be 'auto' or an integer of at least 2"),
        ({"max_bytes": 3}, "max_bytes=3 must be an integer of at least 1000"),
        ({"max_bytes": 1000}, r"max_bytes=1000 is too small for one tree of two leaves .* use at least 2"),
        ({"confidence": 95}, "confidence=95 must be at least 0.5 and below 1"),
        ({"certify_fraction": 0}, "certify_fraction=0 must be between 0 and 1"),
        ({"n_synthetic": -1}, "n_synthetic=-1 must be 'auto' or an integer"),
        ({"library": "lightgbm"}, "library='lightgbm' must be 'scboost' or 'xgboost'"),
        ({"y_certify": [1]}, "y_certify was given without X_certify"),
        ({"y": [1, 0]}, r"y has shape \(2,\); it must be \(1200,\)"),
        ({"y": np.full(1200, 7)}, r"y has labels \['7'\] that the model does not know"),
        ({"X_certify": np.zeros((3, 5))}, "X_certify has 5 features, X has 8"),
    ],
)
def test_bad_arguments_are_named(binary, arguments, message):
    model, X, *_ = binary
    with pytest.raises(ValueError, match=message):
        compress(model, X, **arguments)


def test_bad_samples_are_named(binary):
    from scipy import sparse

    model, X, *_ = binary
    with pytest.raises(TypeError, match="X is a sparse matrix"):
        compress(model, sparse.csr_array(X))
    with pytest.raises(ValueError, match="X has 5 samples; compress needs at least 20"):
        compress(model, X[:5])
    with pytest.raises(ValueError, match="X has infinite values"):
        compress(model, np.where(X > 2, np.inf, X))
    with pytest.raises(ValueError, match="2-D array of numbers"):
        compress(model, X.astype(object))


# --- estimators ------------------------------------------------------------------------------------------------------


def test_the_method_is_the_function(binary):
    model, X, y, *_ = binary
    one, other = model.compress(X, y, max_trees=3, **FAST), compress(model, X, y, max_trees=3, **FAST)
    assert one.certificate == other.certificate
    assert np.array_equal(one.model.predict_proba(X), other.model.predict_proba(X))


def test_max_trees_fits_and_compresses(binary, tmp_path):
    _, X, y, X_new, _ = binary
    full = SCBoostClassifier(n_estimators=150, random_state=0, n_jobs=1).fit(X, y)
    small = SCBoostClassifier(n_estimators=150, max_trees=8, random_state=0, n_jobs=1).fit(X, y)
    assert small.n_estimators_ == 8
    assert len(small.get_booster().get_dump()) == 8
    expected = full.compress(X, max_trees=8, random_state=0)
    assert np.array_equal(small.predict_proba(X_new), expected.model.predict_proba(X_new))
    assert small.stop_reason_.startswith("compressed from 150 rounds. At least ")
    assert small.training_log_["n_trees"].tolist() == list(range(1, 9))
    small.save_model(tmp_path / "small.json")
    again = scboost.load_model(tmp_path / "small.json")
    assert again.stop_reason_ == small.stop_reason_
    assert np.array_equal(again.predict_proba(X_new), small.predict_proba(X_new))


def test_max_trees_of_the_regressor_leaves_out_samples_of_weight_zero():
    X, y = make_regression(400, 4, noise=5.0, random_state=0)
    weight = (np.arange(400) % 4 > 0).astype(float)
    options = {"n_estimators": 30, "max_trees": 4, "random_state": 0, "n_jobs": 1}
    weighted = SCBoostRegressor(**options).fit(X, y, sample_weight=weight)
    without = SCBoostRegressor(**options).fit(X[weight > 0], y[weight > 0])
    assert np.array_equal(weighted.predict(X), without.predict(X))


def test_sparse_samples_of_a_model_that_was_fitted_on_them():
    from scipy import sparse

    X, y = make_classification(800, 6, n_informative=5, n_redundant=0, random_state=0)
    X = sparse.csr_matrix(np.where(np.abs(X) < 0.5, 0, X))
    model = SCBoostClassifier(n_estimators=40, random_state=0, n_jobs=1).fit(X, y)
    small = compress(model, X, max_trees=10, **FAST)
    assert small.fidelity > 0.8
    assert np.mean(small.model.predict(X) == model.predict(X)) > 0.95


def test_categories_are_those_of_the_teacher():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.standard_normal(900), "c": rng.choice(list("abcd"), 900)})
    y = (table["x"] + (table["c"] == "d") * 2 > 0.5).astype(int)
    model = SCBoostClassifier(n_estimators=30, n_jobs=1).fit(table, y)
    some = table[table["c"] != "d"]
    small = compress(model, some, max_trees=10, **FAST).model
    assert small.__fitted_model__().encoder == model.__fitted_model__().encoder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_trees": 0}, "max_trees"),
        (
            {"warm_start": True},
            "warm_start=True cannot be used with max_trees=5: a compressed model",
        ),
        ({"monotone_constraints": [1] * 8}, "monotone_constraints=.* the compressed trees"),
        ({"interaction_constraints": [[0, 1]]}, "interaction_constraints=.* the compressed trees"),
    ],
)
def test_parameters_that_contradict_max_trees_are_refused(binary, arguments, message):
    _, X, y, *_ = binary
    with pytest.raises(ValueError, match=message):
        SCBoostClassifier(**{"n_estimators": 5, "max_trees": 5, **arguments}).fit(X, y)


def test_batches_cannot_be_compressed_by_fit(binary, tmp_path):
    _, X, y, *_ = binary
    with pytest.raises(ValueError, match="max_trees=5 cannot be used with a fit to batches"):
        SCBoostClassifier(n_estimators=5, max_trees=5).fit(scboost.Batches(lambda: iter([(X, y)]), folder=tmp_path))


def test_a_fit_that_cannot_be_compressed_leaves_the_estimator_as_it_was(binary):
    _, X, y, *_ = binary
    model = SCBoostClassifier(n_estimators=5, n_jobs=1).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="compress needs at least 20"):
        model.set_params(max_trees=3).fit(X[:15], y[:15])
    assert np.array_equal(model.predict_proba(X), before)


def test_a_compressed_model_has_at_most_a_tenth_of_the_bytes_of_its_teacher(tmp_path):
    X, y = make_classification(1500, 8, n_informative=6, random_state=0)
    model = SCBoostClassifier(n_estimators=150, random_state=0, n_jobs=1).fit(X, y)
    small = compress(model, X, max_trees=50, n_synthetic=2000, random_state=0)
    for name, one in (("teacher", model), ("small", small.model)):
        one.save_model(tmp_path / f"{name}.ubj")
    sizes = [(tmp_path / f"{name}.ubj").stat().st_size for name in ("teacher", "small")]
    assert sizes[0] > 200_000
    assert sizes[1] <= sizes[0] / 10
    assert small.fidelity > 0.8


def test_models_of_other_libraries_have_no_limit_of_bytes_by_default(binary):
    _, X, y, *_ = binary
    forest = RandomForestClassifier(20, random_state=0, n_jobs=1).fit(X, y)
    small = compress(forest, X, max_trees=12, max_leaves=16, n_synthetic=2000, random_state=0)
    assert small.n_trees == 12
    assert small.n_leaves == 12 * 16


def test_files_of_unweighted_models_store_leaf_values_once(binary, tmp_path):
    model, X, *_ = binary
    small = compress(model, X, **FAST).model
    small.save_model(tmp_path / "small.json")
    learner = json.loads((tmp_path / "small.json").read_text())["learner"]
    first, *others = learner["gradient_booster"]["model"]["trees"]
    own = json.loads(learner["attributes"]["scboost"])
    # Of the first tree only, which holds a part of the intercept.
    assert len(others) == 19
    assert own["leaf_values"]["shape"] == [first["left_children"].count(-1)]
    again = scboost.load_model(tmp_path / "small.json")
    assert np.array_equal(again.predict_proba(X), small.predict_proba(X))


def test_a_compressed_model_that_was_changed_in_its_file_is_refused(binary, tmp_path):
    from scboost._model import file
    from scboost._model.document import Document

    model, X, *_ = binary
    compress(model, X, **FAST).model.save_model(tmp_path / "small.ubj")
    document = Document.decode((tmp_path / "small.ubj").read_bytes())
    own = json.loads(document.attributes["scboost"])
    own["weights"]["data"] = own["weights"]["data"].replace("AAAAAAAA8D8", "AAAAAAAAAEA", 1)  # 2 instead of 1
    changed = document.with_learner(attributes={"scboost": json.dumps(own)})
    changed = changed.with_learner(attributes={**changed.attributes, "scboost_checksum": file.checksum(changed)})
    (tmp_path / "changed.ubj").write_bytes(changed.encode())
    with pytest.raises(ValueError, match="leaf values"):
        scboost.load_model(tmp_path / "changed.ubj")


def _table(rng, n=600):
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=list("abc"))
    X["color"] = pd.Categorical(np.array(["red", "green", "blue", "grey", "pink", "white"])[rng.integers(6, size=n)])
    X.loc[::7, "b"] = np.nan
    y = (X["a"] + (X["color"].isin(["red", "pink"])) + 0.3 * rng.standard_normal(n) > 0.5).to_numpy().astype(int)
    return X, y


@pytest.mark.parametrize("numeric", [True, False])
def test_compact_files_hold_the_same_model_in_fewer_bytes(numeric, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    from scboost._model import check_xgboost
    from scboost._model.file import to_document

    X, y = _table(np.random.default_rng(0))
    X = X[["a", "b", "c"]] if numeric else X
    teacher = SCBoostClassifier(n_estimators=60, learning_rate=0.1, random_state=0).fit(X, y)
    small = compress(teacher, X, max_trees=8, max_leaves=200, max_bytes=None, random_state=0)
    small.model.save_model(tmp_path / "small.ubj")
    small.model.save_model(tmp_path / "small.json")
    native = to_document(small.model.__fitted_model__(), {}).in_current_layout()
    assert any(tree["split_type"].any() for tree in native.trees) is not numeric
    data = (tmp_path / "small.ubj").read_bytes()
    assert small.n_bytes - 100 <= len(data) <= small.n_bytes < 0.92 * len(native.encode())
    assert not list(check_xgboost.problems(data))
    read = [scboost.load_model(tmp_path / name) for name in ("small.ubj", "small.json")]
    assert read[0].get_params() == read[1].get_params() == small.model.get_params()
    for model in read:
        assert np.array_equal(model.predict_proba(X), small.model.predict_proba(X))
    boosters = [xgboost.Booster(model_file=tmp_path / name) for name in ("small.ubj", "small.json")]
    assert boosters[0].save_raw("ubj") == boosters[1].save_raw("ubj")


def test_compact_files_have_no_booleans_which_old_versions_of_xgboost_read_wrongly(tmp_path):
    from scboost._model import ubjson

    X, y = _table(np.random.default_rng(0))
    teacher = SCBoostClassifier(n_estimators=10, random_state=0).fit(X, y)
    compress(teacher, X, max_trees=3, random_state=0).model.save_model(tmp_path / "small.ubj")
    content = ubjson.decode((tmp_path / "small.ubj").read_bytes())
    directions = [tree["default_left"] for tree in content["learner"]["gradient_booster"]["model"]["trees"]]
    assert {type(value) for tree in directions for value in tree} == {int}
    assert {value for tree in directions for value in tree} == {0, 1}


def test_corrupt_compact_files_are_refused(binary, tmp_path):
    model, X, _, _, _ = binary
    compress(model, X, max_trees=2, random_state=0).model.save_model(tmp_path / "small.ubj")
    data = (tmp_path / "small.ubj").read_bytes()
    start = data.index(b"base_weights")
    rng = np.random.default_rng(0)
    for at in rng.integers(start, len(data), size=100).tolist():
        changed = bytearray(data)
        changed[at] ^= int(rng.integers(1, 256))
        (tmp_path / "changed.ubj").write_bytes(changed)
        with pytest.raises(ValueError, match=r"changed\.ubj"):
            scboost.load_model(tmp_path / "changed.ubj")
