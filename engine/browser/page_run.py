"""A run with a page of a browser as its far end: the page opens the connections, and this end measures."""

import asyncio
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from ..control.handshake import HandshakeResult
from ..model.counters.samples import ProbeSample
from ..model.directions import Direction
from ..model.errors import LinkgaugeError, PeerUnreachable, RemoteProtocolError
from ..model.peer import Peer
from ..model.plan import SECOND_NS, Dialect, Mode, Plan, Settings
from ..model.run_end import EndText, Reason, RunEnd
from ..model.texts.warning_text import WarningText
from ..near.base_run import ExpectationFinder, WorkerSetup, no_expectation
from ..near.foreign.unseen_far_end import keys_of
from ..near.session_set import SessionKey, SessionSet
from ..protocol.foreign.websocket_frames import message_head
from ..protocol.messages import Change
from ..workers.ipc import AdoptSession, ConnectionLost
from ..workers.pool import WorkerPool
from ..workloads.session import CLOSED_BY_PEER
from ..workloads.session_handshake import SessionSpec
from .metered_run import MeteredRun
from .page_messages import WAYS
from .page_probe import PageProbe

_FIRST_GENERATIONS: Final = 500_000
_OPEN_S: Final = 12.0  # eight connections each way, one after the other, over a slow link
SILENCE_NS: Final = 5_000_000_000  # a phone that sleeps answers no ping


@dataclass(slots=True)
class PageLink:
    """The way to a page: `send` its messages; `sock` is the socket that carries them.

    `received_ns` is the time of the page's last message, which the owner of the link keeps up to date. With TLS
    that owner moves the payload as well, and encrypts it.
    """

    send: Callable[..., Awaitable[None]]
    sock: socket.socket | None = None
    has_tls: bool = False
    received_ns: int = field(default_factory=time.monotonic_ns)


AskForSessions = Callable[[dict[SessionKey, int]], Awaitable[None]]
"""Has the page open connections: the generation of each by its direction and number."""


class PageSessions(SessionSet):
    """The connections that a page opens for a run."""

    def __init__(self, pool: WorkerPool, settings: Settings) -> None:
        super().__init__()
        self._pool = pool
        self._awaited: dict[SessionKey, int] = {}
        self._settings = settings
        # At random: a page that was asleep may still open connections of a test that is over.
        self._generation = secrets.randbelow(_FIRST_GENERATIONS)

    async def open_all(self, ask: AskForSessions) -> None:
        """Have the page open all connections, and wait until workers have them; raise PeerUnreachable otherwise."""
        self._waiting = set(self._plan_missing())
        self._all_open = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(_OPEN_S):
                await ask(dict(self._awaited))
                await self._all_open
        except TimeoutError as error:
            raise PeerUnreachable(EndText.PAGE_UNOPENED.format(seconds=_OPEN_S)) from error
        finally:
            self._all_open = None
            self._awaited.clear()

    async def change_settings(self, settings: Settings, ask: AskForSessions) -> None:
        """Close the connections that the settings do not want, and have the page open those that are missing."""
        self._generation += 1
        self._settings = settings
        planned = set(self._planned_keys())
        for places in (self._generations, self._awaited):
            for key in places.keys() - planned:
                del places[key]
        self._pool.change_settings(Change(settings, self._generation, 0))
        missing = self._plan_missing()
        if missing:
            await ask(missing)

    def _plan_missing(self) -> dict[SessionKey, int]:
        """Await the planned connections that are not there yet; return them with their generation."""
        keys = (key for key in self._planned_keys() if key not in self._generations)
        missing = dict.fromkeys(keys, self._generation)
        self._generations |= missing
        self._awaited |= missing
        return missing

    def _planned_keys(self) -> list[SessionKey]:
        return keys_of(self._settings)

    def claim(self, direction: Direction, session: int, generation: int) -> None:
        """Take the place of a connection; raise RemoteProtocolError if it is not awaited, or has come already."""
        if self._awaited.get((direction, session)) != generation:
            raise RemoteProtocolError("a page's connection that no test awaits")
        del self._awaited[direction, session]

    async def adopt(self, direction: Direction, session: int, generation: int, fd: int) -> None:
        """Have a worker take over the descriptor of a claimed connection; raise WorkerError if none can."""
        await self._pool.send_command(AdoptSession(SessionSpec(direction, session, generation, None, "")), fd)


