"""What an endpoint in a process of its own holds: descriptors, memory, workers."""

# The package is the folder above this one, which pyright cannot know under the package's name.
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
from processes import workers


@dataclass(frozen=True)
class Held:
    """What a process holds at one moment."""

    descriptors: int
    shared_blocks: int
    workers: int
    threads: int
    resident_kib: int

    def beyond(self, before: "Held", margin_kib: int) -> dict[str, int]:
        """Return what is more than before; memory may be more by a margin."""
        now, then = asdict(self), asdict(before)
        return {
            name: now[name] - then[name]
            for name in now
            if now[name] > then[name] + (margin_kib if name == "resident_kib" else 0)
        }


def held_by(pid: int) -> Held:
    """Return what a process holds."""
    names: list[str] = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            names.append(str(each.readlink()))
        except OSError:  # closed meanwhile
            continue
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return Held(
        descriptors=len(names),
        shared_blocks=sum("memfd:" in name for name in names),
        workers=len(workers(pid)),
        threads=int(status.partition("Threads:")[2].split()[0]),
        resident_kib=int(status.partition("VmRSS:")[2].split()[0]),
    )


@contextmanager
def endpoint() -> Generator[tuple[int, Peer]]:
    """Give the process id and the address of an endpoint on loopback, which ends with the block."""
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
        said = process.communicate(timeout=30)[1]
        if said:
            print(f"the endpoint said on stderr:\n{said}", file=sys.stderr)


def wait_until(pid: int, before: Held, deadline_s: float, margin_kib: int) -> tuple[float, dict[str, int]]:
    """Wait until a process holds no more than before; return how long that took, and what was left at the end."""
    began = time.monotonic()
    while (left := held_by(pid).beyond(before, margin_kib)) and time.monotonic() - began < deadline_s:
        time.sleep(0.05)
    return time.monotonic() - began, left
