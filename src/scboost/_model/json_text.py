"""XGBoost's model as JSON text, as the same dictionaries of NumPy arrays that UBJSON gives."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray
from scboost._model.structure import BY_CATEGORY, BY_CATEGORY_SPLIT, BY_NODE

_OF_TREE: dict[str, npt.DTypeLike] = {**BY_NODE, **BY_CATEGORY_SPLIT, **BY_CATEGORY}
_OF_TABLES: dict[str, npt.DTypeLike] = {"feature_segments": np.int32, "sorted_idx": np.int32}
# Types of whole numbers in a table of categories, by XGBoost's number for them; texts have none.
_TABLE_TYPES: dict[Any, npt.DTypeLike] = {9: np.int8, 10: np.uint8, 11: np.int16, 13: np.int32, 15: np.int64}


def read_json(data: bytes) -> Any:
    """Read a model; what JSON writes as lists of numbers become arrays where UBJSON has them.

    Parameters
    ----------
    data : bytes
        Untrusted. Anything that is not such a model is a ValueError.
    """
    return convert_lists(read_text(data))


def read_text(data: bytes, *, finite: bool = False) -> Any:
    """Read JSON text; a key that comes twice, and more levels than Python reads, are a ValueError.

    Parameters
    ----------
    data : bytes
        Untrusted.
    finite : bool, default=False
        Whether NaN and infinite numbers, which are not JSON, are a ValueError as well.
    """
    constant = _refuse if finite else None
    try:
        return json.loads(data.decode(), object_pairs_hook=_without_repetition, parse_constant=constant)
    except RecursionError as error:
        raise ValueError("The JSON text is nested too deeply for a model.") from error


def convert_lists(content: Any) -> Any:
    """Turn the lists of numbers of a model with trees into arrays, in place; anything else is a ValueError."""
    try:
        booster = content["learner"]["gradient_booster"]
        model = booster.get("gbtree", booster)["model"]
        model["trees"] = [tree_arrays(tree) for tree in model["trees"]]
        if "cats" in model:  # since XGBoost 3.1
            model["cats"] = _with_arrays(model["cats"], _OF_TABLES)
            model["cats"]["enc"] = [_table(entry) for entry in model["cats"]["enc"]]
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"The JSON text is not a model with trees: {type(error).__name__} {error}") from error
    return content


def tree_arrays(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a tree whose lists of numbers are arrays; lists of anything else are a ValueError."""
    return _with_arrays(tree, _OF_TREE)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number.")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("A key comes twice in one object of the JSON text.")
    return mapping


def _with_arrays(mapping: dict[str, Any], types: dict[str, npt.DTypeLike]) -> dict[str, Any]:
    return {name: _array(name, value, types[name]) if name in types else value for name, value in mapping.items()}


def _array(name: str, values: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Convert a list of numbers as XGBoost would: without rounding, and without numbers in other forms."""
    whole = np.dtype(dtype).kind != "f"
    if not isinstance(values, list) or not {*map(type, values)} <= ({int} if whole else {int, float}):
        raise ValueError(f"{name} is not a list of {'integers' if whole else 'numbers'}.")
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        return np.array(values, dtype=dtype)


def _table(entry: dict[str, Any]) -> dict[str, Any]:
    dtype = np.int8 if "offsets" in entry else _TABLE_TYPES[entry["type"]]
    return _with_arrays(entry, {"values": dtype, "offsets": np.int32})


def write_json(content: Any) -> bytes:
    """Write a model, every float32 with as few digits as tell it apart from its neighbours."""
    parts: list[str] = []
    _write(content, parts)
    return "".join(parts).encode()


def _write(value: Any, parts: list[str]) -> None:
    if isinstance(value, dict):
        for i, (name, item) in enumerate(value.items()):
            parts.append(f"{',' if i else '{'}{json.dumps(name, ensure_ascii=False)}:")
            _write(item, parts)
        parts.append("}" if value else "{}")
    elif isinstance(value, np.ndarray):
        texts = _floats(value) if value.dtype.kind == "f" else map(str, value.tolist())
        parts.append(f"[{','.join(texts)}]")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            parts.append("," if i else "[")
            _write(item, parts)
        parts.append("]" if value else "[]")
    else:
        parts.append(json.dumps(value, ensure_ascii=False))


def _floats(values: FloatArray) -> list[str]:
    texts: list[str] = values.astype(str).tolist()
    if not np.isfinite(values).all():
        named = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
        texts = [named.get(text, text) for text in texts]
    return texts
