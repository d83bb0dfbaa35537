"""An app's wait for a device: it serves the page, and one device at a time takes part in the app's tests.

Whoever has the code joins, so that the link needs no key. A page that has not joined can start nothing.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

from ....engine.browser.page_far_end import PageFarEnd
from ....engine.browser.page_messages import Hidden, JoinTest, PageMessage, StopTest
from ....engine.browser.page_run import PageRun
from ....engine.control.tls import Certificate, format_fingerprint
from ....engine.far.status import LogEntry
from ....engine.model.errors import AddressRefused, PeerUnreachable, RemoteProtocolError, RequestDeclined
from ....engine.model.host_info import BROWSER_SOFTWARE
from ....engine.model.limits import Limits
from ....engine.model.peer import Peer
from ....engine.model.plan import SECOND_NS
from ....engine.model.run_end import EndText, Reason
from ...readings.waited_device import WaitedDevice
from .browser_service import open_service
from .browser_setup import RoomConfig, prepare_browser
from .join_codes import JoinCodes
from .link_code import code_lines
from .open_page import OpenPage, PageHost

_MOST_PER_ADDRESS: Final = 8
_MOST_REFUSED: Final = 8  # addresses that the user is told of
_SPELL_NS: Final = 60 * SECOND_NS  # without a refused code, until the next one is told again
_MANY_REFUSALS: Final = 30  # in one spell: no finger slips so often
_log = logging.getLogger(__name__)


class JoinedPage(OpenPage):
    """One open page of an app. `far_end` is the page as the far end of runs."""

    def __init__(self, room: "WaitingRoom", request: web.Request, address: str, key_name: str | None) -> None:
        """Make a page that has not joined; the other arguments are those of every page."""
        super().__init__(room, request, address, key_name)
        self._room = room
        self.far_end = PageFarEnd(self.peer, self.link, self.describe_ends)

    @property
    def run(self) -> PageRun | None:
        """The page's run at this moment."""
        return self.far_end.run

    async def _greet(self) -> None:
        await self.send(
            "hello",
            test=self.token,
            waits=True,
            presets=[],
            sessions=0,
            seconds=0,
            has_tls=self.link.has_tls,
        )

    async def _handle(self, message: PageMessage) -> None:
        match message:
            case JoinTest(code):
                await self._join(code)
            case StopTest():
                if self.run is not None:
                    self.run.stop(Reason.STOPPED, EndText.PAGE_STOPPED.value)
            case Hidden():
                if self.run is not None:
                    self.run.note_hidden()
            case _:
                raise RemoteProtocolError("a page's message that an app does not expect")

    async def _join(self, code: str) -> None:
        try:
            issued = await self._room.join(self, code, time.monotonic_ns())
        except RequestDeclined as error:
            await self.send("unjoined", text=f"{str(error)[:1].upper()}{str(error)[1:]}.")
        else:
            await self.send("joined", **{"pass": issued})

    async def _leave(self) -> None:
        if self.run is not None:
            self.run.lose_page()
        self._room.leave(self)


