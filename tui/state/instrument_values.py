"""The values of the instruments, as frozen dataclasses: no connection, clock or widget.

Pure. `None` is unknown. Rates are bits per second, loads percent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from ...engine.model.events import Expectation, ExpectedRate
from ...engine.model.latency_histogram import LatencySummary
from ...engine.model.plan import Direction, End, Plan, Settings
from ...engine.results.summary import Period, Summary
from ..text import numbers
from ..text.numbers import RateUnit


class Phase(Enum):
    """The phase of the cockpit's run."""

    IDLE = auto()
    STARTING = auto()
    RUNNING = auto()
    STOPPING = auto()
    DONE = auto()


@dataclass(frozen=True, slots=True)
class RunProblem:
    """The reason for a missing run: a short status, a title, and a text with the remedy."""

    status: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class FlowReading:
    """A gauge's values: the rate of a direction, or of both together (duplex), and the expected rate.

    `peak` is the link's best expected rate with any number of sessions. `margin_percent` is half of the 95 %
    interval of a mean rate. For a gauge of transactions, `response_bits` is the payload of each, and `latency`
    summarizes them.
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

    def number(self, bit_s: float | None, places: int | None = None) -> str:
        """Return a rate without its unit: in the gauge's unit, or in transactions a second."""
        if self.response_bits is None:
            return numbers.rate_in_unit(bit_s, self.units, places)
        return numbers.transaction_number(None if bit_s is None else bit_s / self.response_bits)

    @property
    def percent(self) -> float | None:
        """The rate in percent of the expected rate; None without an expectation."""
        return numbers.share(self.bit_s, self.expected.bit_s if self.expected else None)

    @property
    def peak_above_expected(self) -> ExpectedRate | None:
        """The peak if it exceeds the expected rate, else None."""
        if self.peak is None or self.expected is None or self.peak.bit_s <= self.expected.bit_s:
            return None
        return self.peak


@dataclass(frozen=True, slots=True)
class CpuReading:
    """The CPU load of one end; `cores` are percents, core numbers are the kernel's."""

    end: End
    host_percent: float | None = None
    hottest_core: int | None = None
    hottest_percent: float | None = None
    hottest_kernel_percent: float | None = None
    msec_per_mib: float | None = None
    cores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session in one direction: the receiver's rate and the sender's TCP values."""

    direction: Direction
    session: int
    bit_s: float | None
    rtt_us: int | None
    retransmits: int | None
    cwnd_bytes: int | None


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """An interval in the plot; `at_s` is its end."""

    at_s: float
    bit_s: float
    warmup: bool


@dataclass(frozen=True, slots=True)
class ChangeMark:
    """A change of settings in the plot, in words."""

    at_s: float
    label: str


@dataclass(slots=True)
class PlotPeriod:
    """A period of a plot, between two changes of settings: its settings, expectation and points."""

    from_s: float
    settings: Settings
    expectation: Expectation
    points: dict[Direction, list[PlotPoint]] = field(default_factory=dict[Direction, list[PlotPoint]])
    until_s: float | None = None

    def expected_rate(self) -> ExpectedRate | None:
        """Return the rate of the plot's line for the expectation."""
        return self.expectation[self.settings.direction]


def response_bits_of(plan: Plan) -> int | None:
    """Return the payload bits of a transaction; None if the gauge shows a bit rate."""
    return None if plan.workload.is_bulk else plan.transaction_sizes[1] * 8


def period_averages(periods: Sequence[PlotPeriod], summary: Summary | None) -> list[float | None]:
    """Return the mean rate of each period without warm-up, as the run is judged by; None without samples.

    A summary joins successive periods that have the same settings.
    """
    summarized = summary.periods if summary is not None else ()
    averages: list[float | None] = []
    at = -1
    for number, period in enumerate(periods):
        at += number == 0 or period.settings != periods[number - 1].settings
        is_known = at < len(summarized) and summarized[at].settings == period.settings
        averages.append(period_bit_s(summarized[at]) if is_known else None)
    return averages


def period_bit_s(period: Period) -> float | None:
    """Return the rate of a period, both directions together; None while nothing is measured."""
    directions = (period.measured.out, period.measured.in_)
    rates = [measured.bit_s for measured in directions if measured is not None and measured.span_ns > 0]
    return sum(rates) if rates else None
