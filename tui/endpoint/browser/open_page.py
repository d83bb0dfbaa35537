"""An open page: its first WebSocket, from the request to the close, and what it shows of a run.

What its messages mean depends on the program that serves it: an endpoint, whose pages start tests (`page_client`),
or an app, whose page takes part in them (`waiting_room`).
"""

import asyncio
import contextlib
import logging
import secrets
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from aiohttp import WSMsgType, web

from ....engine.browser import page_messages
from ....engine.browser.page_messages import PageMessage, Pong, Unopened, decode_message
from ....engine.browser.page_run import PageLink, PageRun
from ....engine.control.handshake import HandshakeResult
from ....engine.control.tls import Certificate
from ....engine.far.status import LogEntry
from ....engine.model.errors import LinkgaugeError, RemoteProtocolError
from ....engine.model.events import Event
from ....engine.model.host_info import BROWSER_SOFTWARE
from ....engine.model.ip_address import client_network
from ....engine.model.peer import Peer
from ....engine.model.plan import SECOND_NS
from ....engine.model.shared_key import SharedKey
from ...session.run_session import RunSession
from .client_run import describe_client
from .page_words import expected_values, interval_values, result_values
from .user_agent import describe_browser

MAX_PAGES: Final = 256
MAX_IDLE_S: Final = 1_800.0
_HEARTBEAT_S: Final = 20.0  # a phone that has left the Wi-Fi says nothing; a slow link may be full for seconds
_SEND_S: Final = 4.0
_MOST_MESSAGES_S: Final = 200  # ours sends a tenth: each may take this program's time
_TOKEN_BYTES: Final = 16
_NO_WEBSOCKET: Final = (
    "its WebSocket does not open; a proxy on the way has to pass on Upgrade, Connection, Host and Origin"
)
_log = logging.getLogger(__name__)


def opens_websocket(request: web.Request) -> bool:
    """Return whether a request opens a WebSocket. Some proxies send `Connection: upgrade` with every request."""
    return request.headers.get("Upgrade", "").strip().lower() == "websocket"


class PageHost(ABC):
    """The program that serves pages. `pages` are the open ones by the token of their tests."""

    certificate: Certificate | None = None
    pages: "dict[str, OpenPage]"

    @property
    def keys(self) -> Sequence[SharedKey] | None:
        """The keys in force; None for everybody."""
        return None

    @property
    @abstractmethod
    def most_per_address(self) -> int:
        """The maximum of open pages of one address."""

    @abstractmethod
    def check_address(self, address: str) -> None:
        """Raise AddressRefused for an address that it does not serve."""

    @abstractmethod
    def log(self, entry: LogEntry) -> None:
        """Log an event."""

    @abstractmethod
    def make_page(self, request: web.Request, address: str, key_name: str | None) -> "OpenPage":
        """Return the page of a request that opens its WebSocket."""

    @abstractmethod
    async def close(self) -> None:
        """End every test, close the pages, and release what they needed."""


