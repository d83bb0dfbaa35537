"""`linkgauge observe` in a pseudo-terminal, beside a real iperf3 on loopback: what the user types and sees."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from .terminal import CTRL_C, DEADLINE_S, ENTER, OpenTerminal

IPERF3 = shutil.which("iperf3")


@pytest.fixture
def iperf3_port() -> Iterator[int]:
    """Give the port of a transfer of 20 Mb/s between two iperf3."""
    if IPERF3 is None:
        pytest.skip("iperf3 is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([IPERF3, "-s", "-B", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL)
    command = [IPERF3, "-c", "127.0.0.1", "-p", str(port), "-t", "60", "-b", "20M"]
    deadline = time.monotonic() + DEADLINE_S
    while True:  # a client that comes before the server listens ends at once
        client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            client.wait(0.5)
        if client.returncode is None:
            break
        assert time.monotonic() < deadline
    yield port
    for process in (client, server):
        process.kill()
        process.wait(timeout=DEADLINE_S)


def test_a_transfer_of_another_program_is_found_opened_and_left(iperf3_port: int, terminal: OpenTerminal) -> None:
    """By keys alone; the terminal is as it was afterwards."""
    screen = terminal("observe", f":{iperf3_port}")
    screen.see("observe", f":{iperf3_port}", "iperf3/", "program sets the rate")
    screen.type("/local")
    screen.see("None of the")
    screen.type("\x1b")
    screen.see("iperf3/")
    screen.type("s")
    screen.see("why▼")
    screen.type(f"/why:program{ENTER}")
    screen.see("1 of ")
    screen.type(ENTER)
    screen.see("bytes in flight and windows", "throughput, Mb/s", "The sending program sets the rate")
    screen.type("q")
    screen.see("enter open")
    screen.type("q")
    assert screen.finish() == 0
    assert screen.is_restored


@pytest.mark.parametrize("end", ["ctrl-c", "SIGTERM"])
def test_it_ends_by_ctrl_c_and_by_a_signal(terminal: OpenTerminal, end: str) -> None:
    """A key of the screen is no failure; a signal is told to the shell."""
    screen = terminal("observe", "192.0.2.77")
    screen.see("No connection matches 192.0.2.77.")
    if end == "ctrl-c":
        screen.type(CTRL_C)
        assert screen.finish() == 0
    else:
        screen.process.send_signal(signal.SIGTERM)
        assert screen.finish() == 128 + signal.SIGTERM
    assert screen.is_restored


def test_a_target_that_does_not_exist_is_one_line_and_no_screen(terminal: OpenTerminal, linkgauge: Any) -> None:
    """The status says that nothing was observed."""
    del linkgauge
    screen = terminal("observe", "no-such-program")
    screen.see("no process is named no-such-program")
    assert screen.finish() == 3
