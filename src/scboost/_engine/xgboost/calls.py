"""Calls of XGBoost's C API that are made in every round.

XGBoost's Python package checks every argument, describes arrays in JSON and copies the results. With a few thousand
samples this takes several times as long as the call itself; with many samples it is one more copy.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from scboost._arrays import FloatArray
from scboost._xgboost import import_xgboost

if TYPE_CHECKING:
    import xgboost

_MARGIN = b'{"type": 1, "training": false, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false}'
_FORMAT = b'{"format": "ubj"}'


class Calls:
    """Calls of one booster on its training matrix.

    Attributes
    ----------
    booster : Booster
        The booster.
    matrix : DMatrix
        Its training matrix.
    """

    def __init__(self, booster: xgboost.Booster, matrix: xgboost.DMatrix) -> None:
        self.booster, self.matrix = booster, matrix  # keep them alive while their handles are used
        self._booster, self._matrix = booster.handle, matrix.handle
        self._library = _library()
        self._shape = ctypes.POINTER(ctypes.c_uint64)()
        self._length, self._address = ctypes.c_uint64(), ctypes.c_void_p()
        self._out = ctypes.byref(self._length), ctypes.byref(self._address)

    def boost(self, iteration: int, grad: FloatArray, hess: FloatArray) -> None:
        """Grow the trees of a round on gradients of shape (n,) or (n, K)."""
        described = _described(grad), _described(hess)
        self._check(self._library.XGBoosterTrainOneIter(self._booster, self._matrix, iteration, *described))

    def margin(self) -> FloatArray:
        """Return the margins of the training samples, of shape (n * K,), sample by sample.

        The array is a view of XGBoost's buffer, valid until the next call. Margins always include all rounds:
        predicting a range of rounds on the training matrix would invalidate its cache.
        """
        shape = ctypes.byref(self._shape)
        predict = self._library.XGBoosterPredictFromDMatrix
        self._check(predict(self._booster, self._matrix, _MARGIN, shape, *self._out))
        size = math.prod(self._shape[: self._length.value])
        if not size:
            return np.zeros(0, dtype=np.float32)
        return np.frombuffer((ctypes.c_float * size).from_address(self._address.value or 0), dtype=np.float32)

    def model(self) -> bytes:
        """Return the model as UBJSON."""
        self._check(self._library.XGBoosterSaveModelToBuffer(self._booster, _FORMAT, *self._out))
        return ctypes.string_at(self._address, self._length.value)

    def _check(self, code: int) -> None:
        if code:
            raise import_xgboost().core.XGBoostError(self._library.XGBGetLastError().decode())


def _described(a: FloatArray) -> bytes:
    """Return the array interface of a contiguous array as JSON."""
    shape = ", ".join(map(str, a.shape))
    return (
        f'{{"data": [{a.__array_interface__["data"][0]}, true], "shape": [{shape}], "strides": null, '
        f'"typestr": "{a.dtype.str}", "version": 3}}'
    ).encode()


@cache
def _library() -> ctypes.CDLL:
    """Return the library that XGBoost's Python package has loaded."""
    import_xgboost()
    from xgboost.libpath import find_lib_path

    library = ctypes.CDLL(find_lib_path()[0])
    library.XGBGetLastError.restype = ctypes.c_char_p
    return library
