"""The set of sessions that a run should have open, and the first one lost. The near end opens all of them."""

import asyncio
import errno
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from ..control.connection import ControlConnection
from ..model.counters.session_counters import SocketInfo
from ..model.directions import Direction
from ..model.errors import PeerUnreachable, explain_os_error
from ..model.plan import (
    DATAGRAM_PROBE_SESSION,
    FURTHER_PROBE_SESSIONS,
    PROBE_SESSION,
    PROBE_SESSIONS,
    Plan,
    Settings,
)
from ..model.run_end import EndText
from ..protocol.messages import Change
from ..protocol.tokens import RunSecret
from ..workers.ipc import OpenSession
from ..workers.pool import WorkerPool
from ..workloads.session import CLOSED_BY_PEER
from ..workloads.session_handshake import NOT_ACCEPTED, ConnectTarget, SessionSpec

SessionKey = tuple[Direction, int]
_PROBE: Final[SessionKey] = (Direction.OUT, PROBE_SESSION)
_DATAGRAM_PROBE: Final[SessionKey] = (Direction.OUT, DATAGRAM_PROBE_SESSION)
# The reasons that a session sees if the other end gave it up: only that end knows why.
_ENDED_BY_PEER: Final = {
    CLOSED_BY_PEER,
    NOT_ACCEPTED,
    *(explain_os_error(OSError(number, os.strerror(number))) for number in (errno.ECONNRESET, errno.EPIPE)),
}
_log = logging.getLogger(__name__)


class SessionSet:
    """The sessions that a run should have open, and those that it waits for."""

    def __init__(self) -> None:
        self._generations: dict[SessionKey, int] = {}
        self._waiting: set[SessionKey] = set()
        self._all_open: asyncio.Future[None] | None = None

    def handle_opened(self, info: SocketInfo) -> None:
        """Note that a session is open."""
        self.stop_waiting_for(info.direction, info.session)

    def stop_waiting_for(self, direction: Direction, session: int) -> None:
        """Note that a session is open, or that the run goes on without it."""
        self._waiting.discard((direction, session))
        if not self._waiting and self._all_open is not None and not self._all_open.done():
            self._all_open.set_result(None)

    async def open_one(self, key: SessionKey, begin: Callable[[], Awaitable[None]], generation: int = 0) -> None:
        """Have `begin` open a session, and wait until it is open; raise PeerUnreachable if that fails."""
        self._generations[key], self._waiting = generation, {key}
        opened = self._all_open = asyncio.get_running_loop().create_future()
        try:
            await begin()
            await opened
        finally:
            self._all_open = None

    def give_up(self, key: SessionKey) -> int:
        """Expect the end of a session's connection; return the generation of the one that replaces it."""
        self._generations[key] += 1
        return self._generations[key]

    def is_wanted(self, direction: Direction, session: int, generation: int) -> bool:
        """Return whether a connection should be open under the current settings."""
        return self._generations.get((direction, session)) == generation

    def fail_opening(self, reason: str) -> bool:
        """Make the opening of sessions raise PeerUnreachable if it is waiting; return whether it does."""
        if self._all_open is None:
            return False
        if not self._all_open.done():
            self._all_open.set_exception(PeerUnreachable(reason))
        return not self._all_open.cancelled() and self._all_open.exception() is not None