class PageRun(MeteredRun):
    """A run whose far end is a page: enter its `pool`, then `driven(run)`."""

    def __init__(
        self,
        plan: Plan,
        peer: Peer,
        ends: HandshakeResult,
        link: PageLink,
        expectation_for: ExpectationFinder = no_expectation,
        mode: Mode | None = None,
    ) -> None:
        """Make a run that has not begun.

        Args:
            plan: The run to carry out; `out` is what the page downloads.
            peer: The page, named in events and errors.
            ends: The descriptions of this host and of what the page tells.
            link: The way to the page.
            expectation_for: Returns the rates to expect under given settings.
            mode: How this end moves payload if the plan names no mode; None copies.
        """
        head = message_head(plan.block_bytes)
        setup = WorkerSetup(mode, program=Dialect.BROWSER, head=head, has_workers=not link.has_tls)
        super().__init__(plan, peer, ends, expectation_for, setup)
        self._link = link
        self.sessions = PageSessions(self.pool, plan.settings)
        self._sessions = self.sessions
        self.probe = PageProbe(self.pool.counters)
        self._was_hidden = False

    def change_settings(self, settings: Settings) -> None:
        """Change direction and sessions during the run; the page chooses its window itself."""
        if self._begin_period(settings):
            for key in self._metered.keys() - set(keys_of(settings)):
                self._metered.pop(key).end()
            self._run_task(self._change_sessions(settings))

    async def _change_sessions(self, settings: Settings) -> None:
        try:
            await self.sessions.change_settings(settings, self._ask_for_sessions)
        except LinkgaugeError as error:
            self.stop(Reason.WORKER_LOST, str(error))

    def lose_page(self) -> None:
        """End the run because the page has gone."""
        if not self.sessions.fail_opening(EndText.PAGE_GONE.value):
            self.stop(Reason.PEER_LOST, EndText.PAGE_GONE.value)

    def fail_connection(self, direction: Direction, session: int, generation: int) -> None:
        """End the run because the page could not open a connection that it needs."""
        if not self.sessions.is_wanted(direction, session, generation):
            return
        if not self.sessions.fail_opening(EndText.PAGE_BLOCKED.value):
            self.stop(Reason.FAILED, EndText.PAGE_BLOCKED.value)

    def note_hidden(self) -> None:
        """Warn, once, that the page went into the background."""
        if not self._was_hidden:
            self._was_hidden = True
            self._events.warn(WarningText.PAGE_HIDDEN.value)

    def lose(self, direction: Direction, session: int, generation: int) -> None:
        """Note that a claimed connection has ended."""
        self._handle_worker_event(ConnectionLost(direction, session, generation, CLOSED_BY_PEER))

    async def _ping(self, number: int) -> None:
        await self._link.send("ping", n=number)

    async def _open(self) -> ProbeSample | None:
        """Have the page open its connections, and measure the idle link."""
        if self._ending.done():  # the page has gone already, or its user has stopped it
            raise PeerUnreachable(self._ending.result().detail)
        await self.sessions.open_all(self._ask_for_sessions)
        self._run_task(self.probe.measure(self._ping, self._link.sock))
        return await self._sampler.measure_idle()

    async def _ask_for_sessions(self, places: dict[SessionKey, int]) -> None:
        duration_ns = self.plan.duration_ns
        await self._link.send(
            "open",
            places=[{"flow": WAYS[flow], "n": number, "g": place} for (flow, number), place in places.items()],
            seconds=None if duration_ns is None else duration_ns / SECOND_NS,
        )

    def release(self) -> None:
        """End what the run has begun, also if it was never driven. Call it before its counters are closed."""
        self.probe.close()
        super().release()

    def _listen(self) -> None:
        super()._listen()
        self._run_task(self._begin_at_page())

    async def _begin_at_page(self) -> None:
        await self._link.send("begin")

    def _poll_far_end(self) -> int:
        """Return the time of the page's last message: payload alone moves while its script sleeps."""
        silent_ns = time.monotonic_ns() - self._link.received_ns
        if silent_ns > SILENCE_NS:
            self._lose(EndText.PAGE_SILENT.format(seconds=silent_ns / 1e9))
        return self._link.received_ns

    async def _finish(self, end: RunEnd) -> RunEnd:
        """Take the last sample; the connections end with the workers."""
        self._end_payload()
        if end.reason is Reason.SESSION_LOST:
            return RunEnd(Reason.PEER_LOST, EndText.PAGE_GONE.value)
        return end
