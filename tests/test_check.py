"""Model files of XGBoost and LightGBM are checked without these libraries: sound files pass, damaged ones are named."""

import copy
import json
import os
import re
import subprocess
import sys

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

import scboost
from data_makers import three_classes, two_classes
from scboost._model import ubjson
from scboost._model.check import Finding, check_bytes
from scboost.cli import main

DELETED = 2**31 - 1  # feature of a node that was pruned away


def xgboost_model(kind):
    X, y = three_classes() if kind == "classes" else two_classes()
    params = {"max_depth": 3, "nthread": 1, "verbosity": 0}
    types = None
    if kind == "classes":
        params |= {"objective": "multi:softprob", "num_class": 3}
    elif kind in {"dart", "gblinear"}:
        params |= {"booster": kind}
    elif kind == "categories":
        X[:, 0] = np.digitize(X[:, 0], [-1, -0.5, 0, 0.5, 1])
        types = ["c"] + ["float"] * (X.shape[1] - 1)
        params |= {"max_cat_to_onehot": 1}
    elif kind == "pruned":
        params |= {"tree_method": "exact", "gamma": 3.0, "max_depth": 6}
    return xgb.train(params, xgb.DMatrix(X, y, feature_types=types, enable_categorical=types is not None), 4)


def lightgbm_model(kind):
    X, y = three_classes() if kind == "multiclass" else two_classes()
    params = {"num_leaves": 5, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    categories = "auto"
    if kind == "multiclass":
        params |= {"objective": kind, "num_class": 3}
    elif kind == "linear":
        params |= {"linear_tree": True}
    elif kind == "stumps":
        params |= {"min_data_in_leaf": 10**6}
    elif kind == "categories":
        X[:, 0] = np.digitize(X[:, 0], [-1, -0.5, 0, 0.5, 1])
        categories = [0]
        params |= {"max_cat_to_onehot": 1, "min_data_per_group": 1, "cat_smooth": 1.0}
    return lgb.train(params, lgb.Dataset(X, y, categorical_feature=categories), 4).model_to_string()


@pytest.mark.parametrize("ending", ["json", "ubj"])
@pytest.mark.parametrize("kind", ["numbers", "classes", "dart", "gblinear", "categories", "pruned"])
def test_valid_files_of_xgboost_pass(kind, ending):
    assert check_bytes(bytes(xgboost_model(kind).save_raw(ending))) == []


@pytest.mark.parametrize("kind", ["regression", "multiclass", "linear", "stumps", "categories"])
def test_valid_files_of_lightgbm_pass(kind):
    assert check_bytes(lightgbm_model(kind).encode()) == []


def test_files_of_scboost_pass(tmp_path):
    X, y = two_classes()
    scboost.SCBoostClassifier(n_estimators=3, n_jobs=1).fit(X, y > 0).save_model(tmp_path / "a.ubj")
    assert scboost.check_model(tmp_path / "a.ubj") == []


def test_neither_library_is_imported(tmp_path):
    (tmp_path / "a.json").write_bytes(xgboost_model("classes").save_raw("json"))
    (tmp_path / "b.txt").write_text(lightgbm_model("categories"))
    code = """
import sys
sys.modules["xgboost"] = sys.modules["lightgbm"] = None
from scboost.cli import main
sys.exit(main(["check", *sys.argv[1:]]))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "a.json"), str(tmp_path / "b.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{name}: ok" for name in command[3:]]


# --- damaged files of XGBoost ----------------------------------------------------------------------------------------


def _tree(content):
    return content["learner"]["gradient_booster"]["model"]["trees"][0]


def _node_out_of_range(content):
    _tree(content)["left_children"][0] = 10**6


def _cycle(content):
    tree = _tree(content)
    inner = next(i for i, child in enumerate(tree["left_children"]) if i and child != -1)
    tree["left_children"][inner] = 0


def _feature_out_of_range(content):
    _tree(content)["split_indices"][0] = 70_000


def _short_leaves(content):
    _tree(content)["split_conditions"].pop()


def _not_finite(content):
    _tree(content)["split_conditions"][-1] = float("inf")


def _class_out_of_range(content):
    content["learner"]["gradient_booster"]["model"]["tree_info"][0] = 99


def _huge_class_count(content):
    content["learner"]["learner_model_param"]["num_class"] = "2147483647"
    content["learner"]["objective"] = {"name": "multi:softprob"}


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (_node_out_of_range, "tree 0: a child is not one of nodes"),
        (_cycle, "tree 0: a child is not one of nodes"),
        (_feature_out_of_range, "tree 0: a split is on none of the"),
        (_short_leaves, "tree 0: split_conditions has"),
        (_not_finite, "tree 0: a threshold or leaf is not finite"),
        (_class_out_of_range, "a tree is of an output outside"),
        (_huge_class_count, "2147483647 outputs of 4 trees"),
    ],
)
def test_damage_of_an_xgboost_file_is_named(damage, found):
    content = json.loads(xgboost_model("numbers").save_raw("json"))
    damage(content)
    findings = check_bytes(json.dumps(content).encode())
    assert findings
    assert all(finding.severity == "error" for finding in findings)
    assert found in str(findings[0])


def test_parents_of_deleted_nodes_are_checked():
    content = json.loads(xgboost_model("pruned").save_raw("json"))
    tree = next(
        tree for tree in content["learner"]["gradient_booster"]["model"]["trees"] if DELETED in tree["split_indices"]
    )
    tree["parents"][tree["split_indices"].index(DELETED)] = 10**6  # which XGBoost reads, and dies
    [finding] = check_bytes(json.dumps(content).encode())
    assert "a parent is not one of nodes" in finding.message


def test_all_damaged_trees_are_listed():
    content = json.loads(xgboost_model("numbers").save_raw("json"))
    for tree in content["learner"]["gradient_booster"]["model"]["trees"][1:3]:
        tree["default_left"][0] = 2
    findings = check_bytes(json.dumps(content).encode())
    assert findings == [Finding("error", f"tree {i}", "default_left is neither 0 nor 1") for i in (1, 2)]
    assert str(findings[0]) == "error: tree 1: default_left is neither 0 nor 1"


def test_truncated_ubjson_is_an_error_at_every_length():
    data = bytes(xgboost_model("numbers").save_raw("ubj"))
    for size in range(2, len(data), 7):
        assert [f.severity for f in check_bytes(data[:size])] == ["error"], size


def test_linear_models_are_checked():
    content = json.loads(xgboost_model("gblinear").save_raw("json"))
    for weights, found in (
        ([0.0], "1 weights, not 6"),
        ([float("nan")] * 6, "not finite"),
        (["a"] * 6, "not a number"),
    ):
        changed = copy.deepcopy(content)
        changed["learner"]["gradient_booster"]["model"]["weights"] = weights
        assert found in str(check_bytes(json.dumps(changed).encode())[0])


@pytest.mark.parametrize("value", [{}, [], None, 1, "2", True])
@pytest.mark.parametrize("name", ["num_target", "num_class", "num_feature", "base_score"])
def test_parameters_of_any_type_give_findings(name, value):
    content = json.loads(xgboost_model("numbers").save_raw("json"))
    content["learner"]["learner_model_param"][name] = value
    found = {finding.severity for finding in check_bytes(json.dumps(content).encode())}
    assert found == (set() if (name, value) == ("base_score", "2") else {"error"})


def test_vector_leaves_are_reported_as_not_covered():
    X, y = two_classes()
    params = {"multi_strategy": "multi_output_tree", "nthread": 1, "tree_method": "hist"}
    model = xgb.train(params, xgb.DMatrix(X, np.stack([y, -y], axis=1)), 2)
    for ending in ("json", "ubj"):
        (finding,) = check_bytes(bytes(model.save_raw(ending)))
        assert finding.severity == "not covered"
        assert "multi_output_tree" in finding.message


# --- damaged files of LightGBM ---------------------------------------------------------------------------------------


def _line(name, value, which=0):
    """Replace the value of a line, by default the first of its name, by another or by a function of it."""

    def change(text):
        old = list(re.finditer(rf"^{name}=(.*)$", text, flags=re.MULTILINE))[which]
        return f"{text[: old.start(1)]}{value(old[1]) if callable(value) else value}{text[old.end(1) :]}"

    return change


def _first(word):
    return lambda old: " ".join([word, *old.split(" ")[1:]])


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (_line("left_child", _first("9")), "left_child 9 is not from"),
        (_line("left_child", _first("0")), "the root is a child"),
        (_line("right_child", _first("-1")), "has not exactly one parent"),
        (_line("split_feature", _first("77")), "split_feature 77 is not from"),
        (_line("num_leaves", "1000000000"), "leaf_value has 5 entries, not 1000000000"),
        (_line("leaf_value", "1 2"), "leaf_value has 2 entries, not 5"),
        (_line("leaf_value", _first("nan")), "leaf_value is not finite"),
        (_line("leaf_value", _first("1_0")), "is not a number"),
        (_line("leaf_weight", ""), "leaf_weight has 1 entries, not 5"),
        (_line("threshold", _first("nan")), "a threshold is NaN"),
        (_line("num_cat", "3"), "num_cat is 3"),
        (_line("decision_type", _first("1")), "num_cat is"),
        (
            lambda text: text.replace("leaf_value=", "leaf_value=1 2 3 4 5\nleaf_value=", 1),
            "'leaf_value' is given twice",
        ),
        (_line("tree_sizes", _first("10")), "tree_sizes does not lead to tree 1"),
        (_line("num_class", "7"), "do not go with 7 classes"),
        (_line("max_feature_idx", "1"), "entries for 2 features"),
        (_line("version", "v9"), "version 'v9'"),
        (lambda text: text[: text.index("end of trees")], "truncated"),
        (lambda text: text[: text.index("end of parameters")], "truncated"),
        (lambda text: text.replace("split_gain", "\0split_gain", 1), "zero byte"),
        (lambda text: text.replace("[boosting: gbdt]", "[boosting]", 1), "the line '[boosting]' is not a parameter"),
        (_line("shrinkage", "1e999"), "shrinkage is not finite"),
    ],
)
def test_damage_of_a_lightgbm_file_is_named(damage, found):
    text = _with_sizes(damage(lightgbm_model("regression")), keep="tree_sizes does" in found)
    findings = check_bytes(text.encode())
    assert findings
    assert all(finding.severity == "error" for finding in findings)
    assert found in str(findings[0])


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("cat_boundaries", _first("1"), "cat_boundaries are out of order"),
        ("cat_boundaries", lambda old: old + "00", "cat_threshold has"),
        ("cat_threshold", _first("99999999999"), "cat_threshold 99999999999 is not from"),
        ("cat_threshold", lambda old: old + " 1", "cat_threshold has"),
    ],
)
def test_damaged_category_sets_are_named(name, value, found):
    text = _with_sizes(_line(name, value)(lightgbm_model("categories")))
    assert found in str(check_bytes(text.encode())[0])


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("leaf_features", _first("9"), "leaf_features 9 is not from"),
        ("num_features", _first("0"), "leaf_features has"),
        ("leaf_const", _first("inf"), "leaf_const is not finite"),
        ("leaf_coeff", lambda _: "", "leaf_coeff has 0 entries"),
    ],
)
def test_damaged_linear_leaves_are_named(name, value, found):
    text = _with_sizes(_line(name, value, -1)(lightgbm_model("linear")))
    assert found in str(check_bytes(text.encode())[0])


def _with_sizes(text, *, keep=False):
    """Make tree_sizes fit the blocks of the trees, as someone who forges a file would."""
    if keep or "\nend of trees" not in text:
        return text
    blocks = re.split(r"(?=^Tree=)", text[: text.index("end of trees")], flags=re.MULTILINE)[1:]
    return _line("tree_sizes", " ".join(str(len(block.encode())) for block in blocks))(text)


# --- hostile bytes ---------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(st.sampled_from([b"", b"{", b"{L", b"tree\n", b"[", b'{"learner":']), st.binary(max_size=200))
def test_any_bytes_give_findings(start, rest):
    assert check_bytes(start + rest)


SOUND = [
    bytes(xgboost_model("categories").save_raw("json")),
    bytes(xgboost_model("categories").save_raw("ubj")),
    lightgbm_model("categories").encode(),
]


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(SOUND), st.data())
def test_damaged_bytes_never_raise(data, draw):
    changed = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        changed[draw.draw(st.integers(0, len(changed) - 1))] = draw.draw(st.integers(0, 255))
    assert all(isinstance(finding, Finding) for finding in check_bytes(bytes(changed)))


def test_deep_nesting_and_huge_lengths_are_errors():
    for data in (b"[" * 10**6, b'{"a":' * 10**5, b"{L" + (1 << 60).to_bytes(8, "big"), b"{" + b" " * 1000):
        assert all(finding.severity in {"error", "not covered"} for finding in check_bytes(data))
        assert check_bytes(data)
    nested = {"learner": {"gradient_booster": {"name": [[[]]]}}}
    assert check_bytes(ubjson.encode(nested))


def test_other_files_are_not_covered(tmp_path):
    (tmp_path / "a").write_bytes(b"\x80\x04pickle")
    (finding,) = scboost.check_model(tmp_path / "a")
    assert finding.severity == "not covered"
    assert "max_bytes=3" in scboost.check_model(tmp_path / "a", max_bytes=3)[0].message
    with pytest.raises(FileNotFoundError):
        scboost.check_model(tmp_path / "missing")


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in scboost.check_model(tmp_path / "pipe")[0].message


def test_exit_codes_of_the_command(tmp_path, capsys):
    (tmp_path / "good.ubj").write_bytes(SOUND[1])
    (tmp_path / "bad.ubj").write_bytes(SOUND[1][:-5])
    (tmp_path / "other").write_bytes(b"?")
    good, bad, other, missing = (str(tmp_path / name) for name in ("good.ubj", "bad.ubj", "other", "missing"))
    assert main(["check", good]) == 0
    assert main(["check", good, bad, other]) == 1
    assert main(["check", good, other]) == 2
    assert main(["check", missing]) == 2
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"{good}: ok"
    assert shown[2].startswith(f"{bad}: error: ")
    assert shown[-1] == f"{missing}: not covered: No such file or directory"


@pytest.mark.parametrize("text", ["[[0.5]]", "[0.5,"])
def test_base_scores_that_xgboost_cannot_read_are_found(text):
    X = np.arange(20.0)[:, None]
    model = scboost.SCBoostRegressor(n_estimators=1, n_jobs=1).fit(X, X[:, 0])
    content = json.loads(bytes(model.get_booster().save_raw("json")))
    content["learner"]["learner_model_param"]["base_score"] = text
    data = json.dumps(content).encode()
    with pytest.raises(xgb.core.XGBoostError):
        xgb.Booster().load_model(bytearray(data))
    assert "base_score" in str(check_bytes(data)[0])
