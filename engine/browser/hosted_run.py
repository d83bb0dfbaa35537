"""The turn of a page's run at its endpoint, or of another client's over HTTP: limits, status, log and end.

The endpoint's status and log name directions as clients do: their `out` is what the endpoint receives.
"""

import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from ..far.base_run import BaseFarRun
from ..far.clients.admission import Admission, Grant
from ..far.clients.admitted_client import AdmittedClient
from ..far.status import RunStatus
from ..model.errors import LinkgaugeError
from ..model.plan import Plan
from ..model.run_end import Reason, RunEnd
from ..near.base_run import driven
from ..workers.ipc import SessionEvent
from .metered_run import MeteredRun


def plan_of_client(plan: Plan) -> Plan:
    """Return the plan of a page's run as the page would name its directions."""
    return replace(plan, settings=replace(plan.settings, direction=plan.settings.direction.opposite))


async def obtain_grant(
    admission: Admission, client: AdmittedClient, plan: Plan, stack: contextlib.ExitStack
) -> Grant:
    """Return the endpoint's grant for a plan, whose turn ends with `stack`; raise RequestDeclined without one.

    The lists may have changed since the client was admitted.
    """
    admission.check_address(client.address)
    admission.check_plan(plan, admission.carried_bit_s)
    turn = await admission.turns.take(client, plan)
    stack.callback(turn.end)
    return admission.grant(client, plan, turn)


class HostedRun(BaseFarRun):
    """Such a run at the endpoint. Await `execute` inside `async with run.pool`, as `carry_out` does.

    Args:
        run: The run.
        grant: The endpoint's grant.
        follow: Reads the run's events, which flow from the call on, and returns the end that the last one states.
    """

    LOOK_S = 0.5

    def __init__(self, run: MeteredRun, grant: Grant, follow: Callable[[], Awaitable[RunEnd]]) -> None:
        super().__init__(plan_of_client(run.plan), grant)
        self.run, self.pool = run, run.pool
        self._follow = follow

    @property
    def awaited_connections(self) -> int:
        """0: its client's connections come to the HTTP port, which has places of its own."""
        return 0

    def get_status(self) -> RunStatus:
        """Return the progress of the run, with the payload as this end received and sent it."""
        status = super().get_status()
        settings = replace(self.run.settings, direction=self.run.settings.direction.opposite)
        carried = {"received_bytes": status.sent_bytes, "sent_bytes": status.received_bytes}
        return replace(status, settings=settings, **carried)

    def end(self, reason: Reason, detail: str) -> None:
        """End the run; its last events still go to the reader."""
        if not self.has_started:
            super().end(reason, detail)
        self.run.stop(reason, detail)

    async def execute(self) -> RunEnd:
        """Carry the run out, and return its end."""
        end = await self._serve(self._converse())
        self._give_back()
        return end

    async def _converse(self) -> None:
        try:
            async with driven(self.run):
                self._started_ns = time.monotonic_ns()
                if self.on_start is not None:
                    self.on_start()
                end = await self._follow()
        except LinkgaugeError as error:
            end = RunEnd(Reason.FAILED, str(error))
        finally:
            self.run.release()
        self._is_over = True
        super().end(end.reason, end.detail)

    def _handle_worker_event(self, event: SessionEvent) -> None:
        """Leave a worker's event to the run, which has the workers."""

    def _look(self, now_ns: int, total_bytes: int) -> None:
        """Leave the watch over the page to the run."""