class WaitingRoom(PageHost):
    """The pages of an app, and the one that takes part.

    Args:
        link: The link to the page for other hosts.
        limits: The networks that are served.
        certificate: The certificate of the page; None for plain HTTP.
        codes: The codes by which a device joins.
    """

    def __init__(
        self,
        link: str,
        limits: Limits | None = None,
        certificate: Certificate | None = None,
        codes: JoinCodes | None = None,
    ) -> None:
        self.pages: dict[str, OpenPage] = {}
        self.certificate = certificate
        self._link = link
        self._limits = limits or Limits()
        self._refused: set[str] = set()
        self._codes = codes or JoinCodes()
        self._last_refusal_ns: int | None = None
        self._refusals = 0
        self._joined: JoinedPage | None = None
        self._news: asyncio.Queue[WaitedDevice] = asyncio.Queue()
        self._tell("")

    @property
    def most_per_address(self) -> int:
        """The maximum of open pages of one address."""
        return _MOST_PER_ADDRESS

    def check_address(self, address: str) -> None:
        """Raise AddressRefused if the lists exclude an address; the user is told of the first ones."""
        try:
            self._limits.check_address(address)
        except AddressRefused as error:
            if address not in self._refused and len(self._refused) < _MOST_REFUSED:
                self._refused.add(address)
                self._tell(f"A browser was refused: {error.operator_text}", is_problem=True)
            raise

    def log(self, entry: LogEntry) -> None:
        """Log an event for developers: the user has a screen."""
        _log.debug("%s", entry)

    def make_page(self, request: web.Request, address: str, key_name: str | None) -> OpenPage:
        """Return a page that takes part in tests."""
        return JoinedPage(self, request, address, key_name)

    async def join(self, page: JoinedPage, code: str, now_ns: int) -> str:
        """Have a page take part, in place of the one before; return its pass. Raises RequestDeclined."""
        before = self._joined
        if before is not None and before is not page and before.run is not None:
            raise RequestDeclined("a test with another device is running; join when it has ended")
        try:
            issued = self._codes.join(code, page.address, now_ns)
        except RequestDeclined as error:
            self._note_refusal(page.address, error, now_ns)
            raise
        self._joined = page
        if before is not None and before is not page:
            await before.send("unjoined", text="Another device takes part now.")
        self._tell(f"{self._name or 'A browser'} on {page.address} has joined")
        return issued

    def _note_refusal(self, address: str, error: RequestDeclined, now_ns: int) -> None:
        """Tell the user of the first refused code of a spell, and once that there are many."""
        last, self._last_refusal_ns = self._last_refusal_ns, now_ns
        self._refusals = 1 if last is None or now_ns - last >= _SPELL_NS else self._refusals + 1
        if self._refusals == 1:
            self._tell(f"{address} was refused: {error}", is_problem=True)
        elif self._refusals == _MANY_REFUSALS:
            text = "Somebody tries many codes, the last one from"
            self._tell(f"{text} {address}: --allow names the networks that may join", is_problem=True)

    def leave(self, page: JoinedPage) -> None:
        """Note that a page has gone."""
        if page is self._joined:
            self._joined = None
            text = "has gone: its page was closed, or it lost its network"
            self._tell(f"The device at {page.address} {text}", is_problem=True)

    def find_page(self, peer: Peer) -> JoinedPage:
        """Return the page that takes part; raise PeerUnreachable if there is none, or it is not this peer."""
        page = self._joined
        if page is None or page.peer != peer:
            raise PeerUnreachable(f"no device takes part; open {self._link} on one, and type the code that c shows")
        return page

    async def follow(self) -> AsyncGenerator[WaitedDevice]:
        """Yield the device at this moment, and again at each change. One reader at a time."""
        while True:
            yield await self._news.get()

    async def close(self) -> None:
        """Close the pages."""
        await asyncio.gather(*(page.close() for page in list(self.pages.values())))

    @property
    def _name(self) -> str:
        return "" if self._joined is None else self._joined.software.removeprefix(BROWSER_SOFTWARE).strip()

    def _tell(self, news: str, *, is_problem: bool = False) -> None:
        code = self._codes.code
        self._news.put_nowait(
            WaitedDevice(
                self._link,
                code,
                tuple(code_lines(f"{self._link}#{code}")),
                None if self._joined is None else self._joined.peer,
                self._name,
                news,
                is_problem,
                "" if self.certificate is None else format_fingerprint(self.certificate.fingerprint),
            )
        )


@asynccontextmanager
async def open_waiting_room(config: RoomConfig) -> AsyncGenerator[WaitingRoom]:
    """Serve the page for devices that join while the block lasts. Raises TlsError or EndpointError."""
    certificate = None if config.tls is None else Certificate.load(*map(Path, config.tls))
    setup = prepare_browser(config.page, None, is_open=True, has_tls=certificate is not None)
    with setup.listener:
        link = (await asyncio.to_thread(setup.links, None))[0]
        room = WaitingRoom(link, config.limits, certificate)
        async with open_service(setup, room):
            yield room
