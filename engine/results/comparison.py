"""The comparison of two runs: their differences, and whether these are significant.

Pure. `compare` takes two summaries and returns the settings that differ and a Figure for every measured value. A
figure's `difference` is the second value against the first, in percent. The difference of two rates has a 95 %
interval, computed from both estimates by Welch's method on the logarithm of their ratio. If it contains 0, the
difference is not significant. CPU, TCP and latency percentiles have no interval: their `is_significant` is None.

Each comparison holds at 95 % by itself: of twenty pairs of equal runs, one seems to differ. The interval of a run
does not include changes between runs (another hour, another load). Several alternating runs are better evidence
than two long ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Final, Literal

from ..model.directions import Direction
from ..model.plan import Plan
from .confidence import CONFIDENCE, Estimate, student_t
from .rate_and_loss import change_percent
from .responsiveness.grade import GRADES
from .responsiveness.result import Responsiveness
from .summary import CpuSummary, Measurement, Summary

FigureUnit = Literal[
    "bit_s",
    "transactions_s",
    "ns",
    "us",
    "percent",
    "msec",
    "count",
    "loss_percent",
    "delay_ns",
    "per_minute",
    "rise_ns",
    "grade",
]
_MAX_EXPONENT: Final = 50.0  # a wider interval has no meaning
# The fields of Plan and Settings that distinguish two runs of the same link.
_PLAN_FIELDS: Final = (
    "workload",
    "block_bytes",
    "mode",
    "socket",
    "workers",
    "near_cores",
    "far_cores",
    "burst",
    "busy_poll",
    "rate_bit_s",
    "bytes_limit",
    "responsiveness",
)
_FLOWS: Final = {"out": Direction.OUT, "in": Direction.IN, "total": Direction.DUPLEX}
_LOADS: Final = {Direction.OUT: "out", Direction.IN: "in", Direction.DUPLEX: "both"}
_SETTINGS_FIELDS: Final = ("direction", "sessions", "window_bytes", "datagram_bytes")


@dataclass(frozen=True, slots=True)
class Difference:
    """A second value's difference from the first, in percent of the first.

    `low` and `high` are the ends of its confidence interval; None if that is unknown.
    """

    percent: float
    low: float | None = None
    high: float | None = None

    @property
    def is_significant(self) -> bool | None:
        """Whether the interval excludes 0; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured quantity of both runs; the value is None for a run that did not measure it.

    `key` is its path in a run's document, such as `measured.out.mbit_s`; `unit` is the unit of the values here. The
    value of a grade is its place in GRADES. `first_estimate` and `second_estimate` are the values with their
    errors.
    """

    key: str
    unit: FigureUnit
    first: float | None
    second: float | None
    difference: Difference | None = None
    first_estimate: Estimate | None = None
    second_estimate: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A second run against a first one; `changed_fields` are the fields of plan and settings that differ."""

    first: Plan
    second: Plan
    changed_fields: tuple[str, ...]
    figures: tuple[Figure, ...]


def compare_estimates(first: Estimate, second: Estimate, confidence: float = CONFIDENCE) -> Difference | None:
    """Return the second mean's difference from the first, with its interval; None if a mean is 0."""
    if first.mean <= 0 or second.mean <= 0:
        return None
    estimates = (first, second)
    parts = [(estimate.standard_error / estimate.mean) ** 2 for estimate in estimates]
    squares = sum(parts)
    if not squares:
        exact = change_percent(first.mean, second.mean)
        return Difference(exact, exact, exact)
    # The degrees of freedom of the difference, by Welch and Satterthwaite.
    degrees = squares**2 / sum(
        part**2 / estimate.degrees_of_freedom for part, estimate in zip(parts, estimates, strict=True)
    )
    reach = min(_MAX_EXPONENT, student_t(max(1.0, degrees), confidence) * sqrt(squares))
    low, high = (100 * (exp(log(second.mean / first.mean) + sign * reach) - 1) for sign in (-1, 1))
    return Difference(change_percent(first.mean, second.mean), low, high)


def compare(first: Summary, second: Summary) -> Comparison:
    """Return the second run against the first."""
    return Comparison(
        first.plan, second.plan, changed_fields(first.plan, second.plan), tuple(_figures(first, second))
    )


def changed_fields(first: Plan, second: Plan) -> tuple[str, ...]:
    """Return the fields in which two plans and their settings differ, the most commonly changed first."""
    changed = [name for name in _SETTINGS_FIELDS if getattr(first.settings, name) != getattr(second.settings, name)]
    rates = [(each.rate_bit_s, each.searches_rate, each.floods) for each in (first.settings, second.settings)]
    if rates[0] != rates[1]:
        changed.append("sending_rate")
    changed += [name for name in _PLAN_FIELDS if getattr(first, name) != getattr(second, name)]
    if first.transaction_sizes != second.transaction_sizes:
        changed.append("sizes")
    return tuple(changed)


