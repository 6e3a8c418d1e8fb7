"""Replacing a file in one step: whoever reads it sees the old or the new content, never a part of it."""

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
    """Refuse to write a file into a folder that does not exist; `what` says what the file is."""
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(f"The folder of {what}{str(path)!r} does not exist; create it first.")


def write_file(path: Path, data: bytes) -> None:
    """Replace the content of a file in one step; see :func:`replacing`."""
    with replacing(path) as stream:
        stream.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of `path` when the block ends without an exception.

    The content goes to a new file with a random name in the same folder, which is created exclusively, flushed to disk
    and renamed. Symbolic links are followed, permissions of an existing file are kept. Devices, pipes and the like
    cannot be replaced: they are written to directly.

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
    """Type and permissions of what a path leads to, or None if there is nothing."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _prefix(target: Path) -> str:
    """Start of the names of temporary files: a hash, since the file's own name may be as long as names can be."""
    return f".scboost-{hashlib.sha256(target.name.encode(errors='surrogateescape')).hexdigest()[:16]}-"


def _create(target: Path, mode: int | None) -> tuple[Path, int]:
    """Create and lock a temporary file; the lock tells it from one that a killed process has left."""
    permissions = 0o666 if mode is None else stat.S_IMODE(mode) & 0o777
    while True:
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.part")
        descriptor = os.open(temporary, _NEW, permissions)
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(descriptor, permissions)  # regardless of the umask
        if fcntl is None:
            return temporary, descriptor
        with suppress(OSError):  # file systems without locks: nothing is cleaned up there
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if temporary.exists():
            return temporary, descriptor
        os.close(descriptor)  # taken for abandoned by another writer before it was locked


def _remove_abandoned(target: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote this file."""
    if fcntl is None:
        return
    for left in target.parent.glob(f"{_prefix(target)}*.part"):
        with suppress(OSError):  # locked by a living writer, removed by another one, or not ours
            descriptor = os.open(left, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
            finally:
                os.close(descriptor)


def _flush_folder(folder: Path) -> None:
    """Make the renaming durable, where folders can be opened."""
    if os.name == "posix":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
