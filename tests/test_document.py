"""XGBoost's document: read by structure, changed without loss, and refused where it is not sound."""

import copy
import json
import re

import numpy as np
import pytest
import xgboost as xgb

from data_makers import three_classes, two_classes
from scboost._model import ubjson
from scboost._model.document import Document, NewestTrees, constant, scaled
from scboost._model.structure import BY_NODE
from scboost._xgboost import import_xgboost

# Split values that spell what starts a tree, a key and its length included: the search for bytes once fell for it.
SPELLED = np.frombuffer(b"\x00" + b"{L" + (12).to_bytes(8, "big") + b"base_weights" + b"\x00", dtype=">f4").astype(
    float
)


def trained(kind="numbers", booster="gbtree", rounds=4, **params):
    X, y = three_classes() if kind == "classes" else two_classes()
    params = {"max_depth": 4, "nthread": 1, "booster": booster, "verbosity": 0, **params}
    if booster == "dart":
        params["rate_drop"] = 0.5
    types = None
    if kind == "classes":
        params |= {"objective": "multi:softprob", "num_class": 3}
    if kind == "categories":
        X[:, 0] = np.digitize(X[:, 0], [-1, -0.5, 0, 0.5, 1])
        types = ["c"] + ["float"] * (X.shape[1] - 1)
        params |= {"max_cat_to_onehot": 1}
    matrix = xgb.DMatrix(X, y, feature_types=types, enable_categorical=types is not None)
    return xgb.train(params, matrix, rounds), matrix


KINDS = ["numbers", "classes", "categories"]


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "params", [{}, {"num_parallel_tree": 2, "subsample": 0.7}, {"tree_method": "approx", "gamma": 5}]
)
def test_weighted_trees_and_base_margin_add_up_to_the_margin(kind, booster, params):
    model, matrix = trained(kind, booster, **params)
    document = Document.of(model)
    values = document.by_tree().booster().predict(matrix, output_margin=True)[:, : len(document.trees)]
    values = values * document.tree_weights
    margin = np.stack([values[:, document.outputs == k].sum(axis=1) for k in range(document.n_outputs)], axis=1)
    expected = model.predict(matrix, output_margin=True).reshape(margin.shape)
    np.testing.assert_allclose(document.base_margin() + margin, expected, atol=1e-5)


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
@pytest.mark.parametrize("kind", KINDS)
def test_scaled_and_shifted_trees_give_the_weighted_margin(kind, booster):
    model, matrix = trained(kind, booster)
    document = Document.of(model)
    K = document.n_outputs
    weights = np.linspace(0.5, 2, len(document.trees))
    trees = [
        scaled(tree, weight, 0.25 if i < K else 0.0)
        for i, (tree, weight) in enumerate(zip(document.trees, weights, strict=True))
    ]
    new = document.with_trees(trees, list(document.outputs)).booster()
    values = document.by_tree().booster().predict(matrix, output_margin=True) * weights
    sums = np.stack([values[:, document.outputs == k].sum(axis=1) for k in range(K)], axis=1)
    got = new.predict(matrix, output_margin=True).reshape(-1, K)
    np.testing.assert_allclose(got, document.base_margin() + sums + 0.25, atol=1e-5)


def test_base_score_is_replaced():
    model, matrix = trained(base_score=0.25)
    changed = Document.of(model).with_base_score([1.5]).booster()
    difference = changed.predict(matrix) - model.predict(matrix)
    np.testing.assert_allclose(difference, 1.25, atol=1e-6)


def test_factors_of_dart_are_read_where_xgboost_3_4_puts_them():
    document = Document.of(trained(booster="dart")[0])
    factors = document.tree_weights
    assert (factors != 1).any()
    model = {**document.model, "weight_drop": factors.tolist()}
    moved = document.with_learner(gradient_booster={"model": model, "name": "gbtree"})
    np.testing.assert_array_equal(moved.tree_weights, factors)


