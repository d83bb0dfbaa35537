"""The values of the instruments: no connection, clock or widget.

Pure. `None` is unknown. Rates are bits per second, loads percent.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from ...engine.model.events import ExpectedRate
from ...engine.model.latency_histogram import LatencySummary
from ...engine.model.plan import Direction, End, Plan
from ...engine.results.rate_and_loss import percent_of
from ..words import numbers
from ..words.numbers import RateScale, RateUnit

if TYPE_CHECKING:
    from ...engine.results.responsiveness.result import Responsiveness
    from ...engine.results.summary import DatagramSummary


class Phase(Enum):
    """The phase of the cockpit's run."""

    IDLE = auto()
    STARTING = auto()
    RUNNING = auto()
    STOPPING = auto()
    DONE = auto()

    @property
    def is_busy(self) -> bool:
        """Whether a run is being opened, active or stopping."""
        return self in {Phase.STARTING, Phase.RUNNING, Phase.STOPPING}


class PlotContent(Enum):
    """The quantity that the plot of a run shows."""

    LOAD = auto()  # throughput, and below it latency
    THROUGHPUT = auto()
    LATENCY = auto()
    RTT = auto()
    RETRANSMITS = auto()
    CWND = auto()
    WINDOWS = auto()
    LOSS = auto()
    JITTER = auto()
    DELAY_VARIATION = auto()


def plot_contents(plan: Plan) -> tuple[PlotContent, ...]:
    """Return the contents that the plot of a run goes through, in order."""
    if plan.workload.is_datagram:
        first = (PlotContent.THROUGHPUT, PlotContent.LOSS, PlotContent.JITTER, PlotContent.DELAY_VARIATION)
        return (*first, PlotContent.RTT)
    of_tcp = (PlotContent.RTT, PlotContent.RETRANSMITS, PlotContent.CWND, PlotContent.WINDOWS)
    if plan.responsiveness is not None:
        return (PlotContent.LOAD, PlotContent.THROUGHPUT, PlotContent.LATENCY, *of_tcp)
    return (PlotContent.THROUGHPUT, *of_tcp)


@dataclass(frozen=True, slots=True)
class RunProblem:
    """Why there is no run: a short status, a title, and a text with the remedy."""

    status: str
    title: str
    text: str


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


def peak_above(expected: ExpectedRate | None, peak: ExpectedRate | None) -> ExpectedRate | None:
    """Return the peak if it exceeds the expected rate, else None."""
    return peak if peak and expected and peak.bit_s > expected.bit_s else None


def flow_scale(units: RateUnit, unit_bit_s: float, response_bits: int | None) -> RateScale:
    """Return the unit of rates as high as `unit_bit_s`; with `response_bits`, transactions a second."""
    if response_bits is not None:
        return RateScale("trans/s", response_bits)
    return numbers.rate_scale(units, unit_bit_s)


class FlowRate(NamedTuple):
    """The rate of a direction or of both together, the expected rate, and the latency of its transactions.

    `margin_percent` is half of the 95 % interval of a mean rate.
    """

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
    def peak_above_expected(self) -> ExpectedRate | None:
        """The peak if it exceeds the expected rate, else None."""
        return peak_above(self.expected, self.peak)


@dataclass(frozen=True, slots=True)
class LatencyReading:
    """The latency under load, the latency before the load (`idle`), and TCP's own round trip."""

    title: str
    latency: LatencySummary | None = None
    idle: LatencySummary | None = None
    rtt_us: int | None = None
    span: str = ""
    rtt_name: str = "RTT as TCP measures it"

    @property
    def load_ratio(self) -> float | None:
        """The median latency under load divided by the idle one; None if either is unknown."""
        if self.latency is None or self.idle is None:
            return None
        return self.latency.p50_ns / self.idle.p50_ns


@dataclass(frozen=True, slots=True)
class CpuReading:
    """The CPU load of one end. `cores` are percents; core numbers are the kernel's."""

    end: End
    host_percent: float | None = None
    hottest_core: int | None = None
    hottest_percent: float | None = None
    hottest_kernel_percent: float | None = None
    msec_per_mib: float | None = None
    cores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session in one direction: the receiver's rate, and the sender's TCP values or the receiver's datagrams."""

    direction: Direction
    session: int
    bit_s: float | None
    rtt_us: int | None
    retransmits: int | None
    cwnd_bytes: int | None
    lost_percent: float | None = None
    jitter_ns: float | None = None
    packets_s: float | None = None


@dataclass(frozen=True, slots=True)
class ChangeMark:
    """A change of settings in the plot, in words."""

    at_s: float
    label: str


class StepState(Enum):
    """Whether a step of the test is over, in progress, to come, or was left out because the test ended early."""

    DONE = auto()
    NOW = auto()
    TO_COME = auto()
    LEFT_OUT = auto()


@dataclass(frozen=True, slots=True)
class LoadStep:
    """A step of the test: the load in a direction, or the idle link (None)."""

    direction: Direction | None
    state: StepState


@dataclass(frozen=True, slots=True)
class ResponsivenessReading:
    """The steps of a responsiveness test in their order, and its results so far; None before the first."""

    steps: tuple[LoadStep, ...]
    result: "Responsiveness | None"
    is_over: bool
