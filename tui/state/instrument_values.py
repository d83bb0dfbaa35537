"""The values that instruments show: frozen, without a connection, a clock or a widget.

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
    """Where the app stands."""

    IDLE = auto()
    STARTING = auto()
    RUNNING = auto()
    STOPPING = auto()
    DONE = auto()


@dataclass(frozen=True, slots=True)
class RunProblem:
    """Why there is no run: in two words, as a title, and with what to do about it."""

    status: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class FlowReading:
    """A gauge's values: the rate of one direction, or of both (`direction` duplex), and what to expect.

    `peak` is the best that is known of the link, with as many sessions as that takes. `sure_percent` is half of the
    rate's 95 % interval, where it is a mean.
    Where transactions are what counts, `answer_bits` is the payload of each, and their `latency` goes with them.
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
        """Return a rate of this gauge without its unit: in what it counts in, or in transactions a second."""
        if self.response_bits is None:
            return numbers.rate_in_unit(bit_s, self.units, places)
        return numbers.transaction_number(None if bit_s is None else bit_s / self.response_bits)

    @property
    def percent(self) -> float | None:
        """Percent of the expected rate; nothing where nothing is expected."""
        return numbers.share(self.bit_s, self.expected.bit_s if self.expected else None)

    @property
    def peak_above_expected(self) -> ExpectedRate | None:
        """The peak, where it is more than what is expected."""
        if self.peak is None or self.expected is None or self.peak.bit_s <= self.expected.bit_s:
            return None
        return self.peak


@dataclass(frozen=True, slots=True)
class CpuReading:
    """CPU of one end; cores are percents, core numbers count from 0 as the kernel's do."""

    end: End
    host_percent: float | None = None
    hottest_core: int | None = None
    hottest_percent: float | None = None
    hottest_kernel_percent: float | None = None
    msec_per_mib: float | None = None
    cores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session in one direction: the receiver's rate, the sender's TCP."""

    direction: Direction
    session: int
    bit_s: float | None
    rtt_us: int | None
    retransmits: int | None
    cwnd_bytes: int | None


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """One interval in the plot; `at_s` is its end."""

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
    """The stretch of a plot between two changes: settings, what they let expect, and the points."""

    from_s: float
    settings: Settings
    expectation: Expectation
    points: dict[Direction, list[PlotPoint]] = field(default_factory=dict[Direction, list[PlotPoint]])
    until_s: float | None = None

    def expected_rate(self) -> ExpectedRate | None:
        """Return the rate that the plot's line stands at."""
        return self.expectation[self.settings.direction]


def response_bits_of(plan: Plan) -> int | None:
    """Return the payload of a transaction, where a gauge is to count transactions."""
    return None if plan.workload.is_bulk else plan.transaction_sizes[1] * 8


def period_averages(periods: Sequence[PlotPeriod], summary: Summary | None) -> list[float | None]:
    """Return what each leg averages, warm-up left out: the same figures that the run is judged by.

    A summary joins legs that follow one another under the same settings; a leg that counts nothing yet has None.
    """
    stretches = summary.periods if summary is not None else ()
    found: list[float | None] = []
    at = -1
    for number, leg in enumerate(periods):
        at += number == 0 or leg.settings != periods[number - 1].settings
        held = at < len(stretches) and stretches[at].settings == leg.settings
        found.append(period_bit_s(stretches[at]) if held else None)
    return found


def period_bit_s(period: Period) -> float | None:
    """Return the rate of a stretch, of both directions together; None while it counts nothing."""
    parts = [one for one in (period.measured.out, period.measured.in_) if one is not None and one.span_ns > 0]
    return sum(one.bit_s for one in parts) if parts else None
