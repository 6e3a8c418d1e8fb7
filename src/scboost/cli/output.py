"""Files that commands write: checked before the work starts, and complete or absent after it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from scboost._model.atomic import check_folder, replacing
from scboost.cli.tables import ARROW, PARQUET, compression_of, format_of, pyarrow
from scboost.cli.text import TEXT, DataError

MODEL_ENDINGS = (".json", ".ubj")


def check_output(path: str, inputs: Sequence[str | None], endings: Sequence[str] = ()) -> None:
    """Refuse an output that could not be written, or that would replace an input.

    Parameters
    ----------
    path : str
        Value of ``-o``.
    inputs : sequence of (str or None)
        Files that the command reads.
    endings : sequence of str
        Allowed file extensions; those of tables if empty.
    """
    target = Path(path)
    if endings and target.suffix.lower() not in endings:
        raise DataError(f"-o {path}: the file name must end in {' or '.join(endings)}")
    if not endings:
        format_of(target)
    for given in inputs:
        if given is not None and _same(target, Path(given)):
            raise DataError(f"-o {path}: the output is also an input, which would be overwritten; choose another name")
    if target.is_dir():
        raise DataError(f"-o {path}: this is a folder; give the name of a file")
    check_folder(target, "-o ")
    if not os.access(target if target.exists() else target.resolve().parent, os.W_OK):
        raise DataError(f"-o {path}: no permission to write there")


def _same(a: Path, b: Path) -> bool:
    return a.samefile(b) if a.exists() and b.exists() else a.resolve() == b.resolve()


class Output:
    """A table that is written in chunks and takes its place once it is complete.

    Parameters
    ----------
    path : str
        Name of the file; its extension tells the format. Links are followed.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._format = format_of(self._path)
        self._open = ExitStack()
        self._writer: Any = None

    def write(self, table: Any) -> None:
        """Add rows: a pyarrow.Table with the columns of the first one."""
        if self._writer is None:
            self._writer = self._open.enter_context(self._new_writer(self._stream, table.schema))
        self._writer.write_table(table)

    def _new_writer(self, stream: BinaryIO, schema: Any) -> Any:
        pa = pyarrow()
        if self._format in PARQUET:
            from pyarrow import parquet

            return parquet.ParquetWriter(stream, schema)
        if self._format in ARROW:
            return pa.ipc.new_file(stream, schema)
        from pyarrow import csv

        compression = compression_of(self._path)
        sink = pa.CompressedOutputStream(stream, compression) if compression else pa.PythonFile(stream, "w")
        self._open.enter_context(sink)
        return csv.CSVWriter(sink, schema, write_options=csv.WriteOptions(delimiter=TEXT[self._format]))

    def __enter__(self) -> Output:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._open.__enter__()
        self._stream = self._open.enter_context(replacing(self._path))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, where)
