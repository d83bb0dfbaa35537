"""Two runs beside each other: what differs, and whether the runs can show that it does.

Pure. `compare(first, second)` takes two summaries, as `replay(log.events(run_id)).summary()` gives them, and
returns a Comparison: which settings are not the same, and a Figure for everything that either run measured. A
figure's `difference` is the second run's value against the first one's, in percent. A rate's has a 95 % interval,
made of both rates' own (interval.py) by Welch's method on the logarithm of their ratio; where that interval holds
0, the runs show no difference, however the two numbers look. CPU, TCP and latency percentiles have no interval
here: `is_shown` is None, the numbers stand side by side, and nothing is claimed.

Each comparison is a statement of its own at 95 %: of twenty pairs of runs that are alike, one will seem to differ.
What changes between two runs by itself (another hour, another load) is in no run's interval; runs that take turns
tell more than two long ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Final, Literal

from ..model.plan import Direction, Plan
from .confidence import CONFIDENCE, Estimate, student_t
from .json_document import DIRECTION_KEYS
from .summary import CpuSummary, Measurement, Summary

FigureUnit = Literal["bit_s", "transactions_s", "ns", "us", "percent", "msec", "count"]
_MOST_EXPONENT: Final = 50.0  # beyond that an interval says nothing any more
# Fields of Plan and Settings that make two runs of the same link different ones.
_PLAN_FIELDS: Final = ("workload", "block_bytes", "mode", "socket", "workers", "near_cores", "far_cores", "burst")
_SETTINGS_FIELDS: Final = ("direction", "sessions", "window_bytes")


@dataclass(frozen=True, slots=True)
class Difference:
    """How much a second value is more than a first one, in percent; less is negative.

    `low` and `high` are the ends of the interval of that; None where neither is known.
    """

    percent: float
    low: float | None = None
    high: float | None = None

    @property
    def is_significant(self) -> bool | None:
        """Whether the interval leaves no doubt that the two differ; None where there is no interval."""
        if self.low is None or self.high is None:
            return None
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was measured, of both runs; None for a run that did not.

    `key` is where it stands in a run's document, such as `measured.out.mbit_s`; `unit` is what the values here are
    in. `first_steady` and `second_steady` are the values with their errors.
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
    """A second run against a first one. `changed` names the fields of plan and settings that are not the same."""

    first: Plan
    second: Plan
    changed_fields: tuple[str, ...]
    figures: tuple[Figure, ...]


def compare_estimates(first: Estimate, second: Estimate, confidence: float = CONFIDENCE) -> Difference | None:
    """Return the second mean against the first, with its interval; None where a mean is of nothing."""
    if first.mean <= 0 or second.mean <= 0:
        return None
    ratio = second.mean / first.mean
    parts = [(one.standard_error / one.mean) ** 2 for one in (first, second)]
    squares = sum(parts)
    if not squares:
        exact = 100 * (ratio - 1)
        return Difference(exact, exact, exact)
    # Welch and Satterthwaite: how well the error of a difference is known.
    degrees = squares**2 / sum(
        part**2 / one.degrees_of_freedom for part, one in zip(parts, (first, second), strict=True)
    )
    reach = min(_MOST_EXPONENT, student_t(max(1.0, degrees), confidence) * sqrt(squares))
    low, high = (100 * (exp(log(ratio) + sign * reach) - 1) for sign in (-1, 1))
    return Difference(100 * (ratio - 1), low, high)


def compare(first: Summary, second: Summary) -> Comparison:
    """Return the second run against the first."""
    return Comparison(
        first.plan, second.plan, changed_fields(first.plan, second.plan), tuple(_figures(first, second))
    )


def changed_fields(first: Plan, second: Plan) -> tuple[str, ...]:
    """Return which fields of two plans and their settings differ, those that a person changes most first."""
    changed = [name for name in _SETTINGS_FIELDS if getattr(first.settings, name) != getattr(second.settings, name)]
    changed += [name for name in _PLAN_FIELDS if getattr(first, name) != getattr(second, name)]
    if first.transaction_sizes != second.transaction_sizes:
        changed.append("sizes")
    return tuple(changed)


def _figures(first: Summary, second: Summary) -> Iterator[Figure]:
    pairs = {flow: (first.measured[flow], second.measured[flow]) for flow in Direction}
    both = [flow for flow in Direction.DUPLEX.flows if all(pairs[flow])]
    either = [flow for flow in Direction.DUPLEX.flows if any(pairs[flow])]
    # The total tells something of its own where both directions ran, and where the runs have none in common.
    rows = [*either, Direction.DUPLEX] if len(either) > 1 or not both else either
    for name, direction in DIRECTION_KEYS.items():
        if direction in rows:
            yield from _rates(f"measured.{name}", *pairs[direction])
    for name, one, other in (
        ("near", first.near_cpu, second.near_cpu),
        ("far", first.far_cpu, second.far_cpu),
    ):
        yield from _cpu(f"cpu.{name}", one, other)
    yield _plain("tcp.retransmits", "count", first.tcp.retransmits, second.tcp.retransmits)
    yield _plain("tcp.rtt_us", "us", first.tcp.rtt_us, second.tcp.rtt_us)


def _rates(key: str, first: Measurement | None, second: Measurement | None) -> Iterator[Figure]:
    one, other = first and first.estimate, second and second.estimate
    yield _figure(f"{key}.mbit_s", "bit_s", first and first.bit_s, second and second.bit_s, one, other)
    transactions = first and first.transactions_s, second and second.transactions_s
    if transactions == (None, None):
        return
    steady = first and first.transactions_estimate, second and second.transactions_estimate
    yield _figure(f"{key}.transactions_s", "transactions_s", *transactions, *steady)
    latency = first and first.latency, second and second.latency
    for name in ("p50", "p99"):
        values = [one and getattr(one, f"{name}_ns") for one in latency]
        yield _plain(f"{key}.latency_us.{name}", "ns", *values)


def _cpu(key: str, first: CpuSummary, second: CpuSummary) -> Iterator[Figure]:
    yield _plain(f"{key}.host_percent", "percent", first.host_percent, second.host_percent)
    yield _plain(f"{key}.msec_per_mib", "msec", first.msec_per_mib, second.msec_per_mib)
    each = first.msec_per_transaction, second.msec_per_transaction
    if each != (None, None):
        yield _plain(f"{key}.msec_per_transaction", "msec", *each)


def _plain(key: str, unit: FigureUnit, first: float | None, second: float | None) -> Figure:
    return _figure(key, unit, first, second, None, None)


def _figure(
    key: str,
    unit: FigureUnit,
    first: float | None,
    second: float | None,
    one: Estimate | None,
    other: Estimate | None,
) -> Figure:
    found: Difference | None = None
    if one is not None and other is not None:
        found = compare_estimates(one, other)
    elif first is not None and first == second:
        found = Difference(0.0)
    elif first and second is not None:
        found = Difference(100 * (second / first - 1))
    return Figure(key, unit, first, second, found, one, other)
