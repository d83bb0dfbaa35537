"""The shape of a responsiveness test's results in a run's JSON document. Pure.

Times are in milliseconds, rates in Mb/s, unknown values are null.
"""

from dataclasses import dataclass

from ...model.plan import PROBE_PACE_NS
from ..figure_codec import figure, figures_of, mbit, ms, rounded_seconds
from .grade import GRADE_SCALE
from .result import Responsiveness
from .round_trips import RPM_METHOD


@dataclass(frozen=True, slots=True)
class ProbeTimes:
    """The times of one kind of probe."""

    count: int | None = figure()
    mean: float | None = figure("mean_ns", ms)
    p50: float | None = figure("p50_ns", ms)
    p99: float | None = figure("p99_ns", ms)


@dataclass(frozen=True, slots=True)
class RoundTripFigures:
    """Round trips a minute, and their parts."""

    per_minute: float | None = figure()
    class_: str | None = figure("classification")
    confidence: str | None = figure()
    foreign: float | None = figure()
    loaded: float | None = figure()
    handshake_ms: float | None = figure("handshake_ns", ms)
    answer_ms: float | None = figure("answer_ns", ms)
    loaded_ms: float | None = figure("loaded_ns", ms)


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """The queues at a sender's own host."""

    end: str | None = figure()
    interface: str | None = figure()
    qdisc: str | None = figure()
    backlog_bytes: float | None = figure()
    most_backlog_bytes: int | None = figure()
    dropped: int | None = figure()
    driver_bytes: float | None = figure()
    unsent_bytes: float | None = figure()
    drain_mbit_s: float | None = figure("drain_bit_s", mbit)
    delay_ms: float | None = figure("delay_ns", ms)
    unsent_ms: float | None = figure("unsent_ns", ms)


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """Latency while the link was loaded in one direction, or in both: a field for each member of the document."""

    direction: str | None = figure()
    sessions: int | None = figure()
    start_s: float | None = figure("start_ns", rounded_seconds)
    measured_s: float | None = figure("measured_ns", rounded_seconds)
    end_s: float | None = figure("end_ns", rounded_seconds)
    out_mbit_s: float | None = figure("bit_s.out", mbit, at="mbit_s.out")
    in_mbit_s: float | None = figure("bit_s.in_", mbit, at="mbit_s.in")
    total_mbit_s: float | None = figure("bit_s.total", mbit, at="mbit_s.total")
    latency_ms: ProbeTimes | None = figure("latency")
    rise_ms: float | None = figure("rise_ns", ms)
    rise_p99_ms: float | None = figure("rise_p99_ns", ms)
    peak_rise_ms: float | None = figure("peak_rise_ns", ms)
    out_rise_ms: float | None = figure("one_way_rise_ns.out", ms, at="one_way_rise_ms.out")
    in_rise_ms: float | None = figure("one_way_rise_ns.in_", ms, at="one_way_rise_ms.in")
    lost_percent: float | None = figure()
    handshake_ms: ProbeTimes | None = figure("handshake")
    answer_ms: ProbeTimes | None = figure("answer")
    tcp_rtt_ms: ProbeTimes | None = figure("tcp_rtt")
    queues: tuple[QueueFigures, ...] = ()
    round_trips: RoundTripFigures | None = figure()
    is_steady: bool | None = figure()


@dataclass(frozen=True, slots=True)
class ResponsivenessFigures:
    """The results with their scales and methods."""

    probe: str | None = figure()
    probe_pace_ms: float | None = figure()
    idle_ms: ProbeTimes | None = figure("idle")
    rise_ms: float | None = figure("rise_ns", ms)
    grade: str | None = figure()
    grade_scale: str | None = figure()
    round_trips: RoundTripFigures | None = figure()
    rpm_method: str | None = figure()
    loads: tuple[LoadFigures, ...] = ()


def responsiveness_figures(result: Responsiveness) -> ResponsivenessFigures:
    """Return the figures of a test."""
    return figures_of(
        ResponsivenessFigures,
        result,
        probe_pace_ms=ms(PROBE_PACE_NS),
        grade_scale=GRADE_SCALE,
        rpm_method=RPM_METHOD,
    )
