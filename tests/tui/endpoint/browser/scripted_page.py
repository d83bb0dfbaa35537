"""A page without a browser: it does over real WebSockets what the page's script does."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from linkgauge.engine.control.tls import Certificate
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.status import LogSink, discard_log
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.tui.endpoint.browser.browser_service import open_service
from linkgauge.tui.endpoint.browser.browser_setup import BrowserSetup
from linkgauge.tui.endpoint.browser.page_client import EndpointPages

DEADLINE_S = 30.0


class ScriptedPage:
    """A page that has greeted: `start` a test, then `read_until` a kind of message.

    After each message of payload it pauses for `pause_s`, so that it leaves the machine some time.
    """

    def __init__(
        self,
        base: str,
        client: aiohttp.ClientSession,
        control: aiohttp.ClientWebSocketResponse,
        pause_s: float = 0.001,
    ) -> None:
        self.base, self._client, self.control, self._pause_s = base, client, control, pause_s
        self.hello: dict[str, Any] = {}
        self.data: list[aiohttp.ClientWebSocketResponse] = []
        self.is_answering = True
        self.has_begun = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(
        self, direction: str = "down", sessions: int = 2, seconds: int = 3, preset: str = "none"
    ) -> None:
        """Ask for a test."""
        settings = {"direction": direction, "sessions": sessions, "seconds": seconds, "preset": preset}
        await self.control.send_json({"type": "start", **settings})

    async def read_until(self, *kinds: str) -> dict[str, Any]:
        """Do what the endpoint asks for, until a message of one of these kinds."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                message = await self.control.receive()
                if message.type is not aiohttp.WSMsgType.TEXT:
                    raise ConnectionError(f"the endpoint has closed: {message}")
                values = json.loads(message.data)
                await self._do(values)
                if values["type"] in kinds:
                    return values

    async def _do(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "ping" if self.is_answering:
                await self.control.send_json({"type": "pong", "n": message["n"]})
            case "open":
                for place in message["places"]:
                    data = await self.open_data(place["flow"], place["n"], place["g"])
                    if self.has_begun and place["flow"] == "up":
                        self._tasks.append(asyncio.create_task(self._upload(data)))
            case "begin":
                self.has_begun = True
                self._tasks.append(asyncio.create_task(self._probe()))
                self._tasks += [
                    asyncio.create_task(self._upload(each)) for each in self.data if "up" in str(each._response.url)
                ]
            case _:
                pass

    async def open_data(self, flow: str, number: int, generation: int = 0) -> aiohttp.ClientWebSocketResponse:
        """Open a connection of a test, and read what comes."""
        url = f"{self.base}data?test={self.hello['test']}&flow={flow}&n={number}&g={generation}"
        data = await self._client.ws_connect(url, origin=_origin_of(self.base), max_msg_size=1 << 20, ssl=False)
        self.data.append(data)
        self._tasks.append(asyncio.create_task(self._discard(data)))
        return data

    async def _probe(self) -> None:
        """Open new connections, and answer what comes first on each."""
        while True:
            url = f"{self.base}probe?test={self.hello['test']}"
            with contextlib.suppress(aiohttp.ClientError):
                async with self._client.ws_connect(url, origin=_origin_of(self.base), ssl=False) as probe:
                    async for message in probe:
                        await probe.send_bytes(message.data)
            await asyncio.sleep(0.1)

    async def _upload(self, data: aiohttp.ClientWebSocketResponse) -> None:
        block = bytes(64 * 1024)
        with contextlib.suppress(ConnectionError):
            while not data.closed:
                await data.send_bytes(block)
                await asyncio.sleep(2 * self._pause_s)  # at 2 ms some 200 Mb/s each

    async def _discard(self, data: aiohttp.ClientWebSocketResponse) -> None:
        async for _message in data:
            await asyncio.sleep(self._pause_s)

    async def close(self) -> None:
        """Close the page."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for each in (*self.data, self.control):
            await each.close()


def _origin_of(base: str) -> str:
    return "/".join(base.split("/")[:3])


@asynccontextmanager
async def serving(
    log: LogSink = discard_log,
    *,
    keys: list[SharedKey] | None = None,
    limits: Limits | None = None,
    certificate: Certificate | None = None,
) -> AsyncGenerator[tuple[str, Endpoint]]:
    """Serve an endpoint with its page on loopback; yield the page's address, and the endpoint."""
    listener = socket.create_server(("127.0.0.1", 0))
    has_tls = certificate is not None
    address = f"http{'s' if has_tls else ''}://127.0.0.1:{listener.getsockname()[1]}/"
    kind = _KeyedSetup if keys else BrowserSetup
    setup = kind(listener, is_open=not keys, has_tls=has_tls)
    own = socket.create_server(("127.0.0.1", 0))
    endpoint = Endpoint(own, log, keys=keys, limits=limits, certificate=certificate)
    pages = EndpointPages(endpoint, asks_for_key=setup.asks_for_key)
    async with endpoint, open_service(setup, pages):
        yield address, endpoint


class _KeyedSetup(BrowserSetup):
    """As if it were not on loopback."""

    @property
    def asks_for_key(self) -> bool:
        """Ask, in every test."""
        return True


@asynccontextmanager
async def open_page(base: str, *, pause_s: float = 0.001, **headers: str) -> AsyncGenerator[ScriptedPage]:
    """Open a page, and close it at the end."""
    async with aiohttp.ClientSession(headers=headers) as client:
        control = await client.ws_connect(f"{base}ws", origin=_origin_of(base), ssl=False)
        page = ScriptedPage(base, client, control, pause_s)
        try:
            page.hello = await page.read_until("hello")
            yield page
        finally:
            await page.close()
