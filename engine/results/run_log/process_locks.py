"""Locks on names that only one process at a time may hold: of a watch, or of a mesh.

Each is a lock on a file (flock(2)) in a directory beside the run log. The kernel releases it, however the process
ends.
"""

import fcntl
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ...host.saved_files import create_private_directory, create_private_file
from ...model.errors import RunLogError, explain_os_error

FOLDER: Final = "locks"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]", re.ASCII)


def claim(folder: Path, name: str) -> int | None:
    """Return a descriptor that holds a name until it is closed; None if another process has it.

    Raises RunLogError.
    """
    descriptor = open_lock_file(folder, name)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def claimed(folder: Path, name: str) -> Generator[bool]:
    """Hold a name for the block, and leave no file behind; yield False if another process has it.

    Raises RunLogError.
    """
    descriptor = claim(folder, name)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            _path(folder, name).unlink(missing_ok=True)  # before the lock is released
            os.close(descriptor)


def is_claimed(folder: Path, name: str) -> bool:
    """Return whether another process has a name. This process does not take it."""
    try:
        descriptor = os.open(_path(folder, name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # no process has had it
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def open_lock_file(folder: Path, name: str) -> int:
    """Open the file of a name; create it and its directory if they are missing. Raises RunLogError."""
    path = _path(folder, name)
    try:
        create_private_directory(folder)
        create_private_file(path)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise RunLogError(f"cannot open {path}: {explain_os_error(error)}") from error


def _path(folder: Path, name: str) -> Path:
    return folder / f"{_UNSAFE.sub('_', name)}.lock"