def _figures(first: Summary, second: Summary) -> Iterator[Figure]:
    pairs = {flow: (first.measured[flow], second.measured[flow]) for flow in Direction.DUPLEX.flows}
    pairs[Direction.DUPLEX] = first.total_of_one_time, second.total_of_one_time
    both = [flow for flow in Direction.DUPLEX.flows if all(pairs[flow])]
    either = [flow for flow in Direction.DUPLEX.flows if any(pairs[flow])]
    # The total adds information if both directions ran, or if the runs have no direction in common.
    rows = [*either, Direction.DUPLEX] if len(either) > 1 or not both else either
    # The mean over phases of several directions is not a rate of the link. Each load has its own rate, below.
    has_phases = first.plan.has_phases or second.plan.has_phases
    for name, direction in _FLOWS.items():
        if direction in rows and not has_phases:
            yield from _rates(f"measured.{name}", *pairs[direction])
            yield from _datagrams(f"measured.{name}", *pairs[direction])
    yield from _responsiveness(first.responsiveness, second.responsiveness)
    yield from _cpu("cpu.near", first.near_cpu, second.near_cpu)
    yield from _cpu("cpu.far", first.far_cpu, second.far_cpu)
    yield _plain("tcp.retransmits", "count", first.tcp.retransmits, second.tcp.retransmits)
    yield _plain("tcp.rtt_us", "us", first.tcp.rtt_us, second.tcp.rtt_us)


def _rates(key: str, first: Measurement | None, second: Measurement | None) -> Iterator[Figure]:
    estimates = first and first.estimate, second and second.estimate
    yield _figure(f"{key}.mbit_s", "bit_s", first and first.bit_s, second and second.bit_s, *estimates)
    transactions = first and first.transactions_s, second and second.transactions_s
    if transactions == (None, None):
        return
    estimates = first and first.transactions_estimate, second and second.transactions_estimate
    yield _figure(f"{key}.transactions_s", "transactions_s", *transactions, *estimates)
    latencies = first and first.latency, second and second.latency
    for name in ("p50", "p99"):
        values = [latency and getattr(latency, f"{name}_ns") for latency in latencies]
        yield _plain(f"{key}.latency_us.{name}", "ns", *values)


def _datagrams(key: str, first: Measurement | None, second: Measurement | None) -> Iterator[Figure]:
    """Yield the figures of datagrams; none for two runs of TCP."""
    parts = first and first.datagrams, second and second.datagrams
    if parts == (None, None):
        return
    yield _plain(f"{key}.packets_s", "count", first and first.packets_s, second and second.packets_s)
    yield _plain(f"{key}.udp.lost_percent", "loss_percent", *(part and part.lost_percent for part in parts))
    yield _plain(f"{key}.udp.jitter_ms.mean", "delay_ns", *(part and part.jitter_mean_ns for part in parts))
    delays = [part and part.delay_variation for part in parts]
    yield _plain(f"{key}.udp.delay_variation_ms.p99", "delay_ns", *(delay and delay.p99_ns for delay in delays))


def _responsiveness(first: Responsiveness | None, second: Responsiveness | None) -> Iterator[Figure]:
    """Yield latency under load, without intervals: how a queue varies in a run does not predict the next run."""
    results = first, second
    if results == (None, None):
        return
    for direction, name in _LOADS.items():
        loads = [result and result.load_of(direction) for result in results]
        if any(loads):
            key = f"responsiveness.{name}"
            yield _plain(f"{key}.mbit_s", "bit_s", *(load and load.bit_s[direction] for load in loads))
            yield _plain(f"{key}.rise_ms", "rise_ns", *(load and load.rise_ns for load in loads))
    idle = [result and result.idle for result in results]
    yield _plain("responsiveness.idle_ms.mean", "delay_ns", *(latency and latency.mean_ns for latency in idle))
    yield _plain("responsiveness.rise_ms", "rise_ns", *(result and result.rise_ns for result in results))
    grades = [None if not result or not result.grade else GRADES.index(result.grade) for result in results]
    yield Figure("responsiveness.grade", "grade", grades[0], grades[1])
    trips = [result and result.round_trips for result in results]
    key = "responsiveness.round_trips.per_minute"
    yield _plain(key, "per_minute", *(each and each.per_minute for each in trips))


def _cpu(key: str, first: CpuSummary, second: CpuSummary) -> Iterator[Figure]:
    yield _plain(f"{key}.host_percent", "percent", first.host_percent, second.host_percent)
    yield _plain(f"{key}.msec_per_mib", "msec", first.msec_per_mib, second.msec_per_mib)
    costs = first.msec_per_transaction, second.msec_per_transaction
    if costs != (None, None):
        yield _plain(f"{key}.msec_per_transaction", "msec", *costs)


def _plain(key: str, unit: FigureUnit, first: float | None, second: float | None) -> Figure:
    return _figure(key, unit, first, second, None, None)


def _figure(
    key: str,
    unit: FigureUnit,
    first: float | None,
    second: float | None,
    first_estimate: Estimate | None,
    second_estimate: Estimate | None,
) -> Figure:
    difference: Difference | None = None
    if first_estimate is not None and second_estimate is not None:
        difference = compare_estimates(first_estimate, second_estimate)
    elif first is not None and first == second:
        difference = Difference(0.0)
    elif first and second is not None:
        difference = Difference(change_percent(first, second))
    return Figure(key, unit, first, second, difference, first_estimate, second_estimate)
