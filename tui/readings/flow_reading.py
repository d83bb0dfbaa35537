"""The reading of a gauge: the rate of a direction beside the expected one, with its latency or its datagrams.

Pure. During a run the values are of the last second, after it they are its results. A single interval of a quarter
of a second fluctuates too much to be read. `None` is unknown, rates are bits per second.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...engine.model.counters.latency_histogram import LatencySummary, merge_counts, summarize_latency
from ...engine.model.directions import Direction
from ...engine.model.expected_rate import Expectation, ExpectedRate
from ...engine.results.rate_and_loss import per_second, percent_of
from ...presets.verdict import DEFAULT_PASS_PERCENT, rate_word
from ..words.iperf3 import live_source_text
from ..words.numbers import RateScale, RateUnit
from .plot_values import flow_scale, peak_above

if TYPE_CHECKING:
    from ...engine.results.summary import DatagramSummary, Summary
    from .cockpit_snapshot import CockpitSnapshot
    from .live_readings import LiveReadings

Rating = Literal["pass", "short", "fail", "other", ""]


@dataclass(frozen=True, slots=True)
class DatagramReading:
    """The datagrams of a direction: those of the last second, and all of the period or the run.

    `packets_s` and `now` are of the last second, or after a run of the whole run. None is unknown.
    """

    direction: Direction
    packets_s: float | None = None
    now: "DatagramSummary | None" = None
    so_far: "DatagramSummary | None" = None

    @property
    def loss_percent(self) -> float | None:
        """The share of lost datagrams so far; None before the first one counts."""
        return None if self.so_far is None else self.so_far.lost_percent

    @property
    def jitter_ns(self) -> float | None:
        """The mean jitter of the last second."""
        return None if self.now is None else self.now.jitter_mean_ns


class _Rate(NamedTuple):
    """The part of a reading that comes from the last second, or from the results."""

    bit_s: float | None = None
    expected: ExpectedRate | None = None
    latency: LatencySummary | None = None
    margin_percent: float | None = None


@dataclass(frozen=True, slots=True)
class FlowReading:
    """A gauge's values: the rate of a direction or of both together (duplex), and the expected rate.

    `peak` is the link's best expected rate with any number of sessions. `margin_percent` is half of the 95 %
    interval of a mean rate. A gauge of transactions has the payload of each, `response_bits`, and their `latency`.
    Gauges side by side have one unit: `least_unit_bit_s` is the rate that sets it. UDP has `datagrams`. While an
    iperf3 has not reported what it received, `source` says what is shown instead. `full_bit_s` is the rate at the
    end of the bar and at the top of the plot; 0 while it is unknown. A run that was cut short or broke off has no
    verdict: its gauge is not `is_judged`. Before the first run, a gauge `is_idle`: it has no digits yet.
    """

    direction: Direction
    bit_s: float | None = None
    expected: ExpectedRate | None = None
    highest_bit_s: float = 0.0
    is_final: bool = False
    response_bits: int | None = None
    latency: LatencySummary | None = None
    peak: ExpectedRate | None = None
    margin_percent: float | None = None
    units: RateUnit = RateUnit.MBIT
    least_unit_bit_s: float = 0.0
    datagrams: DatagramReading | None = None
    source: str = ""
    full_bit_s: float = 0.0
    is_judged: bool = True
    pass_percent: float = DEFAULT_PASS_PERCENT
    is_idle: bool = False

    @property
    def top_bit_s(self) -> float:
        """The highest rate that the gauge has to show."""
        rates = [rate.bit_s for rate in (self.expected, self.peak) if rate is not None]
        return max([*rates, self.highest_bit_s])

    @property
    def unit_bit_s(self) -> float:
        """The rate that sets the unit: the expected one, which a larger unit would cut, or else the highest."""
        rates = [rate.bit_s for rate in (self.expected, self.peak) if rate is not None]
        return max(rates) if rates else self.highest_bit_s

    @property
    def scale(self) -> RateScale:
        """The unit of the gauge's rates; transactions have a scale of their own."""
        return flow_scale(self.units, max(self.unit_bit_s, self.least_unit_bit_s), self.response_bits)

    def number(self, bit_s: float | None, places: int | None = None) -> str:
        """Return a rate without its unit, on the gauge's scale."""
        return self.scale.number(bit_s, places)

    @property
    def percent(self) -> float | None:
        """The rate in percent of the expected rate; None without an expectation."""
        return percent_of(self.bit_s, self.expected.bit_s if self.expected else None)

    @property
    def rating(self) -> Rating:
        """The rating of the rate: pass, short or fail. It is empty without an expected rate or a verdict.

        A rate that exceeds what this kind of link can carry is `other`: the preset is the wrong one.
        """
        if self.percent is None or self.expected is None or not self.is_judged:
            return ""
        return "other" if self.expected.is_exceeded_by(self.bit_s) else rate_word(self.percent, self.pass_percent)

    @property
    def peak_above_expected(self) -> ExpectedRate | None:
        """The peak if it exceeds the expected rate, else None."""
        return peak_above(self.expected, self.peak)