@pytest.mark.parametrize("objective", ["binary:logistic", "count:poisson", "reg:squarederror"])
def test_trees_of_one_leaf_predict_its_value(objective):
    document = Document.new([constant(7.0)], objective=objective, n_outputs=1, base_score=0.5, n_features=2)
    base = {"binary:logistic": 0.0, "count:poisson": np.log(0.5), "reg:squarederror": 0.5}[objective]
    margin = document.booster().inplace_predict(np.zeros((1, 2)), predict_type="margin")
    np.testing.assert_allclose(margin, base + 7, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_trees_are_those_of_the_whole_document(kind):
    X, y = three_classes() if kind == "classes" else two_classes()
    params = {"max_depth": 3, "nthread": 1}
    params |= {"objective": "multi:softprob", "num_class": 3} if kind == "classes" else {}
    matrix = xgb.DMatrix(X, y)
    model = xgb.Booster(params, [matrix])
    newest, found = NewestTrees(), []
    for i in range(12):  # the texts of the counts before the trees get longer on the way
        model.update(matrix, i)
        found += newest.read(model.save_raw("ubj"))
    expected = Document.of(model).trees
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert ubjson.encode(a) == ubjson.encode(b)


def test_split_values_that_spell_a_key_do_not_fool_the_reader():
    spelled = SPELLED[np.isfinite(SPELLED)]
    assert len(spelled) == len(SPELLED) == 6
    # Thresholds in the order of the nodes: inner nodes come before all leaves.
    tree = _complete(spelled.astype(np.float32))
    document = Document.new(
        [constant(1.0), tree], objective="reg:squarederror", n_outputs=1, base_score=0.0, n_features=1
    )
    raw = document.booster().save_raw("ubj")
    assert raw.count(b"base_weights") == 3  # two keys and the values
    newest = NewestTrees()
    read = newest.read(raw)
    assert [len(t["left_children"]) for t in read] == [1, len(tree["left_children"])]


def _complete(thresholds):
    """A complete tree, with the thresholds after each other in memory."""
    m = len(thresholds)
    left, right = np.full(2 * m + 1, -1, np.int32), np.full(2 * m + 1, -1, np.int32)
    parents = np.full(2 * m + 1, np.iinfo(np.int32).max, np.int32)
    for i in range(m):
        left[i], right[i] = 2 * i + 1, 2 * i + 2
        parents[left[i]], parents[right[i]] = i, i
    zeros = np.zeros(2 * m + 1, np.float32)
    conditions = zeros.copy()
    conditions[:m] = thresholds
    return {
        **constant(0.0),
        "left_children": left,
        "right_children": right,
        "parents": parents,
        "split_conditions": conditions,
        **{name: zeros.copy() for name in ("base_weights", "loss_changes", "sum_hessian")},
        "default_left": np.zeros(2 * m + 1, np.uint8),
        "split_type": np.zeros(2 * m + 1, np.uint8),
        "split_indices": np.zeros(2 * m + 1, np.int32),
        "tree_param": {"num_deleted": "0", "num_feature": "1", "num_nodes": str(2 * m + 1), "size_leaf_vector": "1"},
    }


def _edit(document, path, value):
    *parents, last = path
    part = document.content
    for key in parents:
        part = part[key]
    if callable(value):
        value(part[last])
    else:
        part[last] = value


def _set(index, value):
    def change(array):
        array[index] = value

    return change


MODEL = ("learner", "gradient_booster", "model")
TREE = (*MODEL, "trees", 0)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ((*TREE, "left_children"), _set(0, 10**6), "a child is not one of nodes"),
        ((*TREE, "left_children"), _set(0, -7), "a child is not one of nodes"),
        ((*TREE, "left_children"), _set(0, 2), "exactly one parent"),
        ((*TREE, "right_children"), _set(0, -1), "one child only"),
        ((*TREE, "parents"), _set(1, 2), "parents and children disagree"),
        ((*TREE, "parents"), _set(0, 3), "not the root"),
        ((*TREE, "split_indices"), _set(0, 99), "none of the 5 features"),
        ((*TREE, "split_indices"), _set(0, -1), "none of the 5 features"),
        ((*TREE, "split_conditions"), _set(-1, np.nan), "not finite"),
        ((*TREE, "split_conditions"), np.zeros(3, np.float32), "3 entries for"),
        ((*TREE, "split_conditions"), np.zeros(3), "not an array of float32"),
        ((*TREE, "split_type"), _set(0, 7), "split_type"),
        ((*TREE, "default_left"), _set(0, 7), "default_left"),
        ((*TREE, "categories"), _set(0, 1 << 30), "category that its feature does not have"),
        ((*TREE, "categories"), _set(0, -5), "a category is negative"),
        ((*TREE, "categories_nodes"), _set(0, 10**6), "not the nodes split by category"),
        ((*TREE, "categories_sizes"), _set(0, 10**12), "a set of categories has an impossible size"),
        ((*TREE, "categories_segments"), _set(0, 5), "sets of categories are out of order"),
        ((*TREE, "tree_param", "num_nodes"), "2147483647", "nodes"),
        ((*TREE, "tree_param", "num_nodes"), "99999999999999", "num_nodes"),
        ((*TREE, "tree_param", "num_deleted"), "3", "num_deleted is 3"),
        ((*MODEL, "gbtree_model_param", "num_trees"), "9", "num_trees is 9"),
        ((*MODEL, "gbtree_model_param", "num_trees"), "-1", "not an integer"),
        ((*MODEL, "tree_info"), [0, 0, 0, 5], "output outside"),
        ((*MODEL, "tree_info"), [0], "tree_info has 1 entries"),
        ((*MODEL, "iteration_indptr"), [0, 3, 1, 4], "out of order"),
        ((*MODEL, "iteration_indptr"), [0, 9], "do not cover"),
        ((*MODEL, "trees"), 3, "not a list"),
        ((*MODEL, "trees"), [3] * 4, "there is no object"),
        (("learner", "attributes"), {"a": 1}, "not a string"),
        (("learner", "feature_types"), ["c"], "feature_types"),
        (("learner", "learner_model_param", "base_score"), "[nan]", "not finite"),
        (("learner", "learner_model_param", "base_score"), "[0,0]", "2 numbers for 1"),
        (("learner", "learner_model_param", "base_score"), "x", "not made of numbers"),
        (("learner", "learner_model_param"), [], "TypeError"),
        (("learner", "gradient_booster"), {}, "KeyError"),
    ],
)
def test_invalid_models_are_reported_as_corrupt(path, value, problem):
    document = Document.of(trained("categories")[0])
    changed = Document(copy.deepcopy(document.content))
    _edit(changed, path, value)
    with pytest.raises(ValueError, match=f"corrupt: .*{re.escape(problem)}"):
        changed.check()


