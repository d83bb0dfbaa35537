"""The measured and the expected rates as the figures of a run's document: of each direction, and of both. Pure."""

from dataclasses import dataclass
from typing import Any, Final, Self

from ..model.directions import PerDirection
from ..model.expected_rate import Expectation, ExpectedRate
from ..model.plan import MIB
from .confidence import Estimate
from .figure_codec import exact, figure, figures_of, mbit, ms, round_figure, seconds, us
from .summary import Measurement, PacketOverhead

MEGABIT: Final = 1e6


def mib(bit: float) -> float:
    """Return bits as MiB."""
    return round_figure(bit / 8 / MIB)


def _dscp(tos: int) -> int:
    """Return the upper six bits (RFC 2474)."""
    return tos >> 2


@dataclass(frozen=True, slots=True)
class LatencyFigures:
    """Percentiles of a latency."""

    min: float | None = figure("min_ns", us)
    p50: float | None = figure("p50_ns", us)
    p90: float | None = figure("p90_ns", us)
    p99: float | None = figure("p99_ns", us)
    p99_9: float | None = figure("p99_9_ns", us)
    max: float | None = figure("max_ns", us)


@dataclass(frozen=True, slots=True)
class DelayFigures:
    """Percentiles of a delay variation."""

    p50: float | None = figure("p50_ns", ms)
    p90: float | None = figure("p90_ns", ms)
    p99: float | None = figure("p99_ns", ms)
    p99_9: float | None = figure("p99_9_ns", ms)
    max: float | None = figure("max_ns", ms)


@dataclass(frozen=True, slots=True)
class CapacityFigures:
    """The capacity that a search found."""

    mbit_s: float | None = figure("bit_s", mbit)
    lost_percent: float | None = figure()
    delay_variation_ms: float | None = figure("delay_variation_ns", ms)
    rtt_ms: float | None = figure("rtt_ns", ms)
    loss_free_mbit_s: float | None = figure("loss_free_bit_s", mbit)
    is_complete: bool | None = figure()


@dataclass(frozen=True, slots=True)
class DatagramFigures:
    """The figures of datagrams (see DatagramSummary): the shape has a field for each member."""

    sent: int | None = figure()
    sent_mbit_s: float | None = figure("sent_bit_s", mbit)
    skipped: int | None = figure()
    received: int | None = figure()
    lost: int | None = figure()
    lost_percent: float | None = figure()
    lost_near: int | None = figure("lost_at.near", at="lost_at.near")
    lost_far: int | None = figure("lost_at.far", at="lost_at.far")
    lost_between: int | None = figure("lost_at.network", at="lost_at.network")
    duplicates: int | None = figure()
    late: int | None = figure()
    reordered: int | None = figure()
    reordered_percent: float | None = figure()
    reordered_3_percent: float | None = figure()
    max_extent: int | None = figure()
    bursts: int | None = figure()
    burst_mean: float | None = figure("mean_burst")
    burst_max: int | None = figure("longest_burst")
    jitter_mean_ms: float | None = figure("jitter_mean_ns", ms, at="jitter_ms.mean")
    jitter_max_ms: float | None = figure("jitter_max_ns", ms, at="jitter_ms.max")
    delay_variation_ms: DelayFigures | None = figure("delay_variation")
    delay_rise_ms: float | None = figure("delay_rise_ns", ms, at="delay_rise_ms.forward")
    return_rise_ms: float | None = figure("return_rise_ns", ms, at="delay_rise_ms.return")
    rtt_us: int | None = figure()
    datagram_bytes: int | None = figure()
    capacity: CapacityFigures | None = figure()
    mode: str | None = figure()
    sent_dscp: int | None = figure("sent_tos", _dscp, at="dscp.sent")
    received_dscp: int | None = figure("received_tos", _dscp, at="dscp.received")
    ce_marks: int | None = figure()


