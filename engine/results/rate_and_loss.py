"""Rates and percentages of counters that may be unknown, and the loads of cores."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..model.plan import SECOND_NS

if TYPE_CHECKING:  # the command line knows rates, and loads no samples for that
    from ..model.counters.samples import CoreTimes


def bits_per_second(bytes_: float, span_ns: int) -> float | None:
    """Return a rate; None if no time was measured."""
    return bytes_ * 8 * SECOND_NS / span_ns if span_ns > 0 else None


def per_second(count: float | None, span_ns: int) -> float | None:
    """Return how many things there were in a second; None if that is unknown, or no time was measured."""
    return None if count is None or span_ns <= 0 else count * SECOND_NS / span_ns


def percent_of(part: float | None, whole: float | None) -> float | None:
    """Return a part in percent of the whole; None if either is unknown, or the whole is 0."""
    return None if part is None or not whole else 100 * part / whole


def change_percent(before: float, after: float) -> float:
    """Return how much larger the second value is, in percent of the first."""
    return 100 * (after / before - 1)


def msec_each(cpu_ns: float | None, count: float | None) -> float | None:
    """Return the CPU time of each of some things, milliseconds; None if either is unknown, or there were none."""
    return None if cpu_ns is None or not count else cpu_ns / 1e6 / count


def lost_percent(lost: int | None, received: int | None) -> float | None:
    """Return lost datagrams in percent of those that were due; None if that is unknown, or there were none."""
    return None if lost is None or received is None else percent_of(lost, lost + received)


def add_known(total: int | None, value: int | None) -> int | None:
    """Return the sum of the known values; None if both are unknown."""
    return total if value is None else (total or 0) + value


def core_percents(cores: "Sequence[CoreTimes]") -> tuple[float, ...]:
    """Return how busy each core was; the position is the core's number."""
    return tuple(100 * core.busy_fraction for core in cores)


def host_percent(cores: "Sequence[CoreTimes]") -> float | None:
    """Return the mean load of the cores; None if none is known."""
    percents = core_percents([core for core in cores if core.busy_ns + core.idle_ns > 0])
    return sum(percents) / len(percents) if percents else None


def hottest_core_percent(cores: "Sequence[CoreTimes]") -> float | None:
    """Return the load of the busiest core; None if none is known."""
    return None if host_percent(cores) is None else max(core_percents(cores))
