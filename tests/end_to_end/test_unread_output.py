"""Output that nobody reads: it holds up neither an endpoint nor a test, and results wait for their reader."""

import contextlib
import fcntl
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from .conftest import DEADLINE_S, CommandLine

SHORT = ("--seconds", "0.6", "--warmup", "0", "--interval", "100ms")
_PIPE_BYTES = 4_096  # the smallest that Linux makes


class UnreadPipe:
    """A small pipe that is full, so that any write to it blocks until somebody reads."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            fcntl.fcntl(self.reading, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        os.set_blocking(self.writing, False)
        self._filling = 0
        self._parts: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while True:
                self._filling += os.write(self.writing, b"#" * 512)
        os.set_blocking(self.writing, True)

    @property
    def is_full(self) -> bool:
        """Whether a write would block still."""
        return not select.select([], [self.writing], [], 0)[1]

    def read_rest(self) -> str:
        """Close the writing end here, and read what others have written, up to the end."""
        os.close(self.writing)
        while select.select([self.reading], [], [], DEADLINE_S)[0] and (part := os.read(self.reading, 65_536)):
            self._parts.append(part)
        return self._text()[self._filling :]

    def has_read(self, text: str) -> bool:
        """Return whether a text was read so far."""
        return text in self._text()

    def _text(self) -> str:
        return b"".join(self._parts).decode(errors="replace").replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture
def unread() -> Iterator[UnreadPipe]:
    """Give a full pipe."""
    pipe = UnreadPipe()
    yield pipe
    for fd in (pipe.reading, pipe.writing):
        with contextlib.suppress(OSError):
            os.close(fd)


def knock(address: str, count: int) -> None:
    """Connect as strangers who say nonsense, and wait for the end of each connection."""
    host, _, port = address.rpartition(":")
    for _ in range(count):
        with socket.create_connection((host.strip("[]"), int(port)), timeout=DEADLINE_S) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                while stranger.recv(4_096):
                    pass


def end(process: subprocess.Popen[str], number: signal.Signals) -> int:
    """Send a signal; return the exit status."""
    process.send_signal(number)
    return process.wait(DEADLINE_S)


@pytest.mark.parametrize(
    ("strangers", "options"),
    [
        (2_000, ("-v", "endpoint", "--bind", "127.0.0.1", "--open")),
        (20, ("endpoint", "--log-json", "--bind", "::1")),
    ],
)
def test_an_endpoint_whose_log_nobody_reads_serves_on_and_ends_at_a_signal(
    linkgauge: CommandLine, unread: UnreadPipe, strangers: int, options: tuple[str, ...]
) -> None:
    """2 000 strangers, a real client while the pipe is still full, then SIGTERM."""
    endpoint = linkgauge.start(*options, "--port", "0", stderr=unread.writing)
    assert endpoint.stdout is not None
    address = endpoint.stdout.readline().removeprefix("listening on ").strip()
    knock(address, strangers)
    assert linkgauge("run", address, "--open", *SHORT).status == 0
    assert unread.is_full
    assert end(endpoint, signal.SIGTERM) == 0


def test_lines_of_the_log_that_were_lost_are_counted_when_its_reader_is_back(
    linkgauge: CommandLine, unread: UnreadPipe
) -> None:
    """With the debug log, 2 000 strangers are more than the queue takes."""
    endpoint = linkgauge.start("-v", "endpoint", "--bind", "127.0.0.1", "--port", "0", stderr=unread.writing)
    assert endpoint.stdout is not None
    address = endpoint.stdout.readline().removeprefix("listening on ").strip()
    knock(address, 2_000)
    texts: list[str] = []
    reader = threading.Thread(target=lambda: texts.append(unread.read_rest()))
    reader.start()
    while not (texts or unread.has_read(" lines lost: the log was not read")):
        time.sleep(0.01)
    assert linkgauge("run", address, *SHORT).status == 0
    assert end(endpoint, signal.SIGTERM) == 0
    reader.join(DEADLINE_S)
    [text] = texts
    assert text.index(" lines lost") < text.index("127.0.0.1: connected")
    assert text.endswith("\n")


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_an_endpoint_serves_before_anybody_reads_its_address(
    linkgauge: CommandLine, unread: UnreadPipe, option: tuple[str, ...]
) -> None:
    """A terminal that is stopped, or a journal that hangs, while systemd starts it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    arguments = ("--bind", "127.0.0.1", "--port", address.rpartition(":")[2], *option)
    endpoint = linkgauge.start("endpoint", *arguments, stdout=unread.writing, stderr=unread.writing)
    while linkgauge("run", address, *SHORT).status:
        assert endpoint.poll() is None
    assert unread.is_full
    assert end(endpoint, signal.SIGTERM) == 0
