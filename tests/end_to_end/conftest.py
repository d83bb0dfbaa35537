"""What the end-to-end tests share: the real command, in processes of their own, and a real far end."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DEADLINE_S = 40.0


@dataclass(frozen=True)
class Answer:
    """What a command said, and how it ended."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Stdout as JSON."""
        return json.loads(self.out)


class CommandLine:
    """Starts `python -m linkgauge` with a data directory of its own, and reaps what it started."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.environment = {
            **{k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "NO_COLOR", "COLUMNS"}},
            "LINKGAUGE_DATA_DIR": str(data_dir),
            "PYTHONWARNINGS": "error",
        }
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        """Start a command and go on; it is killed at the test's end if it still runs then."""
        settings: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "env": self.environment,
            **options,
        }
        process = subprocess.Popen([sys.executable, "-m", "linkgauge", *map(str, arguments)], text=True, **settings)
        self._started.append(process)
        return process

    def finish(self, process: subprocess.Popen[str]) -> Answer:
        """Wait for a command's end."""
        out, err = process.communicate(timeout=DEADLINE_S)
        answer = Answer(process.returncode, out or "", err or "")
        assert "Traceback" not in answer.err, answer.err
        return answer

    def __call__(self, *arguments: object, **options: Any) -> Answer:
        """Carry a command out."""
        return self.finish(self.start(*arguments, **options))

    def close(self) -> None:
        """End and reap everything."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            with contextlib.suppress(ValueError):  # communicate() has closed them already
                process.communicate(timeout=DEADLINE_S)


@pytest.fixture
def linkgauge(tmp_path: Path) -> Iterator[CommandLine]:
    """Give the command line."""
    command_line = CommandLine(tmp_path / "data")
    yield command_line
    command_line.close()


@pytest.fixture
def start_endpoint(linkgauge: CommandLine) -> Callable[[], tuple[subprocess.Popen[str], str]]:
    """Give a function that starts a far end and returns its process and its `HOST:PORT`."""

    def start() -> tuple[subprocess.Popen[str], str]:
        process = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", "0", stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:"), line
        return process, line.removeprefix("listening on ").strip()

    return start


@pytest.fixture
def far_end(start_endpoint: Callable[[], tuple[subprocess.Popen[str], str]]) -> str:
    """Give the `HOST:PORT` of a far end in a process of its own."""
    return start_endpoint()[1]


class SilentServer:
    """A server that accepts and says what it is told to, or nothing."""

    def __init__(self, greeting: bytes = b"") -> None:
        self._greeting = greeting
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(DEADLINE_S)
        self._clients: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def wait_for_client(self) -> socket.socket:
        """Accept one client and greet it."""
        client, _address = self._listener.accept()
        client.settimeout(DEADLINE_S)
        self._clients.append(client)
        client.sendall(self._greeting)
        return client

    def close(self) -> None:
        """Hang up on everybody."""
        for client in self._clients:
            client.close()
        self._listener.close()


@pytest.fixture
def serve() -> Iterator[Callable[[bytes], SilentServer]]:
    """Give a function that starts a server with a greeting."""
    servers: list[SilentServer] = []

    def start(greeting: bytes = b"") -> SilentServer:
        servers.append(SilentServer(greeting))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def silent_server(serve: Callable[[bytes], SilentServer]) -> SilentServer:
    """Give a server that accepts and says nothing."""
    return serve(b"")
