"""CPU and memory of a process tree, read from /proc: the same measure for every tool."""

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_PATIENCE_S = 5.0
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on (proc(5)); none if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def process_tree(root: int) -> list[int]:
    """Return a process and all its living descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields:
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    pids: list[int] = []
    pending = [root]
    while pending:
        pid = pending.pop()
        pids.append(pid)
        pending.extend(children.get(pid, []))
    return pids


def fork_server_pids(root: int) -> list[int]:
    """Return the fork servers of a linkgauge process: its own children."""
    return [int(pid) for pid in Path(f"/proc/{root}/task/{root}/children").read_text(encoding="ascii").split()]


def worker_pids(root: int) -> list[int]:
    """Return the worker processes of a linkgauge process: the children of its fork server."""
    own = set(fork_server_pids(root))
    return [pid for pid in process_tree(root)[1:] if pid not in own]


def process_cpu_s(pid: int) -> float:
    """Return user and system seconds of one process."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) * _TICK_S if fields else 0.0


def tree_cpu_s(root: int) -> float:
    """Return user and system seconds of a process and its living descendants."""
    return sum(process_cpu_s(pid) for pid in process_tree(root))


def resident_mib(root: int) -> float:
    """Return the proportional set size of a process and its descendants, MiB."""
    total = 0
    for pid in process_tree(root):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


def _end(process: "subprocess.Popen[str]") -> None:
    """End a process that has a group of its own, with all that descends from it, and take its output."""
    descendants = [(pid, _stat(pid)[19:20]) for pid in process_tree(process.pid)[1:]]
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    for pid, started in descendants:
        if started and _stat(pid)[19:20] == started:
            _wait_and_kill(pid)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=_PATIENCE_S)


def _wait_and_kill(pid: int) -> None:
    """Give a process a moment to follow its parent, then kill it."""
    with suppress(ProcessLookupError):
        ended = os.pidfd_open(pid)
        try:
            if not select.select([ended], [], [], _PATIENCE_S)[0]:
                signal.pidfd_send_signal(ended, signal.SIGKILL)
        finally:
            os.close(ended)


@contextmanager
def deferred_signals() -> Generator[None]:
    """Deliver what ends this process after the `with` block: in it, a child would be left behind."""
    pending: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if callable(handler):  # those that are ignored, or end this process at once, stay as they are
            signal.signal(number, lambda number, _frame: pending.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, handler)
        if pending:
            os.kill(os.getpid(), pending[0])


@contextmanager
def running(
    command: list[str],
    *,
    settle_s: float = 0.0,
    environment: Mapping[str, str] | None = None,
    log: "IO[str] | None" = None,
    folder: Path | None = None,
) -> Generator["subprocess.Popen[str]"]:
    """Start a process and yield it; end it and all its descendants with the `with` block.

    Its output goes to pipes, or to the file `log`, which never makes it wait. It runs in `folder`.
    """
    process: subprocess.Popen[str] | None = None
    try:
        with deferred_signals():
            process = subprocess.Popen(
                command,
                stdout=log or subprocess.PIPE,
                stderr=subprocess.STDOUT if log else subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                env=environment,
                cwd=folder,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        time.sleep(settle_s)
        yield process
    finally:
        if process is not None:
            with deferred_signals():
                _end(process)
