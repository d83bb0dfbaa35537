"""Output from a thread: it never blocks its caller, loses no result, and counts the lines of a log it drops."""

import contextlib
import errno
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.host import background_writer
from linkgauge.engine.host.background_writer import MAX_LOG_BYTES, BackgroundWriter, shared_writer, stream_writer

DEADLINE_S = 20.0
LINE = b"x" * 99 + b"\n"


@pytest.fixture(autouse=True)
def forgotten_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave none to the commands of later tests."""
    monkeypatch.setattr(background_writer, "_writers", set())
    monkeypatch.setattr(background_writer, "_shared", {})


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Give a pipe: the end to read, and the end to write."""
    ends = os.pipe()
    yield ends
    for fd in ends:
        os.close(fd)


def read_until(fd: int, end: bytes) -> bytes:
    """Read up to and including these bytes."""
    data = b""
    while not data.endswith(end):
        data += os.read(fd, 65_536)
    return data


def fill_pipe(fd: int) -> None:
    """Fill a pipe with zeros, so that a write blocks until somebody reads."""
    os.set_blocking(fd, False)
    for size in (65_536, 1):  # the last page has room for less than a long write
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(fd, bytes(size))
    os.set_blocking(fd, True)


def lost(count: int) -> str:
    """Return the line that counts lost lines."""
    return f"{count} lost\n"


@pytest.mark.every
@pytest.mark.parametrize("is_blocking", [True, False])
def test_results_wait_for_their_reader_and_keep_their_order(pipe: tuple[int, int], is_blocking: bool) -> None:
    """More than the pipe holds, also if another process made the terminal's descriptor non-blocking."""
    reading, writing = pipe
    os.set_blocking(writing, is_blocking)
    writer = BackgroundWriter("pipe")
    data = [bytes([65 + part]) * 50_000 for part in range(10)]
    for part in data:
        writer.put(writing, part)
    assert writer.has_results
    assert not writer.flush(0)
    assert read_until(reading, data[-1]) == b"".join(data)
    assert writer.flush(DEADLINE_S)
    assert not writer.has_results


def test_lines_of_a_log_that_find_no_room_are_counted_once_there_is_some(pipe: tuple[int, int]) -> None:
    """The lines that were queued before come first; later ones follow the count."""
    reading, writing = pipe
    fill_pipe(writing)  # otherwise the number of lost lines depends on when the thread runs
    writer = BackgroundWriter("pipe")
    kept, lost_lines = MAX_LOG_BYTES // len(LINE), 700
    for _ in range(kept + lost_lines):
        writer.offer(writing, LINE, lost)
    lines = read_until(reading, b" lost\n").lstrip(b"\0").splitlines()
    assert lines == [LINE.strip()] * kept + [b"%d lost" % lost_lines]
    writer.offer(writing, b"after\n", lost)
    assert read_until(reading, b"after\n") == b"after\n"


def test_each_lost_line_is_counted_once_if_the_reader_comes_and_goes(pipe: tuple[int, int]) -> None:
    """A log may lose lines many times; the lines and the counts together are as many as were offered."""
    reading, writing = pipe
    writer = BackgroundWriter("pipe")
    offered = seen = counts = 0
    rest = b""
    while counts < 5 or seen < offered:
        for _ in range(2_000 if counts < 5 else 0):
            writer.offer(writing, LINE, lost)
            offered += 1
        *lines, rest = (rest + os.read(reading, 65_536)).split(b"\n")
        for line in lines:
            number, _, word = line.partition(b" ")
            seen += int(number) if word == b"lost" else 1
            counts += word == b"lost"
    assert seen == offered
    assert writer.flush(DEADLINE_S)