def test_a_cycle_beside_the_tree_is_found():
    """Every node has one parent and one place, but two of them are above each other."""
    document = Document.of(trained()[0])
    tree = document.trees[0]
    inner = [i for i in np.flatnonzero(tree["left_children"] != -1) if i]
    a = inner[0]
    b = tree["left_children"][a] if tree["left_children"][tree["left_children"][a]] != -1 else tree["right_children"][a]
    assert tree["left_children"][b] != -1
    leaf = tree["left_children"][b]
    above = tree["parents"][a]
    side = "left_children" if tree["left_children"][above] == a else "right_children"
    tree[side][above], tree["left_children"][b] = leaf, a
    tree["parents"][leaf], tree["parents"][a] = above, b
    with pytest.raises(ValueError, match="cannot be reached"):
        document.check()


def _swapped(tree, node):
    """Exchange the numbers of a node's children, so that left and right say the same as before."""
    a, b = int(tree["left_children"][node]), int(tree["right_children"][node])
    order = np.arange(len(tree["left_children"]))
    order[[a, b]] = b, a
    swapped = {name: tree[name][order] for name in BY_NODE}
    for name in ("left_children", "right_children", "parents"):
        numbers = swapped[name]
        swapped[name] = np.where(numbers == a, b, np.where(numbers == b, a, numbers)).astype(np.int32)
    return {**tree, **swapped}


