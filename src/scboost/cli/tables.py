"""Files of rows: CSV, TSV, Parquet and Arrow, read whole or in chunks, with errors that name file, column and row."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from scboost._model.atomic import replacing

_TEXT = {".csv": ",", ".tsv": "\t"}
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_PARQUET, _ARROW = (".parquet", ".pq"), (".feather", ".arrow", ".ipc")
_BLOCK = 1 << 20  # bytes of text in a chunk; Arrow reads up to 32 of them ahead
_ROWS = 1 << 16  # rows in a chunk of the other formats


class DataError(ValueError):
    """A file of rows is not what a command needs; the message names the file and, where it can, column and row."""


def pyarrow() -> Any:
    """Import pyarrow, or say how to get it."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            "the command line reads and writes tables with pyarrow, which is not installed: pip install 'scboost[cli]'"
        ) from error
    return pa


def format_of(path: Path) -> str:
    """Return the ending that tells a file's format, without that of a compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED and len(suffixes) > 1 and suffixes[-2] in _TEXT:
        return suffixes[-2]
    ending = suffixes[-1] if suffixes else ""
    if ending not in {*_TEXT, *_PARQUET, *_ARROW}:
        raise DataError(
            f"{path}: unknown kind of file; the name must end in one of "
            f"{', '.join([*_TEXT, *_PARQUET, *_ARROW])}, text also compressed ({', '.join(_COMPRESSED)})"
        )
    return ending


@dataclass(frozen=True)
class Kinds:
    """Columns whose kind is given; that of all others is the file's own, or inferred from text.

    Attributes
    ----------
    numeric, categorical, labels : frozenset of str
        Columns of numbers, of categories, and of texts to be taken as they are.
    """

    numeric: frozenset[str] = frozenset()
    categorical: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()


class Source:
    """A file of rows.

    Parameters
    ----------
    path : str
        Name of the file; its ending tells the format.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    first_row : int
        Number of the first row in messages: 2 for text, where the header is row 1 as in a spreadsheet, else 1.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._format = format_of(self.path)
        self.first_row = 2 if self._format in _TEXT else 1
        with self._reading():
            self.names = self._read_names()
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise DataError(f"{self.path}: column {repeated[0]!r} occurs more than once")

    def require(self, columns: Collection[str]) -> None:
        """Raise DataError if a column is missing."""
        missing = [name for name in columns if name not in self.names]
        if missing:
            raise DataError(
                f"{self.path}: there is no column {', '.join(map(repr, missing))}; the file has "
                f"{', '.join(map(repr, self.names[:20]))}{', ...' if len(self.names) > 20 else ''}"
            )

    def read(self, columns: Sequence[str], kinds: Kinds) -> Any:
        """Read some columns of all rows.

        Parameters
        ----------
        columns : sequence of str
            Which columns, in which order.
        kinds : Kinds
            Kinds of the columns.

        Returns
        -------
        pyarrow.Table
        """
        self.require(columns)
        with self._reading():
            if self._format in _TEXT:
                from pyarrow import csv

                table = csv.read_csv(self._open(), **self._csv_options(columns, kinds))
            else:
                table = pyarrow().Table.from_batches(list(self._raw_batches(columns)))
        return self._converted(table.select(list(columns)), kinds, self.first_row)

    def chunks(self, columns: Sequence[str], kinds: Kinds) -> Iterator[tuple[int, Any]]:
        """Read some columns in chunks; the kind of every column of a text file must be given.

        Yields
        ------
        (int, pyarrow.Table)
            Number of the first row of the chunk, and the chunk.
        """
        self.require(columns)
        pa = pyarrow()
        row = self.first_row
        with self._reading():
            if self._format in _TEXT:
                from pyarrow import csv

                batches: Any = csv.open_csv(self._open(), **self._csv_options(columns, kinds))
            else:
                batches = self._raw_batches(columns)
            for batch in batches:
                table = pa.Table.from_batches([batch]).select(list(columns))
                yield row, self._converted(table, kinds, row)
                row += len(table)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn Arrow's errors into those that name the file and the column."""
        pa = pyarrow()
        try:
            yield
        except pa.ArrowInvalid as error:
            raise DataError(f"{self.path}: {self._with_names(str(error))}") from error

    def _with_names(self, message: str) -> str:
        """Name the column that Arrow numbers."""
        found = re.match(
            r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+): (.*)", message, re.DOTALL
        )
        if not found:
            return re.sub(r"^CSV parse error: Row #(\d+)", r"row \1", message)
        column, row, kind, what = found.groups()
        where = f"row {row}, " if row else ""
        return f"{where}column {self.names[int(column)]!r}: {what}, where a {_SPOKEN.get(kind, kind)} is expected"

    def _open(self) -> Any:
        return pyarrow().input_stream(str(self.path), compression="detect")

    def _csv_options(self, columns: Sequence[str], kinds: Kinds) -> dict[str, Any]:
        pa = pyarrow()
        from pyarrow import csv

        types = dict.fromkeys(kinds.numeric, pa.float64()) | dict.fromkeys(
            kinds.categorical | kinds.labels, pa.string()
        )
        return {
            **self._text_options(),
            "convert_options": csv.ConvertOptions(
                include_columns=list(columns),
                column_types={name: kind for name, kind in types.items() if name in columns},
                strings_can_be_null=True,
                # Texts such as "true" are categories: when predicting, they are read as texts again.
                true_values=[],
                false_values=[],
            ),
        }

    def _text_options(self) -> dict[str, Any]:
        from pyarrow import csv

        return {
            # One thread: several would not know the number of the row in which an error is.
            "read_options": csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            "parse_options": csv.ParseOptions(delimiter=_TEXT[self._format], newlines_in_values=True),
        }

    def _read_names(self) -> list[str]:
        if self._format in _TEXT:
            from pyarrow import csv

            return list(csv.open_csv(self._open(), **self._text_options()).schema.names)
        if self._format in _PARQUET:
            from pyarrow import parquet

            with parquet.ParquetFile(self.path) as file:
                return list(file.schema_arrow.names)
        pa = pyarrow()
        with pa.OSFile(str(self.path)) as stream:
            return list(pa.ipc.open_file(stream).schema.names)

    def _raw_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        if self._format in _PARQUET:
            from pyarrow import parquet

            with parquet.ParquetFile(self.path, pre_buffer=False) as file:  # which would read the whole file ahead
                yield from file.iter_batches(batch_size=_ROWS, columns=list(columns), use_threads=False)
            return
        pa = pyarrow()
        with pa.OSFile(str(self.path)) as stream:
            reader = pa.ipc.open_file(stream)
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i).select(list(columns))
                for start in range(0, len(batch), _ROWS):
                    yield batch.slice(start, _ROWS)

    def _converted(self, table: Any, kinds: Kinds, first_row: int) -> Any:
        pa = pyarrow()
        for j, name in enumerate(table.schema.names):
            column = table.column(j)
            if name in kinds.numeric and not pa.types.is_floating(column.type):
                table = table.set_column(j, name, self._numbers(name, column, first_row))
            elif name in kinds.categorical and not is_category(column.type):
                table = table.set_column(j, name, column.dictionary_encode())
        return table

    def _numbers(self, name: str, column: Any, first_row: int) -> Any:
        pa = pyarrow()
        try:
            return column.cast(pa.float64(), safe=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            row = _first_that_fails(column) if is_category(column.type) else 0
            raise DataError(
                f"{self.path}: row {first_row + row}, column {name!r}: {column[row].as_py()!r}, where a number is "
                "expected"
            ) from error


_SPOKEN = {"double": "number", "int64": "whole number"}


def is_category(kind: Any) -> bool:
    """Whether the estimators take columns of this Arrow type as categories."""
    types = pyarrow().types
    return bool(types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind))