def flow_reading(view: "CockpitSnapshot", direction: Direction) -> FlowReading:
    """Return a gauge's values: the last second during a run, the result after it."""
    readings, summary = view.readings, view.summary
    if readings is None:
        rate = _Rate(expected=view.expectation[direction])
    elif summary is None:
        rate = _current_rate(readings, direction)
    else:
        rate = _loaded_rate(summary, direction) or _result_rate(summary, direction)
    return FlowReading(
        direction,
        rate.bit_s,
        rate.expected,
        0.0 if readings is None else _highest_bit_s(readings, direction),
        is_final=summary is not None,
        is_judged=summary is None or summary.is_whole,
        pass_percent=view.pass_percent,
        response_bits=view.response_bits,
        latency=rate.latency,
        peak=view.peak[direction],
        margin_percent=rate.margin_percent,
        units=view.units,
        least_unit_bit_s=view.unit_bit_s,
        datagrams=datagram_reading(view, direction),
        source="" if readings is None else _source(readings, direction),
        full_bit_s=view.rate_top,
        is_idle=readings is None,
    )


def _current_rate(readings: "LiveReadings", direction: Direction) -> _Rate:
    """Return the rate of the last second; for duplex, the sum of both."""
    received = [readings.meter.shown.received[flow] for flow in direction.flows]
    rates = [sums.bit_s for sums in received if sums.bit_s is not None]
    counts: dict[int, int] = {}
    for sums in received:
        merge_counts(counts, sums.latency.items())
    expectation = readings.periods[-1].expectation if readings.periods else Expectation()
    bit_s = sum(rates) if len(rates) == len(received) else None
    return _Rate(bit_s, expectation[direction], summarize_latency(counts))


def _highest_bit_s(readings: "LiveReadings", direction: Direction) -> float:
    """Return the highest rate that a gauge has shown. Two gauges side by side share theirs."""
    flows = readings.settings.direction.flows
    flows = flows if direction in flows else (direction,)
    return max(readings.traces.highest_bit_s.get(flow, 0.0) for flow in flows)


def _source(readings: "LiveReadings", direction: Direction) -> str:
    """Return the source of a direction's rates if its receiver has not reported; an empty text otherwise."""
    started = readings.meter.started
    if started is None or readings.traces.has_totals:
        return ""
    return live_source_text(started.unseen_end, direction, is_datagram=readings.plan.workload.is_datagram)


def _result_rate(summary: "Summary", direction: Direction) -> _Rate:
    """Return the result of an ended run in a direction."""
    measured, expected = summary.measured[direction], summary.expectation[direction]
    if measured is None:
        return _Rate(expected=expected)
    return _Rate(
        measured.result_bit_s if measured.span_ns > 0 else None,
        expected,
        measured.latency,
        None if measured.estimate is None else measured.estimate.half_width_percent,
    )


def _loaded_rate(summary: "Summary", direction: Direction) -> _Rate | None:
    """Return the rate of a direction in a responsiveness test while only that direction was loaded.

    The total is the rate of both at once. None for another run, and for a load that was not measured.
    """
    load = None if summary.responsiveness is None else summary.responsiveness.load_of(direction)
    if load is None:
        return None
    expected = next(
        (each.expectation for each in summary.periods if each.settings.direction is direction), Expectation()
    )
    return _Rate(load.bit_s[direction], expected[direction])


def datagram_reading(view: "CockpitSnapshot", direction: Direction) -> DatagramReading | None:
    """Return the datagrams of a direction, or for duplex of both together; None for TCP, and before a run.

    During a run, losses are counted from the last change on: losses at another rate say nothing about this one.
    """
    readings = view.readings
    if readings is None or not readings.plan.workload.is_datagram:
        return None
    if view.summary is not None:
        measured = view.summary.measured[direction]
        whole = None if measured is None else measured.datagrams
        return DatagramReading(direction, None if measured is None else measured.packets_s, whole, whole)
    from ...engine.results.udp.datagram_sums import DatagramSum  # the app's first frame does not need it

    received = [readings.meter.shown.received[flow] for flow in direction.flows]
    sums = DatagramSum()
    for each in received:
        if each.datagrams is not None:
            sums.extend(each.datagrams)
    packets_s = per_second(sums.in_time, max(each.span_ns for each in received))
    now = sums.summary
    return DatagramReading(direction, packets_s, now, _since_change(view, readings, direction) or now)


def _since_change(
    view: "CockpitSnapshot", readings: "LiveReadings", direction: Direction
) -> "DatagramSummary | None":
    """Return the datagrams of the current period without its warm-up; None before the first."""
    interim = view.interim_summary
    if interim is None or readings.in_warmup or not interim.periods:
        return None
    period = interim.periods[-1]
    measured = period.measured[direction]
    return measured.datagrams if measured is not None and period.settings == readings.settings else None
