"""The base of a run whose connections a client opens, and which this end alone measures.

A sample of the far end has the local kernel's counts (`Sample.is_from_sender`), as in a run against iperf3.
"""

import asyncio

from ..control.handshake import HandshakeResult
from ..model.peer import Peer
from ..model.plan import Plan
from ..near.base_run import ExpectationFinder, WorkerSetup
from ..near.foreign.unseen_far_end import UnseenFarEndRun


class MeteredRun(UnseenFarEndRun):
    """A run with sessions whose bytes their owners may move in this process, from `begun` to `over`."""

    def __init__(
        self, plan: Plan, peer: Peer, ends: HandshakeResult, expectation_for: ExpectationFinder, setup: WorkerSetup
    ) -> None:
        """Make a run that has not begun; the arguments are those of every run."""
        super().__init__(plan, peer, ends, ends.ip_version or 4, expectation_for, setup)
        self.begun, self.over = asyncio.Event(), asyncio.Event()

    @property
    def awaited_connections(self) -> int:
        """The number of connections that the client is about to open."""
        return 0

    @property
    def is_ending(self) -> bool:
        """Whether its end is certain."""
        return self._ending.done()

    def release(self) -> None:
        """End what the run has begun, also if it was never driven. Call it before its counters are closed."""
        self.over.set()
        super().release()

    def _listen(self) -> None:
        self.begun.set()
