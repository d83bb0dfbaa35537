"""What queues really hold over time, as `tc -s qdisc` tells it, 20 times a second."""

import json
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

from .namespaces import DEADLINE_S
from .queued_path import Place, Queue, QueuedPath

_PERIOD_S: Final = 0.05
SECOND_NS: Final = 1_000_000_000
PEAK_NS: Final = 400_000_000


@dataclass(frozen=True)
class Reading:
    """The bytes in a queue at a moment of the monotonic clock, and the packets that it has dropped so far."""

    at_ns: int
    backlog_bytes: int
    dropped: int


class Readings:
    """The readings of one queue."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings

    def mean_bytes(self, start_ns: int, end_ns: int) -> float:
        """Return the mean over a time, by the time between readings: a busy machine takes them late."""
        weighted = whole = 0.0
        for first, second in pairwise(self._readings):
            span_ns = min(second.at_ns, end_ns) - max(first.at_ns, start_ns)
            if span_ns > 0:
                weighted += span_ns * (first.backlog_bytes + second.backlog_bytes) / 2
                whole += span_ns
        assert whole > 0, "no reading of the queue in this time"
        return weighted / whole

    def peak_bytes(self, start_ns: int, end_ns: int) -> float:
        """Return the highest mean over 0.4 s within a time."""
        starts = [each.at_ns for each in self._readings if start_ns <= each.at_ns <= end_ns - PEAK_NS]
        return max((self.mean_bytes(start, start + PEAK_NS) for start in starts), default=0.0)

    def dropped(self, start_ns: int, end_ns: int) -> int:
        """Return how many packets found no room within a time."""
        counts = [each.dropped for each in self._readings if start_ns <= each.at_ns <= end_ns]
        return counts[-1] - counts[0] if counts else 0


class QueueReader:
    """Reads the queues of a path in a thread, from `with` to the end of the block."""

    def __init__(self, path: QueuedPath, queues: Sequence[Queue]) -> None:
        self._path = path
        self._places = tuple({queue.place for queue in queues})
        self._readings: dict[tuple[Place, str], list[Reading]] = {(each.place, each.device): [] for each in queues}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read_all)
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def of(self, queue: Queue) -> Readings:
        """Return the readings of a queue; call it after the block."""
        if self._failure is not None:
            raise self._failure
        return Readings(self._readings[queue.place, queue.device])

    def _read_all(self) -> None:
        try:
            while not self._is_over.is_set():
                began = time.monotonic()
                for place in self._places:
                    self._read(place)
                self._is_over.wait(max(0.0, began + _PERIOD_S - time.monotonic()))
        except BaseException as error:  # noqa: BLE001 - it is raised where the readings are asked for
            self._failure = error

    def _read(self, place: Place) -> None:
        command = [*self._path.entry_of(place), "tc", "-s", "-j", "qdisc"]
        before_ns = time.monotonic_ns()
        output = subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE_S).stdout
        at_ns = (before_ns + time.monotonic_ns()) // 2
        for qdisc in json.loads(output):
            readings = self._readings.get((place, qdisc["dev"]))
            if readings is not None and qdisc["kind"] == "tbf":
                readings.append(Reading(at_ns, qdisc["backlog"], qdisc["drops"]))