class OpenPage(ABC):
    """One open page."""

    def __init__(self, host: PageHost, request: web.Request, address: str, key_name: str | None) -> None:
        """Make a page whose WebSocket is not open yet.

        Args:
            host: The program that serves it.
            request: The request that opens the WebSocket.
            address: The address of the page's device.
            key_name: The name of the key that its link stands for; None without a name.
        """
        self._host, self._request, self.address, self._key_name = host, request, address, key_name
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._second = self._messages = 0
        browser = describe_browser(request.headers.get("User-Agent", ""))
        self.software = " ".join(filter(None, (BROWSER_SOFTWARE, browser)))
        self._socket = web.WebSocketResponse(
            compress=False, max_msg_size=page_messages.MAX_MESSAGE_BYTES, heartbeat=_HEARTBEAT_S
        )
        transport = request.transport
        sock = None if transport is None else transport.get_extra_info("socket")
        self.link = PageLink(self.send, sock, request.secure)

    @property
    @abstractmethod
    def run(self) -> PageRun | None:
        """The page's run at this moment."""

    @property
    def peer(self) -> Peer:
        """The page as the far end of a run."""
        return Peer(self.address, is_browser=True)

    @abstractmethod
    async def _greet(self) -> None:
        """Tell the page what it may do."""

    @abstractmethod
    async def _handle(self, message: PageMessage) -> None:
        """Act on a message; raise LinkgaugeError for one that no page of ours sends now."""

    @abstractmethod
    async def _leave(self) -> None:
        """End what the page had begun: it has gone."""

    async def serve(self) -> web.StreamResponse:
        """Serve the page until it is closed; its test ends with it."""
        pages = self._host.pages
        if not await self._has_room():
            return web.Response(status=503, text="linkgauge: too many pages are open here; close one\n")
        if not opens_websocket(self._request):
            return web.Response(status=426, text=f"linkgauge: {_NO_WEBSOCKET}\n", headers={"Upgrade": "websocket"})
        pages[self.token] = self
        try:
            await self._socket.prepare(self._request)
            await self._greet()
            await self._read()
        finally:
            del pages[self.token]
            await self._leave()
        return self._socket

    async def _has_room(self) -> bool:
        """Return whether one more page may open. If all places are taken, the network with the most makes room."""
        pages = list(self._host.pages.values())
        networks = Counter(client_network(page.address) for page in pages)
        own = networks[client_network(self.address)]
        if own >= self._host.most_per_address:
            return False
        if len(pages) < MAX_PAGES:
            return True
        largest, most = networks.most_common(1)[0]
        idle = (page for page in pages if page.run is None and client_network(page.address) == largest)
        oldest = next(idle, None)
        if oldest is None or most <= own + 1:
            return False
        await oldest.close()
        return True

    async def close(self) -> None:
        """Close its WebSocket."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SEND_S):
                await self._socket.close()

    async def send(self, kind: str, **members: Any) -> None:
        """Send a message; a page that does not take it in time loses its connection."""
        if self._socket.closed:
            return
        try:
            async with asyncio.timeout(_SEND_S):
                await self._socket.send_str(page_messages.encode(kind, **members))
        except (TimeoutError, ConnectionError, RuntimeError) as error:
            _log.debug("page of %s does not read: %r", self.address, error)
            if self._request.transport is not None:
                self._request.transport.abort()

    async def show(self, session: RunSession, event: Event) -> None:
        """Show the page the newest event of a run."""
        for line in session.json_lines(event):
            if line["type"] == "interval":
                await self.send("interval", **interval_values(line))
            elif line["type"] in {"start", "change"}:
                await self.send("started", expected=expected_values(line), preset=line.get("preset"))
        if session.outcome is not None:
            values = result_values(session.outcome, session.notices, is_saved=session.is_saved)
            await self.send("result", **values)

    async def describe_ends(self) -> HandshakeResult:
        """Return the descriptions of this host and of the page; raise PeerUnreachable if it has gone."""
        return await describe_client(self._request.transport, self.address, self.software)

    async def _read(self) -> None:
        """Read the page's messages until it is closed, is idle for long, or sends what no page of ours does."""
        while True:
            try:
                message = await self._socket.receive(timeout=MAX_IDLE_S)
            except TimeoutError:
                return
            if message.type is not WSMsgType.TEXT:
                return
            try:
                await self._take(decode_message(message.data))
            except LinkgaugeError as error:
                client = self.address or None
                self._host.log(LogEntry("dropped", f"rejected: {error}", client=client, key=self._key_name))
                return

    def _check_rate(self, now_ns: int) -> None:
        """Raise RemoteProtocolError if the page sends more messages than any of ours does."""
        second = now_ns // SECOND_NS
        self._second, self._messages = second, self._messages + 1 if second == self._second else 1
        if self._messages > _MOST_MESSAGES_S:
            raise RemoteProtocolError(f"more than {_MOST_MESSAGES_S} messages of a page in a second")

    async def _take(self, message: PageMessage) -> None:
        self.link.received_ns = time.monotonic_ns()
        self._check_rate(self.link.received_ns)
        run = self.run
        match message:
            case Pong(number):
                if run is not None:
                    run.probe.answer(number)
            case Unopened(direction, session, generation):
                if run is not None:
                    run.fail_connection(direction, session, generation)
            case _:
                await self._handle(message)
