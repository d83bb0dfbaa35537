"""Another process that holds the lock of a run log."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
connection.execute("BEGIN " + sys.argv[2])
print("locked", flush=True)
sys.stdin.read()
"""


class Lock:
    """The lock of a second process, held until it is released."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def release(self) -> None:
        """End the process, and with it its transaction."""
        if self._process.poll() is None:
            self._process.communicate(timeout=20)


@contextmanager
def hold_lock(path: Path, kind: str = "IMMEDIATE") -> Generator[Lock]:
    """Hold the lock of a file in another process: to write it, or EXCLUSIVE."""
    command = [sys.executable, "-c", _HOLD, str(path), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        lock = Lock(process)
        try:
            yield lock
        finally:
            lock.release()
