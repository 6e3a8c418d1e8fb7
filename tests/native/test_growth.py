"""Trees of the compiled kernels: equal to XGBoost's, or to a brute-force reference, and independent of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes

pytest.importorskip("scboost._engine.native._native")

from native_oracle import assert_equals_xgboost, cuts_of, quantile_matrix
from scboost._engine.native.trees import BinnedData, GrowthOptions, Pool, TreeGrower, TreePredictor
from scboost._model.document import Document
from symmetric_reference import symmetric_tree

CATEGORIES = {"few": 3, "some": 30, "many": 400}
OPTIONS = {
    "plain": {},
    "L2": {"reg_lambda": 0.0, "min_child_weight": 0.0},
    "L1": {"reg_alpha": 2.5},
    "child weight": {"min_child_weight": 8.0},
    "gain": {"min_split_loss": 6.0},
    "step": {"max_delta_step": 0.4},
    "stump": {"max_depth": 1},
    "deep": {"max_depth": 9},
    "leaves": {"max_leaves": 11},
    "leaf-wise": {"grow_policy": "leaf-wise", "max_depth": 0, "max_leaves": 25},
    "leaf-wise with depth": {"grow_policy": "leaf-wise", "max_depth": 4, "max_leaves": 14, "reg_alpha": 1.0},
    "monotone": {"monotone_constraints": (1, -1, 1, 0, 0, 1)},
    "interactions": {"interaction_constraints": ((0, 1), (1, 2, 3))},
    "monotone leaf-wise": {
        "grow_policy": "leaf-wise",
        "max_leaves": 20,
        "monotone_constraints": (0, 1, -1, 0, 1, 0),
        "interaction_constraints": ((0, 4), (1, 2, 3, 5)),
    },
}


def make(n=2000, d=6, *, missing=0.0, n_categories=0, seed=0):
    """Continuous features, of which some values are missing and the last two may be categories; gradient, Hessian."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    signal = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3]
    if n_categories:
        X[:, -2:] = rng.integers(n_categories, size=(n, 2))
        X[:n_categories, -2:] = np.arange(n_categories)[:, None]  # all of them occur: codes are bins
        signal = signal + np.sin(X[:, -1] * 1.7) * 2
    X[rng.random((n, d)) < missing] = np.nan
    h = rng.uniform(0.2, 1.0, n).astype(np.float32)
    return X, ((rng.normal(size=n) - signal) * h).astype(np.float32), h


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", OPTIONS)
def test_trees_equal_xgboost(name, missing):
    X, g, h = make(missing=missing)
    assert_equals_xgboost(X, g, h, GrowthOptions(**OPTIONS[name]))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("splits", ["one-vs-rest", "subset"])
@pytest.mark.parametrize("count", CATEGORIES)
@pytest.mark.parametrize("name", ["plain", "L1", "child weight", "leaf-wise"])
def test_trees_with_categories_equal_xgboost(name, count, splits, missing):
    n_categories = CATEGORIES[count]
    X, g, h = make(n=6000, missing=missing, n_categories=n_categories)
    X[: 4 * n_categories] = np.nan_to_num(X[: 4 * n_categories])
    X[:n_categories, -2:] = np.arange(n_categories)[:, None]
    categorical = np.arange(6) >= 4
    one_vs_rest = 10**6 if splits == "one-vs-rest" else 1
    # Splits that separate one sample from the others are many, and have the same gain.
    options = GrowthOptions(**{"min_child_weight": 6.0, **OPTIONS[name]}, max_cat_to_onehot=one_vs_rest)
    grown = assert_equals_xgboost(X, g, h, options, categorical)
    assert grown.tree["split_type"].any() or n_categories == 400


@pytest.mark.parametrize("n", [1, 2, 30, 47, 48, 49, 300, 70_000])
def test_trees_of_few_and_many_samples_equal_xgboost(n):
    X, g, h = make(n, missing=0.1)
    assert_equals_xgboost(X, g, h, GrowthOptions(min_child_weight=0.1))


def test_trees_on_many_features_equal_xgboost():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 300)).astype(np.float32)
    g = (rng.normal(size=400) - X[:, 7]).astype(np.float32)
    assert_equals_xgboost(X, g, np.ones(400, dtype=np.float32), GrowthOptions())


