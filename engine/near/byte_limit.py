"""The bytes that the receivers of a run have counted, for a run that ends after a number of them."""

from ..metering.shared_counters import SharedCounters
from ..model.plan import Direction, End, Plan, sender_of
from ..model.samples import Sample


class ByteLimit:
    """The limit of a run in bytes, for each direction. Without a limit it is never reached.

    The near end's own counters are read at any time. What the far end received is known once in an interval, so
    the bytes that its kernel has acknowledged since then stand for it, less those that its receiver had not read
    at the last sample.
    """

    def __init__(self, plan: Plan, counters: SharedCounters) -> None:
        self._limit = plan.bytes_limit
        self._counters = counters
        self._near_receives = {flow: sender_of(flow, plan.workload) is End.FAR for flow in Direction.DUPLEX.flows}
        self._reported = dict.fromkeys(Direction.DUPLEX.flows, 0)
        self._unread = dict.fromkeys(Direction.DUPLEX.flows, 0)

    def add_far_sample(self, sample: Sample) -> None:
        """Add what the far end has received."""
        if self._limit is None:
            return
        for session in sample.sessions:
            self._reported[session.direction] += session.bytes
        for flow, reported in self._reported.items():
            self._unread[flow] = max(0, self._counters.flow_bytes(flow) - reported)

    def is_reached(self, direction: Direction) -> bool:
        """Return whether every flow of a direction has carried enough."""
        return self._limit is not None and all(self._received(flow) >= self._limit for flow in direction.flows)

    def _received(self, flow: Direction) -> int:
        counted = self._counters.flow_bytes(flow)
        if self._near_receives[flow]:
            return counted
        return max(self._reported[flow], counted - self._unread[flow])
