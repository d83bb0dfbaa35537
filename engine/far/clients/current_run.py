"""A run as its endpoint sees it: its workers' counters, its progress, and its end."""

import asyncio
import logging
import time
from abc import ABC, abstractmethod

from ...model.directions import Direction, End, sender_of
from ...model.plan import Plan
from ...model.run_end import Reason, RunEnd
from ...workers.pool import WorkerPool
from ..status import RunStatus

_log = logging.getLogger(__name__)


class CurrentRun(ABC):
    """A run that an endpoint carries out; `base_run` has its conversation and its limits."""

    pool: WorkerPool

    def __init__(self, plan: Plan) -> None:
        """Make a run that has no workers yet."""
        self.rate_bit_s = 0  # between the last two checks
        self._plan, self._settings = plan, plan.settings
        self._ending: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self._started_ns: int | None = None

    @property
    @abstractmethod
    def awaited_connections(self) -> int:
        """The number of data connections that its client is about to open to the port that it has connected to."""

    @property
    def has_started(self) -> bool:
        """Whether payload has begun to flow."""
        return self._started_ns is not None

    @property
    def has_ended(self) -> bool:
        """Whether it is over, and only releases its resources."""
        return self._ending.done()

    @property
    def elapsed_ns(self) -> int:
        """Time since the start; 0 before it."""
        return 0 if self._started_ns is None else time.monotonic_ns() - self._started_ns

    def get_status(self) -> RunStatus:
        """Return the progress of the run. Call it only inside the block of its pool."""
        plan = self._plan
        carried = dict(zip((End.NEAR, End.FAR), self._carried_here(), strict=True))
        for flow in Direction.DUPLEX.flows:
            carried[sender_of(flow, plan.workload)] += self.pool.counters.flow_bytes(flow)
        return RunStatus(
            plan.workload, self._settings, plan.duration_ns, self.elapsed_ns, carried[End.NEAR], carried[End.FAR]
        )

    def _carried_here(self) -> tuple[int, int]:
        """Return the payload that the endpoint's own process has received and sent, beside its workers."""
        return 0, 0

    def end(self, reason: Reason, detail: str) -> None:
        """End the run. Only the first call has an effect."""
        if not self._ending.done():
            _log.debug("run ends: %s: %s", reason, detail)
            self._ending.set_result(RunEnd(reason, detail))
