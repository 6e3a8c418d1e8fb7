"""Training data in batches, for fits on data larger than memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing

from scboost._arrays import FloatArray, Paged
from scboost._data.encoder import Encoder, InputRules
from scboost._data.tables import materialize
from scboost._data.validation import check_size, target_vector

_Labels = npt.NDArray[Any]
_VALUES = 1 << 21  # of a batch


class Batches:
    """Training data that do not fit in memory, passed batch by batch to ``fit`` in place of X, or of X_val.

    The batches are read five times before the first round. During the fit, histogram bins (about two bytes per value)
    and long vectors are kept in temporary files.

    Parameters
    ----------
    make_batches : callable
        Called without arguments, returns an iterable of batches: ``(X, y)`` or ``(X, y, sample_weight)``, all of one
        kind, with X a table, an array or a sparse matrix. It must return the same batches in the same order each time.
    folder : str or Path
        Existing folder for temporary files. They are removed when the fit ends, also after an error.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from scboost import Batches, SCBoostRegressor
    >>> def make_batches():
    ...     for seed in range(3):
    ...         X = np.random.default_rng(seed).normal(size=(1000, 3))
    ...         yield X, X[:, 0] * X[:, 1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = SCBoostRegressor(n_estimators=20).fit(Batches(make_batches, folder=folder))
    >>> X, y = next(make_batches())
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    def __init__(
        self, make_batches: Callable[[], Iterable[tuple[Any, ...]]], *, folder: str | os.PathLike[str]
    ) -> None:
        self._make_batches, self.folder = make_batches, Path(folder)
        if not callable(make_batches):
            raise TypeError(
                f"make_batches must be a function that returns the batches anew each time, got {make_batches!r}."
            )
        if not self.folder.is_dir():
            raise ValueError(f"folder={os.fspath(folder)!r} must be an existing folder.")

    @classmethod
    def from_parquet(
        cls,
        files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        target: str,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        batch_rows: int | None = None,
        folder: str | os.PathLike[str],
    ) -> Batches:
        """Read Parquet files with pyarrow.

        Parameters
        ----------
        files : str, Path or sequence of these
            Files, or a folder that is searched recursively for files that end in ``.parquet``, sorted by name.
        target : str
            Column of the target.
        weight : str, optional
            Column of the sample weights.
        columns : sequence of str, optional
            Feature columns; all but target and weight by default.
        batch_rows : int, optional
            Samples per batch; by default, batches have two million values. Larger batches need more memory, smaller
            ones more time.
        folder : str or Path
            See :class:`Batches`.

        Returns
        -------
        Batches
            Training data to pass to ``fit``.
        """
        arrow, parquet = _arrow()
        given = [files] if isinstance(files, str | os.PathLike) else files
        paths = [
            path for one in map(Path, given) for path in (sorted(one.rglob("*.parquet")) if one.is_dir() else [one])
        ]
        if not paths:
            raise ValueError(f"files={files!r} has no file that ends in .parquet.")
        others = [target] if weight is None else [target, weight]
        names = parquet.read_schema(paths[0]).names
        chosen = [name for name in names if name not in others] if columns is None else list(columns)
        if repeated := [name for name in others if name in chosen]:
            raise ValueError(
                f"columns={chosen!r} contains {repeated[0]!r}, the column of the target or the weights, which must not "
                "be a feature; leave it out of columns."
            )
        missing = [name for name in [*others, *chosen] if name not in names]
        if missing:
            raise ValueError(f"{paths[0]} has no column {missing[0]!r}; it has {names}.")
        n_rows = batch_rows or max(1, _VALUES // max(len(chosen), 1))

        def make_batches() -> Iterator[tuple[Any, ...]]:
            for path in paths:
                with parquet.ParquetFile(
                    path, pre_buffer=False
                ) as file:  # pre-buffering would read the whole file ahead
                    for batch in file.iter_batches(n_rows, columns=[*chosen, *others], use_threads=False):
                        table = arrow.Table.from_batches([batch])
                        yield table.select(chosen), *(table.column(name).to_numpy() for name in others)
            arrow.default_memory_pool().release_unused()  # Arrow's memory pool keeps freed memory

        return cls(make_batches, folder=folder)

    def __iter__(self) -> Iterator[tuple[int, Any, _Labels, FloatArray | None]]:
        """Yield the number of a batch, X, y and weights; samples of weight 0 are left out."""
        weighted: bool | None = None
        for i, batch in enumerate(self._make_batches()):
            if not isinstance(batch, tuple) or len(batch) not in (2, 3):
                raise TypeError(f"Batch {i} must be (X, y) or (X, y, sample_weight), got a {type(batch).__name__}.")
            X, y, *rest = batch
            X = X if hasattr(X, "shape") else np.asarray(X)
            with _named(i):
                y = target_vector(y, X)
                weight = target_vector(rest[0], X, "sample_weight").astype(np.float64) if rest else None
            if weighted not in (None, weight is not None):
                raise ValueError(f"Batch {i} has {'' if rest else 'no '}weights, unlike those before it.")
            weighted = weight is not None
            if weight is not None and not weight.all():
                kept = np.flatnonzero(weight)
                X, y, weight = _safe_indexing(X, kept), y[kept], weight[kept]
            if len(y):
                yield i, X, y, weight

    def __array__(self, *_: object, **__: object) -> FloatArray:
        """Raise TypeError: batches cannot be converted to an array."""
        raise TypeError("Batches are training data; predict batch by batch, with arrays or tables as X.")


@dataclass(frozen=True)
class _Seen:
    """Checksums of a batch in an earlier pass.

    Attributes
    ----------
    columns : list of int or None
        Positions of the columns of X that ``samples`` covers; None for all.
    samples, target : int
        Checksums of X and y.
    """

    columns: list[int] | None
    samples: int
    target: int = 0


class OpenBatches(Paged):
    """Batches during a fit, as float matrices.

    Parameters
    ----------
    batches : Batches
        The samples.
    folder : Path
        Empty folder for their temporary files.
    """

    def __init__(self, batches: Batches, folder: Path) -> None:
        self._batches, self.folder = batches, folder
        self._encoder: Encoder | None = None
        self._seen: list[_Seen] = []

    def learn(self, rules: InputRules, like: Encoder | None) -> tuple[Encoder, _Labels, FloatArray | None]:
        """Read all samples once; return the encoder of their features, their targets and weights, of shape (n,).

        Parameters
        ----------
        rules : InputRules
            Rules of accepted input.
        like : Encoder or None
            Encoder of a model that is to be continued, whose categories are kept.
        """
        parts: list[Encoder] = []

        def learn(X: Any) -> _Seen:
            part = Encoder.learn(X, rules, like)
            before = parts[0] if parts else part
            if part.form != before.form:
                raise TypeError(f"X is a {part.form}, unlike the batches before it, which are a {before.form} each.")
            if part.n_features != before.n_features:
                raise ValueError(f"X has {part.n_features} features, the batches before it {before.n_features}.")
            parts[:] = [Encoder.merge([before, part])]
            # Category codes and parts of dates may change with later batches; numbers are encoded only once.
            numeric = [j for j, kind in enumerate(part.kinds) if kind == "number"]
            columns = numeric if len(numeric) < part.n_features and part.kinds else None
            return _Seen(columns, _matrix_checksum(part.encode(X), part, columns))

        y, weight = self._read(learn, 2)
        encoder = self._encoder = parts[0]
        self.shape = len(y), encoder.features.n
        return encoder, y, weight

    def read(self, encoder: Encoder) -> tuple[_Labels, FloatArray | None]:
        """Read all samples once, those of a validation set; return their targets and weights, of shape (n,)."""
        y, weight = self._read(lambda X: _Seen(None, _matrix_checksum(encoder.encode(X), encoder, None)), 1)
        self._encoder, self.shape = encoder, (len(y), encoder.features.n)
        return y, weight

    def _read(self, look: Callable[[Any], _Seen], min_samples: int) -> tuple[_Labels, FloatArray | None]:
        self._seen = []
        targets, weights = [], []
        same: dict[Any, Any] = {}  # one object per distinct label: one per sample would fill the memory
        for i, X, y, weight in self._batches:
            with _named(i):
                self._seen.append(replace(look(X), target=_checksum(y)))
            targets.append(np.array([same.setdefault(v, v) for v in y], dtype=object) if y.dtype.kind == "O" else y)
            if weight is not None:
                weights.append(weight)
        n = sum(map(len, targets))
        if n < min_samples:
            raise ValueError(f"The batches have {n} samples with positive weight; at least {min_samples} needed.")
        if len({y.dtype.kind in "biuf" for y in targets}) > 1:
            raise TypeError(f"y has labels of several types, {sorted({str(y.dtype) for y in targets})}; use one type.")
        return np.concatenate(targets), np.concatenate(weights) if weights else None

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches as float matrices; every pass yields the same ones."""
        if self._encoder is None:
            raise ValueError("the batches have not been read yet")
        n = 0
        for n, (i, X, y, _) in enumerate(self._batches, start=1):
            before = self._seen[n - 1] if n <= len(self._seen) else None
            if before is None or _checksum(y) != before.target:
                raise ValueError(
                    f"Batch {i} differs from the first pass in y; make_batches must return the same batches each time."
                )
            with _named(i):
                matrix = self._encoder.encode(X)
                check_size(matrix)
            if _matrix_checksum(matrix, self._encoder, before.columns) != before.samples:
                raise ValueError(
                    f"Batch {i} differs from an earlier pass in X; make_batches must return the same batches each time."
                )
            if before.columns is not None:
                self._seen[n - 1] = _Seen(None, _matrix_checksum(matrix, self._encoder, None), before.target)
            yield matrix
        if n < len(self._seen):
            raise ValueError(
                "There are fewer batches than in the first pass; make_batches must return the same batches each time."
            )


@contextmanager
def opened(X: Any) -> Iterator[Any]:
    """Open batches with a temporary folder that is removed at the end; return anything else unchanged."""
    if not isinstance(X, Batches):
        yield materialize(X)
        return
    with TemporaryDirectory(prefix="scboost-", dir=X.folder) as name:
        yield OpenBatches(X, Path(name))


@contextmanager
def _named(batch: int) -> Iterator[None]:
    """Add the number of the batch to error messages."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"Batch {batch}: {error}") from error


def _checksum(y: _Labels) -> int:
    return hash(tuple(y)) if y.dtype.kind == "O" else crc32(y.tobytes())


def _matrix_checksum(matrix: Any, encoder: Encoder, columns: list[int] | None) -> int:
    """Checksum of encoded samples, or of the features that are made of some columns of X."""
    if hasattr(matrix, "indptr"):
        return crc32(matrix.indices.tobytes(), crc32(matrix.data.tobytes()))
    some = matrix if columns is None else matrix[:, encoder.features.positions(columns)]
    return crc32(np.ascontiguousarray(some).tobytes())


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("Parquet files are read with pyarrow, which is not installed: pip install pyarrow") from error
    return pa, parquet