@pytest.mark.parametrize("load", [load_breast_cancer, load_diabetes])
def test_trees_on_real_data_equal_xgboost(load):
    X, y = load(return_X_y=True)
    rng = np.random.default_rng(0)
    h = rng.uniform(0.5, 1.5, len(y)).astype(np.float32)  # no two splits have the same gain
    g = ((y.mean() - y) / y.std() + 0.1 * rng.normal(size=len(y))).astype(np.float32)
    assert_equals_xgboost(X.astype(np.float32), g, h, GrowthOptions())


def test_sparse_equals_dense_with_missing_values():
    X, g, h = make(n=500, missing=0.6)
    stored = ~np.isnan(X)
    matrix = sparse.csr_matrix((X[stored], np.nonzero(stored)), shape=X.shape)
    trees = [TreeGrower(BinnedData(data), GrowthOptions()).grow(g[None], h[None])[0] for data in (X, matrix)]
    assert_same(*trees)


def assert_same(a, b):
    for name in a.tree:
        np.testing.assert_array_equal(a.tree[name], b.tree[name], err_msg=name)
    np.testing.assert_array_equal(a.leaf, b.leaf)
    np.testing.assert_array_equal(a.nodes, b.nodes)


@pytest.mark.parametrize("policy", ["depth-wise", "leaf-wise", "symmetric"])
@pytest.mark.parametrize("n", [3000, 150_000])
def test_trees_are_bit_identical_for_any_number_of_threads(policy, n):
    X, g, h = make(n, missing=0.1, n_categories=20)
    counts = [0, 0, 0, 0, 20, 20]
    options = GrowthOptions(grow_policy=policy, max_leaves=40, colsample_bynode=0.8)
    first = TreeGrower(BinnedData(X, n_categories=counts), options).grow(g[None], h[None], seed=3)
    for n_threads in (2, 4, 8):
        threads = Pool(n_threads)
        data = BinnedData(X, n_categories=counts, pool=threads)
        assert_same(first[0], TreeGrower(data, options).grow(g[None], h[None], seed=3, pool=threads)[0])


@pytest.mark.parametrize("n_threads", [1, 3])
def test_many_samples_without_weight_do_not_count_but_get_a_leaf(n_threads):
    X, g, h = make(50_001)
    data, active = BinnedData(X), np.random.default_rng(7).random(len(X)) < 0.6
    g, h, threads = (
        np.where(active, g, 0).astype(np.float32),
        np.where(active, h, 0).astype(np.float32),
        Pool(n_threads),
    )
    [grown] = TreeGrower(data, GrowthOptions()).grow(g[None], h[None], pool=threads)
    alone = BinnedData(X[active], cuts=data.cuts)
    [expected] = TreeGrower(alone, GrowthOptions()).grow(g[None, active], h[None, active])
    for name in grown.tree:
        np.testing.assert_array_equal(grown.tree[name], expected.tree[name], err_msg=name)
    np.testing.assert_array_equal(grown.leaf[active], expected.leaf)
    [nodes] = TreePredictor([grown.tree], [0], X.shape[1]).nodes(X).T
    np.testing.assert_array_equal(nodes, grown.nodes[grown.leaf])


def test_trees_of_several_outputs_are_those_grown_alone():
    X, g, h = make()
    gradients = np.stack([g, -2 * g, g**2]).astype(np.float32)
    hessians = np.stack([h, h, np.ones_like(h)])
    grower = TreeGrower(BinnedData(X), GrowthOptions())
    alone = [grower.grow(gradients[[k]], hessians[[k]], seed=k)[0] for k in range(3)]
    for threads in (None, Pool(2)):
        together = grower.grow(gradients, hessians, pool=threads)
        for a, b in zip(alone, together, strict=True):
            assert_same(a, b)


@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1e8])
@pytest.mark.parametrize("policy", ["depth-wise", "leaf-wise", "symmetric"])
def test_structure_does_not_depend_on_the_unit_of_the_target(policy, scale):
    X, g, h = make(missing=0.1)
    unit = 2.0 ** round(np.log2(scale))  # exact in float32
    grower = TreeGrower(BinnedData(X), GrowthOptions(grow_policy=policy, max_leaves=30))
    [plain], [scaled] = grower.grow(g[None], h[None]), grower.grow(g[None] * np.float32(unit), h[None])
    assert len(plain.nodes) > 20
    np.testing.assert_array_equal(plain.leaf, scaled.leaf)
    np.testing.assert_allclose(scaled.values, plain.values * unit, rtol=1e-6)


