"""Whether a responsiveness test said of a path's queues what `tc` read there at the same time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .queue_cells import LEAST_NAMED_MS, Cell, Wanted
from .queue_reader import Readings
from .queued_path import Queue

SECOND_NS: Final = 1_000_000_000
_SHARE: Final = 0.1
_LEAST_MS: Final = 2.0
_QUEUE_CODES: Final = frozenset({"no-queue", "queue-local", "queue-remote", "queue-path"})


@dataclass(frozen=True)
class JudgedLoad:
    """Latency under one load beside the truth of the same time, in milliseconds.

    `held_ms` is how long packets waited in all queues of the round trip together, on average. `limit_ms` is the
    size of the queue that the load filled; None where it filled none but one of a few packets: these are never full
    for 0.4 s, and probes that find no room in them are lost.
    """

    direction: str
    measured_s: float
    rise_ms: float | None
    held_ms: float
    peak_ms: float | None
    held_peak_ms: float
    limit_ms: float | None

    @property
    def problems(self) -> list[str]:
        """What is wrong about it."""
        found: list[str] = []
        if not _agrees(self.rise_ms, self.held_ms):
            found.append(f"{self.direction}: rise {_ms(self.rise_ms)}, the queue held {self.held_ms:.1f} ms")
        if self.limit_ms is not None and not _agrees(self.peak_ms, self.limit_ms):
            found.append(f"{self.direction}: peak {_ms(self.peak_ms)}, the full queue holds {self.limit_ms:.1f} ms")
        return found

    def __str__(self) -> str:
        limit = "" if self.limit_ms is None else f" of {self.limit_ms:.1f}"
        return (
            f"{self.direction:<6} rise {_ms(self.rise_ms)} held {self.held_ms:.1f} ms"
            f" ({self.measured_s:.1f} s), peak {_ms(self.peak_ms)} held {self.held_peak_ms:.1f}{limit} ms"
        )


def _ms(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} ms"


def _agrees(measured_ms: float | None, true_ms: float) -> bool:
    return measured_ms is not None and abs(measured_ms - true_ms) <= max(_LEAST_MS, _SHARE * true_ms)


@dataclass(frozen=True)
class Judgement:
    """A test of one cell: its loads, the findings about queues, and what is wrong about either."""

    cell: Cell
    loads: tuple[JudgedLoad, ...]
    found: frozenset[Wanted]
    grade: str | None

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong; empty for a test that told the truth."""
        problems = [problem for load in self.loads for problem in load.problems]
        if not self.loads:
            problems.append("nothing was measured under load")
        if self.found != self.cell.wanted:
            wanted, found = (", ".join(map(str, sorted(each, key=str))) for each in (self.cell.wanted, self.found))
            problems.append(f"wanted {wanted}; found {found or 'nothing'}")
        return problems


def judge(
    cell: Cell, document: Mapping[str, Any], started_ns: int, readings: Mapping[Queue, Readings]
) -> Judgement:
    """Judge the document of a test by what was read of each queue; it started at a time of the monotonic clock."""
    result = document["responsiveness"]
    loads = tuple(_judge_load(cell, load, started_ns, readings) for load in result["loads"])
    found = frozenset(
        Wanted(finding["code"], finding["end"], finding["direction"])
        for finding in document["why"]
        if finding["code"] in _QUEUE_CODES
    )
    return Judgement(cell, loads, found, result["grade"])


def _judge_load(
    cell: Cell, load: Mapping[str, Any], started_ns: int, readings: Mapping[Queue, Readings]
) -> JudgedLoad:
    start_ns, measured_ns, end_ns = (
        started_ns + round(load[name] * SECOND_NS) for name in ("start_s", "measured_s", "end_s")
    )
    held_ms = _held_ms(cell, measured_ns, end_ns, readings)
    peaks_ms = [queue.time_ms(readings[queue].peak_bytes(start_ns, end_ns)) for queue in cell.queues]
    filled = [
        queue
        for queue in cell.queues
        if queue.direction.value == load["direction"]
        and queue.hold_ms >= LEAST_NAMED_MS
        and readings[queue].dropped(measured_ns, end_ns)
    ]
    return JudgedLoad(
        load["direction"],
        load["end_s"] - load["measured_s"],
        load["rise_ms"],
        held_ms,
        load["peak_rise_ms"],
        sum(peaks_ms),
        filled[0].time_ms(filled[0].limit_bytes) if filled else None,
    )


def _held_ms(cell: Cell, start_ns: int, end_ns: int, readings: Mapping[Queue, Readings]) -> float:
    """Return how long the probes whose echoes came in a time had waited: they joined the queues earlier by that."""
    waited_ms = 0.0
    for way in ("in", "out"):  # backwards
        for queue in cell.queues:
            if queue.direction.value == way:
                own_ms = queue.time_ms(readings[queue].mean_bytes(start_ns, end_ns))
                shift_ns = round((waited_ms + own_ms) * 1e6)
                waited_ms += queue.time_ms(readings[queue].mean_bytes(start_ns - shift_ns, end_ns - shift_ns))
    return waited_ms


def report(judgements: Sequence[Judgement]) -> str:
    """Return the loads of tests and their problems, a line each."""
    lines: list[str] = []
    for judgement in judgements:
        lines += [f"{judgement.cell.name}: grade {judgement.grade}", *(f"  {load}" for load in judgement.loads)]
        lines += [f"  WRONG {problem}" for problem in judgement.problems]
    return "\n".join(lines)
