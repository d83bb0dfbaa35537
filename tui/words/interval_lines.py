"""The interval lines of a test: a heading, and then a row for each second or for the time of --interval.

Pure. The lines stay on stdout, on a terminal and in a pipe alike. Their figures are those of the rows of CSV.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...engine.model.directions import Direction
from ...engine.model.events import Sampled
from ...engine.model.plan import Plan
from ...engine.results.interval_result import FlowFigures, IntervalResult
from ...engine.results.meter import Interval, Meter
from ...engine.results.sample_merging import merge_samples
from . import numbers
from .datagram_results import loss_percent

_TIME_WIDTH: Final = 11  # of `590.0-600.0`
_SHORTEST: Final = 0.1  # of the time of a line: samples after the last whole one, of a run's end, are left out
_GAP: Final = "  "


@dataclass(frozen=True, slots=True)
class _Cell:
    """A figure with its heading, which sets the width of its column."""

    heading: str
    text: str
    width: int = 6

    def aligned(self, text: str) -> str:
        """Return a text in the width of the column."""
        return text.rjust(max(self.width, len(self.heading)))


class IntervalLines:
    """Makes the lines of a run of its intervals; `line_ns` is the time of a line, as far as intervals allow."""

    def __init__(self, plan: Plan, line_ns: int) -> None:
        self._plan = plan
        self._line_ns = line_ns
        self._waiting: list[Interval] = []
        self._headings: tuple[str, ...] = ()

    def add(self, interval: Interval, meter: Meter) -> Iterator[str]:
        """Yield the lines that an interval completes, a heading before the first one."""
        if self._waiting and _key(interval) != _key(self._waiting[0]):
            yield from self.flush(meter)
        self._waiting.append(interval)
        elapsed_ns = _elapsed_ns(interval)
        # The ends of intervals are some microseconds late, and never early.
        if elapsed_ns is None or elapsed_ns % self._line_ns < self._plan.interval_ns:
            yield from self.flush(meter)

    def flush(self, meter: Meter) -> Iterator[str]:
        """Yield the line of the intervals that still wait for others."""
        joined, self._waiting = _joined(self._waiting), []
        if joined is not None and _span_ns(joined) < _SHORTEST * self._line_ns:
            return
        figures = None if joined is None else IntervalResult.of(joined, meter)
        if joined is None or figures is None:
            return
        cells = list(_cells(figures, self._plan))
        headings = tuple(cell.heading for cell in cells)
        if headings != self._headings:
            self._headings = headings
            yield _line("seconds", [cell.aligned(cell.heading) for cell in cells])
        yield _line(_time_text(joined), [cell.aligned(cell.text) for cell in cells], _note(figures))


def _line(time: str, cells: Sequence[str], note: str = "") -> str:
    return _GAP.join([time.rjust(_TIME_WIDTH), *cells, *([note] if note else [])])


def _key(interval: Interval) -> object:
    """Return what the intervals of a line have in common."""
    sampled = interval.near or interval.far
    return None if sampled is None else sampled.settings


def _span_ns(interval: Interval) -> int:
    return max((each.sample.interval_ns for each in (interval.near, interval.far) if each is not None), default=0)


def _elapsed_ns(interval: Interval) -> int | None:
    sampled = interval.near or interval.far
    return None if sampled is None else sampled.sample.elapsed_ns


def _joined(intervals: Sequence[Interval]) -> Interval | None:
    """Return neighbouring intervals as one; None without any."""
    if len(intervals) < 2:
        return intervals[0] if intervals else None
    ends = ([each.near for each in intervals], [each.far for each in intervals])
    near, far = (_joined_end([each for each in end if each is not None]) for end in ends)
    return replace(intervals[-1], near=near, far=far)


def _joined_end(events: Sequence[Sampled]) -> Sampled | None:
    if not events:
        return None
    samples = [event.sample for event in events]
    # If a sample is of the warm-up, the first one is.
    return replace(events[0], sample=merge_samples(samples, samples[-1].index))


def _time_text(interval: Interval) -> str:
    """Return the beginning and the end of a line in seconds: `3.0-4.0`."""
    sampled = interval.near or interval.far
    if sampled is None:
        return numbers.UNKNOWN
    sample = sampled.sample
    places = 1 if sample.interval_ns >= 95_000_000 else 2
    begin_s, end_s = max(0, sample.elapsed_ns - sample.interval_ns) / 1e9, sample.elapsed_ns / 1e9
    return f"{begin_s:.{places}f}-{end_s:.{places}f}"


def _cells(figures: IntervalResult, plan: Plan) -> Iterator[_Cell]:
    """Yield the figures of a line."""
    flows = dict(figures.flows)
    for flow in plan.settings.direction.flows:
        yield from _flow_cells(flow, flows.get(flow), plan)
    known = list(flows.values())
    if plan.workload.is_bulk and not plan.workload.is_datagram:
        counts = [each.retransmits for each in known if each.retransmits is not None]
        yield _Cell("retr", numbers.count(sum(counts) if counts else None))
        has_latency = plan.probe or plan.responsiveness is not None
        trips_us = [each.latency_p50_us if has_latency else each.rtt_us for each in known]
        longest_us = max((each for each in trips_us if each is not None), default=None)
        name = "latency" if has_latency else "RTT"
        yield _Cell(name, numbers.latency(None if longest_us is None else 1e3 * longest_us), 9)
    for name, end in (("CPU local", figures.near), ("remote", figures.far)):
        yield _Cell(name, numbers.percent(end.cpu_percent, 0), 6)


def _flow_cells(flow: Direction, known: FlowFigures | None, plan: Plan) -> Iterator[_Cell]:
    """Yield the rate of a direction, and with it its loss or the time of its transactions."""
    rate, transactions_s, p50_us = (
        (None, None, None) if known is None else (known.mbit_s, known.transactions_s, known.latency_p50_us)
    )
    if not plan.workload.is_bulk:
        yield _Cell(f"{flow} /s", numbers.transaction_number(transactions_s), 9)
        yield _Cell("p50", numbers.latency(None if p50_us is None else 1e3 * p50_us), 9)
        return
    yield _Cell(f"{flow} Mb/s", numbers.mbit(None if rate is None else 1e6 * rate), 9)
    if plan.workload.is_datagram:
        udp = (known and known.udp) or {}
        yield _Cell("lost", loss_percent(udp.get("lost_percent")), 7)
        if plan.settings.direction is not Direction.DUPLEX:  # 80 columns have no room for two
            jitter_ms = udp.get("jitter_ms")
            yield _Cell("jitter", numbers.latency(None if jitter_ms is None else 1e6 * jitter_ms), 9)


def _note(figures: IntervalResult) -> str:
    words = ["warm-up"] if figures.warmup else []
    if any(each.counted_by == "sender" for _, each in figures.flows):
        words.append("by the sender's count")
    return ", ".join(words)
