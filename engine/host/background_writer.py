"""Output from its own thread, so that a stopped reader holds up nothing else.

A paused pager, a stopped terminal or a journal that hangs blocks write(2) for any time. Only the thread waits
there, and the process can end meanwhile. Results wait for their reader. Lines of a log are dropped and counted
while too many wait.

With this a process whose standard error is a full pipe ended after 1 s. With logging's QueueListener it had not
ended after 20 s: when Python ends, logging waits for the lock of the stuck handler.
"""

import contextlib
import errno
import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from .shortage import start_if_possible

MAX_LOG_BYTES: Final = 1 << 16  # some 700 lines of a log
MAX_RESULT_BYTES: Final = 1 << 28
_RETRY_S: Final = 0.5
_PASSING_ERRORS: Final = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOBUFS, errno.ENOMEM}
_POLL_S: Final = 0.1  # for signals that the kernel delivers while the main thread waits
_STALLED_AFTER_S: Final = 0.3

LossText = Callable[[int], str]
"""Returns the line that reports how many lines were dropped."""


@dataclass(slots=True)
class _Chunk:
    """Bytes for a descriptor; None closes it. `written` counts those that have been written."""

    fd: int
    data: bytes | None
    is_result: bool = True
    written: int = 0


class BackgroundWriter:
    """Writes to the descriptors of one file, pipe or terminal, in order.

    `error` is the first failure; nothing is written after it. The caller that reports it to the user sets
    `is_reported`. A log waits for room on a full disk as it does for a reader.
    """

    OWN_FD: Final = -1

    def __init__(self, name: str, opener: Callable[[], int] | None = None, *, is_log: bool = False) -> None:
        """Make a writer; the thread starts with the first text.

        Args:
            name: the name of the file for the user.
            opener: opens the file in the thread, where that may block; its descriptor is then `OWN_FD`.
            is_log: The file is for lines of a log only; the end of a command does not wait for them.
        """
        self.name = name
        self.error: OSError | None = None
        self.is_reported = False
        self.had_results = False
        self.is_log = is_log
        self._opener = opener
        self._own_fd: int | None = None
        self.restart()
        _writers.add(self)

    def restart(self) -> None:
        """Begin with an empty queue and no thread, in a forked child. Its parent writes the waiting output."""
        self._changed = threading.Condition()
        self._chunks: deque[_Chunk] = deque()
        self._waiting_bytes = 0
        self._waiting_results = 0
        self._lost = 0
        self._loss: tuple[int, LossText] | None = None
        self._thread: threading.Thread | None = None
        self._chunk_began: float | None = None  # when the thread began with the first chunk of the queue
        self.passing_error: OSError | None = None  # of that chunk, which is tried again

    @property
    def is_stalled(self) -> bool:
        """Whether waiting is useless: nobody reads, or there is no room."""
        began = self._chunk_began
        return began is not None and time.monotonic() - began > _STALLED_AFTER_S

    @property
    def is_idle(self) -> bool:
        """Whether everything is written, or cannot be."""
        return not self._chunks or self.error is not None

    @property
    def has_results(self) -> bool:
        """Whether a result waits for its reader."""
        return self._waiting_results > 0

    def put(self, fd: int, data: bytes) -> None:
        """Queue a result, which waits for its reader."""
        with self._changed:
            self.had_results = True
            if self.error is not None:
                return
            if self._waiting_bytes + len(data) > MAX_RESULT_BYTES:
                self._fail(OSError(f"nobody reads it, and {MAX_RESULT_BYTES >> 20} MiB wait already"))
                return
            self._queue(_Chunk(fd, data))

    def offer(self, fd: int, data: bytes, loss_text: LossText) -> None:
        """Queue a line of a log, or drop it while too many wait; once there is room, `loss_text` reports it."""
        with self._changed:
            if self._lost or self._waiting_bytes + len(data) > MAX_LOG_BYTES:
                self._lost += 1
                self._loss = self._loss or (fd, loss_text)
            elif self.error is None:
                self._queue(_Chunk(fd, data, is_result=False))

    def close(self) -> None:
        """Close the file that the opener opened, once everything is written."""
        with self._changed:
            if self.error is None:
                self._queue(_Chunk(self.OWN_FD, None))

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything is written; return whether it was within the timeout. Handlers of signals run."""
        deadline = time.monotonic() + timeout_s
        while not self.is_idle:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            with self._changed:
                if not self.is_idle:
                    self._changed.wait(min(left_s, _POLL_S))
        return True

    def _queue(self, chunk: _Chunk) -> None:
        self._chunks.append(chunk)
        self._waiting_bytes += len(chunk.data or b"")
        self._waiting_results += chunk.is_result
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="linkgauge-output", daemon=True)
            if not self.is_log:
                thread.start()
            elif not start_if_possible(thread):  # lines of a log wait: the next one tries again
                return
            self._thread = thread
        self._changed.notify_all()

    def _fail(self, error: OSError) -> None:
        self.error = error
        self._chunks.clear()
        self._waiting_bytes = self._waiting_results = 0
        self._changed.notify_all()

    def _work(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        while self.error is None:
            with self._changed:
                while not self._chunks:
                    self._changed.wait()
                chunk = self._chunks[0]
                self._chunk_began = self._chunk_began or time.monotonic()
            try:
                self._carry_out(chunk)
            except OSError as error:
                if error.errno in _PASSING_ERRORS and not chunk.is_result and not self.has_results:
                    self.passing_error = error
                    time.sleep(_RETRY_S)
                    continue
                self._close_own()
                with self._changed:
                    self._fail(error)
                return
            with self._changed:
                self._chunk_began = self.passing_error = None
                # It stays in the queue until it is written: `flush` waits for an empty one.
                if self.error is None:
                    self._waiting_bytes -= len(chunk.data or b"")
                    self._waiting_results -= chunk.is_result
                    self._chunks.popleft()
                self._report_loss()
                self._changed.notify_all()
            if chunk.data is None:
                _writers.discard(self)
                return

    def _carry_out(self, chunk: _Chunk) -> None:
        if chunk.data is None:
            self._close_own()
            return
        fd = chunk.fd
        if fd == self.OWN_FD and self._opener is not None:
            fd = self._own_fd = self._opener() if self._own_fd is None else self._own_fd
        while chunk.written < len(chunk.data):
            chunk.written += _write_some(fd, memoryview(chunk.data)[chunk.written :])

    def _close_own(self) -> None:
        fd, self._own_fd = self._own_fd, None
        if fd is not None:
            with contextlib.suppress(OSError):
                os.close(fd)

    def _report_loss(self) -> None:
        """Queue the number of lost lines as soon as half of the queue is free."""
        if self._loss is not None and self._waiting_bytes <= MAX_LOG_BYTES // 2:
            (fd, loss_text), lost = self._loss, self._lost
            self._loss, self._lost = None, 0
            self._queue(_Chunk(fd, loss_text(lost).encode(), is_result=False))


_writers: Final[set[BackgroundWriter]] = set()
_shared: Final[dict[tuple[int, int, int], BackgroundWriter]] = {}


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes, however long that takes, even if another process made the descriptor non-blocking."""
    rest = memoryview(data)
    while rest:
        rest = rest[_write_some(fd, rest) :]


