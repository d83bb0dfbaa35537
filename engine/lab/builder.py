"""Use of a lab: `with open_lab(link) as lab: lab.run([...])`, and the end of processes that one left behind.

A lab's namespaces and devices disappear with its last process, and its processes end with the one that started it.
Only a process that has detached itself (a daemon from a lab's shell) is left when the keeper was killed.
"""

import contextlib
import json
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..host.process_identity import is_process_alive, process_identity
from ..model.errors import LabError, LabUnavailable
from ..model.peer import Peer
from ..model.serialization import encode
from ..near.link_checks import LAB_OFFLOADS_OFF_VARIABLE
from .link_spec import FAR_ADDRESS, LabLink

LAB_OWNER_VARIABLE: Final = "LINKGAUGE_LAB"  # in the environment of every process of a lab: its owner
_BUILD_DEADLINE_S: Final = 30.0
_TAKE_DOWN_DEADLINE_S: Final = 10.0
_END_DEADLINE_S: Final = 10.0
_GRACE_S: Final = 3.0
_POLL_S: Final = 0.05
_WATCHED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
_SI_USER: Final = 0  # sigaction(2): sent with kill(2), not by the terminal
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab that is up: the address of its far end, and notes for a person.

    With `has_offloads_off`, offloads are off on purpose, so that every packet has a size that the wire could carry.
    """

    peer: Peer
    notes: tuple[str, ...]
    keeper_pid: int
    has_offloads_off: bool = False

    def near_end_command(self, command: Sequence[str]) -> list[str]:
        """Return a command line that runs a command at the near end, as a child of this process and thread."""
        enter = [sys.executable, "-P", "-m", f"{__package__}.namespaces"]
        return [*enter, str(self.keeper_pid), str(os.getpid()), "--", *command]

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Run a command at the near end, with this process's terminal; return its exit status as a shell would.

        Signals to this process are passed on to the command. Ctrl-C reaches it by the terminal. Call it on the main
        thread.
        """
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        try:
            offloads = {LAB_OFFLOADS_OFF_VARIABLE: "1"} if self.has_offloads_off else {}
            variables = {**os.environ, **offloads, **(environment or {}), LAB_OWNER_VARIABLE: process_identity()}
            with subprocess.Popen(self.near_end_command(command), env=variables) as child:
                _wait_and_forward_signals(child)
            status = child.returncode
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
        return status if status >= 0 else 128 - status


def _wait_and_forward_signals(child: "subprocess.Popen[bytes]") -> None:
    """Wait for a child's end, and pass signals on. After SIGTERM or SIGHUP the child has a deadline."""
    deadline: float | None = None
    while child.poll() is None:
        left_s = _END_DEADLINE_S if deadline is None else max(0.0, deadline - time.monotonic())
        info = signal.sigtimedwait(_WATCHED, left_s)
        if info is None:
            if deadline is not None:
                child.kill()
        # A closing terminal sends SIGHUP to the first process of its session alone; Ctrl-C goes to all.
        elif info.si_signo == signal.SIGHUP or (info.si_signo != signal.SIGCHLD and info.si_code <= _SI_USER):
            child.send_signal(info.si_signo)
            if info.si_signo != signal.SIGINT:
                deadline = deadline or time.monotonic() + _END_DEADLINE_S


@contextmanager
def open_lab(link: LabLink) -> Generator[Lab]:
    """Build a lab with this link, yield it, and take it down.

    Raises LabUnavailable if this machine cannot have labs, LabError if this one cannot be built.
    """
    if sys.platform != "linux":
        raise LabUnavailable("a lab needs the network namespaces of Linux: run it on Linux")
    keeper = subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.keeper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the command in the lab; the lab ends last
        env={**os.environ, LAB_OWNER_VARIABLE: process_identity()},
    )
    try:
        answer = _ask(keeper, link)
        if "error" in answer:
            raise (LabUnavailable if answer["unavailable"] else LabError)(answer["error"])
        _log.debug("lab of keeper %d is up; its far end listens on port %d", keeper.pid, answer["port"])
        yield Lab(Peer(FAR_ADDRESS, answer["port"]), tuple(answer["notes"]), keeper.pid, link.grain != "offload")
    finally:
        _take_down(keeper)


def _ask(keeper: "subprocess.Popen[bytes]", link: LabLink) -> dict[str, Any]:
    assert keeper.stdin is not None  # noqa: S101 - it was started with pipes
    assert keeper.stdout is not None  # noqa: S101
    assert keeper.stderr is not None  # noqa: S101
    try:
        keeper.stdin.write(json.dumps(encode(link)).encode() + b"\n")
        keeper.stdin.flush()
    except BrokenPipeError:
        pass  # its standard error, read below, tells why it ended
    readable, _, _ = select.select([keeper.stdout], [], [], _BUILD_DEADLINE_S)
    if not readable:
        raise LabError(f"the lab was not up after {_BUILD_DEADLINE_S:g} s; try again on a less busy machine")
    line = keeper.stdout.readline()
    if not line:
        last_line = keeper.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
        raise LabError(f"the lab's process ended by itself: {last_line or 'no message'}")
    return json.loads(line)


def _take_down(keeper: "subprocess.Popen[bytes]") -> None:
    """Close the keeper's input, and wait until it has taken the lab down."""
    _log.debug("lab of keeper %d is taken down", keeper.pid)
    for pipe in (keeper.stdin, keeper.stdout, keeper.stderr):
        if pipe is not None:
            pipe.close()
    try:
        keeper.wait(_TAKE_DOWN_DEADLINE_S)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()


def terminate_orphans() -> list[int]:
    """End every process of a lab whose owner has ended; return their process ids."""
    orphans = find_orphans()
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE_S
        pids = [pid for pid in orphans if _owner(pid)]
        for pid in pids:
            with contextlib.suppress(OSError):  # it has ended
                os.kill(pid, number)
        while any(_owner(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    return orphans


def find_orphans() -> list[int]:
    """Return the processes of labs whose owner has ended; without root, only those of this user."""
    orphans: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            owner = _owner(int(folder.name))
            if owner and not is_process_alive(owner):
                orphans.append(int(folder.name))
    return orphans


def _owner(pid: int) -> str | None:
    """Return the identity of the owner of a process's lab; None if it has no lab, or has ended."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name == LAB_OWNER_VARIABLE.encode():
                return value.decode(errors="replace")
    return None
