"""The base of a run whose connections a client opens, and which this end alone measures."""

import asyncio

from ..control.handshake import HandshakeResult
from ..model.peer import Peer
from ..model.plan import Plan
from ..near.base_run import ExpectationFinder, WorkerSetup
from ..near.foreign.unseen_far_end import UnseenFarEndRun


class MeteredRun(UnseenFarEndRun):
    """A run that a client joins: its connections come before it has `begun`, and go once it is `over`."""

    def __init__(
        self, plan: Plan, peer: Peer, ends: HandshakeResult, expectation_for: ExpectationFinder, setup: WorkerSetup
    ) -> None:
        """Make a run that has not begun; the arguments are those of every run."""
        super().__init__(plan, peer, ends, ends.ip_version or 4, expectation_for, setup)
        self.begun, self.over = asyncio.Event(), asyncio.Event()

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
