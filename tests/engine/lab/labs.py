"""Labs for tests, in this process and in one of their own."""

import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

from linkgauge.engine.lab.hosts_spec import LabHost, LabTrunk, MeshLabSpec
from linkgauge.engine.lab.link_lab import LAB_OWNER_VARIABLE, Lab
from linkgauge.engine.lab.link_spec import LabLink
from linkgauge.engine.lab.namespaces import find_processes

LINK = LabLink(100_000_000, 1500, 1400, 24, "ethernet", 16_384, 400_000, smallest_bytes=84)
RELAYED = LabLink(100_000_000, 1500, 1500, 24, "ethernet", 16_384, 400_000, delay_ns=20_000_000)
SLOW = replace(LINK, rate_bit_s=50_000_000)
TRUNK = replace(LINK, rate_bit_s=200_000_000)
DEADLINE_S = 20.0


def near(lab: Lab, *command: str) -> str:
    """Return the output of a command at a lab's near end."""
    done = subprocess.run(
        lab.near_end_command(command), capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lab_hosts(*racks: str) -> MeshLabSpec:
    """Return hosts `a`, `b`, … in these racks; a trunk carries as much as a host."""
    hosts = [LabHost(name, rack, LINK, SLOW) for name, rack in zip("abcd", racks, strict=False)]
    trunks = [LabTrunk(rack, TRUNK, LINK) for rack in dict.fromkeys(racks)] if len(set(racks)) > 1 else []
    return MeshLabSpec(tuple(hosts), tuple(trunks))


def network_of(pid: int) -> int:
    """Return the network namespace of a process."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino


def wait_for_end(pids: set[int]) -> None:
    """Wait until processes have ended, also those that are not this process's children."""
    deadline = time.monotonic() + DEADLINE_S
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        os.close(descriptor)
        assert ended, f"process {pid} is still there: {Path(f'/proc/{pid}/cmdline').read_bytes()!r}"


class LabProcess:
    """A lab of another process, with a command at its near end that runs until it is ended."""

    def __init__(self, command: str = "echo up; exec sleep 600", link: str = "LINK") -> None:
        # start_new_session: a signal to the process group must not reach the test.
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                textwrap.dedent(f"""
                import sys
                from linkgauge.engine.lab.link_lab import open_lab
                from linkgauge.engine.lab.link_spec import LabLink
                LINK = {LINK!r}
                RELAYED = {RELAYED!r}
                with open_lab({link}) as lab:
                    sys.exit(lab.run(["sh", "-c", {command!r}]))
            """),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "up\n"
        pid = self.process.pid
        marked = [path.parent for path in Path("/proc").glob("[0-9]*/environ") if _is_marked(path, pid)]
        self.parts = {int(folder.name) for folder in marked}
        self.networks = {network_of(each) for each in self.parts} - {network_of(os.getpid())}

    def kill_keeper(self) -> None:
        """End the process that keeps the lab, so that it cannot take the lab down."""
        commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in self.parts}
        os.kill(next(pid for pid in commands if b"engine.lab.link_keeper" in commands[pid]), signal.SIGKILL)

    def check_gone(self) -> None:
        """Reap the process; fail if a part of the lab is left."""
        self.process.communicate(timeout=DEADLINE_S)
        wait_for_end(self.parts)
        assert find_processes(self.networks) == []


def _is_marked(environment: Path, pid: int) -> bool:
    try:
        entries = environment.read_bytes().split(b"\0")
    except OSError:
        return False
    return any(
        each.startswith(f"{LAB_OWNER_VARIABLE}=".encode()) and f"/{pid}/".encode() in each for each in entries
    )
