"""XGBoost's binary model format, UBJSON, as dictionaries of NumPy arrays.

Reading a model through JSON turns every number of every tree into a Python object, which on narrow data
costs a tenth of the whole fit. UBJSON keeps the arrays of a tree as packed big-endian blocks, so a tree is
a dozen ``frombuffer`` calls. Only what XGBoost writes is supported; anything else is an error.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

_SCALARS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_MARKERS = {np.dtype(code).newbyteorder("=").str[1:]: marker for marker, code in _SCALARS.items()}
_LENGTH = struct.Struct(">q")


def decode(data: bytes | bytearray) -> Any:
    """Decode a UBJSON document.

    Parameters
    ----------
    data : bytes
        For example ``booster.save_raw("ubj")``.

    Returns
    -------
    Any
        Dictionaries, lists, strings and scalars; typed arrays as native NumPy arrays (copies).
    """
    value, end = _decode(bytes(data), 0)
    if end != len(data):
        raise ValueError(f"UBJSON document ends at byte {end} of {len(data)}.")
    return value


def decode_at(data: bytes | bytearray, start: int) -> Any:
    """Decode only the value that starts at a given byte."""
    return _decode(bytes(data[start:]), 0)[0]


def key(name: str) -> bytes:
    """Return the bytes of a key, to search for."""
    return b"L" + _LENGTH.pack(len(name.encode())) + name.encode()


def _length(data: bytes, at: int) -> tuple[int, int]:
    if data[at : at + 1] != b"L":  # XGBoost writes every length as a 64-bit integer
        raise ValueError(f"Expected a 64-bit length at byte {at}, got {data[at : at + 1]!r}.")
    return _LENGTH.unpack_from(data, at + 1)[0], at + 9


def _string(data: bytes, at: int) -> tuple[str, int]:
    size, at = _length(data, at)
    return data[at : at + size].decode(), at + size


def _decode(data: bytes, at: int) -> tuple[Any, int]:
    marker, at = data[at : at + 1], at + 1
    if marker == b"{":
        mapping = {}
        while data[at : at + 1] != b"}":
            name, at = _string(data, at)
            mapping[name], at = _decode(data, at)
        return mapping, at + 1
    if marker == b"[":
        if data[at : at + 1] == b"$":
            dtype = np.dtype(_SCALARS[data[at + 1 : at + 2]])
            size, at = _length(data, at + 3)  # past "$x#"
            array = np.frombuffer(data, dtype, size, at)
            return array.astype(dtype.newbyteorder("=")), at + size * dtype.itemsize
        size = -1
        items: list[Any] = []
        if data[at : at + 1] == b"#":
            size, at = _length(data, at + 1)
        while len(items) != size and data[at : at + 1] != b"]":
            item, at = _decode(data, at)
            items.append(item)
        return items, at + (size < 0)
    if marker == b"S":
        return _string(data, at)
    if marker in b"TFZ":
        return {b"T": True, b"F": False, b"Z": None}[marker], at
    if marker in _SCALARS:
        dtype = np.dtype(_SCALARS[marker])
        return np.frombuffer(data, dtype, 1, at)[0].item(), at + dtype.itemsize
    raise ValueError(f"Unknown UBJSON marker {marker!r} at byte {at - 1}.")


def encode(value: Any) -> bytes:
    """Encode what :func:`decode` returned, after editing, for ``Booster.load_model``.

    Parameters
    ----------
    value : Any
        Dictionaries with string keys, lists, strings, booleans, integers, floats and NumPy vectors.

    Returns
    -------
    bytes
        The UBJSON document.
    """
    out = bytearray()
    _encode(value, out)
    return bytes(out)


def _encode(value: Any, out: bytearray) -> None:
    if isinstance(value, dict):
        out += b"{"
        for name, item in value.items():
            out += key(name)
            _encode(item, out)
        out += b"}"
    elif isinstance(value, np.ndarray):
        marker = _MARKERS[value.dtype.str[1:]]
        out += b"[$" + marker + b"#L" + _LENGTH.pack(value.size)
        out += value.astype(_SCALARS[marker]).tobytes()
    elif isinstance(value, list):
        out += b"[#L" + _LENGTH.pack(len(value))
        for item in value:
            _encode(item, out)
    elif isinstance(value, str):
        text = value.encode()
        out += b"SL" + _LENGTH.pack(len(text)) + text
    elif isinstance(value, bool) or value is None:
        out += {True: b"T", False: b"F", None: b"Z"}[value]
    elif isinstance(value, int):
        out += b"L" + _LENGTH.pack(value)
    elif isinstance(value, float):
        out += b"d" + struct.pack(">f", value)  # XGBoost reads scalars as 32-bit floats
    else:
        raise TypeError(f"Cannot write {type(value).__name__} to UBJSON.")
