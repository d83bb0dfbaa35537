"""The bytes that the receivers of a run have counted, for a run that ends after a number of them."""

from typing import Final

from ..metering.shared_counters import SharedCounters
from ..model.plan import Direction, End, Plan, sender_of
from ..model.samples import Sample

_QUIET_SAMPLES: Final = 4


class ByteLimit:
    """The limit of a run in bytes, for each direction. Without a limit it is never reached.

    The near end's own counters are read at any time. The far end's are those of its samples; it takes one as soon
    as its receivers have all. The senders start no more than the limit (workloads/byte_budget.py), and what a
    change of settings dropped on its way is not sent again: so a direction is also over when the sender's kernel
    has all acknowledgements and the receiver has counted nothing more for some samples.
    """

    def __init__(self, plan: Plan, counters: SharedCounters) -> None:
        self._limit = plan.bytes_limit
        self._counters = counters
        self._near_receives = {flow: sender_of(flow, plan.workload) is End.FAR for flow in Direction.DUPLEX.flows}
        self._reported = dict.fromkeys(Direction.DUPLEX.flows, 0)
        self._received_before = dict.fromkeys(Direction.DUPLEX.flows, -1)
        self._quiet_samples = dict.fromkeys(Direction.DUPLEX.flows, 0)

    def add_far_sample(self, sample: Sample) -> None:
        """Add what the far end has sent and received."""
        if self._limit is None:
            return
        for session in sample.sessions:
            self._reported[session.direction] += session.bytes
        for flow, before in self._received_before.items():
            received, sent = self._received_and_sent(flow)
            is_quiet = sent >= self._limit and received == before
            self._quiet_samples[flow] = self._quiet_samples[flow] + 1 if is_quiet else 0
            self._received_before[flow] = received

    def is_reached(self, direction: Direction) -> bool:
        """Return whether every flow of a direction has carried enough."""
        return self._limit is not None and all(self._is_over(flow, self._limit) for flow in direction.flows)

    def _is_over(self, flow: Direction, limit: int) -> bool:
        return self._received_and_sent(flow)[0] >= limit or self._quiet_samples[flow] >= _QUIET_SAMPLES

    def _received_and_sent(self, flow: Direction) -> tuple[int, int]:
        counts = self._counters.flow_bytes(flow), self._reported[flow]
        return counts if self._near_receives[flow] else (counts[1], counts[0])