def test_a_constant_gradient_is_not_split():
    X, _, h = make()
    grower = TreeGrower(BinnedData(X), GrowthOptions(reg_lambda=0.0, min_child_weight=0.0))
    for value in (1.0, 1e6, 1 / 3):
        [grown] = grower.grow((value * h)[None], h[None])
        assert len(grown.nodes) == 1
        np.testing.assert_allclose(grown.values, -value, rtol=1e-6)


def test_samples_of_weight_zero_do_not_count_but_get_a_leaf():
    X, g, h = make(missing=0.2, n_categories=20)
    used = np.random.default_rng(1).random(len(g)) < 0.5
    counts = [0, 0, 0, 0, 20, 20]
    data = BinnedData(X, n_categories=counts)
    [grown] = TreeGrower(data, GrowthOptions(max_cat_to_onehot=1)).grow((g * used)[None], (h * used)[None])
    part = BinnedData(X[used], n_categories=counts, cuts=data.cuts)
    [expected] = TreeGrower(part, GrowthOptions(max_cat_to_onehot=1)).grow(g[None, used], h[None, used])
    for name in ("left_children", "split_indices", "split_conditions", "base_weights", "categories", "default_left"):
        np.testing.assert_array_equal(grown.tree[name], expected.tree[name], err_msg=name)
    predictor = TreePredictor([grown.tree], [0], X.shape[1])
    np.testing.assert_array_equal(predictor.nodes(X)[:, 0], grown.nodes[grown.leaf])


@pytest.mark.parametrize("part", ["tree", "level", "node"])
def test_feature_sampling_draws_a_share_of_the_features(part):
    X, g, h = make(d=20)
    options = GrowthOptions(**{f"colsample_by{part}": 0.25})
    grower = TreeGrower(BinnedData(X), options)
    used = [set(), set()]
    for seed in range(40):
        [grown], [again] = grower.grow(g[None], h[None], seed=seed), grower.grow(g[None], h[None], seed=seed)
        assert_same(grown, again)
        inner = grown.tree["left_children"] != -1
        features = grown.tree["split_indices"][inner]
        if part == "tree":
            assert len(set(features)) <= 5
        used[0] |= set(features[:1])
        used[1] |= set(features)
    assert len(used[1]) == 20
    assert 3 < len(used[0]) <= 20


def test_a_tree_uses_the_given_features_only():
    X, g, h = make(missing=0.1)
    [grown] = TreeGrower(BinnedData(X), GrowthOptions()).grow(g[None], h[None], features=[1, 4])
    assert set(grown.tree["split_indices"][grown.tree["left_children"] != -1]) == {1, 4}
    [alone] = TreeGrower(BinnedData(X[:, [1, 4]]), GrowthOptions()).grow(g[None], h[None])
    np.testing.assert_array_equal(grown.leaf, alone.leaf)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_categories", [0, 5])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reg_alpha": 1.0, "reg_lambda": 0.5},
        {"min_child_weight": 12.0},
        {"min_split_loss": 2.0},
        {"monotone_constraints": (1, -1, 0, 0, 0, 0)},
        {"max_depth": 7, "min_child_weight": 0.5},
        {"max_depth": 3, "reg_lambda": 0.0},
    ],
)
def test_symmetric_trees_equal_the_reference(options, n_categories, missing):
    X, g, h = make(n=400, missing=missing, n_categories=n_categories)
    counts = np.array([0, 0, 0, 0, n_categories, n_categories])
    data = BinnedData(X, max_bin=16, n_categories=counts)
    options = GrowthOptions(**{"grow_policy": "symmetric", "max_depth": 4, "max_cat_to_onehot": 100, **options})
    [grown] = TreeGrower(data, options).grow(g[None], h[None])
    leaf, values, splits = symmetric_tree(data.codes(), np.diff(data.cuts.indptr), counts > 0, g, h, options)
    assert splits
    same = {(a, b) for a, b in zip(leaf, grown.leaf, strict=True)}
    assert len(same) == len(values) == len(grown.nodes)  # the same partition
    np.testing.assert_allclose(grown.values[grown.leaf], np.array(values)[leaf], rtol=1e-6, atol=1e-7)


