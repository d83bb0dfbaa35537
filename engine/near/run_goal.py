"""The goals that end a run before its time is up: a number of bytes, or the end of a search for the rate."""

from typing import Final

from ..metering.shared_counters import SharedCounters
from ..model.counters.samples import Sample
from ..model.counters.session_counters import SEARCH_DONE
from ..model.directions import Direction, End, sender_of
from ..model.plan import Plan, Settings
from ..model.run_end import EndText

_QUIET_SAMPLES: Final = 4


class RunGoal:
    """Whether a run has reached its goal: `follow` it with each sample of both ends.

    The limit in bytes applies to each direction, and its receiver counts. The near end's own counters are read at
    any time. The far end's bytes are those of its samples; it takes one as soon as its receivers have all bytes.
    The senders start no more than the limit (workloads/byte_budget.py), and do not repeat what a change of
    settings dropped. So a direction is also over if the sender's kernel has all acknowledgements, and the receiver
    has counted nothing more for some samples.
    """

    def __init__(self, plan: Plan, counters: SharedCounters) -> None:
        self._limit = plan.bytes_limit
        self._counters = counters
        self._near_receives = {flow: sender_of(flow, plan.workload) is End.FAR for flow in Direction.DUPLEX.flows}
        self._reported = dict.fromkeys(Direction.DUPLEX.flows, 0)
        self._received_before = dict.fromkeys(Direction.DUPLEX.flows, -1)
        self._quiet_samples = dict.fromkeys(Direction.DUPLEX.flows, 0)
        self._search_phases: dict[Direction, int] = {}

    def follow(self, sample: Sample, settings: Settings) -> EndText | None:
        """Take a sample of either end; return why the run is over, or None if it goes on."""
        if self._limit is not None:
            if sample.end is End.FAR:
                self._add_reported(sample, self._limit)
            if all(self._is_over(flow, self._limit) for flow in settings.direction.flows):
                return EndText.DURATION_UP
        return EndText.SEARCH_DONE if self._has_searched(sample, settings) else None

    def _add_reported(self, sample: Sample, limit: int) -> None:
        """Add the bytes that the far end has sent and received."""
        for session in sample.sessions:
            self._reported[session.direction] += session.bytes
        for flow, before in self._received_before.items():
            received, sent = self._received_and_sent(flow)
            is_quiet = sent >= limit and received == before
            self._quiet_samples[flow] = self._quiet_samples[flow] + 1 if is_quiet else 0
            self._received_before[flow] = received

    def _is_over(self, flow: Direction, limit: int) -> bool:
        return self._received_and_sent(flow)[0] >= limit or self._quiet_samples[flow] >= _QUIET_SAMPLES

    def _received_and_sent(self, flow: Direction) -> tuple[int, int]:
        counts = self._counters.flow_bytes(flow), self._reported[flow]
        return counts if self._near_receives[flow] else (counts[1], counts[0])

    def _has_searched(self, sample: Sample, settings: Settings) -> bool:
        """Return whether the search for a rate has ended in every direction."""
        if not settings.searches_rate:
            self._search_phases.clear()
            return False
        self._search_phases |= {part.direction: part.search_phase for part in sample.datagrams if part.search_phase}
        return all(self._search_phases.get(flow) == SEARCH_DONE for flow in settings.direction.flows)
