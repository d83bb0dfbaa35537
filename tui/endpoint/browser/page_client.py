"""One open page: its first WebSocket, and its tests, one after the other.

A page that is only open takes no place at the endpoint; its test takes one, as every client's does.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import WSMsgType, web

from ....engine.browser import page_messages
from ....engine.browser.hosted_run import HostedRun, plan_of_client
from ....engine.browser.page_messages import Hidden, PageMessage, Pong, StartTest, StopTest, decode_message
from ....engine.browser.page_run import PageLink, PageRun
from ....engine.control.handshake import HandshakeResult
from ....engine.far.client_service import carry_out, choose_mode
from ....engine.far.clients.admitted_client import AdmittedClient
from ....engine.far.endpoint import Endpoint
from ....engine.far.status import LogEntry, rejection
from ....engine.host.description import describe_host
from ....engine.model.errors import LinkgaugeError, RequestDeclined, explain_resource_error
from ....engine.model.host_info import BROWSER_SOFTWARE, HostInfo
from ....engine.model.peer import Peer
from ....engine.model.run_end import EndText, Reason, RunEnd
from ....engine.results.run_log import RunLog
from ....presets.auto_select import AUTO, select_preset
from ....presets.catalog import Catalog
from ....presets.diagnosis.live import no_ceiling
from ...session.run_session import RunSession
from ...session.run_spec import Judging, RunSpec
from .page_words import expected_values, interval_values, preset_choice, result_values
from .user_agent import describe_browser

NO_PRESET: Final = "none"
MAX_PAGES: Final = 256
MAX_IDLE_S: Final = 1_800.0
_SEND_S: Final = 4.0
_TOKEN_BYTES: Final = 16
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class PageContext:
    """What all pages share: the endpoint, the presets, the run log, and the clients by the token of their test."""

    endpoint: Endpoint
    catalog: Catalog
    open_run_log: Callable[[], RunLog | None]
    has_tls: bool
    clients: dict[str, "PageClient"] = field(default_factory=dict[str, "PageClient"])

    async def close(self) -> None:
        """End every test, and close the pages."""
        await asyncio.gather(*(client.close() for client in list(self.clients.values())))


class PageClient:
    """One open page."""

    def __init__(self, context: PageContext, request: web.Request, address: str, key_name: str | None) -> None:
        """Make a client whose WebSocket is not open yet.

        Args:
            context: What it shares with other pages.
            request: The request that opens the WebSocket.
            address: The address of the page's device.
            key_name: The name of the key that its link stands for; None without a name.
        """
        self._context, self._request, self.address, self._key_name = context, request, address, key_name
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._software = describe_browser(request.headers.get("User-Agent", ""))
        self._socket = web.WebSocketResponse(compress=False, max_msg_size=page_messages.MAX_MESSAGE_BYTES)
        transport = request.transport
        self._link = PageLink(self.send, None if transport is None else transport.get_extra_info("socket"))
        self.run: PageRun | None = None
        self._hosted: HostedRun | None = None
        self._has_result = False
        self._testing: asyncio.Task[None] | None = None

    async def serve(self) -> web.StreamResponse:
        """Serve the page until it is closed; its test ends with it."""
        clients = self._context.clients
        limits = self._context.endpoint.admission.limits
        own = sum(client.address == self.address for client in clients.values())
        if len(clients) >= MAX_PAGES or own >= limits.clients_per_address:
            return web.Response(status=503, text="linkgauge: too many pages are open here; close one\n")
        clients[self._token] = self
        try:
            await self._socket.prepare(self._request)
            await self._greet()
            await self._read()
        finally:
            del clients[self._token]
            await self._end_test()
        return self._socket

    async def close(self) -> None:
        """End the page's test with the endpoint, and close its WebSocket."""
        if self._hosted is not None:
            self._hosted.end(Reason.PEER_STOPPED, EndText.FAR_SHUTDOWN.value)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SEND_S):
                if self._testing is not None:
                    await asyncio.wait([self._testing])
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

    async def _greet(self) -> None:
        limits = self._context.endpoint.admission.limits
        await self.send(
            "hello",
            test=self._token,
            presets=[preset_choice(preset) for preset in self._context.catalog.presets],
            sessions=min(page_messages.MAX_SESSIONS, limits.sessions),
            seconds=min(page_messages.MAX_SECONDS, limits.duration_s),
            has_tls=self._context.has_tls,
        )

    async def _read(self) -> None:
        """Read the page's messages until it is closed, is idle for long, or sends what no page of ours does."""
        log = self._context.endpoint.log
        while True:
            try:
                message = await self._socket.receive(timeout=MAX_IDLE_S)
            except TimeoutError:
                return
            if message.type is not WSMsgType.TEXT:
                return
            try:
                self._handle(decode_message(message.data))
            except LinkgaugeError as error:
                log(LogEntry("dropped", f"rejected: {error}", client=self.address or None, key=self._key_name))
                return

    def _handle(self, message: PageMessage) -> None:
        self._link.received_ns = time.monotonic_ns()
        run = self.run
        match message:
            case Pong(number):
                if run is not None:
                    run.probe.answer(number)
            case StartTest():
                if self._testing is None or self._testing.done():
                    self._testing = asyncio.create_task(self._test(message))
                    self._context.endpoint.track(self._testing)
            case StopTest():
                if self._hosted is not None:
                    self._hosted.end(Reason.STOPPED, EndText.STOPPED_HERE.value)
            case Hidden():
                if run is not None:
                    run.note_hidden()

    async def _end_test(self) -> None:
        """End the test of a page that was closed."""
        if self._testing is None:
            return
        if self._hosted is not None:
            self._hosted.end(Reason.PEER_LOST, EndText.PAGE_GONE.value)
        await asyncio.wait([self._testing])

    async def _test(self, start: StartTest) -> None:
        """Carry out a test, from its admission to its result."""
        endpoint = self._context.endpoint
        try:
            with contextlib.ExitStack() as stack:
                admitted = stack.enter_context(endpoint.admission.admit(self.address, time.monotonic_ns()))
                admitted.software = " ".join(filter(None, (BROWSER_SOFTWARE, self._software)))
                admitted.key_name = self._key_name
                endpoint.log(LogEntry("admitted", "admitted", client=self.address or None, key=self._key_name))
                await self._test_admitted(start, admitted, stack)
        except (LinkgaugeError, OSError, MemoryError) as error:
            text = str(error) if isinstance(error, LinkgaugeError) else explain_resource_error(error)
            known = error if isinstance(error, LinkgaugeError) else LinkgaugeError(text)
            endpoint.log(rejection(self.address or None, known, self._key_name))
            await self.send("refused", text=text)
        finally:
            self.run = self._hosted = None

    async def _test_admitted(self, start: StartTest, admitted: AdmittedClient, stack: contextlib.ExitStack) -> None:
        endpoint = self._context.endpoint
        admission = endpoint.admission
        plan = start.plan()
        asked = plan_of_client(plan)
        admission.check_address(self.address)
        admission.check_plan(asked, admission.carried_bit_s)
        turn = await admission.turns.take(admitted, asked)
        stack.callback(turn.end)
        grant = admission.grant(admitted, asked, turn)
        mode = None  # with TLS this process encrypts the payload, which is copied
        if not self._context.has_tls:
            mode = await choose_mode(plan, endpoint.mode_chooser, is_idle=not admission.has_runs)
        ends = await self._describe_ends(admitted)
        spec = self._make_spec(start, ends)
        run = PageRun(
            plan, spec.peer, ends, self._link, lambda settings, ip: spec.judging.expect(plan, settings, ip), mode
        )
        self._has_result = False
        async with run.pool:
            self.run = run
            hosted = self._hosted = HostedRun(run, grant, lambda: self._follow(run, spec))
            try:
                end = await carry_out(
                    hosted, admitted, endpoint.log, "stream of a browser", software=admitted.software
                )
            finally:
                hosted.release()
        if not self._has_result:
            await self.send("refused", text=end.detail)

    async def _describe_ends(self, admitted: AdmittedClient) -> HandshakeResult:
        transport = self._request.transport
        if transport is None:
            raise RequestDeclined(EndText.PAGE_GONE.value)
        local, remote = (transport.get_extra_info(name)[:2] for name in ("sockname", "peername"))
        near = await describe_host(local, remote)
        far = HostInfo(self.address, "", 0, admitted.software or BROWSER_SOFTWARE, "")
        return HandshakeResult(near, far, address=self.address)

    def _make_spec(self, start: StartTest, ends: HandshakeResult) -> RunSpec:
        """Return the run as the page asks for it; raise UnknownPreset for a preset that does not exist."""
        peer = Peer(self.address, is_browser=True)
        if start.preset == NO_PRESET:
            return RunSpec(start.plan(), peer, Judging(why=True))
        if start.preset != AUTO:
            return RunSpec(start.plan(), peer, Judging(self._context.catalog.find(start.preset)))
        selected = select_preset(self._context.catalog, ends.near.nic, None, is_far_unknown=True)
        judging = Judging(selected.chosen, selected.variant, why=selected.chosen is None)
        return RunSpec(start.plan(), peer, judging).with_notices(*selected.notices)

    async def _follow(self, run: PageRun, spec: RunSpec) -> RunEnd:
        """Record the run, show it to the page as it goes, and return its end."""
        session = RunSession(
            run, spec, far_end=spec.peer, log=self._context.open_run_log(), writer=None, ceiling=no_ceiling
        )
        try:
            async for event in session:
                for line in session.json_lines(event):
                    await self._show(line)
        finally:
            session.abandon()
        outcome = session.outcome
        if outcome is None:
            return RunEnd(Reason.FAILED, EndText.RUN_ABANDONED.value)
        self._has_result = True
        await self.send("result", **result_values(outcome), notices=session.notices)
        return outcome.summary.end

    async def _show(self, line: dict[str, Any]) -> None:
        if line["type"] == "interval":
            await self.send("interval", **interval_values(line))
        elif line["type"] == "start":
            await self.send("started", expected=expected_values(line), preset=line["preset"])
