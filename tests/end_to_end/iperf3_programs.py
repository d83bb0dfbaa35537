"""The stock iperf3 of this machine, as a client and as a server, and what its JSON says of a test.

LINKGAUGE_IPERF3 names another one than the first on the PATH, so that every version can be tried.
"""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

PROGRAM: Final = os.environ.get("LINKGAUGE_IPERF3") or shutil.which("iperf3")
DEADLINE_S: Final = 40.0
_TCP_LISTEN: Final = "0A"
_PORTS_TRIED: Final = 5


@functools.cache
def version() -> tuple[int, ...]:
    """Return the version of the program, such as (3, 12); skip the test where there is none."""
    if PROGRAM is None:
        pytest.skip("iperf3 is not installed")
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    found = re.search(r"iperf (\d+(?:\.\d+)+)", said.stdout)
    assert found is not None, said
    return tuple(map(int, found[1].split(".")))


@dataclass(frozen=True)
class Stream:
    """One stream of a test by the JSON of an end; `packets` and `lost` with UDP only."""

    sent_bytes: int
    received_bytes: int
    seconds: float
    packets: int | None = None
    lost: int | None = None


@dataclass(frozen=True)
class Direction:
    """All streams of one direction."""

    streams: tuple[Stream, ...]

    def total(self, name: str) -> int:
        """Return the sum of one field over the streams."""
        return sum(getattr(stream, name) or 0 for stream in self.streams)

    @property
    def mbit_s(self) -> float:
        """The rate at the receiver."""
        return self.total("received_bytes") * 8 / 1e6 / max(stream.seconds for stream in self.streams)


class Report:
    """The JSON that an end has printed after a test."""

    def __init__(self, text: str, way: str, *, is_client: bool) -> None:
        """Read it; `way` is `out`, `in` or `duplex` as the client sees it."""
        self.document: dict[str, Any] = json.loads(text)
        self._way = way
        self._is_client = is_client

    @property
    def error(self) -> str | None:
        """The program's own words for what went wrong."""
        return self.document.get("error")

    def direction(self, way: str) -> Direction:
        """Return the streams of one direction, `out` or `in`."""
        found: list[Stream] = []
        for stream in self.document["end"]["streams"]:
            part = stream.get("udp") or stream.get("sender") or stream["receiver"]
            sends = part.get("sender", (self._way == "out") == self._is_client)
            if (way == "out") == (sends == self._is_client):
                found.append(self._read_stream(stream))
        return Direction(tuple(found))

    def _read_stream(self, stream: Mapping[str, Any]) -> Stream:
        udp = stream.get("udp")
        if udp is None:
            sender, receiver = stream["sender"], stream["receiver"]
            return Stream(sender["bytes"], receiver["bytes"], receiver["seconds"])
        packets, lost = udp["packets"], udp["lost_packets"]
        size = self.document["start"]["test_start"]["blksize"]  # a server that receives says 0 bytes
        return Stream(packets * size, (packets - lost) * size, udp["seconds"], packets, lost)


def free_port() -> int:
    """Return a port that nothing uses, over TCP and UDP."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_until(condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Wait for a condition of other processes."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def is_listening(port: int, pid: int | str = "self") -> bool:
    """Return whether something accepts TCP at a port, in the network namespace of a process."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii").splitlines()[1:]:
                _, local, _, state, *_ = line.split()
                if state == _TCP_LISTEN and int(local.rpartition(":")[2], 16) == port:
                    return True
    return False


def _wait_for_listener(process: "subprocess.Popen[str]", port: int) -> bool:
    """Wait until a server listens; return whether it does, and has not ended."""
    wait_until(lambda: process.poll() is not None or is_listening(port, process.pid), "the server does not listen")
    return process.poll() is None


class Iperf3:
    """Starts the program, and ends what it has started."""

    def __init__(self) -> None:
        version()
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: object, within: Sequence[str] = (), env: Any = None) -> subprocess.Popen[str]:
        """Start it and go on; `within` is a command that starts it."""
        process = subprocess.Popen(
            [*within, PROGRAM or "", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=None if env is None else {**os.environ, **env},
        )
        self._started.append(process)
        return process

    def start_client(self, host: str, port: int, *options: object, **more: Any) -> subprocess.Popen[str]:
        """Start a client."""
        return self.start("-c", host, "-p", port, *options, **more)

    def serve(self, *options: object, within: Sequence[str] = ()) -> tuple[subprocess.Popen[str], int]:
        """Start a server; return it and its port once it listens.

        It takes no port 0. A connection of another test can take the port first: then it tries another one.
        """
        for _ in range(_PORTS_TRIED):
            port = free_port()
            process = self.start("-s", "-p", port, *options, within=within)
            if _wait_for_listener(process, port):
                return process, port
            output = process.communicate()
            assert any("Address already in use" in text for text in output), output
        raise AssertionError(f"{_PORTS_TRIED} ports in a row were taken")

    def close(self) -> None:
        """End and reap everything."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            with contextlib.suppress(ValueError):
                process.communicate(timeout=DEADLINE_S)


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Wait for the end of a process; return its status and its output."""
    out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out, err


class Service:
    """An endpoint that serves iperf3 clients, and its log."""

    def __init__(
        self,
        command_line: Any,
        folder: Path,
        *options: object,
        address: str = "127.0.0.1",
        within: Sequence[str] = (),
    ) -> None:
        self.port = free_port()
        self._log = folder / "log"
        with self._log.open("w", encoding="utf-8") as log:
            arguments = ("--bind", address, "--port", "0", "--iperf3", self.port, "--log-json", *options)
            self.process = command_line.start("endpoint", *arguments, stderr=log, within=within)
        wait_until(
            lambda: self.process.poll() is not None or is_listening(self.port, self.process.pid),
            "the endpoint does not listen",
        )
        assert self.process.poll() is None, self._log.read_text(encoding="utf-8")

    def entries(self, event: str) -> list[dict[str, Any]]:
        """Return the entries of a kind in the log so far."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return [entry for entry in map(json.loads, lines) if entry["event"] == event]

    def stop(self) -> None:
        """End the endpoint as a service manager does, and check that it was sound until then."""
        self.process.send_signal(signal.SIGTERM)
        status, out, _ = finish(self.process)
        log = self._log.read_text(encoding="utf-8")
        assert status == 0, log
        assert "Traceback" not in out + log, log
