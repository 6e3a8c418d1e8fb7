"""Values as JSON: numbers, strings, lists, dictionaries and arrays, with a tag for types that JSON does not have."""

from __future__ import annotations

import base64
import dataclasses
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray
from scboost._core.weighting.solver import Weights

_WEIGHTS = dataclasses.fields(Weights)
NUMERIC = "biuf"
"""Kinds of arrays that are stored as bytes."""


# Errors that decoding untrusted bytes may raise.
_DECODING_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
)


class ModelFileError(ValueError):
    """A file that :func:`scboost.load_model` cannot read; the message says why."""


@contextmanager
def untrusted(problem: str = "is corrupt") -> Iterator[None]:
    """Convert errors of decoding a file to ModelFileError."""
    try:
        yield
    except ModelFileError:
        raise
    except _DECODING_ERRORS as error:
        raise ModelFileError(f"{problem}: {type(error).__name__}: {error}") from error


def pack(value: Any, name: str = "") -> Any:
    """Convert a value to JSON, with a tag for types that JSON does not have."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, np.generic):
        return pack(value.item(), name)
    if isinstance(value, list):
        return [pack(item, name) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [pack(item, name) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[pack(key, name), pack(item, name)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in NUMERIC:
        code = value.dtype.newbyteorder("<").str
        data = np.ascontiguousarray(value).astype(code).tobytes()
        return {"array": code, "shape": list(value.shape), "data": base64.b64encode(data).decode()}
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "UO":
        return {"array": value.dtype.kind, "values": [pack(item, name) for item in value.tolist()]}
    if isinstance(value, Weights):
        fields = {_stored(field.name): pack(getattr(value, field.name), name) for field in _WEIGHTS}
        return {"weights": fields}
    kind = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    raise ValueError(
        f"{name} holds {kind}, which a model file cannot store; allowed are numbers, strings, and lists, "
        "dictionaries and arrays of these."
    )


def unpack(value: Any) -> Any:
    """Undo :func:`pack`."""
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"float"}:
        require(value["float"] in {"inf", "-inf", "nan"}, f"unknown number {value['float']!r:.40}")
        return float(value["float"])
    if set(value) == {"tuple"}:
        return tuple(unpack(item) for item in value["tuple"])
    if set(value) == {"dict"}:
        pairs = [(unpack(key), unpack(item)) for key, item in value["dict"]]
        require(len(dict(pairs)) == len(pairs), "a key comes twice")
        return dict(pairs)
    if set(value) == {"weights"}:
        stored = {name: unpack(item) for name, item in value["weights"].items()}
        return _checked_weights(Weights(**{f.name: stored.pop(_stored(f.name)) for f in _WEIGHTS}, **stored))
    if set(value) == {"array", "values"}:
        return _unpack_texts(value["array"], value["values"])
    require(set(value) == {"array", "shape", "data"}, f"unknown kind of value with {sorted(value)!r:.80}")
    return _unpack_numbers(value["array"], value["shape"], value["data"])


def _stored(name: str) -> str:
    """Return the name of a field of the weights in files, which keep that of scboost 0.1."""
    return "pull_term" if name == "ridge_term" else name


def _checked_weights(weights: Weights) -> Weights:
    for name in ("weights", "intercept"):
        values = float64(getattr(weights, name), name)
        require(bool(np.isfinite(values).all()), f"{name} of the weighting are not finite")
    for name in ("objective", "loss", "covariance_term", "ridge_term", "gap"):
        require(type(getattr(weights, name)) in {int, float}, f"{name} of the weighting is not a number")
    require(type(weights.n_iterations) is int, "n_iterations of the weighting is not an integer")
    require(type(weights.converged) is bool, "converged of the weighting is neither true nor false")
    return weights


def _unpack_texts(kind: str, values: list[Any]) -> npt.NDArray[Any]:
    require(isinstance(values, list), "the values of an array are not a list")
    require(all(isinstance(v, str | int | float) for v in values), "an array holds neither strings nor numbers")
    if kind == "U":
        require(all(isinstance(v, str) for v in values), "an array of strings holds something else")
        return np.array(values, dtype=str)
    require(kind == "O", f"unknown type of array {kind!r:.40}")
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _unpack_numbers(code: str, shape: list[int], data: str) -> npt.NDArray[Any]:
    require(isinstance(code, str) and len(code) == 3, f"unknown type of array {code!r:.40}")
    dtype = np.dtype(code)
    require(dtype.kind in NUMERIC and dtype.str == code, f"unknown type of array {code!r:.40}")
    require(isinstance(shape, list) and len(shape) <= 4, "the shape of an array is not a list")
    require(all(type(n) is int and 0 <= n < 2**40 for n in shape), f"the shape of an array is {shape!r:.80}")
    content = base64.b64decode(data, validate=True)
    size = int(np.prod([dtype.itemsize, *shape], dtype=object))
    require(len(content) == size, f"an array of shape {shape} has {len(content)} bytes")
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def float64(value: Any, name: str) -> FloatArray:
    require(isinstance(value, np.ndarray) and value.dtype == np.float64, f"{name} is not an array of float64")
    array: FloatArray = value
    return array


def require(condition: bool, problem: str) -> None:
    if not condition:
        raise ModelFileError(f"is corrupt: {problem}.")
