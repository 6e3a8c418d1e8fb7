"""One structure for several outputs: equal to a search by brute force, and to trees of one output where both exist."""

import numpy as np
import pytest

pytest.importorskip("scboost._engine.native._native")

from scboost._engine.native.trees import BinnedData, GrowthOptions, Pool, TreeGrower, TreePredictor
from symmetric_reference import symmetric_tree

N_CATEGORIES = 6


def make(n=500, n_outputs=3, seed=0):
    """Features with missing values and two categorical ones; gradients and Hessians of each output."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    X[:, 3:] = rng.integers(N_CATEGORIES, size=(n, 2))
    h = rng.uniform(0.2, 1.0, (n_outputs, n)).astype(np.float32)
    signal = [np.roll(X[:, 0] * X[:, 1], k) + np.sin(k + X[:, 2]) + (X[:, 3] == k) for k in range(n_outputs)]
    g = ((rng.normal(size=h.shape) - signal) * h).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    return BinnedData(X, max_bin=16, n_categories=[0, 0, 0, N_CATEGORIES, N_CATEGORIES]), g, h


def shared_hessian(h):
    """The mean of the Hessians of all outputs, weighted by itself."""
    return np.square(h, dtype=np.float64).sum(axis=0) / h.sum(axis=0, dtype=np.float64)


def gain(g, h, rows, penalty=1.0):
    return float(np.sum(g[:, rows].sum(axis=1, dtype=np.float64) ** 2) / (h[rows].sum() + penalty))


def best_split(data, g, h, rows, least=1.0):
    """Return the largest gain and the sides of its split, over thresholds and one-vs-rest splits of all features."""
    codes, n_bins = data.codes(), np.diff(data.cuts.indptr)
    best = (0.0, None)
    for j in range(codes.shape[1]):
        code, missing = codes[rows, j], codes[rows, j] == n_bins[j]
        for c in range(n_bins[j]):
            present = code != c if j >= 3 else code <= c
            for left in (present & ~missing, present | missing):
                a, b = rows[left], rows[~left]
                if min(h[a].sum(), h[b].sum()) < least:
                    continue
                found = gain(g, h, a) + gain(g, h, b) - gain(g, h, rows)
                if found > best[0] + 1e-9:
                    best = (found, (a, b))
    return best


@pytest.mark.parametrize("n_outputs", [2, 3, 5])
def test_splits_have_the_largest_sum_of_gains(n_outputs):
    data, g, h = make(n_outputs=n_outputs)
    grown = TreeGrower(data, GrowthOptions(max_depth=3, max_cat_to_onehot=100)).grow_shared(g, h, seed=5)
    common = shared_hessian(h)
    tree, leaf_of_node = grown.tree, {int(node): k for k, node in enumerate(grown.nodes)}
    checked = []

    def check(node, rows):
        if tree["left_children"][node] == -1:
            assert set(grown.leaf[rows]) == {leaf_of_node[node]}
            return
        found, sides = best_split(data, g, common, rows)
        np.testing.assert_allclose(n_outputs * tree["loss_changes"][node], found, rtol=1e-5)  # each tree has its share
        checked.append(node)
        check(tree["left_children"][node], sides[0])
        check(tree["right_children"][node], sides[1])

    check(0, np.arange(data.shape[0]))
    assert len(checked) > 4


@pytest.mark.parametrize("penalty", [{}, {"reg_alpha": 3.0}, {"min_split_loss": 2.0}])
def test_symmetric_trees_equal_the_reference(penalty):
    data, g, h = make()
    options = GrowthOptions(grow_policy="symmetric", max_depth=3, max_cat_to_onehot=100, **penalty)
    grown = TreeGrower(data, options).grow_shared(g, h)
    categorical = np.arange(5) >= 3
    leaf, values, splits = symmetric_tree(
        data.codes(), np.diff(data.cuts.indptr), categorical, g.T, shared_hessian(h), options
    )
    assert len(splits) == 3
    assert len({(a, b) for a, b in zip(leaf, grown.leaf, strict=True)}) == len(values) == len(grown.nodes)


@pytest.mark.parametrize("policy", ["depth-wise", "leaf-wise", "symmetric"])
def test_one_output_has_the_tree_of_its_own(policy):
    data, g, h = make(n_outputs=1)
    grower = TreeGrower(data, GrowthOptions(grow_policy=policy, max_leaves=20))
    [alone] = grower.grow(g, h)
    shared = grower.grow_shared(g, h)
    for name in alone.tree:
        np.testing.assert_array_equal(shared.tree[name], alone.tree[name], err_msg=name)


@pytest.mark.parametrize("policy", ["depth-wise", "leaf-wise", "symmetric"])
@pytest.mark.parametrize("n_outputs", [4, 12])
def test_outputs_without_gradient_do_not_matter(policy, n_outputs):
    data, g, h = make(n_outputs=1)
    grower = TreeGrower(data, GrowthOptions(grow_policy=policy, max_leaves=20, max_cat_to_onehot=100))
    gradients, hessians = np.zeros((2, n_outputs, len(g[0])), dtype=np.float32)
    gradients[2], hessians[2] = g[0], h[0]
    [alone] = grower.grow(g, h)
    shared = grower.grow_shared(gradients, hessians, seed=3)
    np.testing.assert_array_equal(shared.leaf, alone.leaf)
    np.testing.assert_allclose(n_outputs * shared.tree["loss_changes"], alone.tree["loss_changes"], rtol=1e-5)


def test_repeated_outputs_have_the_structure_of_one():
    data, g, h = make(n_outputs=1)
    grower = TreeGrower(data, GrowthOptions())
    [alone] = grower.grow(g, h)
    np.testing.assert_array_equal(grower.grow_shared(np.repeat(g, 4, axis=0), np.repeat(h, 4, axis=0)).leaf, alone.leaf)


def test_channels_keep_gains_in_expectation():
    """The gain of the first split, over many draws of the channels of twelve outputs, averages to the exact one."""
    data, g, h = make(n_outputs=12)
    X = np.zeros((data.shape[0], 1), dtype=np.float32)
    X[::2] = 1  # one possible split
    grower = TreeGrower(BinnedData(X), GrowthOptions(max_depth=1))
    found = [12 * grower.grow_shared(g, h, seed=seed).tree["loss_changes"][0] for seed in range(4000)]
    rows, common = np.arange(len(X)), shared_hessian(h)
    exact = gain(g, common, rows[::2]) + gain(g, common, rows[1::2]) - gain(g, common, rows)
    assert abs(np.mean(found) - exact) < 4 * np.std(found) / np.sqrt(len(found))
    assert np.std(found) > 0.05 * exact


@pytest.mark.parametrize("policy", ["depth-wise", "leaf-wise", "symmetric"])
def test_trees_are_bit_identical_for_any_number_of_threads(policy):
    data, g, h = make(n=150_000, n_outputs=7)
    grower = TreeGrower(data, GrowthOptions(grow_policy=policy, max_leaves=30, colsample_bynode=0.8))
    first = grower.grow_shared(g, h, seed=2)
    for n_threads in (2, 4):
        other = grower.grow_shared(g, h, seed=2, pool=Pool(n_threads))
        np.testing.assert_array_equal(other.leaf, first.leaf)
        for name in first.tree:
            np.testing.assert_array_equal(other.tree[name], first.tree[name], err_msg=name)


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**30])
def test_structure_does_not_depend_on_the_unit_of_the_targets(scale):
    data, g, h = make()
    grower = TreeGrower(data, GrowthOptions())
    scaled = grower.grow_shared(g * np.float32(scale), h)
    np.testing.assert_array_equal(scaled.leaf, grower.grow_shared(g, h).leaf)


def test_samples_without_weight_do_not_count_but_get_a_leaf():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 3)).astype(np.float32)
    g, h = rng.normal(size=(6, 800)).astype(np.float32), rng.uniform(0.2, 1, (6, 800)).astype(np.float32)
    used = rng.random(800) < 0.5
    data = BinnedData(X)
    part = BinnedData(X[used], cuts=data.cuts)
    grown = TreeGrower(data, GrowthOptions()).grow_shared(g * used, h * used, seed=4)
    alone = TreeGrower(part, GrowthOptions()).grow_shared(g[:, used], h[:, used], seed=4)
    for name in grown.tree:
        np.testing.assert_array_equal(grown.tree[name], alone.tree[name], err_msg=name)
    [nodes] = TreePredictor([grown.tree], [0], 3).nodes(X).T
    np.testing.assert_array_equal(nodes, grown.nodes[grown.leaf])


def test_constraints_of_single_outputs_are_refused():
    data, g, h = make()
    grower = TreeGrower(data, GrowthOptions(monotone_constraints=(1, 0, 0, 0, 0)))
    with pytest.raises(ValueError, match="need one tree per output"):
        grower.grow_shared(g, h)
