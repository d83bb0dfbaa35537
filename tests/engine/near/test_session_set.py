"""The set of a run's sessions: which are opened, and which a change of settings replaces."""

import asyncio
from typing import Any

import pytest
from linkgauge.engine.control.connection import ControlConnection
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PeerUnreachable
from linkgauge.engine.model.plan import PROBE_SESSION, Plan, Settings
from linkgauge.engine.near.session_set import NearSessions, SessionFailure
from linkgauge.engine.protocol.messages import Change, Message
from linkgauge.engine.protocol.tokens import RunSecret
from linkgauge.engine.workers.ipc import AdoptSession, OpenSession
from linkgauge.engine.workers.pool import WorkerPool
from linkgauge.engine.workloads.session import CLOSED_BY_PEER

TOKEN = "00" * 16
OPENED = SocketInfo(End.NEAR, Direction.OUT, 1, None, None, None, None, None, None)


class OpenControl(ControlConnection):
    """A control connection that takes every message."""

    data_address = ("127.0.0.1", 5820)

    def __init__(self) -> None:
        """Connect to nothing."""

    def derive_run_secret(self, nonce: bytes) -> RunSecret:
        """Return a secret without a handshake."""
        return RunSecret(b"secret", nonce, b"plan")

    def try_send(self, message: Message) -> bool:
        """Send nothing."""
        del message
        return True


class RecordingPool(WorkerPool):
    """Workers whose commands a recorder notes."""

    def __init__(self, recorder: "SessionRecorder") -> None:
        """Start no worker."""
        self._recorder = recorder

    async def send_command(self, command: OpenSession | AdoptSession, fd: int | None = None) -> None:
        """Note the command."""
        assert fd is None
        await self._recorder.open(command)

    def change_settings(self, change: Change) -> None:
        """Note the change."""
        self._recorder.changes.append(change)


class SessionRecorder:
    """A set of sessions whose commands are recorded; each session opens at once unless `is_silent`."""

    def __init__(self, settings: Settings, *, has_probe: bool = False, is_silent: bool = False) -> None:
        self.opened: list[tuple[Direction, int, int]] = []
        self.changes: list[Any] = []
        self._is_silent = is_silent
        self.sessions = NearSessions(RecordingPool(self), OpenControl(), Plan(settings, probe=has_probe))

    async def open(self, command: Any) -> None:
        """Note the session of a command."""
        spec = command.spec
        self.opened.append((spec.direction, spec.session, spec.generation))
        if not self._is_silent:
            info = SocketInfo(End.NEAR, spec.direction, spec.session, None, None, None, None, None, None)
            self.sessions.handle_opened(info)


async def test_each_session_of_the_settings_is_opened_once_and_the_probe_first() -> None:
    """Duplex has two sessions of each number."""
    recorder = SessionRecorder(Settings(Direction.DUPLEX, 1), has_probe=True)
    await recorder.sessions.open_first(TOKEN)
    assert recorder.opened == [
        (Direction.OUT, PROBE_SESSION, 0),
        (Direction.OUT, 1, 0),
        (Direction.IN, 1, 0),
    ]


async def test_a_change_opens_only_the_sessions_that_are_missing() -> None:
    """The others keep their connection and its generation."""
    recorder = SessionRecorder(Settings(Direction.OUT, 1))
    await recorder.sessions.open_first(TOKEN)
    await recorder.sessions.change_settings(Settings(Direction.OUT, 2))
    assert recorder.opened == [(Direction.OUT, 1, 0), (Direction.OUT, 2, 1)]
    assert recorder.sessions.is_wanted(Direction.OUT, 1, 0)
    await recorder.sessions.change_settings(Settings(Direction.OUT, 1))
    assert not recorder.sessions.is_wanted(Direction.OUT, 2, 1)
    assert [(change.generation, change.oldest) for change in recorder.changes] == [(1, 0), (2, 0)]


async def test_another_window_reopens_all_sessions_but_the_probe() -> None:
    """A window is set before a connection is made."""
    recorder = SessionRecorder(Settings(Direction.OUT, 1), has_probe=True)
    await recorder.sessions.open_first(TOKEN)
    await recorder.sessions.change_settings(Settings(Direction.OUT, 1, 65_536))
    assert recorder.opened[2:] == [(Direction.OUT, 1, 1)]
    assert recorder.changes[-1].oldest == 1
    assert recorder.sessions.is_wanted(Direction.OUT, PROBE_SESSION, 0)
    assert not recorder.sessions.is_wanted(Direction.OUT, 1, 0)


async def test_a_session_that_cannot_be_opened_ends_the_wait_for_the_first_ones() -> None:
    """A session that fails later is the business of the run."""
    recorder = SessionRecorder(Settings(), is_silent=True)
    task = asyncio.create_task(recorder.sessions.open_first(TOKEN))
    await asyncio.sleep(0)
    assert recorder.sessions.fail_opening("refused")
    with pytest.raises(PeerUnreachable, match="refused"):
        await task
    assert not recorder.sessions.fail_opening("later")


async def test_a_loss_just_after_all_sessions_have_opened_is_the_business_of_the_run() -> None:
    """Both may arrive in one turn of the loop, before the wait for the first sessions goes on."""
    recorder = SessionRecorder(Settings(), is_silent=True)
    task = asyncio.create_task(recorder.sessions.open_first(TOKEN))
    await asyncio.sleep(0)
    recorder.sessions.handle_opened(OPENED)
    assert not recorder.sessions.fail_opening("lost")
    await task


def test_the_first_lost_session_is_reported_with_the_reason_of_the_end_that_knows_it() -> None:
    """The closing is often reported first; later losses of other sessions are not the reason."""
    loss = SessionFailure()
    assert not loss
    loss.record("out", 2, 1, CLOSED_BY_PEER)
    assert loss
    assert str(loss) == "session 2 out was lost: closed by the other host"
    loss.record("out", 1, 1, "reset")
    loss.record("out", 2, 0, "another connection")
    assert str(loss).endswith(CLOSED_BY_PEER)
    loss.record("out", 2, 1, "no port is left")
    loss.record("out", 2, 1, CLOSED_BY_PEER)
    loss.record("out", 2, 1, "another reason")
    assert str(loss) == "session 2 out was lost: no port is left"


@pytest.mark.parametrize("seen", [CLOSED_BY_PEER, "connection reset by peer", "broken pipe"])
def test_the_cause_replaces_the_other_ends_view_of_it(seen: str) -> None:
    """In either order of the reports."""
    for reasons in ((seen, "out of memory"), ("out of memory", seen)):
        loss = SessionFailure()
        for reason in reasons:
            loss.record("out", 1, 0, reason)
        assert str(loss) == "session 1 out was lost: out of memory"
