"""The HTTP service of an endpoint for browsers: the page, its first WebSocket, and the WebSockets of its tests.

aiohttp carries HTTP. The payload of a test leaves it: a worker process takes over the connection once the WebSocket
is open. Every request is checked before anything is done for it, and answered with headers that let no other page
embed or read the answer.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from ....engine.browser.page_run import PageRun
from ....engine.far.listener import format_host
from ....engine.far.status import LogEntry, rejection
from ....engine.model.errors import AddressRefused
from ...http.page_headers import PAGE_HEADERS
from ...http.server_log import ServerLog
from ...http.visitors import Visitors
from .browser_setup import BrowserSetup
from .link_access import LinkAccess
from .open_page import PageHost
from .page_socket import DataSocket

_STOP_S: Final = 3.0
_POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; "
    "worker-src 'self'; connect-src 'self' {socket_origin}; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
_MAX_REQUEST_LINE: Final = 2_048
_log = logging.getLogger(__name__)


class BrowserService:
    """The page, and its WebSockets."""

    def __init__(self, setup: BrowserSetup, host: PageHost) -> None:
        self._setup, self._host = setup, host
        self._access = LinkAccess(lambda: host.keys, has_tls=setup.has_tls)
        self._headers = dict(PAGE_HEADERS)
        if not setup.has_tls:  # browsers complain about it, and heed it on loopback only
            del self._headers["Cross-Origin-Opener-Policy"]
        self.visitors = Visitors()
        folder = files(__package__ or "").joinpath("page")
        self._parts = [folder.joinpath(name).read_text("utf-8") for name in ("page.html", "page.css", "page.js")]
        self._mover = folder.joinpath("mover.js").read_text("utf-8")

    def make_application(self) -> web.Application:
        """Return the application."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._check(request, handler)

        application = web.Application(middlewares=[check], client_max_size=0)
        routes = [
            ("", self._get_page),
            ("mover.js", self._get_mover),
            ("ws", self._open_client),
            ("data", self._open_data),
            ("probe", self._probe),
        ]
        for path, handler in routes:
            application.add_routes([web.get(f"/{path}", handler), web.get(f"/{{token}}/{path}", handler)])
        return application

    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request of the page itself, or one that begins it; refuse every other."""
        client = client_of(request)
        try:
            self._host.check_address(client)
        except AddressRefused as error:
            self._host.log(rejection(client, error))
            return _refuse("this endpoint does not serve your address")
        is_websocket = "upgrade" in request.headers.get("Connection", "").lower()
        refusal = self._access.find_refusal(
            request.host,
            request.headers.get("Origin"),
            request.match_info.get("token", ""),
            is_websocket=is_websocket,
        )
        if refusal is not None:
            self._host.log(LogEntry("dropped", f"rejected: a browser's request: {refusal}", client=client))
            return _refuse(refusal)
        if is_websocket or self._setup.asks_for_key:  # without a key, whoever asks for the page proves nothing
            self.visitors.trust(request)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(self._headers)
            error.force_close()
            raise
        if not response.prepared:
            response.headers.update(self._headers)
            response.force_close()  # only WebSockets stay open, and they are counted
        return response

    def make_log(self) -> ServerLog:
        """Return what takes the log of aiohttp: the host's log has a line, within the budget of the address."""

        def log(reason: str, client: str = "") -> None:
            self._host.log(LogEntry("dropped", f"rejected: a browser's request: {reason}", client=client or None))

        return ServerLog(_log, lambda client: log("it cannot be read", client), log)

    async def _get_page(self, request: web.Request) -> web.StreamResponse:
        nonce = secrets.token_urlsafe(16)
        html, style, script = self._parts
        text = html.replace("{{nonce}}", nonce).replace("{{style}}", style).replace("{{script}}", script)
        return web.Response(text=text, content_type="text/html", headers=self._policy(request, nonce))

    async def _get_mover(self, request: web.Request) -> web.StreamResponse:
        """Answer with the script of the page's other thread, which has a policy of its own."""
        return web.Response(
            text=self._mover,
            content_type="text/javascript",
            headers=self._policy(request, secrets.token_urlsafe(16)),
        )

    def _policy(self, request: web.Request, nonce: str) -> dict[str, str]:
        socket_origin = f"{'wss' if self._setup.has_tls else 'ws'}://{request.host}"
        return {"Content-Security-Policy": _POLICY.format(nonce=nonce, socket_origin=socket_origin)}

    async def _open_client(self, request: web.Request) -> web.StreamResponse:
        key = self._access.find_key(request.match_info.get("token", ""))
        page = self._host.make_page(request, client_of(request), None if key is None else key.name or None)
        return await page.serve()

    async def _open_data(self, request: web.Request) -> web.StreamResponse:
        return await DataSocket(request, has_tls=self._setup.has_tls).pass_to(self._find_run(request))

    async def _probe(self, request: web.Request) -> web.StreamResponse:
        return await DataSocket(request, has_tls=self._setup.has_tls).probe(self._find_run(request))

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
    try:
        listening = await asyncio.get_running_loop().create_server(
            service.visitors.admit_to(runner),
            sock=setup.listener,
            ssl=None if certificate is None else certificate.context,
        )
        try:
            yield service
        finally:
            listening.close()
            service.visitors.close()
            await host.close()
    finally:
        await runner.cleanup()
