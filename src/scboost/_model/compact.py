"""UBJSON in fewer bytes, for the files of compressed models: XGBoost reads it as it reads JSON text.

XGBoost writes an integer of a tree in four bytes and a length in nine. In lists without a common type every number has
its own one: the children, parents, features and default directions of small trees take two bytes each. Directions are
no booleans, which take one: XGBoost 1.7 reads false as true.
What XGBoost sets itself if it is missing is left out: the sets of categories of a tree without categorical splits.
Such lists take longer to read, which does not matter in a small model.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._model import ubjson
from scboost._model.json_text import tree_arrays
from scboost._model.structure import BY_CATEGORY, BY_CATEGORY_SPLIT

_OF_CATEGORIES = ("split_type", *BY_CATEGORY_SPLIT, *BY_CATEGORY)
_INTEGERS = tuple(  # marker, code of struct, smallest and largest number
    (marker, code, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    for marker, code, dtype in (
        (b"i", ">b", np.int8),
        (b"U", ">B", np.uint8),
        (b"I", ">h", np.int16),
        (b"l", ">i", np.int32),
        (b"L", ">q", np.int64),
    )
)


def encode(content: dict[str, Any]) -> bytes:
    """Encode a model with trees."""
    out = bytearray()
    _encode(content, out)
    return bytes(out)


def decode(data: bytes) -> Any:
    """Decode UBJSON of either kind; the model is the same."""
    content = ubjson.decode(data)
    try:
        trees = content["learner"]["gradient_booster"]["model"]["trees"]
        for i, tree in enumerate(trees):
            if isinstance(tree["base_weights"], list):
                trees[i] = tree_arrays(_completed(tree))
    except (KeyError, TypeError, AttributeError, OverflowError):
        return content  # another booster, or not a model: the checks that follow say so
    return content


def _completed(tree: dict[str, Any]) -> dict[str, Any]:
    """Add what was left out, in the order of XGBoost's keys."""
    whole = {**tree, "tree_param": {"num_deleted": "0", **tree["tree_param"]}}
    whole["default_left"] = [int(left) for left in tree["default_left"]]
    if "split_type" not in tree:
        whole |= {name: [] for name in (*BY_CATEGORY_SPLIT, *BY_CATEGORY)}
        whole["split_type"] = [0] * len(tree["base_weights"])
    return dict(sorted(whole.items()))


def _shortened(tree: dict[str, Any]) -> dict[str, Any]:
    """Leave out what :func:`_completed` adds."""
    short = dict(tree)
    if not tree["split_type"].any():
        short = {name: value for name, value in short.items() if name not in _OF_CATEGORIES}
    parameters = tree["tree_param"]
    if parameters["num_deleted"] == "0":
        short["tree_param"] = {name: text for name, text in parameters.items() if name != "num_deleted"}
    return short


def _encode(value: Any, out: bytearray) -> None:
    if isinstance(value, dict):
        if "split_type" in value:
            value = _shortened(value)
        out += b"{"
        for name, item in value.items():
            out += ubjson.key(name)
            if name == "cats":  # typed arrays also in small models
                out += ubjson.encode(item)
            else:
                _encode(item, out)
        out += b"}"
    elif isinstance(value, np.ndarray):
        out += b"[" + _items(value) + b"]"
    elif isinstance(value, list):
        out += b"["
        for item in value:
            _encode(item, out)
        out += b"]"
    elif isinstance(value, int) and not isinstance(value, bool):
        out += _integer(value)
    else:
        out += ubjson.encode(value)


def _items(values: npt.NDArray[Any]) -> bytes:
    if values.dtype.kind != "f":
        return b"".join(map(_integer, values.tolist()))
    numbers = np.empty(len(values), dtype=[("marker", "S1"), ("value", ">f4")])
    numbers["marker"], numbers["value"] = b"d", values
    return numbers.tobytes()


@lru_cache(maxsize=4096)
def _integer(value: int) -> bytes:
    for marker, code, least, largest in _INTEGERS:
        if least <= value <= largest:
            return marker + struct.pack(code, value)
    raise OverflowError(f"{value} does not fit into 64 bits")
