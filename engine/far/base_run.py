"""What runs of linkgauge and of iperf3 share at an endpoint: workers, a watch over limits, an end, a turn."""

import asyncio
import time
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final

from ..metering.shared_counters import SharedCounters
from ..model.errors import LimitReached
from ..model.plan import SECOND_NS, Plan
from ..model.run_end import EndText, Reason, RunEnd
from ..workers.ipc import SessionEvent
from .clients.admission import Grant
from .clients.current_run import CurrentRun
from .datagram_limits import DatagramLimits, DatagramTraffic

_OVERTIME_NS: Final = 30 * SECOND_NS  # beyond a run's duration, if the near end does not stop it


class BaseFarRun(CurrentRun):
    """One run, as the far end carries it out. Await `execute` inside `async with run.pool`; then call `release`."""

    LOOK_S: float
    """The pause between two checks by the watch."""

    def __init__(self, plan: Plan, grant: Grant) -> None:
        """Make a run that has no workers yet, of a plan that the endpoint has granted."""
        super().__init__(plan)
        self.on_start: Callable[[], None] | None = None  # called when payload begins to flow
        self._limits, self.turn = grant.limits, grant.turn
        self._datagram_limits = DatagramLimits(grant.limits, plan.workload)
        self._is_over = False  # the payload has ended in order, and no limit applies to what follows
        self._background: list[asyncio.Task[None]] = []  # what ends with the run

    @property
    def has_datagrams(self) -> bool:
        """Whether its sessions have UDP sockets."""
        return self._plan.workload.is_datagram

    @abstractmethod
    async def execute(self) -> RunEnd:
        """Serve the near end until the run ends, and tell it the end."""

    async def _serve(self, conversation: Coroutine[Any, Any, None]) -> RunEnd:
        """Return the end of the run. A conversation with the near end, the watch or another caller ends it."""
        tasks = [asyncio.create_task(work) for work in (conversation, self._watch())]
        try:
            done, _ = await asyncio.wait({self._ending, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            return await self._ending
        finally:
            tasks += self._background
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _give_back(self) -> None:
        """Give the turn back, before the near end learns of the end and asks for its next run."""
        self.rate_bit_s = 0
        self.turn.end()

    def release(self) -> None:
        """Drop the tasks, whose frames lead back here. Otherwise the control connection waits for a search."""
        self._background.clear()

    @abstractmethod
    def _handle_worker_event(self, event: SessionEvent) -> None:
        """Act on a worker's event of a session."""

    @abstractmethod
    def _look(self, now_ns: int, total_bytes: int) -> None:
        """Watch the near end, once in each `LOOK_S`; `total_bytes` are those of the workers' payload so far."""

    def _limited(self, plan: Plan) -> Plan:
        """Return the plan of this end's workers: they stay below the limits of datagrams."""
        return replace(plan, settings=self._datagram_limits.cap(plan.settings))

    def _begin(self) -> None:
        """Let payload flow: the clock of this end starts now."""
        self._started_ns = time.monotonic_ns()
        self.pool.start_payload()
        if self.on_start is not None:
            self.on_start()

    def _run_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Do work in a task that ends with the run at the latest."""
        self._background.append(asyncio.create_task(work))

    async def _watch(self) -> None:
        """End the run if it exceeds a limit, or if its near end has vanished or does not end it."""
        then_ns, total_bytes = time.monotonic_ns(), 0
        traffic = DatagramTraffic(self._limits, then_ns) if self.has_datagrams else None
        while True:
            await asyncio.sleep(self.LOOK_S)
            now_ns, counters = time.monotonic_ns(), self.pool.counters
            worker_bytes, span_ns, before = counters.total_bytes(), max(1, now_ns - then_ns), total_bytes
            total_bytes = worker_bytes + sum(self._carried_here())
            self.rate_bit_s = round((total_bytes - before) * 8 * SECOND_NS / span_ns)
            then_ns = now_ns
            if self._is_over:
                continue
            try:
                self._check_limits(now_ns, traffic, counters)
            except LimitReached as error:
                self._stop_for_limit(error)
            self._look(now_ns, worker_bytes)

    def _check_limits(self, now_ns: int, traffic: DatagramTraffic | None, counters: SharedCounters) -> None:
        """Raise LimitReached if more arrives, or for longer, than the limits allow."""
        if traffic is not None:
            traffic.check_counters(now_ns, counters)
        longest_s, limit = self._datagram_limits.longest_s
        if self.elapsed_ns > longest_s * SECOND_NS:
            raise LimitReached("the test has reached the longest duration", limit, longest_s)
        duration_ns = self._plan.duration_ns
        if duration_ns is not None and self.elapsed_ns > duration_ns + _OVERTIME_NS:
            self._stop_overdue(EndText.STOP_OVERDUE.value)

    def _stop_for_limit(self, error: LimitReached) -> None:
        self.end(Reason.PEER_STOPPED, str(error))

    def _stop_overdue(self, text: str) -> None:
        self.end(Reason.FAILED, text)

    def _handle_worker_loss(self, reason: str) -> None:
        self.end(Reason.WORKER_LOST, EndText.FAR_WORKER_LOST.format(reason=reason))
