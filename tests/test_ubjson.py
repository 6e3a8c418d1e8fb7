"""UBJSON: what XGBoost writes is read as it is, and what is written is read back, by us and by XGBoost."""

import contextlib
import json

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

from data_makers import three_classes, two_classes
from scboost._model import ubjson

vectors = st.sampled_from([np.int8, np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64]).flatmap(
    lambda dtype: st.lists(st.integers(0, 100), max_size=5).map(lambda v: np.array(v, dtype=dtype))
)
documents = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(width=32, allow_nan=False),
        st.text(),
        vectors,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=12,
)


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@settings(deadline=None)
@given(documents)
def test_written_values_are_read_back(document):
    assert same(ubjson.decode(ubjson.encode(document)), document)


@pytest.fixture(params=["numeric", "classes", "categorical", "empty"])
def booster(request):
    X, y = three_classes() if request.param == "classes" else two_classes()
    params = {"max_depth": 3, "nthread": 1}
    kwargs = {}
    if request.param == "classes":
        params |= {"objective": "multi:softprob", "num_class": 3}
    if request.param == "categorical":
        X[:, 0] = np.digitize(X[:, 0], [-1, 0, 1])
        kwargs = {"feature_types": ["c"] + ["float"] * 4, "enable_categorical": True}
    rounds = 0 if request.param == "empty" else 3
    return xgb.train(params, xgb.DMatrix(X, y, **kwargs), num_boost_round=rounds)


def plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def flat(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
    else:
        for key, item in items:
            yield from flat(item, (*path, key))


def test_a_model_reads_as_its_json(booster):
    found = dict(flat(plain(ubjson.decode(booster.save_raw("ubj")))))
    expected = dict(flat(json.loads(booster.save_raw("json"))))
    assert found.keys() == expected.keys()
    for path, value in expected.items():
        assert found[path] == (pytest.approx(value, rel=1e-6) if isinstance(value, float) else value), path


def test_a_written_model_is_the_same_model_to_xgboost(booster):
    again = xgb.Booster()
    again.load_model(bytearray(ubjson.encode(ubjson.decode(booster.save_raw("ubj")))))
    assert again.save_raw("ubj") == booster.save_raw("ubj")


def test_node_arrays_are_native_and_writable(booster):
    for tree in ubjson.decode(booster.save_raw("ubj"))["learner"]["gradient_booster"]["model"]["trees"]:
        for name, dtype in [("split_conditions", np.float32), ("left_children", np.int32), ("sum_hessian", np.float32)]:
            assert tree[name].dtype == dtype
            assert tree[name].dtype.isnative
            assert tree[name].flags.writeable


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"Q", "marker b'Q' at byte 0"),
        (ubjson.encode(1) + b"x", "ends at byte 9 of 10"),
        (b"Si\x01a", "64-bit length at byte 1"),
        (b"", "marker b'' at byte 0"),
        (b"[", "marker b'' at byte 1"),
        (b"L\x00", "8 bytes or items are announced"),
        (b"SL" + (-1).to_bytes(8, "big", signed=True), "-1 bytes or items"),
        (b"SL" + (1 << 62).to_bytes(8, "big"), "4611686018427387904 bytes or items"),
        (b"[#L" + (1 << 40).to_bytes(8, "big") + b"T", "1099511627776 bytes or items"),
        (b"[$D#L" + (2).to_bytes(8, "big") + b"12345678", "16 bytes or items"),
        (b"[$d#L" + (-1).to_bytes(8, "big", signed=True) + b"1234", "-1 bytes or items"),
        (b"[$x#L" + bytes(8), "type of array"),
        (b"[$d", "type of array"),
        (b"{" + 2 * (b"L" + (1).to_bytes(8, "big") + b"aT") + b"}", "'a' comes twice"),
        (b"[" * 10**5, "nested more than 32 levels"),
        (b"{L" + (1).to_bytes(8, "big") + b"\xff" + b"T}", "utf-8"),
    ],
)
def test_anything_else_is_an_error(data, match):
    with pytest.raises(ValueError, match=match):
        ubjson.decode(data)


@settings(deadline=None, max_examples=300)
@given(documents, st.data())
def test_damaged_bytes_are_a_document_or_a_value_error(document, data):
    raw = bytearray(ubjson.encode({"a": document}))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        ubjson.decode(raw)


@settings(deadline=None)
@given(documents)
def test_a_value_is_found_without_decoding_preceding_values(document):
    raw = ubjson.encode({"before": document, "inner": {"first": document, "wanted": [document, 3]}, "after": 1})
    at = ubjson.find(raw, ("inner", "wanted"))
    assert same(ubjson.decode_at(raw, at)[0], [document, 3])
    count, start = ubjson.list_at(raw, at)
    assert count == 2
    assert same(ubjson.decode_at(raw, start)[0], document)
    with pytest.raises(ValueError, match="no key 'missing'"):
        ubjson.find(raw, ("inner", "missing"))


def test_types_that_xgboost_does_not_read_are_not_written():
    with pytest.raises(TypeError, match="complex"):
        ubjson.encode({"a": 1j})


def test_objects_like_the_one_before_are_read_as_others_are():
    first = {"a": np.arange(3, dtype=np.float32), "id": 1, "rest": {"n": "3"}, "b": np.arange(2, dtype=np.int32)}
    longer = {**first, "a": np.arange(9, dtype=np.float32), "id": 2**40, "b": np.zeros(0, dtype=np.int32)}
    of_other_type = {**first, "a": np.arange(3, dtype=np.int32)}
    with_more = {**first, "c": "more"}
    reader = ubjson.ObjectReader()
    for value in (first, longer, of_other_type, with_more, first, longer):
        data = b"?" + ubjson.encode(value) + b"?"
        found, end = reader.read(data, 1)
        assert end == len(data) - 1
        assert ubjson.encode(found) == ubjson.encode(value)
        assert [type(v) for v in found.values()] == [type(v) for v in value.values()]
    for cut in range(1, len(data) - 2):
        with pytest.raises(ValueError, match="byte"):
            reader.read(data[: cut + 1], 1)


@settings(deadline=None)
@given(documents)
def test_the_size_is_known_without_encoding(document):
    assert ubjson.size({"a": document}) == len(ubjson.encode({"a": document}))
