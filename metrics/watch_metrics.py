"""The metrics of a watch, read from the status of its peers at the moment of a scrape. Pure.

An unknown value has no reading, neither 0 nor NaN. A peer that a reload removed has no reading from then on.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from .. import __version__
from ..engine.model.directions import Direction
from ..engine.model.plan import Plan
from ..watch.data_budget import MonthUse
from ..watch.events import CheckResult, CheckVerdict, Metric
from ..watch.watch_plan import WatchedPeer, WatchPlan
from ..watch.watch_state import PeerStatus
from . import families
from .families import Family, Reading

_GIGA: Final = 1e9
_BITS: Final = 8
_METRIC_NAMES: Final = {
    Metric.GOODPUT_BIT_S: "goodput",
    Metric.LATENCY_S: "latency",
    Metric.LOSS: "loss",
    Metric.RETRANSMITS: "retransmits",
}
_DIRECTIONS: Final = {True: "worse", False: "better"}


def read_watch(
    plan: WatchPlan, statuses: Mapping[str, PeerStatus], use: MonthUse, now_s: float
) -> Iterator[Reading]:
    """Yield every known reading of a watch now, in seconds since 1970."""
    yield Reading(families.BUILD_INFO, 1, (__version__,))
    if plan.budget_bytes is not None:
        yield Reading(families.WATCH_BUDGET, plan.budget_bytes, (plan.name,))
    for watched in plan.peers:
        status = statuses.get(watched.name) or PeerStatus(watched.name)
        labels = (plan.name, watched.name)
        yield from _read_marks(watched, labels)
        yield from _read_check(status, watched.plan, labels)
        yield from _read_probe(status, labels)
        yield from _read_counts(status, labels)
        yield from _read_shifts(status, labels)
        if watched.plan.path:
            yield from _read_paths(status, labels)
        yield from _read_data(use, watched.name, now_s, labels)
        yield from _read_times(status, labels)


def _read_shifts(status: PeerStatus, labels: tuple[str, ...]) -> Iterator[Reading]:
    """Yield the number of changes of each kind, 0 included."""
    for metric, name in _METRIC_NAMES.items():
        for is_worse, direction in _DIRECTIONS.items():
            yield Reading(
                families.SHIFTS, status.change_counts.get((metric, is_worse), 0), (*labels, name, direction)
            )


def _read_paths(status: PeerStatus, labels: tuple[str, ...]) -> Iterator[Reading]:
    """Yield the changes of the path of each direction, 0 included, and its hops in the last test."""
    for direction in Direction.DUPLEX.flows:
        _, count = status.path_changes.get(direction, (None, 0))
        yield Reading(families.PATH_CHANGES, count, (*labels, direction.value))
    for route in () if status.last_check is None else status.last_check.result.routes:
        yield Reading(families.PATH_HOPS, len(route.hops), (*labels, route.direction.value))


def _read_marks(watched: WatchedPeer, labels: tuple[str, ...]) -> Iterator[Reading]:
    if watched.preset is not None:
        yield Reading(families.PASS_MARK, watched.pass_percent / 100, labels)
    if watched.budget_bytes is not None:
        yield Reading(families.PEER_BUDGET, watched.budget_bytes, labels)


def _read_check(status: PeerStatus, plan: Plan, labels: tuple[str, ...]) -> Iterator[Reading]:
    """Yield the readings of the last test that counted."""
    yield Reading(families.CHECK_RUNNING, status.running_since_s is not None, labels)
    if status.last_skip is not None:
        yield Reading(families.CHECK_SKIPPED, 1, (*labels, status.last_skip.reason))
    if status.last_check is None:
        return
    result = status.last_check.result
    for verdict in CheckVerdict:
        yield Reading(families.CHECK_VERDICT, result.verdict is verdict, (*labels, verdict))
    goodput, divisor = families.CHECK_GOODPUT, _BITS
    if plan.workload.is_transactional:
        goodput, divisor = families.CHECK_TRANSACTIONS, 1
    yield from _read_figure(result, Metric.GOODPUT_BIT_S, goodput, labels, divisor)
    yield from _read_figure(result, Metric.LOSS, families.CHECK_LOSS, labels)
    yield from _read_figure(result, Metric.RETRANSMITS, families.CHECK_RETRANSMITS, labels, _GIGA)
    yield from _read_known(
        families.CHECK_EXPECTED, None if result.percent is None else result.percent / 100, labels
    )
    if result.why is not None:
        yield Reading(families.CHECK_FINDING, 1, (*labels, result.why))


def _read_probe(status: PeerStatus, labels: tuple[str, ...]) -> Iterator[Reading]:
    """Yield the readings of the last probe."""
    if status.last_probe is None:
        return
    result = status.last_probe.result
    yield Reading(families.PROBE_SUCCESS, result.verdict is not CheckVerdict.FAILED, labels)
    yield from _read_figure(result, Metric.LATENCY_S, families.PROBE_LATENCY, labels)
    yield from _read_figure(result, Metric.LOSS, families.PROBE_LOSS, labels)


def _read_counts(status: PeerStatus, labels: tuple[str, ...]) -> Iterator[Reading]:
    for verdict, count in zip(CheckVerdict, status.checks, strict=True):
        yield Reading(families.CHECKS, count, (*labels, verdict))
    yield Reading(families.MISSED, status.missed, labels)
    yield Reading(families.RETESTS, status.retests, labels)
    yield Reading(families.FLAPS, status.flaps, labels)


def _read_data(use: MonthUse, peer: str, now_s: float, labels: tuple[str, ...]) -> Iterator[Reading]:
    """Yield the data of this month. The use is of an earlier month until something is sent in this one."""
    yield Reading(families.DATA, use.of(peer), labels)
    yield Reading(families.MONTH_DATA, use.at(now_s).of(peer), labels)


def _read_times(status: PeerStatus, labels: tuple[str, ...]) -> Iterator[Reading]:
    last_check, last_probe = status.last_check, status.last_probe
    yield from _read_known(families.LAST_CHECK, None if last_check is None else last_check.at_s, labels)
    yield from _read_known(families.NEXT_CHECK, status.next_check_s, labels)
    yield from _read_known(families.LAST_PROBE, None if last_probe is None else last_probe.at_s, labels)
    yield from _read_known(families.NEXT_PROBE, status.next_probe_s, labels)


def _read_figure(
    result: CheckResult, metric: Metric, family: Family, labels: tuple[str, ...], divisor: float = 1
) -> Iterator[Reading]:
    figure = result.figure(metric)
    yield from _read_known(family, None if figure is None else figure / divisor, labels)


def _read_known(family: Family, value: float | None, labels: tuple[str, ...]) -> Iterator[Reading]:
    """Yield a reading of a value, none if it is unknown."""
    if value is not None:
        yield Reading(family, value, labels)