def test_results_that_nobody_ever_reads_are_given_up_in_the_end(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test without an end must not fill the memory."""
    monkeypatch.setattr(background_writer, "MAX_RESULT_BYTES", 1_000_000)
    writer = BackgroundWriter("pipe")
    for _ in range(30):
        writer.put(pipe[1], bytes(50_000))
    assert "nobody reads it" in str(writer.error)
    assert writer.flush(0)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPIPE])
def test_a_failure_ends_the_writing_and_is_there_to_report(pipe: tuple[int, int], number: int) -> None:
    """A full disk, and a reader that has gone."""
    fd = os.open("/dev/full", os.O_WRONLY) if number == errno.ENOSPC else os.dup(pipe[1])
    if number == errno.EPIPE:
        os.dup2(os.open(os.devnull, os.O_RDONLY), pipe[0])
    writer = BackgroundWriter("file")
    writer.put(fd, b"data")
    assert writer.flush(DEADLINE_S)
    assert writer.error is not None
    assert writer.error.errno == number
    writer.put(fd, b"more")
    writer.offer(fd, b"more", lost)
    assert writer.is_idle
    os.close(fd)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's full device")  # noqa: PTH110
def test_a_log_on_a_full_disk_goes_on_once_there_is_room(pipe: tuple[int, int]) -> None:
    """Meanwhile lines wait as for a reader, and are counted beyond that; a result is an error at once."""
    reading, writing = pipe
    fd = os.open("/dev/full", os.O_WRONLY)
    writer = BackgroundWriter("log")
    writer.offer(fd, LINE, lost)
    assert not writer.flush(0.1)
    assert writer.error is None
    count = 2 * MAX_LOG_BYTES // len(LINE)
    for _ in range(count):
        writer.offer(fd, LINE, lost)
    os.dup2(writing, fd)  # somebody has made room
    lines = read_until(reading, b" lost\n").splitlines()
    assert lines[-1] == b"%d lost" % (count + 1 - len(lines) + 1)
    os.close(fd)
    fd = os.open("/dev/full", os.O_WRONLY)
    writer.offer(fd, LINE, lost)
    writer.put(fd, b"result")
    assert writer.flush(DEADLINE_S)
    assert writer.error is not None
    os.close(fd)


def test_a_file_is_opened_and_closed_by_the_thread(tmp_path: Path) -> None:
    """A named pipe without a reader blocks open(2)."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = BackgroundWriter(str(path), lambda: os.open(path, os.O_WRONLY))
    writer.put(writer.OWN_FD, b"rows")
    writer.close()
    assert not writer.flush(0.01)
    assert path.read_bytes() == b"rows"
    assert writer.flush(DEADLINE_S)


def test_a_process_ends_at_a_signal_while_its_thread_is_blocked(pipe: tuple[int, int]) -> None:
    """The thread keeps neither the signal nor the interpreter."""
    pid = os.fork()
    if pid == 0:
        writer = BackgroundWriter("pipe")
        writer.put(pipe[1], bytes(1_000_000))
        signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
        writer.flush(DEADLINE_S)
        os._exit(1)
    os.read(pipe[0], 1)
    os.kill(pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_a_forked_child_writes_its_own_lines_only(pipe: tuple[int, int]) -> None:
    """It has neither the thread nor the lock of its parent, which writes its own waiting lines."""
    reading, writing = pipe
    writer = BackgroundWriter("pipe")
    writer.put(writing, b"parent\n" + bytes(100_000))
    os.read(reading, 7)
    pid = os.fork()
    if pid == 0:
        writer.put(writing, b"child\n")
        os._exit(not writer.flush(DEADLINE_S))
    data = b""
    while b"child\n" not in data or data.count(b"\0") < 100_000:  # a pipe has room for the child's line in between
        data += os.read(reading, 65_536)
    assert os.waitpid(pid, 0)[1] == 0
    assert data.count(b"\0") == 100_000
    assert data.count(b"child\n") == 1


def test_two_descriptors_of_one_pipe_share_a_writer(pipe: tuple[int, int], tmp_path: Path) -> None:
    """Otherwise the lines of stdout and stderr on a terminal would change places."""
    copy = os.dup(pipe[1])
    assert shared_writer(copy, "copy") is shared_writer(pipe[1], "pipe")
    assert shared_writer(pipe[0], "pipe") is shared_writer(pipe[1], "pipe")
    with (tmp_path / "file").open("w") as file:
        found = stream_writer(file)
        assert found is not None
        assert found[1] is not shared_writer(copy, "copy")
    os.close(copy)


def test_many_threads_lose_nothing(pipe: tuple[int, int]) -> None:
    """Each line arrives whole."""
    reading, writing = pipe
    writer = BackgroundWriter("pipe")

    def write(letter: bytes) -> None:
        for _ in range(200):
            writer.put(writing, letter * 99 + b"\n")

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    data = b""
    deadline = time.monotonic() + DEADLINE_S
    while data.count(b"\n") < 600 and time.monotonic() < deadline:
        data += os.read(reading, 65_536)
    assert set(data.splitlines()) == {letter * 99 for letter in (b"a", b"b", b"c")}
    for thread in threads:
        thread.join()
