"""The places for open pages: so many for each address and in all, and who makes room."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

aiohttp = pytest.importorskip("aiohttp", reason="the extra linkgauge[http] is not installed")

from aiohttp.test_utils import make_mocked_request  # noqa: E402
from linkgauge.tui.endpoint.browser import open_page as open_page_module  # noqa: E402
from linkgauge.tui.endpoint.browser.browser_setup import BrowserConfig, RoomConfig  # noqa: E402
from linkgauge.tui.endpoint.browser.waiting_room import WaitingRoom, open_waiting_room  # noqa: E402

pytestmark = pytest.mark.loop("uvloop")
DEADLINE_S = 20.0


@asynccontextmanager
async def page_of(link: str, address: str) -> AsyncGenerator[aiohttp.ClientWebSocketResponse]:
    """Open a page from an address of this host."""
    connector = aiohttp.TCPConnector(local_addr=(address, 0))
    async with (
        aiohttp.ClientSession(connector=connector) as client,
        client.ws_connect(f"{link}ws", origin=link.rstrip("/")) as page,
    ):
        await page.receive_json()
        yield page


async def test_a_full_house_has_room_for_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address with the most pages loses its oldest one, and cannot come back in another's place."""
    monkeypatch.setattr(open_page_module, "MAX_PAGES", 4)
    async with (
        asyncio.timeout(DEADLINE_S),
        open_waiting_room(RoomConfig(BrowserConfig("127.0.0.1", 0))) as room,
        AsyncExitStack() as stack,
    ):
        link = (await anext(room.follow())).link
        first, *_ = [await stack.enter_async_context(page_of(link, "127.0.0.2")) for _ in range(3)]
        await stack.enter_async_context(page_of(link, "127.0.0.3"))
        own = await stack.enter_async_context(page_of(link, "127.0.0.1"))
        assert (await first.receive()).type is aiohttp.WSMsgType.CLOSE
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await stack.enter_async_context(page_of(link, "127.0.0.2"))
        assert not own.closed
        assert sorted(page.address for page in room.pages.values()) == [
            "127.0.0.1",
            *["127.0.0.2"] * 2,
            "127.0.0.3",
        ]


async def test_the_pages_of_an_ipv6_network_count_together() -> None:
    """A host may take any address in it."""
    room = WaitingRoom("http://[2001:db8::1]/")
    for number in range(room.most_per_address):
        page = room.make_page(make_mocked_request("GET", "/ws"), f"2001:db8::{number:x}", None)
        assert await page._has_room()
        room.pages[page.token] = page
    assert not await room.make_page(make_mocked_request("GET", "/ws"), "2001:db8::ffff", None)._has_room()
    assert await room.make_page(make_mocked_request("GET", "/ws"), "2001:db8:0:1::1", None)._has_room()
