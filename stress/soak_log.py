"""The run log of a soak test, on a disk of its own: filled, locked, and checked after each fault."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.run_log import RunLog

_DISK_MIB = 24
_DEADLINE_S = 60.0
_HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""


class SoakLog:
    """A data directory on a small disk in memory. Call `check` after each fault."""

    def __init__(self, folder: Path) -> None:
        """Mount the disk; the process must have a mount namespace of its own, or be allowed to unmount it."""
        self.folder = folder / "data"
        self.folder.mkdir()
        options = f"size={_DISK_MIB}m,mode=0700"
        subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", options, "soak", str(self.folder)], check=True)
        self._checked: set[str] = set()
        with RunLog.open(self.folder):
            pass

    def close(self) -> None:
        """Unmount the disk."""
        subprocess.run(["/bin/umount", "-l", str(self.folder)], check=False, capture_output=True)

    @property
    def path(self) -> Path:
        """The database."""
        (path,) = self.folder.glob("*.sqlite3")
        return path

    @contextlib.contextmanager
    def full_disk(self) -> Generator[None]:
        """Fill the disk for a `with` block."""
        ballast = self.folder / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass
        try:
            yield
        finally:
            ballast.unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Hold the log's lock in another process for a `with` block."""
        holder = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            if holder.stdout is not None:
                holder.stdout.readline()
            yield
        finally:
            holder.communicate(timeout=_DEADLINE_S)

    def check(self) -> list[str]:
        """Read every run that is new; return what is wrong. Old runs are deleted, so that the disk stays free."""
        problems: list[str] = []
        try:
            with RunLog.open(self.folder) as log:
                records = log.list_runs()
                for record in records:
                    if record.is_running:
                        problems.append(f"run {record.run_id} counts as running")
                    elif record.run_id not in self._checked:
                        self._checked.add(record.run_id)
                        problems += _disagreements(log, record)
                for record in records[20:]:
                    if not record.is_running:
                        log.delete(record.run_id)
        except (LinkgaugeError, sqlite3.Error) as error:
            problems.append(f"the run log cannot be read: {error}")
        return problems

    def has(self, run_id: str | None) -> bool:
        """Return whether a run was recorded up to its document."""
        with RunLog.open(self.folder) as log:
            return any(record.run_id == run_id and record.document for record in log.list_runs())


def _disagreements(log: RunLog, record: Any) -> list[str]:
    """Compare the stored document of a run with its events."""
    try:
        events = list(log.events(record.run_id))
    except LinkgaugeError as error:
        return [f"run {record.run_id}: {error}"]
    if record.document is None:  # it was cut off
        return []
    total = replay(events).summary().measured.total
    stored = (record.document["measured"] or {}).get("total")
    in_events = None if total is None else total.bytes
    in_document = None if stored is None else stored.get("bytes")
    if in_events != in_document:
        return [f"run {record.run_id}: {in_events} bytes in its events, {in_document} in its document"]
    return []
