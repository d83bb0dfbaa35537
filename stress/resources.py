"""The resources of a process: descriptors, shared memory, workers, threads and resident memory."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from linkgauge.engine.model.peer import Peer
from processes import worker_pids


@dataclass(frozen=True)
class Resources:
    """The resources of a process at one moment."""

    descriptors: int
    shared_blocks: int
    workers: int
    threads: int
    resident_kib: int

    def excess_over(self, before: "Resources", margin_kib: int) -> dict[str, int]:
        """Return the excess over earlier resources; memory may exceed them by a margin."""
        now, then = asdict(self), asdict(before)
        return {
            name: now[name] - then[name]
            for name in now
            if now[name] > then[name] + (margin_kib if name == "resident_kib" else 0)
        }


def resources_of(pid: int) -> Resources:
    """Return the resources of a process."""
    names: list[str] = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            names.append(str(descriptor.readlink()))
        except OSError:  # closed meanwhile
            continue
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return Resources(
        descriptors=len(names),
        shared_blocks=sum("memfd:" in name for name in names),
        workers=len(worker_pids(pid)),
        threads=int(status.partition("Threads:")[2].split()[0]),
        resident_kib=int((status.partition("VmRSS:")[2].split() or ["0"])[0]),  # none if it has ended
    )


@contextmanager
def loopback_endpoint() -> Generator[tuple[int, Peer]]:
    """Yield the process id and the address of an endpoint on loopback, which ends with the `with` block."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "linkgauge.engine.far.loopback"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert process.stdout is not None
    try:
        yield process.pid, Peer("127.0.0.1", int(process.stdout.readline()))
    finally:
        errors = process.communicate(timeout=30)[1]
        if errors:
            print(f"the endpoint said on stderr:\n{errors}", file=sys.stderr)


def wait_for_release(
    pid: int, before: Resources, deadline_s: float, margin_kib: int
) -> tuple[float, dict[str, int]]:
    """Wait until a process has released its excess; return the seconds, and what it still has at the deadline."""
    began = time.monotonic()
    while (left := resources_of(pid).excess_over(before, margin_kib)) and time.monotonic() - began < deadline_s:
        time.sleep(0.05)
    return time.monotonic() - began, left
