"""The state of a watched peer, computed from the events of its journal. Pure.

The session, the metrics and the screen share this: after a restart all know what they knew before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, TypeVar

from .events import (
    ChangeFound,
    CheckBegan,
    CheckEnded,
    CheckResult,
    CheckSkipped,
    ChecksMissed,
    CheckVerdict,
    DataUsed,
    Metric,
    ProbeEnded,
    WatchEnded,
    WatchEvent,
    WatchStarted,
)

MAX_CHANGES: Final = 100
MAX_OF_A_DAY: Final = 2_880
"""If a day has more than twice this many tests or probes, one each half minute is kept."""
_DAY_S: Final = 86_400.0
_STEP_S: Final = _DAY_S / MAX_OF_A_DAY
_OfDay = TypeVar("_OfDay", CheckEnded, ProbeEnded)


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """The state of a peer: one value, since a test, a probe or a change moves several figures at once.

    Args:
        name: the peer's name.
        last_check: the newest test that decided its cycle; None before the first.
        last_attempt: the newest test, whether it decided its cycle or not.
        last_probe: the newest probe.
        last_skip: the newest skipped test; None if a test has ended since.
        running_since_s: when the running test began; None between tests.
        next_check_s: when the next test is due; None until it is known.
        next_probe_s: when the next probe is due; None without probes.
        month: the calendar month of `month_bytes`, as `2026-11`.
        month_bytes: the payload of this month's tests and probes.
        checks: the tests that have ended since the watch's first start, by verdict: good, below, failed.
        missed: due tests that were not carried out before the next one was due.
        retests: how many of the ended tests were repetitions.
        flaps: cycles whose first test was below its mark and whose repetition was not.
        changes: the newest MAX_CHANGES changes, the oldest first.
        change_counts: the number of changes by metric, and by whether they were for the worse.
        day: the tests of the last 24 hours that decided, the oldest first; of very many, one each half minute.
        probes: the probes of the last 24 hours, likewise.
    """

    name: str
    last_check: CheckEnded | None = None
    last_attempt: CheckEnded | None = None
    last_probe: ProbeEnded | None = None
    last_skip: CheckSkipped | None = None
    running_since_s: float | None = None
    next_check_s: float | None = None
    next_probe_s: float | None = None
    month: str | None = None
    month_bytes: int = 0
    checks: tuple[int, int, int] = (0, 0, 0)
    missed: int = 0
    retests: int = 0
    flaps: int = 0
    changes: tuple[ChangeFound, ...] = field(default=())
    change_counts: Mapping[tuple[Metric, bool], int] = field(default_factory=dict[tuple[Metric, bool], int])
    day: tuple[CheckEnded, ...] = field(default=())
    probes: tuple[ProbeEnded, ...] = field(default=())

    def bytes_at(self, now_s: float) -> int:
        """Return the payload of the month that a time is in: 0 if the newest event is of an earlier month."""
        return self.month_bytes if self.month == month_of(now_s) else 0


def month_of(at_s: float) -> str:
    """Return the calendar month, in UTC, of a time in seconds since 1970: `2026-11`."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m}"


def advance(status: PeerStatus, event: WatchEvent) -> PeerStatus:
    """Return the status of a peer after an event; the same status after an event of another peer.

    The events do not say when the next test and probe are due: the caller sets these times.
    """
    match event:
        case WatchStarted() | WatchEnded():
            status = replace(status, running_since_s=None, next_check_s=None, next_probe_s=None)
        case DataUsed(_, month, peers):
            used = {each.peer: each.bytes for each in peers}
            status = replace(status, month=month, month_bytes=used.get(status.name, 0))
        case CheckBegan(peer=status.name):
            status = replace(status, running_since_s=event.at_s)
        case CheckEnded(peer=status.name):
            status = _after_check(status, event)
        case CheckSkipped(peer=status.name):
            status = _after_skip(status, event)
        case ChecksMissed(peer=status.name):
            status = replace(status, missed=status.missed + event.count)
        case ProbeEnded(peer=status.name):
            probes = _of_last_day(status.probes, event)
            status = replace(_with_bytes(status, event.at_s, event.result), last_probe=event, probes=probes)
        case ChangeFound(peer=status.name):
            kind = event.metric, event.is_worse
            counts = {**status.change_counts, kind: status.change_counts.get(kind, 0) + 1}
            status = replace(status, changes=(*status.changes, event)[-MAX_CHANGES:], change_counts=counts)
        case _:
            pass
    return status


def _after_check(status: PeerStatus, event: CheckEnded) -> PeerStatus:
    verdict = event.result.verdict
    counts = zip(CheckVerdict, status.checks, strict=True)
    good, below, failed = (count + (verdict is each) for each, count in counts)
    status = replace(
        _with_bytes(status, event.at_s, event.result),
        running_since_s=None,
        last_attempt=event,
        last_skip=None,
        checks=(good, below, failed),
        retests=status.retests + (event.attempt > 0),
    )
    return _decided(status, event) if event.decides else status


def _after_skip(status: PeerStatus, event: CheckSkipped) -> PeerStatus:
    """Return the status after a skipped test: if it was a repetition, the test before it counts."""
    status, last = replace(status, last_skip=event), status.last_attempt
    if last is None or last.decides or last.cycle_s != event.cycle_s:
        return status
    return _decided(status, replace(last, decides=True))


def _decided(status: PeerStatus, event: CheckEnded) -> PeerStatus:
    # Only a test that was not good is repeated.
    has_flapped = event.attempt > 0 and event.result.verdict is CheckVerdict.GOOD
    day = _of_last_day(status.day, event)
    return replace(status, last_check=event, flaps=status.flaps + has_flapped, day=day)


def _with_bytes(status: PeerStatus, at_s: float, result: CheckResult) -> PeerStatus:
    """Return the status with the payload of a test or probe in its month."""
    month = month_of(at_s)
    return replace(status, month=month, month_bytes=status.bytes_at(at_s) + result.bytes)


def _of_last_day(items: tuple[_OfDay, ...], newest: _OfDay) -> tuple[_OfDay, ...]:
    """Return the items of the 24 hours up to the newest one, including it.

    Items in the future, from a clock that was ahead, go as well.
    """
    first = 0
    while first < len(items) and not newest.at_s - _DAY_S <= items[first].at_s <= newest.at_s + _DAY_S:
        first += 1
    kept = (*items[first:], newest)
    if len(kept) <= 2 * MAX_OF_A_DAY:
        return kept
    steps = {int(item.at_s // _STEP_S): item for item in kept}  # the newest of each
    return tuple(steps.values())
