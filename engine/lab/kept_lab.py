"""A lab as its opener sees it: the start of its keeper, the request, commands beside the keeper, the end.

A lab's namespaces and devices disappear with its last process, and its processes end with the one that started it.
Only a process that has detached itself (a daemon from a lab's shell) is left when the keeper was killed.
"""

import json
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from ..host.end_signals import end_signals
from ..host.process_identity import process_identity
from ..host.shortage import find_shortage_in
from ..model.errors import LabError, LabUnavailable
from ..model.serialization import encode
from ..near.link_checks import LAB_OFFLOADS_OFF_VARIABLE

LAB_OWNER_VARIABLE: Final = "LINKGAUGE_LAB"  # in the environment of every process of a lab: its owner
_TAKE_DOWN_DEADLINE_S: Final = 10.0
_END_DEADLINE_S: Final = 10.0
_SI_USER: Final = 0  # sigaction(2): sent with kill(2), not by the terminal
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLab:
    """A lab that is up: notes for the user, and the process that keeps it.

    With `has_offloads_off`, offloads are off on purpose, so that every packet has a size that the wire could carry.
    """

    notes: tuple[str, ...]
    keeper_pid: int
    has_offloads_off: bool

    def near_end_command(self, command: Sequence[str]) -> list[str]:
        """Return a command line that runs a command beside the keeper, as a child of this process and thread."""
        return command_beside(self.keeper_pid, command)

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Run a command beside the keeper, with this process's terminal; return its exit status as a shell would.

        Signals to this process are passed on to the command. Ctrl-C reaches it by the terminal. Call it on the main
        thread.
        """
        watched = {*end_signals(), signal.SIGCHLD}  # a blocked signal waits even if it is ignored
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
        try:
            variables = {**lab_environment(has_offloads_off=self.has_offloads_off), **(environment or {})}
            with subprocess.Popen(self.near_end_command(command), env=variables) as child:
                _wait_and_forward_signals(child, watched)
            status = child.returncode
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
        return status if status >= 0 else 128 - status


def command_beside(pid: int, command: Sequence[str]) -> list[str]:
    """Return a command line that runs a command in the namespaces of a lab's process."""
    return [sys.executable, "-P", "-m", f"{__package__}.namespaces", str(pid), str(os.getpid()), "--", *command]


def lab_environment(*, has_offloads_off: bool) -> dict[str, str]:
    """Return the environment of a process of a lab that this process owns."""
    offloads = {LAB_OFFLOADS_OFF_VARIABLE: "1"} if has_offloads_off else {}
    return {**os.environ, **offloads, LAB_OWNER_VARIABLE: process_identity()}


def _wait_and_forward_signals(child: "subprocess.Popen[bytes]", watched: Collection[signal.Signals]) -> None:
    """Wait for a child's end, and pass signals on. After SIGTERM or SIGHUP the child has a deadline."""
    deadline: float | None = None
    while child.poll() is None:
        left_s = _END_DEADLINE_S if deadline is None else max(0.0, deadline - time.monotonic())
        info = signal.sigtimedwait(watched, left_s)
        if info is None:
            if deadline is not None:
                child.kill()
        # A closing terminal sends SIGHUP to the first process of its session alone; Ctrl-C goes to all.
        elif info.si_signo == signal.SIGHUP or (info.si_signo != signal.SIGCHLD and info.si_code <= _SI_USER):
            child.send_signal(info.si_signo)
            if info.si_signo != signal.SIGINT:
                deadline = deadline or time.monotonic() + _END_DEADLINE_S


@contextmanager
def start_keeper(
    module: str, request: object, deadline_s: float, *, has_offloads_off: bool
) -> Generator[tuple[int, dict[str, Any]]]:
    """Have a keeper's module build the requested lab, yield its pid and answer, and have it take the lab down.

    Raises LabUnavailable if this machine cannot have labs, LabError if this one cannot be built.
    """
    if sys.platform != "linux":
        raise LabUnavailable("a lab needs the network namespaces of Linux: run it on Linux")
    keeper = subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the command in the lab; the lab ends last
        env=lab_environment(has_offloads_off=has_offloads_off),
    )
    try:
        answer = _ask(keeper, request, deadline_s)
        if "error" in answer:
            raise (LabUnavailable if answer["unavailable"] else LabError)(answer["error"])
        yield keeper.pid, answer
    finally:
        _take_down(keeper)


def _ask(keeper: "subprocess.Popen[bytes]", request: object, deadline_s: float) -> dict[str, Any]:
    assert keeper.stdin is not None  # noqa: S101 - it was started with pipes
    assert keeper.stdout is not None  # noqa: S101
    assert keeper.stderr is not None  # noqa: S101
    try:
        keeper.stdin.write(json.dumps(encode(request)).encode() + b"\n")
        keeper.stdin.flush()
    except BrokenPipeError:
        pass  # its standard error, read below, has the reason
    readable, _, _ = select.select([keeper.stdout], [], [], deadline_s)
    if not readable:
        raise LabError(f"the lab was not up after {deadline_s:g} s; try again on a less busy machine")
    line = keeper.stdout.readline()
    if not line:
        words = keeper.stderr.read().decode(errors="replace").strip()
        why = find_shortage_in(words) or words.rpartition("\n")[2] or "no message"
        raise LabError(f"the lab's process ended by itself: {why}")
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