class NearSessions(SessionSet):
    """Opens, closes and reopens a run's sessions to match its settings.

    Call `open_first` once, then `change_settings` for each new setting. Each connection carries the generation of
    settings that opened it. A new window closes all older connections. The connections of probes stay open.
    """

    def __init__(
        self,
        pool: WorkerPool,
        control: ControlConnection,
        plan: Plan,
        *,
        reads_floods: bool = True,
    ) -> None:
        super().__init__()
        self._pool = pool
        self._reads_floods = reads_floods
        self._has_probe = plan.probe
        self._has_further_probes = plan.responsiveness is not None
        self._first_port = plan.client_port
        self._port_offsets: dict[SessionKey, int] = {}
        self._control = control
        self._settings = plan.settings
        self._secret: RunSecret | None = None
        self._order = asyncio.Lock()
        self._generation = 0
        self._oldest_generation = 0

    async def open_first(self, token: str) -> None:
        """Open all sessions and wait for them; raise PeerUnreachable if one cannot be opened.

        `token` is the nonce of the far end's Ready, in hexadecimal.
        """
        self._secret = self._control.derive_run_secret(bytes.fromhex(token))
        self._all_open = asyncio.get_running_loop().create_future()
        self._waiting = set(self._planned_keys())
        async with self._order:
            if self._has_further_probes:
                self._waiting.add(_DATAGRAM_PROBE)  # the probe of handshakes has nothing to wait for
                for session in FURTHER_PROBE_SESSIONS:
                    await self._open((Direction.OUT, session), None)
            await self._open_missing()
        try:
            await self._all_open
        finally:
            self._all_open = None

    async def change_settings(self, settings: Settings) -> None:
        """Open and close sessions so that they match the new settings."""
        async with self._order:
            self._generation += 1
            if settings.window_bytes != self._settings.window_bytes:
                self._oldest_generation = self._generation
            self._settings = settings
            planned = set(self._planned_keys())
            self._generations = {
                key: generation
                for key, generation in self._generations.items()
                if key == _PROBE or (key in planned and generation >= self._oldest_generation)
            }
            _log.debug("generation %d: %d sessions remain", self._generation, len(self._generations))
            change = Change(settings, self._generation, self._oldest_generation)
            self._pool.change_settings(change)
            self._control.try_send(
                replace(change, settings=settings if self._reads_floods else replace(settings, floods=False))
            )
            await self._open_missing()

    async def _open_missing(self) -> None:
        for key in self._planned_keys():
            if key in self._generations:
                continue
            self._generations[key] = self._generation
            await self._open(key, None if key == _PROBE else self._settings.window_bytes)

    async def _open(self, key: SessionKey, window_bytes: int | None) -> None:
        secret = self._secret
        assert secret is not None  # noqa: S101 - `open_first` comes before any change
        settings = (*key, self._generation, window_bytes)
        spec = SessionSpec(*settings, secret.session_secret(*settings).hex())
        target = ConnectTarget.from_address(secret.run_tag.hex(), self._control.data_address, self._local_port(key))
        await self._pool.send_command(OpenSession(spec, target))

    def _local_port(self, key: SessionKey) -> int | None:
        """Return the local port of a session, which keeps it over all its connections."""
        if self._first_port is None or key[1] in PROBE_SESSIONS:
            return None
        return self._first_port + self._port_offsets.setdefault(key, len(self._port_offsets))

    def _planned_keys(self) -> list[SessionKey]:
        settings = self._settings
        return [
            *([_PROBE] if self._has_probe else []),
            *((flow, number) for number in range(1, settings.sessions + 1) for flow in settings.direction.flows),
        ]


class SessionFailure:
    """The first session that was lost, and the most precise cause reported for it.

    If one end aborts a connection, the other end sees it closed. Its own worker may report that before the cause
    arrives.
    """

    def __init__(self) -> None:
        self._connection: tuple[str, int, int] | None = None
        self._why = ""

    def __bool__(self) -> bool:
        """Return whether a session was lost."""
        return self._connection is not None

    def record(self, direction: str, session: int, generation: int, reason: str) -> None:
        """Record that a connection ended, with the reason that one end reports."""
        connection = (direction, session, generation)
        if self._connection is None or (connection == self._connection and self._why in _ENDED_BY_PEER):
            self._connection, self._why = connection, reason

    def __str__(self) -> str:
        if self._connection is None:
            return "no session was lost"
        direction, session, _generation = self._connection
        return EndText.SESSION_LOST.format(session=session, direction=direction, reason=self._why)