@dataclass(frozen=True, slots=True)
class MeasuredResult:
    """The figures of a direction, or of both together: the shape has a field for each member."""

    bytes: int | None = figure()
    seconds: float | None = figure("span_ns", seconds)
    mbit_s: float | None = figure("bit_s", mbit)
    mib_s: float | None = figure("bit_s", mib)
    percent_of_expected: float | None = figure()
    transactions_s: float | None = figure()
    latency_us: LatencyFigures | None = figure("latency")
    ci95_mbit_s: tuple[float, ...] | None = figure()
    ci95_percent: float | None = figure("estimate.half_width_percent")
    ci95_transactions_s: tuple[float, ...] | None = figure()
    packets_s: float | None = figure()
    ip_mbit_s: float | None = figure()
    wire_mbit_s: float | None = figure()
    udp: DatagramFigures | None = figure("datagrams")
    counted_by: str | None = figure()

    @classmethod
    def of(
        cls, measured: Measurement | None, expected: ExpectedRate | None, overhead: PacketOverhead | None
    ) -> Self | None:
        """Return the figures of a measurement; `overhead` is that of each datagram."""
        if measured is None:
            return None
        packets_s, ip_bit_s, wire_bit_s = measured.packets_s, None, None
        if packets_s is not None and overhead is not None:
            ip_bit_s = overhead.ip_bit_s(measured.bit_s, packets_s)
            wire_bit_s = overhead.wire_bit_s(measured.bit_s, packets_s)
        return figures_of(
            cls,
            measured,
            percent_of_expected=percent_of_expected(measured, expected),
            ci95_mbit_s=_interval(measured.estimate, 1 / MEGABIT),
            ci95_transactions_s=_interval(measured.transactions_estimate),
            ip_mbit_s=mbit(ip_bit_s),
            wire_mbit_s=mbit(wire_bit_s),
        )

    @property
    def bit_s(self) -> float | None:
        """The payload rate."""
        return None if self.mbit_s is None else self.mbit_s * MEGABIT

    @property
    def is_datagrams(self) -> bool:
        """Whether these were datagrams."""
        return self.udp is not None

    @property
    def loss(self) -> float | None:
        """The share of datagrams that was lost."""
        lost_percent = None if self.udp is None else self.udp.lost_percent
        return None if lost_percent is None else lost_percent / 100


def percent_of_expected(measured: Measurement, expected: ExpectedRate | None) -> float | None:
    """Return a rate in percent of the expected rate; None if nothing or 0 is expected."""
    return None if expected is None else round_figure(measured.percent_of(expected))


def _interval(estimate: Estimate | None, factor: float = 1.0) -> tuple[float, ...] | None:
    if estimate is None:
        return None
    return round_figure(estimate.low * factor), round_figure(estimate.high * factor)


@dataclass(frozen=True, slots=True)
class ExpectedFigures:
    """A rate to expect, with its source."""

    mbit_s: float | None = figure("bit_s", mbit)
    transactions_s: float | None = figure(unit=exact, omitted=True)
    basis: str | None = figure()
    source: str | None = figure()


MeasuredFigures = PerDirection[MeasuredResult | None]
ExpectedRates = PerDirection[ExpectedFigures | None]


def no_rates() -> PerDirection[Any]:
    """Return the rates of a run without any."""
    return PerDirection(None, None, None)


def measured_figures(
    measured: PerDirection[Measurement | None], expected: Expectation, overhead: PacketOverhead | None
) -> MeasuredFigures:
    """Return the figures of measurements, with their expected rates."""
    directions = ((measured.out, expected.out), (measured.in_, expected.in_), (measured.total, expected.total))
    return PerDirection(*(MeasuredResult.of(*each, overhead) for each in directions))


def expected_figures(expected: Expectation) -> ExpectedRates:
    """Return the figures of the rates to expect; None for a direction without one."""
    rates = (expected.out, expected.in_, expected.total)
    return PerDirection(*(None if rate is None else figures_of(ExpectedFigures, rate) for rate in rates))
