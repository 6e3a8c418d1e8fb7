"""How text files are written: separator, decimal point, encoding and missing values."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

TEXT = {".csv": ",", ".tsv": "\t"}
"""Separator by file extension."""

_SEPARATORS = ";\t|,"


class DataError(ValueError):
    """A file is not what a command needs; the message names the file and, where it can, column and row."""


@dataclass(frozen=True)
class TextFormat:
    """How a text file is written.

    Attributes
    ----------
    separator : str or None
        Between fields; None for that of the file's extension.
    decimal : str
        Decimal point.
    encoding : str
        Character encoding.
    missing : tuple of str
        Texts that are missing values, beside those of Arrow such as the empty field and NA.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf8"
    missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> TextFormat:
        """Read the options ``--sep``, ``--decimal``, ``--encoding`` and ``--missing``."""
        separator = {"\\t": "\t", "tab": "\t"}.get(arguments.sep, arguments.sep)
        for option, value in (("--sep", separator), ("--decimal", arguments.decimal)):
            if value is not None and (len(value) != 1 or not value.isascii()):
                raise DataError(f"{option} {value!r}: must be one ASCII character")
        return cls(separator, arguments.decimal, arguments.encoding, tuple(arguments.missing))


def detect_separator(start: bytes, usual: str) -> str:
    r"""Return the separator that the header of a text file seems to use.

    Parameters
    ----------
    start : bytes
        First bytes of the file.
    usual : str
        Separator of the file extension, returned if the header contains it.

    Returns
    -------
    str
        The usual one, or the most frequent of semicolon, tab, bar and comma.

    Examples
    --------
    >>> detect_separator(b'id;"name, first";price\n1;"a, b";2,5', ",")
    ';'
    """
    unquoted = re.sub(rb'"[^"]*("|$)', b"", start).decode("latin1")
    header = unquoted.lstrip("\r\n").splitlines()[0] if unquoted.strip() else ""
    if usual in header:
        return usual
    found = max(_SEPARATORS, key=header.count)
    return found if found in header else usual


def decimal_comma(text: str) -> bool:
    """Whether a text is a number with a decimal comma, such as 1.234,5.

    Examples
    --------
    >>> decimal_comma("103,59"), decimal_comma("1.234,5"), decimal_comma("Oslo, Lima"), decimal_comma("103")
    (True, True, False, False)
    """
    return re.fullmatch(r"\s*[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+\s*", text) is not None
