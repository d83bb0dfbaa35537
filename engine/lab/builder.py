"""Labs, as a command uses them: `with open_lab(link) as lab: lab.run([...])`."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from ..host.process_identity import process_identity
from ..model.errors import LabError, LabUnavailable
from ..model.peer import Peer
from ..model.serialization import encode
from ..near.link_checks import LAB_OFFLOADS_OFF_VARIABLE
from .link_spec import FAR_ADDRESS, LabLink

LAB_OWNER_VARIABLE: Final = "LINKGAUGE_LAB"  # in the environment of every process of a lab: whose it is
_BUILD_DEADLINE_S: Final = 30.0
_TAKE_DOWN_DEADLINE_S: Final = 10.0
_END_DEADLINE_S: Final = 10.0
_WATCHED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
_SI_USER: Final = 0  # sigaction(2): sent with kill(2), not by the terminal


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab that is up: where its far end listens, and what a person should know of it.

    `cuts` says that every packet on its link is one that its wire could carry: offloads are off on purpose.
    """

    peer: Peer
    notes: tuple[str, ...]
    keeper_pid: int
    has_offloads_off: bool = False

    def near_end_command(self, command: Sequence[str]) -> list[str]:
        """Return a command line that runs a command at the near end, as a child of this process and thread."""
        entering = [sys.executable, "-P", "-m", f"{__package__}.enter"]
        return [*entering, str(self.keeper_pid), str(os.getpid()), "--", *command]

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Run a command at the near end, with this process's terminal; return its exit status as a shell would.

        Signals that are sent to this process are passed on, and what they do is the command's affair: Ctrl-C
        reaches it by the terminal. To be called on the main thread.
        """
        held_back = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        try:
            meant = {LAB_OFFLOADS_OFF_VARIABLE: "1"} if self.has_offloads_off else {}
            marked = {**os.environ, **meant, **(environment or {}), LAB_OWNER_VARIABLE: process_identity()}
            with subprocess.Popen(self.near_end_command(command), env=marked) as child:
                _watch(child)
            status = child.returncode
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held_back)
        return status if status >= 0 else 128 - status


def _watch(child: "subprocess.Popen[bytes]") -> None:
    """Wait for a child's end; one that was told to end has a while to do so."""
    deadline: float | None = None
    while child.poll() is None:
        left = _END_DEADLINE_S if deadline is None else max(0.0, deadline - time.monotonic())
        came = signal.sigtimedwait(_WATCHED, left)
        if came is None:
            if deadline is not None:
                child.kill()
        # A terminal that goes says so to the first process of its session alone, unlike Ctrl-C, which all hear.
        elif came.si_signo == signal.SIGHUP or (came.si_signo != signal.SIGCHLD and came.si_code <= _SI_USER):
            child.send_signal(came.si_signo)
            if came.si_signo != signal.SIGINT:
                deadline = deadline or time.monotonic() + _END_DEADLINE_S


@contextmanager
def open_lab(link: LabLink) -> Generator[Lab]:
    """Give a lab with this link, and take it down; LabError where it cannot be, LabUnavailable where none can."""
    if sys.platform != "linux":
        raise LabUnavailable("a lab needs the network namespaces of Linux; run it on a Linux machine")
    keeper = subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.keeper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for what runs in the lab; the lab goes last
        env={**os.environ, LAB_OWNER_VARIABLE: process_identity()},
    )
    try:
        answer = _ask(keeper, link)
        if "error" in answer:
            raise (LabUnavailable if answer["unavailable"] else LabError)(answer["error"])
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
        pass  # what it said before it ended is told below
    readable, _, _ = select.select([keeper.stdout], [], [], _BUILD_DEADLINE_S)
    if not readable:
        raise LabError(f"the lab was not up after {_BUILD_DEADLINE_S:g} s; try again on a less busy machine")
    line = keeper.stdout.readline()
    if not line:
        said = keeper.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
        raise LabError(f"the process that keeps the lab ended by itself: {said or 'it said nothing'}")
    return json.loads(line)


def _take_down(keeper: "subprocess.Popen[bytes]") -> None:
    """End the keeper by ending its input, and wait until all that it held is gone."""
    for pipe in (keeper.stdin, keeper.stdout, keeper.stderr):
        if pipe is not None:
            pipe.close()
    try:
        keeper.wait(_TAKE_DOWN_DEADLINE_S)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()
