"""Atomic replacement of files: readers see the old or the new content, never a part of it."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def check_folder(path: Path, what: str = "") -> None:
    """Raise an error if the folder of a file does not exist; `what` describes the file."""
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(f"The folder of {what}{str(path)!r} does not exist; create it first.")


def write_file(path: Path, data: bytes) -> None:
    """Replace the content of a file atomically; see :func:`replacing`."""
    with replacing(path) as stream:
        stream.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of `path` when the block ends without an exception.

    The content goes to a new file with a random name in the same folder, which is created exclusively, flushed to disk
    and renamed. Symbolic links are followed, permissions of an existing file are kept. Devices and pipes cannot
    be replaced and are written to directly.

    Parameters
    ----------
    path : Path
        The file. Its folder must exist.

    Yields
    ------
    BinaryIO
        The stream to write to.
    """
    mode = _mode(path)
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{str(path)!r} is a folder; give the name of a file.")
    if mode is not None and not stat.S_ISREG(mode):
        with path.open("wb") as special:
            yield special
        return
    check_folder(path)
    target = path.resolve()
    _remove_abandoned(target)
    temporary, descriptor = _create(target, mode)
    try:
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as stream:  # the block may close it
                yield stream
            os.fsync(descriptor)
            if os.name == "posix":  # while the lock is held; Windows renames closed files only
                temporary.replace(target)
        finally:
            os.close(descriptor)
        if os.name != "posix":
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_folder(target.parent)


def _mode(path: Path) -> int | None:
    """Return type and permissions of the target of a path; None if it does not exist."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _prefix(target: Path) -> str:
    """Return the prefix of temporary file names: a hash, because the name of the file may have the maximum length."""
    return f".scboost-{hashlib.sha256(target.name.encode(errors='surrogateescape')).hexdigest()[:16]}-"


def _create(target: Path, mode: int | None) -> tuple[Path, int]:
    """Create and lock a temporary file; files left by killed processes are not locked."""
    permissions = 0o666 if mode is None else stat.S_IMODE(mode) & 0o777
    while True:
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.part")
        descriptor = os.open(temporary, _NEW, permissions)
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(descriptor, permissions)  # regardless of the umask
        if fcntl is None:
            return temporary, descriptor
        with suppress(OSError):  # no locks on this file system: nothing is cleaned up
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if temporary.exists():
            return temporary, descriptor
        os.close(descriptor)  # removed by another writer before it was locked


def _remove_abandoned(target: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote this file."""
    if fcntl is None:
        return
    for left in target.parent.glob(f"{_prefix(target)}*.part"):
        with suppress(OSError):  # locked by a running writer, already removed, or not accessible
            descriptor = os.open(left, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
            finally:
                os.close(descriptor)


def _flush_folder(folder: Path) -> None:
    """Flush the rename to disk, on platforms where folders can be opened."""
    if os.name == "posix":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
