"""Output that nobody reads: it holds up neither an endpoint nor a test, and results wait for their reader."""

import contextlib
import csv
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.results.run_log import RunLog, RunRecord

from ..command_line import RATE_LIMIT
from .conftest import DEADLINE_S, CommandLine

SHORT = ("--seconds", "0.6", "--warmup", "0", "--interval", "100ms", *RATE_LIMIT)
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


@pytest.mark.every
@pytest.mark.parametrize(
    ("strangers", "options"),
    [
        (2_000, ("-v", "endpoint", "--bind", "127.0.0.1", "--open")),
        pytest.param(20, ("endpoint", "--log-json", "--bind", "::1"), marks=pytest.mark.every),
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


@pytest.mark.every
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


@pytest.mark.every
@pytest.mark.parametrize("option", [(), pytest.param(("--json",), marks=pytest.mark.every)])
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


def wait_for_runs(linkgauge: CommandLine, process: subprocess.Popen[str], count: int = 1) -> list[RunRecord]:
    """Wait until the run log has so many complete runs; return them, the newest first."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        assert time.monotonic() < deadline
        assert process.poll() is None
        with contextlib.suppress(RunLogError), RunLog.open(linkgauge.data_dir) as log:
            rows = log.list_runs()
            if len(rows) == count and all(row.document for row in rows):
                return rows
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("runs", "arguments"),
    [
        pytest.param(1, ("run", "loopback", *SHORT, "--json-stream"), marks=pytest.mark.every),
        (1, ("-v", "check", "10mb-fd", "loopback", *SHORT, "--json")),
        pytest.param(
            *(2, ("sweep", "loopback", "--sessions", "1,2", "--seconds", "0.6", "--json-stream")),
            marks=pytest.mark.every,
        ),
    ],
)
def test_a_test_whose_output_nobody_reads_runs_on_and_its_results_wait(
    linkgauge: CommandLine, unread: UnreadPipe, runs: int, arguments: tuple[str, ...]
) -> None:
    """The run log has all of its samples before a byte is read. Messages and results share the pipe."""
    process = linkgauge.start(*arguments, stdout=unread.writing, stderr=unread.writing)
    for row in wait_for_runs(linkgauge, process, runs):
        assert row.reason is Reason.COMPLETED
        assert row.document is not None
        assert row.document["measured"]["out"]["bytes"] > 0
    assert unread.is_full
    lines = unread.read_rest().splitlines()
    assert process.wait(DEADLINE_S) == 0
    assert sum("saved as run" in line for line in lines) == int(runs == 1)
    if "--json" in arguments:
        document = json.loads("\n".join(lines[lines.index("{") :]))
        assert document["run_id"]
    else:
        events = [json.loads(line)["type"] for line in lines if line.startswith("{")]
        assert events.count("end") == runs
        assert events.count("interval") >= 4 * runs


@pytest.mark.every
@pytest.mark.parametrize(
    ("seconds", "number"),
    [pytest.param("0.6", signal.SIGTERM, marks=pytest.mark.every), ("600", signal.SIGINT)],
)
def test_a_signal_ends_a_test_whose_results_nobody_reads(
    linkgauge: CommandLine, unread: UnreadPipe, seconds: str, number: signal.Signals
) -> None:
    """During the run, and while its results wait. The run log has it."""
    process = linkgauge.start(
        *("run", "loopback", "--seconds", seconds, *SHORT[2:], "--json-stream"),
        stdout=unread.writing,
        stderr=unread.writing,
    )
    if seconds == "600":
        with RunLog.open(linkgauge.data_dir) as log:
            while not (rows := log.list_runs()) or len(list(log.events(rows[0].run_id))) < 5:
                assert process.poll() is None
                time.sleep(0.05)
    else:
        wait_for_runs(linkgauge, process)
    assert end(process, number) == 128 + number
    assert unread.is_full
    with RunLog.open(linkgauge.data_dir) as log:
        [row] = log.list_runs()
        assert row.reason is (Reason.INTERRUPTED if seconds == "600" else Reason.COMPLETED)


@pytest.mark.every
def test_rows_of_csv_wait_in_a_pipe_without_a_reader(linkgauge: CommandLine, tmp_path: Path) -> None:
    """Neither does the test wait for one who comes late, nor is a row lost."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    process = linkgauge.start("run", "loopback", *SHORT, "--csv", path, "--json")
    [row] = wait_for_runs(linkgauge, process)
    with path.open(newline="") as pipe:
        rows = list(csv.DictReader(pipe))
    assert linkgauge.finish(process).status == 0
    assert len(rows) >= 10
    assert {each["run_id"] for each in rows} == {row.run_id}


@pytest.mark.parametrize("option", ["--json", pytest.param("--json-stream", marks=pytest.mark.every), "--csv"])
def test_a_full_disk_is_reported_and_the_run_log_has_the_run(linkgauge: CommandLine, option: str) -> None:
    """The status tells a script that the result is missing."""
    with Path("/dev/full").open("w") as full:
        files = {"--csv": (option, "/dev/full")}.get(option, (option,))
        answer = linkgauge.in_process("run", "loopback", *SHORT, *files, stdout=full)
    assert answer.status == (2 if option == "--csv" else 3)
    assert "no space left on device" in answer.err
    assert "Exception ignored" not in answer.err
    with RunLog.open(linkgauge.data_dir) as log:
        assert [row.reason for row in log.list_runs()] == ([] if option == "--csv" else [Reason.COMPLETED])


@pytest.mark.every
def test_a_full_disk_under_the_rows_of_a_sweep_is_reported_and_its_runs_are_saved(linkgauge: CommandLine) -> None:
    """They are written at its end; JSON on stdout is complete."""
    answer = linkgauge("sweep", "loopback", "--seconds", "0.6", "--csv", "/dev/full", "--json")
    assert answer.status == 3
    assert len(answer.document["cells"]) == 1
    assert "cannot write /dev/full: no space left on device" in answer.err
    with RunLog.open(linkgauge.data_dir) as log:
        assert [row.reason for row in log.list_runs()] == [Reason.COMPLETED]


@pytest.mark.every
def test_a_reader_that_goes_away_during_a_test_is_reported(linkgauge: CommandLine) -> None:
    """The test continues, and the run log has it."""
    process = linkgauge.start("run", "loopback", *SHORT, "--json-stream")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    error = process.stderr.read()
    assert process.wait(DEADLINE_S) == 0
    assert "stdout: its reader closed it before it had everything" in error
    assert "saved as run" in error


class StoppedTerminal:
    """A real pseudo-terminal that Ctrl-S has stopped: whatever writes to it blocks until Ctrl-Q."""

    def __init__(self) -> None:
        self._fd, self.inside = os.openpty()
        os.write(self._fd, b"\x13")
        self.drawn = b""

    def continue_until_end(self) -> str:
        """Press Ctrl-Q, and read until the last process has closed the terminal."""
        os.close(self.inside)
        os.write(self._fd, b"\x11")
        with contextlib.suppress(OSError):  # EIO: nobody has it open
            while part := os.read(self._fd, 65_536):
                self.drawn += part
        return self.drawn.decode().replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.every
@pytest.mark.parametrize("number", [None, pytest.param(signal.SIGTERM, marks=pytest.mark.every)])
def test_ctrl_s_stops_the_live_line_and_not_the_test(linkgauge: CommandLine, number: signal.Signals | None) -> None:
    """After Ctrl-Q the terminal has one frame, and the summary; a signal ends the command before that."""
    terminal = StoppedTerminal()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), terminal.inside)
    environment = {**linkgauge.environment, "TERM": "xterm"}
    process = linkgauge.start("run", "loopback", "--live", *SHORT, env=environment, **streams)
    wait_for_runs(linkgauge, process)
    if number is not None:
        assert end(process, number) == 128 + number
        return
    text = terminal.continue_until_end()
    assert process.wait(DEADLINE_S) == 0
    assert text.count("CPU local") <= 1
    assert text.index("connecting to loopback") < text.index("saved as run") < text.index("no expected rate")
