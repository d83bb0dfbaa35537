"""Network namespaces: each lives as long as the process that holds it."""

import shutil
import subprocess
from typing import Final

DEADLINE_S: Final = 20.0


class Namespaces:
    """Some new network namespaces, by number. `entries` are what command lines begin with to run in them."""

    def __init__(self, count: int) -> None:
        self._holders = [_hold() for _ in range(count)]
        self.pids = [str(each.pid) for each in self._holders]
        self.entries = [["nsenter", "-t", pid, "-n"] for pid in self.pids]

    def close(self) -> None:
        """End the namespaces."""
        for holder in self._holders:
            holder.communicate(timeout=DEADLINE_S)


def _hold() -> "subprocess.Popen[str]":
    holder = subprocess.Popen(
        [shutil.which("unshare") or "", "--net", "sh", "-c", "echo up; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "up\n"
    return holder


def run_within(entry: list[str], *command: str) -> None:
    """Carry a command out in a namespace."""
    subprocess.run([*entry, *command], check=True, timeout=DEADLINE_S)
