"""Rounds: one client against one server, both started for it, with their rate and CPU."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import cycle, pairwise
from pathlib import Path
from typing import IO

from drawing import follow_app, follow_command
from measurements import Round
from namespace import LISTENING, count_sockets
from outputs import OutputError, failure_words, read_datagrams, read_rate
from processes import running, tree_cpu_s
from tools import BITS, HOST, MOST_PORTS, Entry

_POLL_S = 0.1
_MIN_READINGS = 5
_WARMUP_S = 1.0
_SERVER_PATIENCE_S = 30.0
_CLIENT_PATIENCE_S = 20.0
# Below the ports that the kernel gives to clients. A server without SO_REUSEADDR could not have one again soon.
_PORTS = range(20_000, 32_000, MOST_PORTS)
_FIRST_PORTS = cycle(_PORTS)
_OUR_DIRECTORIES = ("LINKGAUGE_DATA_DIR", "LINKGAUGE_CONFIG_DIR")
_USUAL_DIRECTORIES = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")

Reading = tuple[float, float, float]
"""The time, and the CPU seconds of client and server until then."""


class RoundError(Exception):
    """A round that gave no rate, with the reason in the tool's words if it has some."""


def private_environment(folder: Path) -> dict[str, str]:
    """Return this environment with data, configuration and cache in a folder, and no setting of linkgauge."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINKGAUGE_")}
    for name in (*_OUR_DIRECTORIES, *_USUAL_DIRECTORIES):
        directory = folder / name.lower()
        directory.mkdir(parents=True, exist_ok=True)
        environment[name] = str(directory)
    # xfr asks its home for a newer version, unless it is told not to.
    return environment | {"NO_COLOR": "1", "DO_NOT_TRACK": "1"}


def measure_round(entry: Entry, seconds: int, folder: Path) -> Round:
    """Measure an entry once, both ends with what they saved in a folder. Raises RoundError."""
    near, far = private_environment(folder / "near"), private_environment(folder / "far")
    port = _free_port()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        try:
            command = [*entry.place.server_prefix(), *entry.server(port)]
            with running(command, environment=far, log=log, folder=folder) as server:
                _wait_until_listening(server, port, log)
                if entry.draws:
                    return follow_app(port, server.pid, seconds, near)
                if entry.is_in_turn:
                    return follow_command(port, server.pid, seconds, near)
                return _follow_client(entry, (port, server.pid), seconds, near, folder)
        except (OSError, subprocess.SubprocessError) as error:
            raise RoundError(failure_words("", str(error))) from error


def _free_port() -> int:
    """Return a port that is free, as are the next ones."""
    for _ in _PORTS:
        port = next(_FIRST_PORTS)
        with ExitStack() as stack, suppress(OSError):
            for number in range(MOST_PORTS):
                stack.enter_context(socket.socket()).bind((HOST, port + number))
            return port
    raise RoundError("no port is free")


def _wait_until_listening(server: "subprocess.Popen[str]", port: int, log: IO[str]) -> None:
    """Wait for the socket itself: a trial connection would use up a server of one client."""
    deadline = time.monotonic() + _SERVER_PATIENCE_S
    while not count_sockets(port, LISTENING, server.pid):
        if server.poll() is not None or time.monotonic() > deadline:
            log.seek(0)
            raise RoundError(f"its server does not listen: {failure_words(log.read(100_000), '')}")
        time.sleep(0.01)


def _follow_client(
    entry: Entry, server: tuple[int, int], seconds: int, environment: Mapping[str, str], folder: Path
) -> Round:
    """Run a client in a folder against a server, of which `server` is port and process; return its round."""
    port, server_pid = server
    with running(entry.client(port, seconds), environment=environment, folder=folder) as client:
        try:
            output, errors, readings = _follow(client, server_pid, seconds + _CLIENT_PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            raise RoundError(f"did not end within {seconds + _CLIENT_PATIENCE_S:.0f} s") from error
    if client.returncode:
        raise RoundError(f"exit status {client.returncode}: {failure_words(output, errors)}")
    try:
        rate = read_rate(entry.parse, output)
        counts = read_datagrams(entry.parse_datagrams, output) if entry.parse_datagrams else None
    except OutputError as error:
        raise RoundError(failure_words("", errors) if errors.strip() else str(error)) from error
    busy = cores_busy(readings, min(_WARMUP_S, seconds / 3))
    each_s = rate / 8 / 1_048_576 if entry.unit == BITS else rate
    measured = Round(rate, busy * 1e3 / each_s if busy else None, limit_bit_s=entry.limit_bit_s)
    return replace(measured, lost_share=counts.lost_share, skipped=counts.skipped) if counts else measured


def _follow(client: "subprocess.Popen[str]", server_pid: int, deadline_s: float) -> tuple[str, str, list[Reading]]:
    """Return a client's output, its errors and CPU readings of both ends. Raises TimeoutExpired."""
    readings: list[Reading] = []
    while True:
        readings.append((time.monotonic(), tree_cpu_s(client.pid), tree_cpu_s(server_pid)))
        try:
            output, errors = client.communicate(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            if readings[-1][0] - readings[0][0] > deadline_s:
                raise
        else:
            return output, errors, readings


def cores_busy(readings: list[Reading], warmup_s: float) -> float | None:
    """Return the cores that both ends kept busy after the warm-up, while the server had work; None if unknown.

    Clients take up to a second to start, and that CPU is no cost of carrying payload.
    """
    steps = list(pairwise(readings))
    most = max((after[2] - before[2] for before, after in steps), default=0.0)
    at_work = [before for before, after in steps if after[2] - before[2] > most / 4]
    steady = [reading for reading in at_work if reading[0] >= at_work[0][0] + warmup_s]
    if len(steady) < _MIN_READINGS:
        return None
    (began, *cpu_before), (ended, *cpu_after) = steady[0], steady[-1]
    return (sum(cpu_after) - sum(cpu_before)) / (ended - began)
