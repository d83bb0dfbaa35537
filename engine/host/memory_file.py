"""Files in memory, and the engine in one: the first code of a far end without linkgauge.

The source of this module is sent as it is and run by the Python of that host, so it imports nothing of linkgauge
until the engine has arrived on standard input. A memory file has no name (memfd_create(2), elsewhere an unlinked
temporary file): it is gone with the last process that has it open.
"""

import hashlib
import importlib
import os
import re
import sys
from typing import Final

_ARCHIVE: Final = re.compile(r"/(?:proc/self|dev)/fd/(\d+)")


def create_memory_file(name: str, data: bytes = b"") -> int:
    """Return the descriptor of an anonymous file with these bytes; raise OSError if there is no memory for it.

    `name` shows in lists of a process's files. The descriptor is not inherited.
    """
    try:
        fd = os.memfd_create(name)
    except (AttributeError, OSError):  # not Linux, or a Python built for an old one
        import tempfile  # it takes 10 ms of a worker's start

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    with open(fd, "wb", closefd=False) as memory_file:
        memory_file.write(data)
    return fd


def descriptor_path(fd: int) -> str:
    """Return a path by which a process that has the descriptor finds the file."""
    return f"/proc/self/fd/{fd}" if sys.platform == "linux" else f"/dev/fd/{fd}"


def run_bundle(size: int, digest: str) -> None:
    """Read the engine from standard input, import it from memory, and run the far end."""
    data = _read_stdin(size)
    if hashlib.sha256(data).hexdigest() != digest:
        sys.exit("the engine arrived damaged")
    path = descriptor_path(create_memory_file("linkgauge-engine", data))
    sys.path.insert(0, path)
    os.environ["PYTHONPATH"] = path  # for the worker processes, which inherit the descriptor

    importlib.import_module("linkgauge.engine.ssh.remote_main").main()


def _read_stdin(size: int) -> bytes:
    """Read exactly this many bytes: the bytes after them are for the engine, so nothing may be buffered."""
    data = b""
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            sys.exit("the engine did not arrive whole")
        data += part
    return data


class InheritedBundle:
    """The archive that this process runs from, to be inherited by a child; empty if linkgauge is installed.

    Start the child with `fds` passed on and with `environment`, then call `close`.
    """

    def __init__(self) -> None:
        self.fds: tuple[int, ...] = ()
        self.environment: dict[str, str] | None = None
        self._copy: int | None = None
        archive = _ARCHIVE.fullmatch(str(getattr(__loader__, "archive", "")))
        if archive is None:
            return
        fd = int(archive[1])
        if sys.platform != "linux":  # /dev/fd shares the file position, which each reader moves
            data = os.pread(fd, os.fstat(fd).st_size, 0)
            fd = self._copy = create_memory_file("linkgauge-engine", data)
        self.fds = (fd,)
        self.environment = os.environ | {"PYTHONPATH": descriptor_path(fd)}

    def close(self) -> None:
        """Close the copy that was made for the child alone."""
        if self._copy is not None:
            os.close(self._copy)
            self._copy = None
