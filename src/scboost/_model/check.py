"""Check model files of XGBoost and LightGBM before anything loads them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from scboost._model import check_lightgbm, check_xgboost
from scboost._model.structure import UnsupportedError

_MOST_FINDINGS = 100
_XGBOOST, _LIGHTGBM = (b"{",), (b"tree\n", b"tree\r\n")


@dataclass(frozen=True)
class Finding:
    """A finding of :func:`check_model`.

    Attributes
    ----------
    severity : {"error", "not covered"}
        "error" if the file is damaged or contradicts itself: do not load it. "not covered" if the format is not
        supported.
    location : str
        Location in the file, such as ``"tree 3"``; empty for the whole file.
    message : str
        What is wrong.
    """

    severity: Literal["error", "not covered"]
    location: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.severity, self.location, self.message) if part)


def check_model(path: str | os.PathLike[str], *, max_bytes: int = 1 << 30) -> list[Finding]:
    """Check a model file of XGBoost or LightGBM without loading it.

    Both libraries trust the files they read: an invalid node index can crash the process. This function reads the file
    in pure Python and NumPy, without importing either library, and verifies sizes, indices,
    the shape of every tree (one root, no cycles, no shared nodes), categories, and that all numbers are finite.

    Parameters
    ----------
    path : str or Path
        XGBoost's JSON or UBJSON (1.6 or later; boosters ``gbtree``, ``dart`` and ``gblinear``; also files of scboost)
        or LightGBM's text (3.0 or later). Untrusted files are safe: the result is a list of findings for any content.
    max_bytes : int, default=2**30
        Larger files are not read and reported as not covered. Time and memory are proportional to the size of the
        file.

    Returns
    -------
    list of Finding
        Empty if the file is valid. At most one finding per tree, and 100 in total.

    Raises
    ------
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile, scboost
    >>> from sklearn.datasets import load_iris
    >>> model = scboost.SCBoostClassifier(n_estimators=5).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save_model(f"{folder}/iris.json")
    ...     scboost.check_model(f"{folder}/iris.json")
    []
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return [Finding("not covered", "", f"{str(Path(path))!r} is not a regular file")]
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        return [Finding("not covered", "", f"the file has more than max_bytes={max_bytes} bytes")]
    return check_bytes(data)


def check_bytes(data: bytes) -> list[Finding]:
    """Check the content of a model file; see :func:`check_model`."""
    try:
        return [Finding("error", location, message) for location, message in islice(_problems(data), _MOST_FINDINGS)]
    except UnsupportedError as error:
        return [Finding("not covered", "", str(error))]
    except RecursionError:
        return [Finding("error", "", "it is nested too deeply")]
    except MemoryError:
        return [Finding("not covered", "", "there is not enough memory to read it")]
    except ValueError as error:
        return [Finding("error", "", f"{error!s:.300}")]
    except (
        AttributeError,
        LookupError,
        TypeError,
        ArithmeticError,
    ) as error:  # not a model
        return [Finding("error", "", f"{type(error).__name__}: {error!s:.300}")]


def _problems(data: bytes) -> Iterator[tuple[str, str]]:
    if data.startswith(_LIGHTGBM):
        return check_lightgbm.problems(data)
    if data.lstrip(b" \t\r\n").startswith(_XGBOOST):
        return check_xgboost.problems(data)
    raise UnsupportedError("the format is none of XGBoost's JSON, XGBoost's UBJSON and LightGBM's text")
