"""The pages of an endpoint, and their tests, one after the other.

A page that is only open takes no place at the endpoint; its test takes one, as every client's does.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from ....engine.browser import page_messages
from ....engine.browser.hosted_run import HostedRun, obtain_grant, plan_of_client
from ....engine.browser.page_messages import Hidden, PageMessage, StartTest, StopTest
from ....engine.browser.page_run import PageRun
from ....engine.control.handshake import HandshakeResult
from ....engine.far.client_service import carry_out, choose_mode
from ....engine.far.clients.admitted_client import AdmittedClient
from ....engine.far.endpoint import Endpoint
from ....engine.far.status import LogEntry, rejection
from ....engine.model.errors import LinkgaugeError, RemoteProtocolError, explain_resource_error
from ....engine.model.plan import MAX_BROWSER_SESSIONS
from ....engine.model.run_end import EndText, Reason, RunEnd
from ....engine.model.shared_key import SharedKey
from ....engine.results.run_log import RunLog
from ....presets.auto_select import AUTO
from ...session.run_spec import Judging, RunSpec
from ...session.storage import open_run_log
from ...session.user_presets import load_presets
from .client_run import follow_run, judge_by_interface
from .open_page import OpenPage, PageHost
from .page_words import preset_choice

NO_PRESET: Final = "none"
_END_S: Final = 4.0


class EndpointPages(PageHost):
    """The pages of an endpoint.

    Args:
        endpoint: The endpoint, whose limits, lists, turns and log hold for them.
        asks_for_key: Whether their link carries a key.
    """

    def __init__(self, endpoint: Endpoint, *, asks_for_key: bool) -> None:
        self.endpoint = endpoint
        self.catalog = load_presets()
        self.certificate = endpoint.certificate
        self.pages: dict[str, OpenPage] = {}
        self._asks_for_key = asks_for_key
        self._run_log: RunLog | None = None

    @property
    def keys(self) -> Sequence[SharedKey] | None:
        """The endpoint's keys in force; None for everybody."""
        return self.endpoint.keys if self._asks_for_key else None

    @property
    def most_per_address(self) -> int:
        """The maximum of open pages of one address: that of the endpoint's clients."""
        return self.endpoint.admission.limits.clients_per_address

    def check_address(self, address: str) -> None:
        """Raise AddressRefused if the endpoint's lists exclude an address."""
        self.endpoint.admission.check_address(address)

    def log(self, entry: LogEntry) -> None:
        """Log an event as the endpoint's."""
        self.endpoint.log(entry)

    def make_page(self, request: web.Request, address: str, key_name: str | None) -> OpenPage:
        """Return a page that starts tests."""
        return PageClient(self, request, address, key_name)

    def open_run_log(self) -> RunLog | None:
        """Return the run log, which the first test opens; None if its run cannot be stored: the log says why."""
        if self._run_log is None:
            loop = asyncio.get_running_loop()

            def report(text: str) -> None:
                self.log(LogEntry("not_recorded", text))

            def report_later(text: str) -> None:
                loop.call_soon_threadsafe(report, text)

            self._run_log = open_run_log(report, report_later)
        return self._run_log

    async def close(self) -> None:
        """End every test, close the pages, and close the run log."""
        await asyncio.gather(*(page.close() for page in list(self.pages.values())))
        if self._run_log is not None:
            self._run_log.close()


