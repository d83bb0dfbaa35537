"""An app's wait for a device, over real WebSockets: who takes part, what is told, and runs that change."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

aiohttp = pytest.importorskip("aiohttp", reason="the extra linkgauge[http] is not installed")

from linkgauge.engine.browser.page_far_end import open_page_run  # noqa: E402
from linkgauge.engine.control.handshake import HandshakeResult  # noqa: E402
from linkgauge.engine.model.directions import Direction  # noqa: E402
from linkgauge.engine.model.errors import PeerUnreachable, PlanError, RequestDeclined, TlsError  # noqa: E402
from linkgauge.engine.model.events import Changed, Ended, Sampled  # noqa: E402
from linkgauge.engine.model.limits import Limits  # noqa: E402
from linkgauge.engine.model.peer import AWAITED_BROWSER, Peer  # noqa: E402
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings  # noqa: E402
from linkgauge.engine.model.run_end import Reason  # noqa: E402
from linkgauge.tui.endpoint.browser.browser_setup import BrowserConfig, RoomConfig  # noqa: E402
from linkgauge.tui.endpoint.browser.waiting_room import JoinedPage, WaitingRoom, open_waiting_room  # noqa: E402
from linkgauge.tui.readings.waited_device import WaitedDevice  # noqa: E402

from ....engine.certificates import CertificateFiles  # noqa: E402
from .scripted_page import ScriptedPage, open_page  # noqa: E402

pytestmark = pytest.mark.loop("uvloop")
LOCAL = Peer("127.0.0.1", is_browser=True)
DEADLINE_S = 30.0
LOOPBACK = RoomConfig(BrowserConfig("127.0.0.1", 0))


class Room:
    """A room with the news so far."""

    def __init__(self, room: WaitingRoom) -> None:
        self.room, self._news = room, room.follow()

    async def next(self) -> WaitedDevice:
        """Return the next news."""
        async with asyncio.timeout(DEADLINE_S):
            return await anext(self._news)


@asynccontextmanager
async def waiting(config: RoomConfig = LOOPBACK) -> AsyncGenerator[tuple[Room, WaitedDevice]]:
    """Open a room on loopback; yield it with its invitation."""
    async with open_waiting_room(config) as room:
        opened = Room(room)
        yield opened, await opened.next()


async def join(page: ScriptedPage, code: str) -> dict[str, Any]:
    """Send a code; return the answer."""
    await page.control.send_json({"type": "join", "code": code})
    return await page.read_until("joined", "unjoined")


async def test_a_device_joins_goes_and_comes_back_with_its_pass() -> None:
    """Each is told; without a device there is no far end."""
    async with waiting() as (room, invitation):
        with pytest.raises(PeerUnreachable, match="no device takes part"):
            room.room.find_page(AWAITED_BROWSER)
        async with open_page(invitation.link, **{"User-Agent": "Firefox/140.0 Android"}) as page:
            assert page.hello["waits"]
            issued = (await join(page, invitation.code))["pass"]
            joined = await room.next()
            assert (joined.peer, joined.name, joined.is_problem) == (LOCAL, "Firefox 140 on Android", False)
            assert joined.code != invitation.code
            ends = await room.room.find_page(LOCAL).describe_ends()
            assert ends.far.software == "browser Firefox 140 on Android"
        gone = await room.next()
        assert (gone.peer, gone.is_problem) == (None, True)
        assert "has gone" in gone.news
        async with open_page(invitation.link) as page:
            assert (await join(page, issued))["type"] == "joined"
            assert (await room.next()).peer == LOCAL


async def test_a_code_that_was_used_is_refused_and_a_new_one_takes_the_place() -> None:
    """The device before is told that another one takes part."""
    async with (
        waiting() as (room, invitation),
        open_page(invitation.link) as first,
        open_page(invitation.link) as second,
    ):
        await join(first, invitation.code)
        joined = await room.next()
        refused = await join(second, invitation.code)
        assert "was used already" in refused["text"]
        assert "used already" in (await room.next()).news
        assert (await join(second, joined.code))["type"] == "joined"
        assert "Another device" in (await first.read_until("unjoined"))["text"]


async def test_many_wrong_codes_are_told_once_and_keep_no_other_device_out() -> None:
    """Not even those of many addresses. The first one is told, and later that there are many."""
    async with waiting() as (room, invitation), open_page(invitation.link) as page:
        stranger = next(iter(room.room.pages.values()))
        assert isinstance(stranger, JoinedPage)
        for number in range(60):
            stranger.address = f"10.0.{number // 6}.1"
            with pytest.raises(RequestDeclined, match="not the code" if number % 6 < 5 else "too many"):
                await room.room.join(stranger, "x", number)
        stranger.address = "127.0.0.1"
        assert (await join(page, invitation.code))["type"] == "joined"
        told = [await room.next() for _ in range(3)]
        assert "was refused" in told[0].news
        assert "tries many codes" in told[1].news
        assert "has joined" in told[2].news


@pytest.mark.parametrize(
    "message", [{"type": "start", "direction": "down", "sessions": 1, "seconds": 5, "preset": "x"}]
)
async def test_a_page_of_an_app_starts_nothing(message: dict[str, Any]) -> None:
    """Its connection is closed."""
    async with waiting() as (room, invitation), open_page(invitation.link) as page:
        await page.control.send_json(message)
        with pytest.raises(ConnectionError):
            await page.read_until("open")
        with pytest.raises(PeerUnreachable):
            room.room.find_page(LOCAL)


@pytest.mark.parametrize("has_tls", [False, pytest.param(True, marks=pytest.mark.every("payload by this process"))])
async def test_sessions_and_direction_change_on_the_device_during_a_run(has_tls: bool, tmp_path: Path) -> None:
    """Data flows under each setting; what is not wanted any more is closed, and the run goes on."""
    config = with_certificate(tmp_path) if has_tls else LOOPBACK
    wanted = [
        Settings(sessions=1),
        Settings(sessions=3),
        Settings(Direction.DUPLEX, 2),
        Settings(Direction.IN, 1),
        Settings(sessions=2),
    ]
    async with waiting(config) as (room, invitation), open_page(invitation.link) as page:
        await join(page, invitation.code)
        far_end = room.room.find_page(LOCAL).far_end
        reading = asyncio.create_task(page.read_until("never"))
        seen: dict[Settings, set[Direction]] = {}
        changes: list[Settings] = []
        async with open_page_run(Plan(wanted[0], duration_ns=None), far_end) as run:
            steps = iter(wanted[1:])
            async for event in run:
                if isinstance(event, Changed):
                    changes.append(event.settings)
                elif isinstance(event, Sampled):
                    flows = {flow for flow in Direction.DUPLEX.flows if event.sample.bytes_of(flow)}
                    seen.setdefault(event.settings, set()).update(flows)
                    if (
                        seen[event.settings] >= set(event.settings.direction.flows)
                        and event.settings == run.settings
                    ):
                        step = next(steps, None)
                        run.stop() if step is None else run.change_settings(step)
                elif isinstance(event, Ended):
                    assert event.end.reason is Reason.STOPPED, event.end
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert sum(not each.closed for each in page.data) <= wanted[-1].sessions
        assert changes == wanted[1:]
        assert far_end.run is None


async def test_a_device_that_goes_ends_the_run_and_one_that_sleeps_does_not_begin_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each with its reason."""
    monkeypatch.setattr("linkgauge.engine.browser.page_run._OPEN_S", 0.3)
    async with waiting() as (room, invitation), open_page(invitation.link) as page:
        await join(page, invitation.code)
        far_end = room.room.find_page(LOCAL).far_end
        with pytest.raises(PeerUnreachable, match="did not open its connections"):
            async with open_page_run(Plan(), far_end):
                pass
        monkeypatch.undo()
        assert (await page.control.receive_json())["type"] == "open"  # of the test that did not begin
        reading = asyncio.create_task(page.read_until("never"))
        async with open_page_run(Plan(duration_ns=60 * SECOND_NS), far_end) as run:
            async for event in run:
                if isinstance(event, Sampled) and not reading.done():
                    reading.cancel()
                    await page.close()
                elif isinstance(event, Ended):
                    assert event.end.reason is Reason.PEER_LOST


