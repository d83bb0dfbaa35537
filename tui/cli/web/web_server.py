"""The server of the page: one address of loopback, a token in the path, a bounded number of pages."""

import asyncio
import logging
import secrets
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Final

import textual_serve
from aiohttp import web
from aiohttp.typedefs import Handler
from jinja2 import Environment, select_autoescape

from ....engine.far.listener import listen
from ....engine.host.event_loop import run
from ...http.page_headers import PAGE_HEADERS
from ...http.server_log import ServerLog
from ...http.visitors import Visitors
from ..output import emit_line, print_stderr
from ..termination import handle_signals
from .browser_session import BrowserSession
from .web_access import WebAccess

HOST: Final = "127.0.0.1"
_ASSETS: Final = Path(textual_serve.__file__).parent / "static"
_FONT_SIZES: Final = range(6, 41)
_FONT_SIZE: Final = 16
_STOP_S: Final = 40.0  # longer than a session needs to end its app
# Nothing comes from elsewhere, and no other page may show this one in a frame. xterm.js writes styles of its own.
_POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
    "img-src 'self' data:; connect-src 'self' {websocket_url}; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WebConfig:
    """The arguments of `linkgauge` for each page, the address, the visitors, and the most pages at once."""

    arguments: tuple[str, ...]
    port: int
    sessions: int
    access: WebAccess = field(default_factory=WebAccess)


class WebServer:
    """The page and its sessions, each with a process of its own."""

    def __init__(self, config: WebConfig) -> None:
        self._config = config
        self.visitors = Visitors()
        self._sessions: set[BrowserSession] = set()
        source = files("linkgauge.tui.cli.web").joinpath("page.html.j2").read_text(encoding="utf-8")
        self._page = Environment(autoescape=select_autoescape(default=True)).from_string(source)

    def make_application(self) -> web.Application:
        """Return the application: every request is checked before it is answered."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._check(request, handler)

        application = web.Application(middlewares=[check])
        application.add_routes(
            [
                web.get("/{token}/", self._get_page),
                web.get("/{token}/ws", self._open_session),
                web.get("/{token}/static/{name:.+}", self._get_asset),
                web.get("/{token}", self._add_slash),
            ]
        )
        application.on_shutdown.append(self._close_sessions)
        return application

    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request that comes from the page itself, or begins it; refuse every other."""
        refusal = self._config.access.find_refusal(
            request.host,
            request.headers.get("Origin"),
            request.match_info.get("token", ""),
            is_websocket="upgrade" in request.headers.get("Connection", "").lower(),
        )
        if refusal is not None:
            _log.debug("refused a request: %s", refusal)
            return web.Response(status=403, text=f"linkgauge: {refusal}\n", headers=PAGE_HEADERS)
        self.visitors.trust(request.protocol)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(PAGE_HEADERS)
            raise
        if not response.prepared:
            response.headers.update(PAGE_HEADERS)
        return response

    async def _add_slash(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"{request.path}/")

    async def _get_page(self, request: web.Request) -> web.StreamResponse:
        if self._is_full:
            return web.Response(status=503, text=f"linkgauge: {self._full_text}\n")
        origin = self._page_origin(request.host)
        websocket_url = f"{origin.replace('http', 'ws', 1)}/{self._config.access.token}/ws"
        nonce = secrets.token_urlsafe(16)
        page = self._page.render(
            nonce=nonce, websocket_url=websocket_url, font_size=_font_size(request.query.get("fontsize", ""))
        )
        policy = _POLICY.format(nonce=nonce, websocket_url=websocket_url.rpartition("/")[0])
        return web.Response(text=page, content_type="text/html", headers={"Content-Security-Policy": policy})

    def _page_origin(self, host: str) -> str:
        """Return the origin that the browser has the page from; a proxy may have changed the Host header."""
        public = self._config.access.public_url
        return str(public) if public is not None else self._config.access.origin_of(host) or ""

    async def _open_session(self, request: web.Request) -> web.StreamResponse:
        if self._is_full:
            return web.Response(status=503, text=f"linkgauge: {self._full_text}\n")
        session = BrowserSession(self._config.arguments)
        self._sessions.add(session)
        try:
            return await session.run(request)
        finally:
            self._sessions.discard(session)
            if session.failure:
                print_stderr(session.failure)

    async def _get_asset(self, request: web.Request) -> web.StreamResponse:
        """Answer with a file of textual-serve, which has the terminal and its font."""
        path = (_ASSETS / request.match_info["name"]).resolve()
        if not path.is_relative_to(_ASSETS.resolve()) or not path.is_file():
            raise web.HTTPNotFound
        return web.FileResponse(path)

    @property
    def _is_full(self) -> bool:
        return len(self._sessions) >= self._config.sessions

    @property
    def _full_text(self) -> str:
        return f"{self._config.sessions} pages are open, the limit of --sessions; close one"

    async def _close_sessions(self, _application: web.Application) -> None:
        await asyncio.gather(*(session.close() for session in self._sessions))


def serve_web(config: WebConfig) -> int:
    """Serve the page until a signal ends it; return the exit status. Raises EndpointError for a port in use."""
    listener = listen(HOST, config.port)
    try:
        run(_serve(config, listener))
    finally:
        listener.close()
    return 0


@asynccontextmanager
async def open_server(config: WebConfig, listener: socket.socket) -> AsyncGenerator[None]:
    """Serve the page on a listening socket while the block lasts; then end all sessions."""
    server = WebServer(config)
    runner = web.AppRunner(
        server.make_application(),
        access_log=None,
        shutdown_timeout=_STOP_S,
        handler_cancellation=True,
        logger=ServerLog(_log, lambda _address: None, print_stderr),
    )
    await runner.setup()
    try:
        listening = await asyncio.get_running_loop().create_server(server.visitors.admit_to(runner), sock=listener)
        try:
            yield
        finally:
            listening.close()
            server.visitors.close()
    finally:
        await runner.cleanup()


async def _serve(config: WebConfig, listener: socket.socket) -> None:
    stopped = asyncio.Event()
    with handle_signals(lambda _number: stopped.set()):
        async with open_server(config, listener):
            place = config.access.public_url or f"http://{HOST}:{listener.getsockname()[1]}"
            emit_line(f"open {place}/{config.access.token}/")
            emit_line("Anybody with this address can start tests as you. Ctrl-C ends the server and its pages.")
            await stopped.wait()


def _font_size(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and int(text) in _FONT_SIZES else _FONT_SIZE
