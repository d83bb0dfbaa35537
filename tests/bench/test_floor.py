"""The floor: every workload between two real processes."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import floor
import pytest
from namespace import LISTENING, count_sockets
from rounds import _free_port

COMMAND = [sys.executable, str(Path(floor.__file__))]
DEADLINE_S = 20.0


@contextlib.contextmanager
def serving(workload: str, pairs: int, processes: int) -> Iterator[int]:
    """Yield the port of a server, all of whose processes end with the `with` block."""
    port = _free_port()
    command = [*COMMAND, "serve", workload, str(port), str(pairs), str(processes)]
    with subprocess.Popen(command, start_new_session=True) as server:
        try:
            while not all(count_sockets(port + number, LISTENING) for number in range(processes)):
                assert server.poll() is None
            yield port
        finally:
            os.killpg(server.pid, signal.SIGTERM)


@pytest.mark.every
@pytest.mark.parametrize(
    ("workload", "pairs", "processes"),
    [
        *(("copy", 1, 1), ("sendfile", 1, 2), ("discard", 1, 1)),
        *(("rr", 1, 1), ("rr", 3, 2), ("crr", 1, 1), ("crr", 3, 2)),
    ],
)
def test_a_workload_is_carried_and_counted(workload: str, pairs: int, processes: int) -> None:
    """By as many processes at each end, which all take part; a second client finds the server as it was."""
    with serving(workload, pairs, processes) as port:
        rates: list[float] = []
        for count in {1, processes}:
            command = [*COMMAND, "ask", workload, str(port), str(pairs), str(count), "0.1"]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE_S)
            rates.append(float(done.stdout))
        assert min(rates) > 0


def test_memory_is_copied_at_a_rate() -> None:
    """At least once, however short the time."""
    assert floor.memory_copy_bit_s(0.0, 1 << 20) > 0
