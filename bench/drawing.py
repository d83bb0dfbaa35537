"""The cost of drawing: a run in the app, in a pseudo-terminal, and the same run on the command line without screen.

A rate on loopback varies between runs by much more than drawing can cost. So the process that draws, or waits, is
also stopped and continued (SIGSTOP) in turn: the workers go on, and the rates of the same connections with and
without it are compared. Rates are bytes that the loopback interface carried.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import mean

from linkgauge.engine.host.nics.nic_counters import read_nic_counts
from measurements import Round
from namespace import ESTABLISHED, count_sockets
from processes import process_cpu_s, running, tree_cpu_s
from terminal import open_app
from tools import HOST, LINKGAUGE, SELF, Entry

_TURN_S = 0.5
_SETTLE_S = 0.3  # what piled up while it was stopped is drawn
_LONGEST_RUN_S = 600
_PATIENCE_S = 20.0
_SIZE = (120, 40)
_MIB = 1_048_576

Rest = Callable[[float], None]


def app_in_terminal() -> Entry:
    """Return the app in a terminal of 120 columns and 40 lines."""
    return Entry(f"linkgauge HOST, {_SIZE[0]}x{_SIZE[1]}", LINKGAUGE, _no_client, float, draws=True)


def command_in_turn() -> Entry:
    """Return the command line without a screen."""
    return Entry("linkgauge run HOST --json", LINKGAUGE, _no_client, float, is_in_turn=True)


def _no_client(_port: int, _seconds: int) -> list[str]:
    return []


def follow_app(port: int, server_pid: int, seconds: int, environment: Mapping[str, str]) -> Round:
    """Measure a run in the app. Raises OSError if the app does not reach it."""
    options = (f"{HOST}:{port}", "--seconds", str(_LONGEST_RUN_S))
    with open_app(*options, size=_SIZE, environment=environment) as terminal:
        terminal.until(lambda text: "READY" in text)
        terminal.press(" ")
        terminal.until(lambda text: "RUNNING" in text)
        terminal.follow(1.0)
        began, before = time.monotonic(), terminal.written
        measured = _in_turn(terminal.pid, server_pid, seconds, terminal.follow)
        written = (terminal.written - before) / (time.monotonic() - began)
        terminal.press(" ")
        terminal.follow(0.5)
    return replace(measured, screen_byte_s=written)


def follow_command(port: int, server_pid: int, seconds: int, environment: Mapping[str, str]) -> Round:
    """Measure a run of the command line. Raises OSError if it ends before."""
    command = [*SELF, "run", f"{HOST}:{port}", "--json", "--seconds", str(_LONGEST_RUN_S)]
    with running(command, environment=environment) as process:
        _wait_for_session(process, port)
        time.sleep(1.0)
        measured = _in_turn(process.pid, server_pid, seconds, time.sleep)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=_PATIENCE_S)
    try:
        json.loads(output)
    except ValueError as error:
        raise ChildProcessError(errors.strip() or "the run printed no document") from error
    return measured


def _wait_for_session(process: "subprocess.Popen[str]", port: int) -> None:
    """Wait until a server has the control connection of a run, and one of data."""
    deadline = time.monotonic() + _PATIENCE_S
    while count_sockets(port, ESTABLISHED) < 2:
        if process.poll() is not None or time.monotonic() > deadline:
            raise ChildProcessError("the run opens no session")
        time.sleep(0.05)


def _loopback_bytes() -> int:
    counts = read_nic_counts("lo")
    if counts is None:
        raise OSError("this system does not tell what comes over loopback")
    return counts.received_bytes


def _in_turn(pid: int, server_pid: int, seconds: int, rest: Rest) -> Round:
    """Return the rates of a process's run while the process works and while it is stopped, in turn."""
    working: list[float] = []
    stopped: list[float] = []
    cpu_s = own_s = carried = 0.0
    for _ in range(max(2, seconds)):
        rest(_SETTLE_S)
        cpu_before, own_before = tree_cpu_s(pid) + tree_cpu_s(server_pid), process_cpu_s(pid)
        rate, count = _loopback_rate(rest)
        cpu_s += tree_cpu_s(pid) + tree_cpu_s(server_pid) - cpu_before
        own_s += process_cpu_s(pid) - own_before
        carried += count
        working.append(rate)
        os.kill(pid, signal.SIGSTOP)
        try:
            stopped.append(_loopback_rate(rest)[0])
        finally:
            os.kill(pid, signal.SIGCONT)
    if not min(*working, *stopped) > 0:
        raise OSError("nothing came over loopback")
    return Round(mean(working), cpu_s * 1e3 / (carried / _MIB), mean(stopped), own_s / (len(working) * _TURN_S))


def _loopback_rate(rest: Rest) -> tuple[float, int]:
    """Return the bits a second over loopback during a turn, and the bytes."""
    began, before = time.monotonic(), _loopback_bytes()
    rest(_TURN_S)
    count = _loopback_bytes() - before
    return count * 8 / (time.monotonic() - began), count