class PageClient(OpenPage):
    """One open page of an endpoint."""

    def __init__(self, pages: EndpointPages, request: web.Request, address: str, key_name: str | None) -> None:
        """Make a page of these; the other arguments are those of every page."""
        super().__init__(pages, request, address, key_name)
        self._pages = pages
        self._run: PageRun | None = None
        self._hosted: HostedRun | None = None
        self._early_end: RunEnd | None = None  # of a test whose run does not exist yet
        self._has_result = False
        self._testing: asyncio.Task[None] | None = None

    @property
    def run(self) -> PageRun | None:
        """The page's run at this moment."""
        return self._run

    async def close(self) -> None:
        """End the page's test with the endpoint, and close its WebSocket."""
        self._end_test(RunEnd(Reason.PEER_STOPPED, EndText.FAR_SHUTDOWN.value))
        if self._testing is not None:
            await asyncio.wait([self._testing], timeout=_END_S)
        await super().close()

    async def _greet(self) -> None:
        limits = self._pages.endpoint.admission.limits
        await self.send(
            "hello",
            test=self.token,
            presets=[preset_choice(preset) for preset in self._pages.catalog.presets],
            sessions=min(MAX_BROWSER_SESSIONS, limits.sessions),
            seconds=min(page_messages.MAX_SECONDS, limits.duration_s),
            has_tls=self.link.has_tls,
        )

    async def _handle(self, message: PageMessage) -> None:
        match message:
            case StartTest():
                if self._testing is not None and self._run is not None and self._run.is_ending:
                    await asyncio.wait([self._testing], timeout=_END_S)  # it has its result; workers still end
                if self._testing is None or self._testing.done():
                    self._early_end = None
                    self._testing = asyncio.create_task(self._test(message))
                    self._pages.endpoint.track(self._testing)
            case StopTest():
                self._end_test(RunEnd(Reason.STOPPED, EndText.STOPPED_HERE.value))
            case Hidden():
                if self._run is not None:
                    self._run.note_hidden()
            case _:
                raise RemoteProtocolError("a page's message that an endpoint does not expect")

    async def _leave(self) -> None:
        """End the test of a page that was closed."""
        if self._testing is None:
            return
        self._end_test(RunEnd(Reason.PEER_LOST, EndText.PAGE_GONE.value))
        await asyncio.wait([self._testing])

    def _end_test(self, end: RunEnd) -> None:
        """End the test, or have it end as soon as it has a run."""
        if self._hosted is not None:
            self._hosted.end(end.reason, end.detail)
        elif self._early_end is None:
            self._early_end = end

    async def _test(self, start: StartTest) -> None:
        """Carry out a test, from its admission to its result."""
        endpoint = self._pages.endpoint
        try:
            with contextlib.ExitStack() as stack:
                admitted = stack.enter_context(endpoint.admission.admit(self.address, time.monotonic_ns()))
                admitted.software = self.software
                admitted.key_name = self._key_name
                endpoint.log(LogEntry("admitted", "admitted", client=self.address or None, key=self._key_name))
                await self._test_admitted(start, admitted, stack)
        except (LinkgaugeError, OSError, MemoryError) as error:
            text = str(error) if isinstance(error, LinkgaugeError) else explain_resource_error(error)
            known = error if isinstance(error, LinkgaugeError) else LinkgaugeError(text)
            endpoint.log(rejection(self.address or None, known, self._key_name))
            await self.send("refused", text=text)
        finally:
            self._run = self._hosted = None

    async def _test_admitted(self, start: StartTest, admitted: AdmittedClient, stack: contextlib.ExitStack) -> None:
        endpoint = self._pages.endpoint
        admission = endpoint.admission
        plan = start.plan()
        grant = await obtain_grant(admission, admitted, plan_of_client(plan), stack)
        mode = None  # with TLS this process encrypts the payload, which is copied
        if not self.link.has_tls:
            mode = await choose_mode(plan, endpoint.mode_chooser, is_idle=not admission.has_runs)
        ends = await self.describe_ends()
        spec = self._make_spec(start, ends)
        run = PageRun(
            plan, spec.peer, ends, self.link, lambda settings, ip: spec.judging.expect(plan, settings, ip), mode
        )
        self._has_result = False
        async with run.pool:
            self._run = run
            hosted = self._hosted = HostedRun(run, grant, lambda: self._follow(run, spec))
            if self._early_end is not None:
                self._end_test(self._early_end)
            try:
                end = await carry_out(
                    hosted, admitted, endpoint.log, "stream of a browser", software=admitted.software
                )
            finally:
                hosted.release()
        if not self._has_result:
            await self.send("refused", text=end.detail)

    def _make_spec(self, start: StartTest, ends: HandshakeResult) -> RunSpec:
        """Return the run as the page asks for it; raise UnknownPreset for a preset that does not exist."""
        peer = self.peer
        if start.preset == NO_PRESET:
            return RunSpec(start.plan(), peer, Judging(why=True))
        if start.preset != AUTO:
            return RunSpec(start.plan(), peer, Judging(self._pages.catalog.find(start.preset)))
        judging, notices = judge_by_interface(self._pages.catalog, ends)
        return RunSpec(start.plan(), peer, judging).with_notices(*notices)

    async def _follow(self, run: PageRun, spec: RunSpec) -> RunEnd:
        """Record the run, show it to the page as it goes, and return its end."""
        end = await follow_run(run, spec, self._pages.open_run_log(), self.show)
        self._has_result = end.detail != EndText.RUN_ABANDONED
        return end