async def test_a_device_that_goes_before_it_is_asked_to_open_connections_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The app says at once that it has gone."""
    monkeypatch.setattr("linkgauge.engine.browser.page_run._OPEN_S", 300.0)
    async with waiting() as (room, invitation), open_page(invitation.link) as page:
        await join(page, invitation.code)
        far_end = room.room.find_page(LOCAL).far_end
        describe = far_end.describe

        async def go_first() -> HandshakeResult:
            ends = await describe()
            asyncio.get_running_loop().call_soon(lambda: far_end.run and far_end.run.lose_page())
            return ends

        far_end.describe = go_first
        with pytest.raises(PeerUnreachable, match="the page was closed"):
            async with open_page_run(Plan(), far_end):
                pass


def with_certificate(folder: Path) -> RoomConfig:
    """Return a room on loopback with a certificate."""
    files = CertificateFiles(folder, trustme.CA())
    return replace(LOOPBACK, tls=(str(files.cert), str(files.key)))


async def test_over_tls_the_link_and_the_fingerprint_are_those_of_the_certificate(tmp_path: Path) -> None:
    """The page says that its connections use TLS."""
    async with waiting(with_certificate(tmp_path)) as (_, invitation), open_page(invitation.link) as page:
        assert invitation.link.startswith("https://127.0.0.1:")
        assert len(invitation.fingerprint) == 64
        assert page.hello["has_tls"]


async def test_a_network_that_is_not_allowed_sees_nothing_and_the_user_learns_of_it_once() -> None:
    """Not even the page."""
    config = replace(LOOPBACK, limits=Limits(allow=("192.0.2.0/24",)))
    async with waiting(config) as (room, invitation), aiohttp.ClientSession() as client:
        for _ in range(3):
            async with client.get(invitation.link) as answer:
                assert answer.status == 403
                assert "does not serve your address" in await answer.text()
        told = await room.next()
        assert "127.0.0.1 is not allowed" in told.news
        assert told.is_problem
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await room.next()


async def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Before the screen opens."""
    missing = str(tmp_path / "none.pem")
    with pytest.raises(TlsError, match=r"--tls-cert .*none\.pem"):
        async with waiting(replace(LOOPBACK, tls=(missing, missing))):
            pass


async def test_a_plan_that_no_page_carries_out_is_refused() -> None:
    """Before anything is opened."""
    async with waiting() as (room, invitation), open_page(invitation.link) as page:
        await join(page, invitation.code)
        with pytest.raises(PlanError, match="at most 8"):
            async with open_page_run(Plan(Settings(sessions=9)), room.room.find_page(LOCAL).far_end):
                pass