def test_a_level_of_a_symmetric_tree_has_one_split():
    X, g, h = make(n=5000, missing=0.1)
    [grown] = TreeGrower(BinnedData(X), GrowthOptions(grow_policy="symmetric")).grow(g[None], h[None])
    tree = grown.tree
    inner = np.flatnonzero(tree["left_children"] != -1)
    splits = {(tree["split_indices"][i], tree["split_conditions"][i], tree["default_left"][i]) for i in inner}
    assert len(splits) <= 6
    assert len(grown.nodes) > 16


def test_trees_are_valid_documents_that_xgboost_reads():
    X, g, h = make(missing=0.2, n_categories=20)
    data = BinnedData(X, n_categories=[0, 0, 0, 0, 20, 20])
    for policy in ("depth-wise", "leaf-wise", "symmetric"):
        for onehot in (1, 100):
            options = GrowthOptions(grow_policy=policy, max_leaves=31, max_cat_to_onehot=onehot)
            [grown] = TreeGrower(data, options).grow(g[None], h[None])
            types = ["float"] * 4 + ["c"] * 2
            document = Document.new(
                [grown.tree],
                objective="reg:squarederror",
                n_outputs=1,
                base_score=0.0,
                n_features=6,
                feature_types=types,
            )
            document.check()
            margin = document.booster().inplace_predict(X, validate_features=False)
            np.testing.assert_allclose(margin, grown.values[grown.leaf], rtol=1e-6)


numbers = st.floats(-3, 3, width=32) | st.sampled_from([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0.0])


@settings(max_examples=150)
@given(st.data())
def test_hostile_input_gives_a_tree(data):
    n, d, K = (data.draw(st.integers(low, high)) for low, high in ((1, 40), (0, 9), (1, 2)))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    pool = np.array(data.draw(st.lists(numbers, min_size=1, max_size=5)), dtype=np.float32)
    X, g, h = (rng.choice(pool, shape) for shape in ((n, d), (K, n), (K, n)))
    counts = rng.choice([0, 0, 1, 3, 300], d)
    options = GrowthOptions(
        grow_policy=data.draw(st.sampled_from(["depth-wise", "leaf-wise", "symmetric"])),
        max_depth=data.draw(st.integers(1, 5)),
        max_leaves=data.draw(st.integers(0, 9)),
        reg_lambda=data.draw(st.sampled_from([0.0, 1.0, 1e30])),
        reg_alpha=data.draw(st.sampled_from([0.0, 0.5])),
        min_child_weight=data.draw(st.sampled_from([0.0, 1.0])),
        max_delta_step=data.draw(st.sampled_from([0.0, 0.5])),
        monotone_constraints=tuple(rng.integers(-1, 2, d).tolist()) if data.draw(st.booleans()) else (),
        interaction_constraints=((0,),) if d and data.draw(st.booleans()) else (),
        colsample_bynode=data.draw(st.sampled_from([0.3, 1.0])),
        max_cat_to_onehot=data.draw(st.sampled_from([1, 4, 1000])),
    )
    binned = BinnedData(X, n_categories=counts, max_bin=data.draw(st.sampled_from([2, 16, 256, 1000])))
    for grown in TreeGrower(binned, options).grow(g, h):
        assert grown.leaf.shape == (n,)
        assert grown.leaf.max() < len(grown.nodes)
        inside = ~np.isinf(X).any()  # the thresholds of infinite values are not theirs
        if inside:
            predictor = TreePredictor([grown.tree], [0], d)
            np.testing.assert_array_equal(predictor.nodes(X)[:, 0], grown.nodes[grown.leaf])


def test_a_million_features():
    X = np.zeros((3, 10**6), dtype=np.float32)
    X[:, 777_777] = [0, 1, 2]
    X[1, ::2] = np.nan
    [grown] = TreeGrower(BinnedData(X), GrowthOptions(min_child_weight=0.0)).grow(
        np.array([[-1, 0, 5]], dtype=np.float32), np.ones((1, 3), dtype=np.float32)
    )
    assert len(np.unique(grown.leaf)) == 3


def test_cut_points_of_xgboost_give_its_bins():
    X, _, _ = make(missing=0.1)
    matrix = quantile_matrix(X)
    cuts = cuts_of(matrix)
    codes = BinnedData(X, cuts=cuts).codes()
    for j in range(X.shape[1]):
        own = cuts.values[cuts.indptr[j] : cuts.indptr[j + 1]]
        expected = np.where(np.isnan(X[:, j]), len(own), np.searchsorted(own, X[:, j], side="right"))
        np.testing.assert_array_equal(codes[:, j], expected)
