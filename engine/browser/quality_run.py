"""A run with a client of networkQuality: it opens connections as it likes, in both directions at once or not.

The settings follow roughly: they have a quarter of the connections or more. Time without any is not measured.
"""

import asyncio
import socket
from typing import Final

from ..control.handshake import HandshakeResult
from ..model.counters.samples import ProbeSample
from ..model.directions import Direction
from ..model.peer import Peer
from ..model.plan import SECOND_NS, Dialect, Plan, Settings
from ..model.run_end import EndText, Reason, RunEnd
from ..near.base_run import ExpectationFinder, WorkerSetup, no_expectation
from ..near.foreign.metered_session import MeteredConnection
from ..near.session_set import SessionSet
from .metered_run import MeteredRun

MAX_QUALITY_SESSIONS: Final = 32  # in a direction: the draft's client opens 16
PAUSE_S: Final = 3.0
"""A client that loads the link no more for so long has ended its test."""
_GROWTH: Final = 4
_WARMUP_NS: Final = SECOND_NS // 2  # some clients open a connection a second


def plan_with(direction: Direction, sessions: int) -> Plan:
    """Return the plan of such a run, which its client ends. The client measures latency, and keeps it to itself."""
    return Plan(
        settings=Settings(direction, sessions), duration_ns=None, warmup_ns=_WARMUP_NS, workers=1, probe=False
    )


class QualityRun(MeteredRun):
    """A run with such a client: enter its `pool`, then `driven(run)`."""

    def __init__(
        self, plan: Plan, peer: Peer, ends: HandshakeResult, expectation_for: ExpectationFinder = no_expectation
    ) -> None:
        """Make a run of a plan of `plan_with`; `out` is what the client downloads."""
        setup = WorkerSetup(None, program=Dialect.NETWORKQUALITY, has_workers=False)
        super().__init__(plan, peer, ends, expectation_for, setup)
        self._sessions = SessionSet()
        self._pause: asyncio.TimerHandle | None = None

    def change_settings(self, settings: Settings) -> None:
        """Do nothing: the client alone changes them."""

    def find_place(self, direction: Direction) -> int | None:
        """Return the lowest free number of a session in a direction; None if all places are taken."""
        numbers = range(1, MAX_QUALITY_SESSIONS + 1)
        return next((number for number in numbers if (direction, number) not in self._metered), None)

    def open(self, direction: Direction, session: int, sock: socket.socket) -> MeteredConnection:
        """Take a connection in at a free place, which loads the link from now on; its session closes `sock`."""
        was_loaded = bool(self._metered)
        metered = self.meter(direction, session, sock)
        self._end_pause()
        if self.begun.is_set():
            self._follow_client(after_pause=not was_loaded)
        return metered

    def close(self, direction: Direction, session: int) -> None:
        """Let a connection go that loads the link no more."""
        metered = self._metered.pop((direction, session), None)
        if metered is None:
            return
        metered.end()
        if not self.begun.is_set() or self.over.is_set():
            return
        if self._metered:
            self._follow_client()
            return
        last = self._sampler.take_sample()
        if last is not None:
            self._take_near_sample(last)
        self._await_load()

    def _await_load(self) -> None:
        """End the run unless the client loads the link again soon."""
        self._end_pause()
        loop = asyncio.get_running_loop()
        self._pause = loop.call_later(PAUSE_S, self.stop, Reason.COMPLETED, EndText.DURATION_UP.value)

    def _follow_client(self, *, after_pause: bool = False) -> None:
        """Have the settings follow the connections if a direction begins or ends, or there are four times as many.

        A client adds them one by one, a second apart, and ends them one by one: each for itself changes little.
        """
        if self._ending.done():
            return
        present, settings = self._present_settings(), self.settings
        if (
            present.direction is settings.direction
            and present.sessions < _GROWTH * settings.sessions
            and not after_pause
        ):
            return
        # After a pause also for the same settings: what came before was none of their time, and this is a warm-up.
        self._events.put(self._timeline.change_settings(self._sampler.elapsed_ns, present))

    def _present_settings(self) -> Settings:
        """Return the settings that describe the connections of this moment; there are some."""
        counts = {flow: sum(key[0] is flow for key in self._metered) for flow in Direction.DUPLEX.flows}
        used = [flow for flow, count in counts.items() if count]
        return Settings(Direction.DUPLEX if len(used) > 1 else used[0], max(counts.values()))

    def _end_pause(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None

    def release(self) -> None:
        """End what the run has begun, also if it was never driven. Call it before its counters are closed."""
        self._end_pause()
        super().release()

    async def _open(self) -> ProbeSample | None:
        """Return at once: the client's first connection is what has begun the run."""
        return None

    def _listen(self) -> None:
        super()._listen()
        if not self._metered:
            self._await_load()
        else:
            self._follow_client()

    def _poll_far_end(self) -> int | None:
        """Return None: the connections have deadlines of their own."""
        return None

    async def _sample(self) -> None:
        await self._sampler.run(self._take_near_sample, None, lambda: bool(self._metered))

    async def _finish(self, end: RunEnd) -> RunEnd:
        """Take the last sample, unless the client had ended before."""
        if self._metered:
            self._read_metered()
            self._stop_sampling()
        return end