def _first_that_fails(column: Any) -> int:
    """Position of the first value that is no number, by bisection."""
    pa = pyarrow()
    low, high = 0, len(column)  # all before low are numbers; one before high is none
    while high - low > 1:
        middle = (low + high) // 2
        try:
            column.slice(low, middle - low).cast(pa.float64())
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


class Output:
    """A file of rows that is written in chunks, and exists only once it is complete.

    Parameters
    ----------
    path : str
        Name of the file; its ending tells the format.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._format = format_of(self._path)
        self._opened = ExitStack()
        self._writer: Any = None

    def write(self, table: Any) -> None:
        """Add rows, a pyarrow.Table with the columns of the first one."""
        if self._writer is None:
            self._open(table.schema)
        self._writer.write_table(table)

    def _open(self, schema: Any) -> None:
        pa = pyarrow()
        stream = self._opened.enter_context(replacing(self._path))
        if self._format in _PARQUET:
            from pyarrow import parquet

            writer = parquet.ParquetWriter(stream, schema)
        elif self._format in _ARROW:
            writer = pa.ipc.new_file(stream, schema)
        else:
            from pyarrow import csv

            ending = self._path.suffix.lower()
            compression = pa.Codec.detect(ending).name if ending in _COMPRESSED else None
            sink = self._opened.enter_context(pa.output_stream(stream, compression=compression))
            writer = csv.CSVWriter(sink, schema, write_options=csv.WriteOptions(delimiter=_TEXT[self._format]))
        self._writer = self._opened.enter_context(writer)

    def __enter__(self) -> Output:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)
