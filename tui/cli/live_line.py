"""The progress of a test without the app: lines that stay on stdout, or one line on stderr that is redrawn."""

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from ...engine.model.counters.latency_histogram import summarize_latency
from ...engine.model.counters.samples import latency_counts
from ...engine.model.directions import Direction
from ...engine.model.events import Sampled
from ...engine.model.plan import Plan
from ...engine.results.meter import Interval, Meter
from ...engine.results.rate_and_loss import bits_per_second, host_percent, per_second
from ...engine.results.sums.session_sums import SessionDatagrams
from ..words import numbers
from ..words.datagram_results import loss_percent
from ..words.interval_lines import IntervalLines
from ..words.responsiveness import phase_text
from .output import BackgroundStream, emit_line, stderr_console

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live


class LiveLine:
    """A line that is redrawn with every interval and removed at the end. Without a terminal nothing is drawn.

    With `line_ns` a line for each time of this length is printed instead, on stdout, wherever that goes.
    """

    def __init__(self, plan: Plan, peer: str, line_ns: int | None = None) -> None:
        self._plan = plan
        self._peer = peer
        self._live: Live | None = None
        self._lines = None if line_ns is None else IntervalLines(plan, line_ns)
        self._meter: Meter | None = None

    def __enter__(self) -> Self:
        """Draw the first line, on a terminal that can move its cursor."""
        console = stderr_console() if sys.stderr.isatty() else None
        if console is not None and not console.is_dumb_terminal:
            from rich.live import Live

            self._live = Live(
                self._text(self._first_text()),
                console=console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the line, or set off the printed ones from the result."""
        self._remove()
        if self._lines is not None and self._meter is not None:
            emit_line("")

    def end_run(self) -> None:
        """Print the last line of a run: it may be shorter than the others."""
        if self._lines is not None and self._meter is not None:
            for line in self._lines.flush(self._meter):
                emit_line(line)

    def show_intervals(self, intervals: Iterable[Interval], meter: Meter) -> None:
        """Draw the intervals that an event completed, with the meter's mean so far and its margin of error."""
        for interval in intervals:
            if self._lines is not None:
                self._remove()
                self._meter = meter
                for line in self._lines.add(interval, meter):
                    emit_line(line)
            elif self._live is not None and self._is_terminal_ready():
                self._live.update(self._text(interval_text(interval, self._plan, meter)), refresh=True)

    def print_above(self, text: str) -> None:
        """Print a message above the live line."""
        from .output import PROGRAM, print_stderr

        if self._live is None:
            print_stderr(text)
        else:
            self._live.console.print(f"{PROGRAM}: {text}", soft_wrap=True)

    def _remove(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _first_text(self) -> str:
        text = f"connecting to {self._peer}"
        if self._plan.wait_ns:
            text += f", and waiting up to {numbers.duration(self._plan.wait_ns)} if it is busy"
        return text if self._plan.responsiveness is None else f"{text}, and measuring latency without load"

    def _is_terminal_ready(self) -> bool:
        """Return whether the terminal has the last frame. A stopped one gets the newest frame once it continues."""
        return self._live is not None and cast("BackgroundStream", self._live.console.file).is_idle

    @staticmethod
    def _text(text: str) -> "RenderableType":
        from rich.text import Text

        return Text(text, no_wrap=True, overflow="ellipsis")


def interval_text(interval: Interval, plan: Plan, meter: Meter | None = None) -> str:
    """Return an interval in one line: the time, each direction's rate, the mean so far, CPU of both ends."""
    sampled = interval.near or interval.far
    elapsed_ns = None if sampled is None else sampled.sample.elapsed_ns
    clock = numbers.clock(elapsed_ns)
    words = [
        *_time_words(interval, plan, clock),
        *(f"{flow} {numbers.arrow(flow)} {_rate(interval, flow)}" for flow in interval.flows),
        *(_loss(interval, flow) for flow in interval.flows if interval.workload.is_datagram),
        *([] if plan.responsiveness is None else [_probe_latency(interval)]),
        *([] if plan.has_phases else _mean_so_far(meter)),
        f"CPU local {_busy_text(interval.near)}, remote {_busy_text(interval.far)}",
    ]
    if sampled is not None and sampled.warmup:
        words.append("warming up")
    return "  ".join(words)


def _time_words(interval: Interval, plan: Plan, clock: str) -> list[str]:
    """Return the time passed and the time to come: the duration, or the phase of a test that ends by itself."""
    sampled = interval.near or interval.far
    if plan.has_phases:
        return [clock, *([] if sampled is None else [phase_text(plan, sampled.settings.direction)])]
    return [clock if plan.duration_ns is None else f"{clock} / {numbers.clock(plan.duration_ns)}"]


def _probe_latency(interval: Interval) -> str:
    """Return the median latency of an interval's probes: of datagrams if some came back, else of requests."""
    probe = None if interval.near is None else interval.near.sample.probe
    latency = None
    if probe is not None:
        datagrams = probe.datagrams
        counts = datagrams.latency if datagrams is not None and datagrams.answered else probe.latency
        latency = summarize_latency(counts.by_bucket)
    return f"latency {numbers.latency(latency and latency.p50_ns):>8}"


def _mean_so_far(meter: Meter | None) -> list[str]:
    """Return the mean of this period and its margin of error, once there is one."""
    estimate = None if meter is None else meter.rate_estimate()
    if estimate is None or estimate.half_width_percent is None:
        return []
    return [f"mean {numbers.rate(estimate.mean)} {numbers.margin_of_error(estimate.half_width_percent)}"]


def _rate(interval: Interval, flow: Direction) -> str:
    """Return the payload rate, or transactions a second with their median time."""
    receiver = interval.receiver_sample(flow)
    if interval.workload.is_bulk or receiver is None:
        return numbers.rate_cell(_bit_s(interval, flow), 8) + _source(interval, flow)
    counts = latency_counts(receiver.sample.latency, flow)
    latency = summarize_latency(counts)
    per_s = per_second(sum(counts.values()), receiver.sample.interval_ns)
    return f"{numbers.transactions(per_s, 8)} p50 {numbers.latency(latency and latency.p50_ns):>8}"


def _source(interval: Interval, flow: Direction) -> str:
    """Return the subject of a rate, unless it is received payload."""
    receiver = interval.receiver_sample(flow)
    if receiver is None or not receiver.sample.is_from_sender:
        return ""
    return " sent" if interval.workload.is_datagram else " acknowledged"


def _loss(interval: Interval, flow: Direction) -> str:
    """Return the share of datagrams that an interval lost, and how many came in a second."""
    receiver = interval.receiver_sample(flow)
    parts = () if receiver is None else receiver.sample.datagrams
    counts = [part for part in parts if part.direction is flow and part.received is not None]
    arrow = f" {numbers.arrow(flow)}" if len(interval.flows) > 1 else ""
    if receiver is None or not counts:
        return f"loss{arrow} {loss_percent(None):>8}"
    sums = SessionDatagrams()
    for part in counts:
        sums.add_datagrams(part)
    per_s = per_second(sums.received, receiver.sample.interval_ns)
    return f"loss{arrow} {loss_percent(sums.lost_percent):>8}  {numbers.number(per_s):>9} packets/s"


def _bit_s(interval: Interval, flow: Direction) -> float | None:
    receiver = interval.receiver_sample(flow)
    return (
        None if receiver is None else bits_per_second(receiver.sample.bytes_of(flow), receiver.sample.interval_ns)
    )


def _busy_text(sampled: Sampled | None) -> str:
    return numbers.percent(None if sampled is None else host_percent(sampled.sample.cores or ()), 0, 3)
