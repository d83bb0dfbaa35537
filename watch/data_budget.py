"""The data budget of a watch: what this month's tests and probes cost, and whether one more fits. Pure.

A month is a calendar month in UTC. The bytes are payload of both directions, as the ends of a test count them.
Headers and retransmissions add a few percent on a sound link. All of it follows from the events of the journal, so
that a restart spends nothing twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from ..engine.model.plan import SECOND_NS, Plan
from .events import CheckEnded, CheckSkipped, DataUsed, NoticeTopic, PeerData, ProbeEnded, WatchEvent, WatchNotice
from .watch_plan import WatchedPeer, WatchPlan

LIKE_LAST_TESTS: Final = 3
"""The next test will cost as much as the most expensive of this many tests before it."""


@dataclass(frozen=True, slots=True)
class MonthUse:
    """The cost of a month's tests and probes so far.

    Args:
        month: the calendar month, as `2026-11`; empty before the first event.
        bytes: the payload by the name of the peer, including peers that are no longer watched.
        told: the budgets that a notice of this month has called spent: names of peers, None for the whole watch.
    """

    month: str = ""
    bytes: Mapping[str, int] = field(default_factory=dict[str, int])
    told: frozenset[str | None] = frozenset()

    @property
    def total(self) -> int:
        """The payload of all peers."""
        return sum(self.bytes.values())

    def of(self, peer: str) -> int:
        """Return the payload of a peer."""
        return self.bytes.get(peer, 0)

    def at(self, now_s: float) -> "MonthUse":
        """Return the use of the month that a time is in: nothing yet if that is another month."""
        month = month_of(now_s)
        return self if month == self.month else MonthUse(month)

    def as_event(self, now_s: float) -> DataUsed:
        """Return the use of this month as an event from which a restart goes on."""
        use = self.at(now_s)
        return DataUsed(now_s, use.month, tuple(PeerData(*item) for item in use.bytes.items()))

    def after(self, event: WatchEvent) -> "MonthUse":
        """Return the use after an event."""
        match event:
            case CheckEnded() | ProbeEnded():
                use = self.at(event.at_s)
                return replace(use, bytes={**use.bytes, event.peer: use.of(event.peer) + event.result.bytes})
            case DataUsed() if event.month == month_of(event.at_s):
                return replace(self.at(event.at_s), bytes={each.peer: each.bytes for each in event.peers})
            case WatchNotice(topic=NoticeTopic.BUDGET):
                use = self.at(event.at_s)
                return replace(use, told=use.told | {event.peer})
            case CheckSkipped():
                return self.at(event.at_s)
            case _:
                return self


@dataclass(frozen=True, slots=True)
class Shortage:
    """A budget that has no room for a test.

    Args:
        peer: the peer that has the budget; None for the whole watch.
        budget_bytes: the budget.
        used_bytes: the part of it that is spent this month.
        cost_bytes: the probable cost of the test.
        month: the month.
    """

    peer: str | None
    budget_bytes: int
    used_bytes: int
    cost_bytes: int
    month: str

    def notice(self, at_s: float) -> WatchNotice:
        """Return the notice for the user. Give it once a month: if `peer` is not in `MonthUse.told`."""
        whose = "the watch" if self.peer is None else self.peer
        left = max(0, self.budget_bytes - self.used_bytes)
        text = (
            f"data budget of {whose} for {self.month}: {_size(left)} of {_size(self.budget_bytes)} are left, "
            f"a test takes about {_size(self.cost_bytes)}; tests that do not fit are skipped until next month "
            "(UTC)"
        )
        return WatchNotice(at_s, text, self.peer, NoticeTopic.BUDGET)


def month_of(at_s: float) -> str:
    """Return the calendar month, in UTC, of a time in seconds since 1970: `2026-11`."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m}"


def find_shortage(
    plan: WatchPlan, peer: WatchedPeer, cost_bytes: int | None, use: MonthUse, now_s: float
) -> Shortage | None:
    """Return the budget that has no room for a test or a probe; None if it fits.

    An unknown cost (None) fits while anything is left.
    """
    use = use.at(now_s)
    for whose, budget, used in (
        (peer.name, peer.budget_bytes, use.of(peer.name)),
        (None, plan.budget_bytes, use.total),
    ):
        least = 1 if cost_bytes is None else max(1, cost_bytes)
        if budget is not None and used + least > budget:
            return Shortage(whose, budget, used, cost_bytes or 0, use.month)
    return None


def expected_cost(peer: WatchedPeer, last: Sequence[CheckEnded]) -> int | None:
    """Return the payload that the next test of a peer will probably cost; None before the first one.

    That is the maximum that its limits allow, or the cost of the most expensive of its last tests with a result,
    whichever is less.

    Args:
        peer: the peer.
        last: its last tests, the oldest first, whether they decided their cycle or not.
    """
    limit = most_bytes(peer.plan)
    costs = [event.result.bytes for event in last[-LIKE_LAST_TESTS:] if event.result.bytes]
    known = [cost for cost in (limit, max(costs, default=None)) if cost is not None]
    return min(known, default=None)


def most_bytes(plan: Plan) -> int | None:
    """Return the maximum payload by a test's limits of rate and bytes, both directions; None without limits."""
    flows = len(plan.settings.direction.flows)
    rates = (plan.rate_bit_s, _datagram_rate(plan))
    limits = [rate * plan.duration_ns // (8 * SECOND_NS) for rate in rates if rate and plan.duration_ns is not None]
    if plan.bytes_limit is not None:
        limits.append(plan.bytes_limit)
    return min(limits) * flows if limits else None


def _datagram_rate(plan: Plan) -> int | None:
    """Return the rate of datagrams; for a search its maximum rate."""
    settings = plan.settings
    return settings.search_max_bit_s if settings.searches_rate else settings.rate_bit_s


def _size(count: int) -> str:
    for unit, factor in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"  # by 1,024, like the suffixes of a plan: 50G are 50 GiB
    return f"{count} B"
