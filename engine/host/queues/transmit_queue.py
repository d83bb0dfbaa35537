"""The queue at an interface, read many times a second: its queueing discipline, and its driver.

Linux only; unknown elsewhere. A reading may wait for a driver that is being set up, so a thread takes all of
them. TCP itself leaves little here: it keeps what it has not sent in its sockets, and of each
session two packets or 1 ms of its rate below them (tcp_small_queue_check of Linux), so that eight sessions held
39 kB in a queue of any size before a line of 100 Mb/s.

Byte queue limits show the bytes that a driver has and has not sent. Drivers without them show a limit of 0, and
newer kernels no folder at all.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ...model.counters.samples import QueueSample
from ..nics.nic import find_counter_folder
from ..shortage import start_if_possible
from .drop_counters import WrappingTotal
from .queueing_discipline import QueueCounts, read_queue_counts

_PACE_S: Final = 0.02
_PAUSE_RATIO: Final = 20  # after a reading of many queues: the pause, in times of its duration
_LOOPBACK: Final = "lo"
_LIMITS: Final = "queues/tx-*/byte_queue_limits"


class QueueReading(NamedTuple):
    """The queue at one moment, in bytes, and the packets that the queueing discipline has dropped so far."""

    counts: QueueCounts | None
    driver_bytes: int | None


_NOTHING: Final = QueueReading(None, None)


class ByteQueueLimits:
    """The bytes that an interface's driver has not sent yet, of all its queues. Made and used in one thread."""

    def __init__(self, folder: Path | None) -> None:
        self._queues = [] if folder is None else sorted(folder.glob(_LIMITS))
        self._is_used = False

    def read(self) -> int | None:
        """Return the bytes; None if the driver has no such limits."""
        if not self._queues:
            return None
        total = sum(_read_number(queue / "inflight") for queue in self._queues)
        self._is_used = self._is_used or bool(total) or any(_read_number(queue / "limit") for queue in self._queues)
        return total if self._is_used else None


def _read_number(path: Path) -> int:
    with suppress(OSError, ValueError):
        return int(path.read_text(encoding="ascii"))
    return 0


@dataclass(slots=True)
class _Sums:
    """The readings since the last sample."""

    readings: int = 0
    backlogs: list[int] = field(default_factory=list[int])
    driver: list[int] = field(default_factory=list[int])


class TransmitQueueReader:
    """Reads the queue at an interface: `start` it, `take` a sample of each interval, and `close` it.

    `read` is for tests; None reads the interface.
    """

    def __init__(self, nic: str, read: Callable[[], QueueReading] | None = None) -> None:
        self._nic = nic
        self._read = read
        self._lock = threading.Lock()
        self._sums = _Sums()
        self._drops = WrappingTotal()
        self._dropped_before: int | None = None
        self._is_over = threading.Event()

    def start(self) -> None:
        """Begin to read. There is nothing to read of the loopback interface, nor without a thread."""
        if self._nic != _LOOPBACK:
            # A daemon: the process may end while the kernel keeps this one waiting.
            start_if_possible(threading.Thread(target=self._run, name="queue", daemon=True))

    def close(self) -> None:
        """Take no further reading. One that waits for the kernel still ends."""
        self._is_over.set()

    def take(self) -> QueueSample | None:
        """Return the readings since the last call; None if there was none."""
        with self._lock:
            sums, self._sums = self._sums, _Sums()
            total, before = self._drops.total, self._dropped_before
            self._dropped_before = total
        if not sums.readings:
            return None
        return QueueSample(
            sums.readings,
            backlog_bytes=_mean(sums.backlogs),
            most_backlog_bytes=max(sums.backlogs, default=None),
            dropped=None if total is None else total - (before or 0),
            driver_bytes=_mean(sums.driver),
        )

    def _run(self) -> None:
        read = self._read or self._open()
        while not self._is_over.is_set():
            began = time.monotonic()
            with suppress(OSError):
                self._add(read())
            self._is_over.wait(max(_PACE_S, (time.monotonic() - began) * _PAUSE_RATIO))

    def _open(self) -> Callable[[], QueueReading]:
        folder: Path | None = None
        with suppress(OSError):
            folder = find_counter_folder(self._nic)
        limits = ByteQueueLimits(folder)
        return lambda: QueueReading(read_queue_counts(self._nic), limits.read())

    def _add(self, reading: QueueReading) -> None:
        if reading == _NOTHING:
            return
        with self._lock:
            self._sums.readings += 1
            if reading.counts is not None:
                self._sums.backlogs.append(reading.counts.backlog_bytes)
                self._drops.update(reading.counts.dropped)
            if reading.driver_bytes is not None:
                self._sums.driver.append(reading.driver_bytes)


def _mean(values: list[int]) -> int | None:
    return round(sum(values) / len(values)) if values else None
