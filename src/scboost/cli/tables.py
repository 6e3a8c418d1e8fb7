"""Tables in files: CSV, TSV, Parquet and Arrow, read whole or in chunks, with errors that name file, column and row."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scboost.cli.text import TEXT, DataError, TextFormat, decimal_comma, detect_separator

PARQUET, ARROW = (".parquet", ".pq"), (".feather", ".arrow", ".ipc")
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_BLOCK = 1 << 20  # bytes of text in a chunk; Arrow reads up to 32 of them ahead
_LARGEST_BLOCK = 1 << 30
_ROWS = 1 << 16  # rows in a chunk of the other formats


def pyarrow() -> Any:
    """Import pyarrow, or say how to get it."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            "the command line reads and writes tables with pyarrow, which is not installed: pip install 'scboost[cli]'"
        ) from error
    return pa


def compression_of(path: Path) -> str | None:
    """Return Arrow's name of a file's compression."""
    return _COMPRESSED.get(path.suffix.lower())


def format_of(path: Path) -> str:
    """Return the extension that tells a file's format, without that of a compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED and suffixes[-2] in TEXT:
        return suffixes[-2]
    ending = suffixes[-1] if suffixes else ""
    if ending not in {*TEXT, *PARQUET, *ARROW}:
        raise DataError(
            f"{path}: unknown file format; the file name must end in one of "
            f"{', '.join([*TEXT, *PARQUET, *ARROW])}, text also compressed ({', '.join(_COMPRESSED)})"
        )
    return ending


@dataclass(frozen=True)
class Kinds:
    """Columns whose kind is given; that of all others is the file's own, or inferred from text.

    Attributes
    ----------
    numeric, categorical, labels, dates : frozenset of str
        Numeric features, categorical features, strings to be kept as they are, and dates.
    """

    numeric: frozenset[str] = frozenset()
    categorical: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    dates: frozenset[str] = frozenset()

    def with_numeric(self, names: Collection[str]) -> Kinds:
        """Return the same with more numeric columns."""
        return replace(self, numeric=self.numeric | set(names))


class Source:
    """A table in a file.

    Parameters
    ----------
    path : str
        Name of the file; its extension tells the format.
    text : TextFormat, optional
        How the file is written, if it is text.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    first_row : int
        Number of the first row in messages: 2 for text, where the header is row 1 as in a spreadsheet, else 1.
    separator : str or None
        Between the fields of text: given, detected in the header, or that of the file's extension.
    """

    def __init__(self, path: str, text: TextFormat | None = None) -> None:
        self.path = Path(path)
        self._format = format_of(self.path)
        self._text = text or TextFormat()
        if self._format not in TEXT and self._text != TextFormat():
            options = "--sep, --decimal, --encoding and --missing"
            raise DataError(f"{self.path}: {options} apply to text files, .csv and .tsv")
        self._block = _BLOCK
        self.first_row = 2 if self._format in TEXT else 1
        with self._reading():
            self.separator = self._text.separator or self._detected_separator()
            self._schema = self._grown(self._read_schema)
            self.names: list[str] = list(self._schema.names)
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise DataError(f"{self.path}: column {repeated[0]!r} occurs more than once")

    @property
    def usual_separator(self) -> bool:
        """Whether the fields are separated as the file extension says."""
        return self.separator == TEXT.get(self._format)

    def require(self, columns: Collection[str]) -> None:
        """Raise DataError if a column does not exist, with the closest name that does."""
        missing = [name for name in columns if name not in self.names]
        if not missing:
            return
        shown = f"{', '.join(map(repr, self.names[:20]))}{', ...' if len(self.names) > 20 else ''}"
        hint = ""
        by_case = {name.casefold().strip(): name for name in self.names}
        close = difflib.get_close_matches(missing[0].casefold().strip(), by_case, n=1)
        found = re.search(r"[;\t|,]", self.names[0]) if len(self.names) == 1 and self._format in TEXT else None
        if found:
            hint = f". The fields seem to be separated by {found[0]!r}: use --sep {found[0]!r}"
        elif close:
            hint = f". Did you mean {by_case[close[0]]!r}?"
        raise DataError(
            f"{self.path}: there is no column {', '.join(map(repr, missing))}; the columns are {shown}{hint}"
        )

    def read(self, columns: Sequence[str], kinds: Kinds) -> Any:
        """Read some columns of all rows, at least one row.

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
            if self._format in TEXT:
                from pyarrow import csv

                table = self._grown(lambda: csv.read_csv(self._open(), **self._csv_options(columns, kinds)))
            else:
                table = pyarrow().Table.from_batches(list(self._raw_batches(columns)), self._schema_of(columns))
        if not len(table):
            raise DataError(f"{self.path}: the table has no rows")
        for name, kind in zip(table.schema.names, table.schema.types, strict=True):
            if self._format in TEXT and pyarrow().types.is_binary(kind):
                raise DataError(
                    f"{self.path}: column {name!r} has bytes that are not {self._text.encoding}; {_ENCODING}"
                )
        return self._converted(table.select(list(columns)), kinds, self.first_row)

    def chunks(self, columns: Sequence[str], kinds: Kinds) -> Iterator[tuple[int, Any]]:
        """Read some columns in chunks; the kind of every column of a text file must be given.

        Yields
        ------
        (int, pyarrow.Table)
            Number of the first row of the chunk, and the chunk. A table without rows is one chunk without rows.
        """
        self.require(columns)
        pa = pyarrow()
        row = self.first_row
        with self._reading():
            for batch in self._batches(columns, kinds):
                table = pa.Table.from_batches([batch]).select(list(columns))
                if len(table):
                    yield row, self._converted(table, kinds, row)
                    row += len(table)
            if row == self.first_row:
                yield row, self._converted(self._schema_of(columns).empty_table(), kinds, row)

    def _batches(self, columns: Sequence[str], kinds: Kinds) -> Iterator[Any]:
        if self._format not in TEXT:
            yield from self._raw_batches(columns)
            return
        pa = pyarrow()
        from pyarrow import csv

        done = 0
        while True:
            skip = done
            try:
                for batch in csv.open_csv(self._open(), **self._csv_options(columns, kinds)):
                    # After a restart with larger blocks, rows that were read before are left out.
                    fresh = batch.slice(min(skip, len(batch)))
                    skip -= len(batch) - len(fresh)
                    done += len(fresh)
                    yield fresh
            except pa.ArrowInvalid as error:
                self._grow(error)
            else:
                return

    def _grown(self, read: Any) -> Any:
        """Read, with larger blocks if a single row does not fit into one."""
        while True:
            try:
                return read()
            except pyarrow().ArrowInvalid as error:
                self._grow(error)

    def _grow(self, error: Exception) -> None:
        if "straddling" not in str(error) or self._block >= _LARGEST_BLOCK:
            raise error
        self._block *= 8

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn Arrow's errors into those that name the file and the column."""
        pa = pyarrow()
        try:
            yield
        except pa.ArrowInvalid as error:
            raise DataError(f"{self.path}: {self._with_names(str(error))}") from error
        except FileNotFoundError as error:
            raise DataError(f"{self.path}: no such file") from error
        except UnicodeError as error:
            raise DataError(f"{self.path}: the text is not {self._text.encoding}; {_ENCODING}") from error
        except LookupError as error:
            raise DataError(f"{self.path}: --encoding {self._text.encoding}: {error}") from error

    def _detected_separator(self) -> str | None:
        if self._format not in TEXT:
            return None
        with self._open() as stream:
            return detect_separator(stream.read(_BLOCK), TEXT[self._format])

    def _with_names(self, message: str) -> str:
        """Name the column that Arrow numbers."""
        if "invalid UTF8" in message and self._format in TEXT:
            message += f"; {_ENCODING}"
        if "Expected 1 columns" in message:
            message += f"; use --sep if the fields are not separated by {self.separator!r}"
        found = re.match(
            r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+): (.*)", message, re.DOTALL
        )
        if not found:
            return re.sub(r"^CSV parse error: Row #(\d+)", r"row \1", message)
        column, row, kind, what = found.groups()
        where = f"row {row}, " if row else ""
        hint = self._hint(what) if kind == "double" else ""
        return f"{where}column {self.names[int(column)]!r}: {what}, where a {_SPOKEN.get(kind, kind)} is expected{hint}"

    def _hint(self, what: str) -> str:
        """Name the option that reads a value as a number or as missing."""
        value = re.search(r"invalid value '(.*)'", what)
        if not value:
            return ""
        if self._text.decimal == "." and decimal_comma(value[1]):
            return "; use --decimal , if the comma is the decimal point"
        return f"; use --missing {value[1]!r} to read it as a missing value"

    def _open(self) -> Any:
        return pyarrow().input_stream(str(self.path), compression="detect")

    def _csv_options(self, columns: Sequence[str], kinds: Kinds) -> dict[str, Any]:
        pa = pyarrow()
        from pyarrow import csv

        types = dict.fromkeys(kinds.numeric, pa.float64()) | dict.fromkeys(
            kinds.categorical | kinds.labels | kinds.dates, pa.string()
        )
        return {
            **self._text_options(),
            "convert_options": csv.ConvertOptions(
                include_columns=list(columns),
                column_types={name: kind for name, kind in types.items() if name in columns},
                strings_can_be_null=True,
                null_values=[*csv.ConvertOptions().null_values, *self._text.missing],
                decimal_point=self._text.decimal,
                # Strings such as "true" are categories: when predicting, they are read as strings again.
                true_values=[],
                false_values=[],
            ),
        }

    def _text_options(self) -> dict[str, Any]:
        from pyarrow import csv

        return {
            # One thread: several would not know the number of the row in which an error is.
            "read_options": csv.ReadOptions(use_threads=False, block_size=self._block, encoding=self._text.encoding),
            "parse_options": csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
        }

    def _read_schema(self) -> Any:
        if self._format in TEXT:
            from pyarrow import csv

            return csv.open_csv(self._open(), **self._text_options()).schema
        if self._format in PARQUET:
            from pyarrow import parquet

            with parquet.ParquetFile(self.path) as file:
                return file.schema_arrow
        pa = pyarrow()
        with pa.OSFile(str(self.path)) as stream:
            return pa.ipc.open_file(stream).schema

    def _schema_of(self, columns: Sequence[str]) -> Any:
        return pyarrow().schema([self._schema.field(name) for name in columns])

    def _raw_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        if self._format in PARQUET:
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
            if pa.types.is_string_view(column.type):
                column = column.cast(pa.string())
                table = table.set_column(j, name, column)
            if name in kinds.labels and pa.types.is_null(column.type):  # a table without rows
                table = table.set_column(j, name, column.cast(pa.string()))
            if name in kinds.numeric and not pa.types.is_floating(column.type):
                table = table.set_column(j, name, self._numbers(name, column, first_row))
            elif name in kinds.dates and not is_date(column.type):
                table = table.set_column(j, name, self._dates(name, column, first_row))
            elif name in kinds.categorical and not is_category(column.type):
                table = table.set_column(j, name, column.dictionary_encode())
        return table

    def _numbers(self, name: str, column: Any, first_row: int) -> Any:
        pa = pyarrow()
        try:
            return column.cast(pa.float64(), safe=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            row = _first_that_fails(column, pa.float64()) if is_category(column.type) else 0
            raise self._unexpected(name, column, row, first_row, "a number") from error

    def _dates(self, name: str, column: Any, first_row: int) -> Any:
        """Return ISO dates, with or without a time of day and a time zone, as instants in UTC."""
        pa = pyarrow()
        if pa.types.is_null(column.type):
            return column.cast(pa.timestamp("us"))
        if not is_category(column.type):
            raise self._unexpected(name, column, 0, first_row, "a date")
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            return column.cast(pa.timestamp("us"))
        except pa.ArrowInvalid:
            try:
                return column.cast(pa.timestamp("us", "UTC"))
            except pa.ArrowInvalid as error:
                row = max(_first_that_fails(column, pa.timestamp("us", zone)) for zone in (None, "UTC"))
                raise self._unexpected(name, column, row, first_row, "a date such as 2024-12-31") from error

    def _unexpected(self, name: str, column: Any, row: int, first_row: int, expected: str) -> DataError:
        found = f"{column[row].as_py()!r}" if len(column) else f"type {column.type}"
        return DataError(f"{self.path}: row {first_row + row}, column {name!r}: {found}, where {expected} is expected")


_ENCODING = "use --encoding if the file has another encoding, such as --encoding latin1"
_SPOKEN = {"double": "number", "int64": "integer"}


def is_category(kind: Any) -> bool:
    """Whether the estimators take columns of this Arrow type as categorical features."""
    types = pyarrow().types
    tests = (types.is_dictionary, types.is_string, types.is_large_string, types.is_string_view)
    return any(test(kind) for test in tests)


def is_date(kind: Any) -> bool:
    """Whether the estimators take columns of this Arrow type as dates."""
    types = pyarrow().types
    return bool(types.is_date(kind) or types.is_timestamp(kind))


def _first_that_fails(column: Any, kind: Any) -> int:
    """Position of the first value that cannot be converted to a type, by bisection."""
    pa = pyarrow()
    low, high = 0, len(column)  # all before low can be converted; one before high cannot
    while high - low > 1:
        middle = (low + high) // 2
        try:
            column.slice(low, middle - low).cast(kind)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low