def test_siblings_in_the_wrong_order_are_refused():
    """XGBoost takes the node after the left child for the right one and ignores right_children."""
    document = Document.of(trained()[0])
    for node in np.flatnonzero(document.trees[0]["left_children"] != -1):
        changed = document.with_trees([_swapped(document.trees[0], node), *document.trees[1:]], document.outputs)
        with pytest.raises(ValueError, match="in tree 0, a right child does not follow the left one"):
            changed.check()


@pytest.mark.parametrize("name", ["base_weights", "loss_changes", "sum_hessian"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_statistics_of_nodes_are_finite(name, value):
    document = Document.of(trained()[0])
    document.trees[1][name][2] = value
    with pytest.raises(ValueError, match=f"in tree 1, {name} is not finite"):
        document.check()


def test_a_leaf_that_is_split_by_category_is_refused():
    document = Document.of(trained("categories")[0])
    document.trees[0]["split_type"][np.flatnonzero(document.trees[0]["left_children"] == -1)[0]] = 1
    with pytest.raises(ValueError, match="a leaf is split by category"):
        document.check()


def test_ids_are_the_places_of_the_trees():
    """XGBoost stores a tree under its id: a repeated id leaves a null pointer."""
    document = Document.of(trained()[0])
    document.trees[1]["id"] = 0
    with pytest.raises(ValueError, match="in tree 1, id is 0"):
        document.check()


def test_a_tree_too_deep_for_recursion_is_refused():
    m = 5000
    tree = _complete(np.zeros(m, np.float32))
    nodes = np.arange(m)
    inner = np.concatenate([[0], 2 * nodes[1:]])
    tree["left_children"][:], tree["right_children"][:] = -1, -1
    tree["left_children"][inner], tree["right_children"][inner] = 2 * nodes + 1, 2 * nodes + 2
    tree["parents"][2 * nodes + 1] = tree["parents"][2 * nodes + 2] = inner
    document = Document.new([tree], objective="reg:squarederror", n_outputs=1, base_score=0.0, n_features=1)
    with pytest.raises(ValueError, match="more than 4096 levels deep"):
        document.check()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("left_children", 1.9, "left_children is not a list of integers"),
        ("left_children", "1", "left_children is not a list of integers"),
        ("left_children", True, "left_children is not a list of integers"),
        ("split_indices", 2**40, "OverflowError"),
        ("split_conditions", True, "split_conditions is not a list of numbers"),
        ("split_conditions", "0.5", "split_conditions is not a list of numbers"),
        ("sum_hessian", None, "sum_hessian is not a list of numbers"),
    ],
)
def test_numbers_in_json_are_of_their_type(name, value, problem):
    content = json.loads(Document.of(trained()[0]).encode_json())
    content["learner"]["gradient_booster"]["model"]["trees"][0][name][1] = value
    with pytest.raises(ValueError, match=problem):
        Document.decode(json.dumps(content).encode())


def test_kinds_without_single_trees_are_refused_by_name():
    X, y = two_classes()
    linear = xgb.train({"booster": "gblinear", "nthread": 1, "verbosity": 0}, xgb.DMatrix(X, y), 2)
    with pytest.raises(ValueError, match="'gblinear' has no trees"):
        Document.of(linear)
    params = {"multi_strategy": "multi_output_tree", "nthread": 1, "tree_method": "hist"}
    vectors = xgb.train(params, xgb.DMatrix(X, np.stack([y, -y], axis=1)), 2)
    with pytest.raises(ValueError, match="multi_output_tree"):
        Document.of(vectors)


@pytest.mark.parametrize("found", ["2.1.4", "3.0.5", "3.1.0", "4.0.0"])
def test_versions_that_are_known_to_be_wrong_are_refused(monkeypatch, found):
    monkeypatch.setattr(xgb, "__version__", found)
    with pytest.raises(ImportError, match=f"at least 3.1.1 and below 4.0.0, but {found}"):
        import_xgboost()


@pytest.mark.parametrize("found", ["3.1.1", "3.2.0", "3.4.1", "3.5.0-dev"])
def test_versions_of_the_range_are_taken(monkeypatch, found):
    monkeypatch.setattr(xgb, "__version__", found)
    assert import_xgboost() is xgb
