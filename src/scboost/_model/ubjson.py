"""XGBoost's binary model format, UBJSON, as dictionaries of NumPy arrays.

Reading a model through JSON turns every number of every tree into a Python object, which on narrow data
costs a tenth of the whole fit. UBJSON keeps the arrays of a tree as packed big-endian blocks, so a tree is
a dozen ``frombuffer`` calls. Only what XGBoost writes is supported; anything else is a ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

_SCALARS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_MARKERS = {np.dtype(code).newbyteorder("=").str[1:]: marker for marker, code in _SCALARS.items()}
_WIDTHS = {marker[0]: 1 + np.dtype(code).itemsize for marker, code in _SCALARS.items()}
_CONSTANTS = {b"T": True, b"F": False, b"Z": None}
_LENGTH = struct.Struct(">q")
_DEEPEST = 32  # levels; a model has eight


def decode(data: bytes | bytearray) -> Any:
    """Decode a UBJSON document.

    Parameters
    ----------
    data : bytes
        For example ``booster.save_raw("ubj")``. May be untrusted: lengths are compared with the size of the rest of
        the document before memory is allocated.

    Returns
    -------
    Any
        Dictionaries, lists, strings and scalars; typed arrays as native NumPy arrays (copies).
    """
    value, end = decode_at(data, 0)
    if end != len(data):
        raise ValueError(f"UBJSON document ends at byte {end} of {len(data)}.")
    return value


def decode_at(data: bytes | bytearray, start: int) -> tuple[Any, int]:
    """Decode only the value that starts at a given byte; the second item is where the next one starts."""
    return _decode(data, start, _DEEPEST)


class ObjectReader:
    """Decodes objects that mostly have the keys and types of the one before, such as the trees of a model.

    An object like the one before is read along its known headers, several times faster than :func:`decode_at`; any
    other is decoded in full, with the same result, and is what the next one is compared with.
    """

    def __init__(self) -> None:
        self._fields: list[_Field] = []

    def read(self, data: bytes | bytearray, start: int) -> tuple[dict[str, Any], int]:
        """Decode the object that starts at a given byte; the second item is where the next value starts."""
        if data[start : start + 1] != b"{":
            raise ValueError(f"Expected an object at byte {start}, got {bytes(data[start : start + 1])!r}.")
        known = self._read_known(data, start) if self._fields else None
        if known is not None:
            return known
        value, end = decode_at(data, start)
        self._learn(data, start, value)
        return value, end

    def _learn(self, data: bytes | bytearray, start: int, value: dict[str, Any]) -> None:
        self._fields = []
        at = start + 1
        for name, item in value.items():
            header = key(name)
            first, at = at + len(header), _end(data, at + len(header), _DEEPEST)
            if isinstance(item, np.ndarray):
                stored = np.dtype(_SCALARS[bytes(data[first + 2 : first + 3])])
                header += bytes(data[first : first + 5])  # "[$", the type, and "#L" before the length
                self._fields.append(_Field(name, header, stored, item.dtype))
            else:
                self._fields.append(_Field(name, header, None, None))

    def _read_known(self, data: bytes | bytearray, start: int) -> tuple[dict[str, Any], int] | None:
        at = start + 1
        mapping: dict[str, Any] = {}
        for name, header, stored, native in self._fields:
            end = at + len(header)
            if data[at:end] != header:
                return None
            if stored is None:
                mapping[name], at = _decode(data, end, _DEEPEST)
                continue
            _require(data, end, _LENGTH.size)
            size, at = _LENGTH.unpack_from(data, end)[0], end + _LENGTH.size
            _require(data, at, size * stored.itemsize)
            mapping[name] = np.frombuffer(data, stored, size, at).astype(native)
            at += size * stored.itemsize
        return (mapping, at + 1) if data[at : at + 1] == b"}" else None


class _Field(NamedTuple):
    """A key with what is stored before its value: the key itself and, of an array, its type."""

    name: str
    header: bytes
    stored: np.dtype[Any] | None
    native: np.dtype[Any] | None


def find_list(data: bytes | bytearray, name: str, start: int) -> int:
    """Return the byte at which the next list of stated length with this key starts, at a given byte or later.

    Nothing is checked on the way: for documents of which the part before is known.
    """
    header = key(name)
    at = data.find(header + b"[#", start - len(header))
    if at < 0:
        raise ValueError(f"There is no list with the key {name!r} from byte {start} on.")
    return at + len(header)


def find(data: bytes | bytearray, path: Sequence[str]) -> int:
    """Return the byte at which the value of a nested key starts; the values before it are stepped over, not decoded."""
    at = 0
    for name in path:
        if data[at : at + 1] != b"{":
            raise ValueError(f"Expected an object with the key {name!r} at byte {at}, got {data[at : at + 1]!r}.")
        found, at = _string(data, at + 1)
        while found != name:
            at = _end(data, at, _DEEPEST)
            if data[at : at + 1] == b"}":
                raise ValueError(f"There is no key {name!r} in the object that ends at byte {at}.")
            found, at = _string(data, at)
    return at


def list_at(data: bytes | bytearray, start: int) -> tuple[int, int]:
    """Return the number of items of the list that starts at a given byte, and where its first item starts."""
    if data[start : start + 2] != b"[#":
        raise ValueError(f"Expected a list of stated length at byte {start}, got {data[start : start + 2]!r}.")
    return _length(data, start + 2)


@lru_cache(maxsize=256)
def key(name: str) -> bytes:
    """Return a key as it is written before its value."""
    text = name.encode()
    return b"L" + _LENGTH.pack(len(text)) + text


def _length(data: bytes | bytearray, at: int) -> tuple[int, int]:
    if data[at : at + 1] != b"L":  # XGBoost writes every length as a 64-bit integer
        raise ValueError(f"Expected a 64-bit length at byte {at}, got {bytes(data[at : at + 1])!r}.")
    _require(data, at + 1, 8)
    size: int = _LENGTH.unpack_from(data, at + 1)[0]
    _require(data, at + 9, size)  # every item takes a byte at least
    return size, at + 9


def _require(data: bytes | bytearray, at: int, size: int) -> None:
    if not 0 <= size <= len(data) - at:
        raise ValueError(f"{size} bytes or items are announced at byte {at} of {len(data)}.")


def _string(data: bytes | bytearray, at: int) -> tuple[str, int]:
    size, at = _length(data, at)
    return data[at : at + size].decode(), at + size


def _array(data: bytes | bytearray, at: int) -> tuple[np.dtype[Any], int, int]:
    """Type, length and first byte of a typed array whose ``$`` is at a given byte."""
    code = _SCALARS.get(bytes(data[at + 1 : at + 2]))
    if code is None or data[at + 2 : at + 3] != b"#":
        raise ValueError(f"Unknown type of array {bytes(data[at : at + 3])!r} at byte {at}.")
    size, at = _length(data, at + 3)
    dtype = np.dtype(code)
    _require(data, at, size * dtype.itemsize)
    return dtype, size, at


def _decode(data: bytes | bytearray, at: int, depth: int) -> tuple[Any, int]:
    marker, at = bytes(data[at : at + 1]), at + 1
    if marker in _SCALARS:
        dtype = np.dtype(_SCALARS[marker])
        _require(data, at, dtype.itemsize)
        return np.frombuffer(data, dtype, 1, at)[0].item(), at + dtype.itemsize
    if marker == b"S":
        return _string(data, at)
    if marker in _CONSTANTS:
        return _CONSTANTS[marker], at
    if depth == 0:
        raise ValueError(f"UBJSON is nested more than {_DEEPEST} levels deep at byte {at - 1}.")
    if marker == b"{":
        mapping: dict[str, Any] = {}
        while data[at : at + 1] != b"}":
            name, at = _string(data, at)
            if name in mapping:
                raise ValueError(f"The key {name!r} comes twice, again before byte {at}.")
            mapping[name], at = _decode(data, at, depth - 1)
        return mapping, at + 1
    if marker == b"[":
        if data[at : at + 1] == b"$":
            dtype, size, at = _array(data, at)
            array = np.frombuffer(data, dtype, size, at)
            return array.astype(dtype.newbyteorder("=")), at + size * dtype.itemsize
        size = -1
        items: list[Any] = []
        if data[at : at + 1] == b"#":
            size, at = _length(data, at + 1)
        while len(items) != size and (size >= 0 or data[at : at + 1] != b"]"):
            item, at = _decode(data, at, depth - 1)
            items.append(item)
        return items, at + (size < 0)
    raise ValueError(f"Unknown UBJSON marker {marker!r} at byte {at - 1}.")


def _end(data: bytes | bytearray, at: int, depth: int) -> int:
    """Byte after the value that starts at a given byte; what the bytes between hold is not looked at."""
    marker = data[at : at + 1]
    if marker == b"[" and data[at + 1 : at + 2] == b"$":
        dtype, size, at = _array(data, at + 1)
        return at + size * dtype.itemsize
    if marker == b"[" and data[at + 1 : at + 2] == b"#":
        size, at = _length(data, at + 2)
        for _ in range(size):
            width = _WIDTHS.get(data[at]) if at < len(data) else None
            at = at + width if width is not None else _end(data, at, depth - 1)
        return at
    if marker == b"{" and depth > 0:
        at += 1
        while data[at : at + 1] != b"}":
            at = _end(data, _string(data, at)[1], depth - 1)
        return at + 1
    if marker == b"S":
        size, at = _length(data, at + 1)
        return at + size
    return _decode(data, at, depth)[1]


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


def size(value: Any) -> int:
    """Return the number of bytes that :func:`encode` would return."""
    if isinstance(value, np.ndarray):
        return 13 + value.nbytes
    if isinstance(value, dict):
        return 2 + sum(map(_key_size, value)) + sum(map(size, value.values()))
    if isinstance(value, list):
        return 11 + sum(map(size, value))
    return _SIZES.get(type(value)) or len(encode(value))


@lru_cache(maxsize=1024)
def _key_size(name: str) -> int:
    return len(key(name))


_SIZES = {type(value): len(encode(value)) for value in (True, None, 0, 0.0)}
