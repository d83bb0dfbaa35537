"""The HTTP service of an endpoint for browsers: the page, its first WebSocket, and the WebSockets of its tests.

aiohttp carries HTTP. The payload of a test leaves it: a worker process takes over the connection once the WebSocket
is open. Every request is checked before anything is done for it, and answered with headers that let no other page
embed or read the answer.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from aiohttp import web
from aiohttp.typedefs import Handler

from ....engine.browser.page_run import PageRun
from ....engine.far.listener import format_host
from ....engine.far.status import LogEntry
from ...http.page_headers import PAGE_HEADERS
from ...http.server_log import ServerLog
from ...http.visitors import Visitors
from .browser_setup import WELL_KNOWN, BrowserSetup
from .link_access import LinkAccess
from .open_page import PageHost, opens_websocket
from .page_client import EndpointPages
from .page_files import SCRIPT, PageFiles
from .page_socket import DataSocket
from .request_check import find_problem

if TYPE_CHECKING:
    from ..nq.nq_service import NqService

_STOP_S: Final = 3.0
_MAX_REQUEST_LINE: Final = 2_048
_log = logging.getLogger(__name__)


class BrowserService:
    """The page, and its WebSockets."""

    def __init__(self, setup: BrowserSetup, host: PageHost) -> None:
        self._setup, self._host = setup, host
        self._access = LinkAccess(lambda: host.keys, has_tls=setup.has_tls)
        self._files = PageFiles(has_tls=setup.has_tls)
        self.visitors = Visitors()

    def make_application(self) -> web.Application:
        """Return the application."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._check(request, handler)

        application = web.Application(middlewares=[check], client_max_size=0)
        routes = [
            ("", self._get_file),
            (SCRIPT, self._get_file),
            ("ws", self._open_client),
            ("data", self._open_data),
            ("probe", self._probe),
        ]
        if isinstance(self._host, EndpointPages):
            routes.append((WELL_KNOWN, self._explain_quality))
        for path, handler in routes:
            application.add_routes([web.get(f"/{path}", handler), web.get(f"/{{token}}/{path}", handler)])
        return application

    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request of the page itself, or one that begins it; refuse every other."""
        is_websocket = opens_websocket(request)
        problem = find_problem(
            self._host,
            self._access,
            client_of(request),
            (request.host, request.headers.get("Origin")),
            request.match_info.get("token", ""),
            is_websocket=is_websocket,
        )
        if problem is not None:
            return _refuse(problem)
        if is_websocket or self._setup.asks_for_key:  # without a key, whoever asks for the page proves nothing
            self.visitors.trust(request.protocol)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(self._files.headers)
            error.force_close()
            raise
        if not response.prepared:
            response.headers.update(self._files.headers)
            response.force_close()  # only WebSockets stay open, and they are counted
        return response

    def open_quality_service(self) -> "NqService | None":
        """Return the service for clients over HTTP/2, which chooses them by ALPN (RFC 7301); None without one."""
        host, certificate = self._host, self._host.certificate
        if certificate is None or self._setup.quality_problem is not None or not isinstance(host, EndpointPages):
            return None
        from ..nq.nq_service import NqService  # here: it needs h2, of another extra

        certificate.context.set_alpn_protocols(["h2", "http/1.1"])
        return NqService(host, self._access, self._files, self.visitors)

    def make_log(self) -> ServerLog:
        """Return what takes the log of aiohttp: the host's log has a line, within the budget of the address."""

        def log(reason: str, client: str = "") -> None:
            self._host.log(LogEntry("dropped", f"rejected: a browser's request: {reason}", client=client or None))

        return ServerLog(_log, lambda client: log("it cannot be read", client), log)

    async def _get_file(self, request: web.Request) -> web.StreamResponse:
        name = SCRIPT if request.path.endswith(SCRIPT) else ""
        text, kind, headers = self._files.read(name, request.host)
        return web.Response(text=text, content_type=kind, headers=headers)

    async def _explain_quality(self, request: web.Request) -> web.StreamResponse:
        """Tell a client of networkQuality what is missing: it is answered over HTTP/2 only."""
        del request
        problem = self._setup.quality_problem or "networkQuality is answered over HTTP/2; this came over HTTP/1.1"
        return web.Response(status=501, text=f"linkgauge: {problem}\n")

    async def _open_client(self, request: web.Request) -> web.StreamResponse:
        key = self._access.find_key(request.match_info.get("token", ""))
        page = self._host.make_page(request, client_of(request), None if key is None else key.name or None)
        return await page.serve()

    async def _open_data(self, request: web.Request) -> web.StreamResponse:
        return await DataSocket(request).pass_to(self._find_run(request))

    async def _probe(self, request: web.Request) -> web.StreamResponse:
        return await DataSocket(request).probe(self._find_run(request))

    def _find_run(self, request: web.Request) -> PageRun | None:
        """Return the run of the page that a request names; None without one."""
        page = self._host.pages.get(request.query.get("test", ""))
        return None if page is None or page.address != client_of(request) else page.run


def client_of(request: web.Request) -> str:
    """Return the address of the client of a request."""
    address = None if request.transport is None else request.transport.get_extra_info("peername")
    return format_host(address) if address else ""


def _refuse(reason: str) -> web.Response:
    return web.Response(status=403, text=f"linkgauge: {reason}\n", headers={**PAGE_HEADERS, "Connection": "close"})


@asynccontextmanager
async def open_service(setup: BrowserSetup, host: PageHost) -> AsyncGenerator[BrowserService]:
    """Serve the page on the listening socket of `setup` while the block lasts; then end its tests."""
    service = BrowserService(setup, host)
    runner = web.AppRunner(
        service.make_application(),
        access_log=None,
        shutdown_timeout=_STOP_S,
        handler_cancellation=True,
        max_line_size=_MAX_REQUEST_LINE,
        lingering_time=0.0,  # no request has a body: one that comes is not read
        logger=service.make_log(),
    )
    await runner.setup()
    certificate = host.certificate
    quality = service.open_quality_service()
    try:
        listening = await asyncio.get_running_loop().create_server(
            service.visitors.admit_to(runner, None if quality is None else quality.make_connection),
            sock=setup.listener,
            ssl=None if certificate is None else certificate.context,
        )
        try:
            yield service
        finally:
            listening.close()
            service.visitors.close()
            if quality is not None:
                await quality.close()
            await host.close()
    finally:
        await runner.cleanup()