def _write_some(fd: int, data: memoryview) -> int:
    """Write bytes and return their number; wait if a descriptor that does not block has no room."""
    try:
        return os.write(fd, data)
    except BlockingIOError:
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        poll.poll()
        return 0


def shared_writer(fd: int, name: str) -> BackgroundWriter:
    """Return the writer of the file that a descriptor refers to. Raises OSError for a closed descriptor.

    stdout and stderr of one terminal or pipe have one writer, which keeps the order of their lines.
    """
    status = os.fstat(fd)
    identity = (status.st_dev, status.st_ino, status.st_rdev)
    writer = _shared.get(identity)
    if writer is None:
        writer = _shared[identity] = BackgroundWriter(name)
    return writer


def stream_writer(stream: Any) -> tuple[int, BackgroundWriter] | None:
    """Return the descriptor of a text stream and its shared writer; None for a stream in memory."""
    try:
        fd: int = stream.fileno()
        return fd, shared_writer(fd, stream.name.strip("<>"))
    except (OSError, AttributeError, ValueError):  # io.UnsupportedOperation is an OSError
        return None


def all_writers() -> tuple[BackgroundWriter, ...]:
    """Return every writer of this process to its stdout and stderr, and to files that were opened for results."""
    return tuple(writer for writer in _writers if not writer.is_log)


def _after_fork() -> None:
    for writer in _writers:
        writer.restart()


os.register_at_fork(after_in_child=_after_fork)
