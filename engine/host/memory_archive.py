"""What a far end without linkgauge runs first: takes the engine from standard input, and keeps it in memory only.

The source of this module is sent as it is, and run by whatever Python is there: it imports nothing of linkgauge
until the engine has arrived. The archive is an anonymous file (memfd_create(2), else an unlinked temporary file):
it is gone with the last process that has it open.
"""

import hashlib
import importlib
import os
import re
import sys
import tempfile
from typing import Final


def _read(size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            sys.exit("the engine did not arrive whole")
        data += more
    return data


def create_memory_file(data: bytes) -> int:
    """Return the descriptor of an anonymous file with these bytes."""
    try:
        fd = os.memfd_create("linkgauge-engine")
    except (AttributeError, OSError):  # not Linux, or made for an old one
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    with open(fd, "wb", closefd=False) as kept:
        kept.write(data)
    return fd


def descriptor_path(fd: int) -> str:
    """Return a path by which a process that has the descriptor finds the file."""
    return f"/proc/self/fd/{fd}" if sys.platform == "linux" else f"/dev/fd/{fd}"


def run_bundle(size: int, digest: str) -> None:
    """Take the engine in, and be a far end."""
    data = _read(size)
    if hashlib.sha256(data).hexdigest() != digest:
        sys.exit("the engine arrived damaged")
    path = descriptor_path(create_memory_file(data))
    sys.path.insert(0, path)
    os.environ["PYTHONPATH"] = path  # for the worker processes, which inherit the descriptor

    importlib.import_module("linkgauge.engine.ssh.remote_main").main()


_KEPT: Final = re.compile(r"/(?:proc/self|dev)/fd/(\d+)")


class InheritedBundle:
    """The archive that this process runs from, for a process that it starts; nothing where it is installed.

    `fds` are to be passed on, `environment` is for the child; `close` once it is started.
    """

    def __init__(self) -> None:
        self.fds: tuple[int, ...] = ()
        self.environment: dict[str, str] | None = None
        self._copy: int | None = None
        kept = _KEPT.fullmatch(str(getattr(__loader__, "archive", "")))
        if kept is None:
            return
        fd = int(kept[1])
        if sys.platform != "linux":  # /dev/fd shares the place in the file, which each reader moves
            fd = self._copy = create_memory_file(os.pread(fd, os.fstat(fd).st_size, 0))
        self.fds = (fd,)
        self.environment = os.environ | {"PYTHONPATH": descriptor_path(fd)}

    def close(self) -> None:
        """Close what was made for the child alone."""
        if self._copy is not None:
            os.close(self._copy)
            self._copy = None
