"""What the app's screens are given of the engine: runs, host information, presets and exports."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ....engine.model.errors import LinkgaugeError, RunLogError
from ....engine.model.host_info import HostInfo
from ....engine.model.peer import Peer
from ....presets.auto_select import PresetSelection, select_preset
from ....presets.catalog import Catalog
from ....presets.wire import DEFAULT_VARIANT, Variant
from ...app.far_end_keeper import FarEndKeeper
from ...session.run_spec import RunSpec, pick_preset
from ..termination import interruption

if TYPE_CHECKING:
    from ....engine.results.run_log import RunLog
    from ...endpoint.browser.waiting_room import JoinedPage, WaitingRoom
    from ...session.run_exports import ExportFormat
    from ...session.run_recorder import Outcome
    from ...session.run_session import RunSession


@asynccontextmanager
async def _told_to(page: "JoinedPage | None") -> AsyncGenerator[None]:
    """Tell a page why its test could not begin."""
    try:
        yield
    except LinkgaugeError as error:
        if page is not None:
            await page.send("refused", text=str(error))
        raise


class AppBackend:
    """Runs, host information and exports for the app. One run at a time."""

    def __init__(
        self,
        open_log: "Callable[[], RunLog | None]",
        far_ends: FarEndKeeper,
        notices: list[str],
        selection: PresetSelection,
        catalog: Catalog,
        room: "WaitingRoom | None" = None,
    ) -> None:
        self._open_log = open_log
        self._selection = selection
        self._catalog = catalog
        self._room = room
        self._far_ends = far_ends
        self._notices = notices
        self._run: RunSession | None = None
        self.last_outcome: Outcome | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def start_run(self, spec: RunSpec) -> "AsyncGenerator[RunSession]":
        """Open a run for the time of the context. Raises LinkgaugeError if the far end cannot be used."""
        from ...session.run_session import open_run_session

        self._idle.clear()
        try:
            log = self._open_log()
            page = self._find_page(spec.peer)
            far = page.far_end if page is not None else await self._far_ends.get_far_end(spec.peer)
            told = spec.with_notices(*self._notices)
            async with _told_to(page), open_run_session(told, log=log, far_end=far) as self._run:
                self._run.on_event = None if page is None else partial(page.show, self._run)
                yield self._run
        finally:
            if self._run is not None:
                self.last_outcome = self._run.outcome or self.last_outcome
            self._run = None
            self._idle.set()

    def interrupt(self, number: signal.Signals) -> bool:
        """Begin to end the current run, with the signal as the reason; return whether there is one."""
        if self._run is None:
            return False
        self._run.stop(*interruption(number))
        return True

    async def wait_until_idle(self, timeout_s: float) -> None:
        """Wait until no run holds workers, sockets or the run log, for `timeout_s` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()

    def variant_of(self, preset_id: str | None) -> Variant:
        """Return the link options that were selected with a preset; another preset has the default ones."""
        return self._selection.variant if preset_id == self._selection.preset.id else DEFAULT_VARIANT

    async def select_preset(self, peer: Peer) -> PresetSelection:
        """Return the preset by both ends' interfaces; it is in force for the runs from then on."""
        page = self._find_page(peer)
        if page is None:
            self._selection = await pick_preset(self._catalog, await self._far_ends.get_far_end(peer))
        else:
            ends = await page.describe_ends()
            self._selection = select_preset(self._catalog, ends.near.nic, None, is_far_unknown=True)
        return self._selection

    async def query_host_info(self, peer: Peer) -> HostInfo:
        """Return the far end's description of its host."""
        from ....engine.near.connect import query_host_info

        page = self._find_page(peer)
        if page is not None:
            return (await page.describe_ends()).far
        return await query_host_info(await self._far_ends.get_far_end(peer))

    def _find_page(self, peer: Peer) -> "JoinedPage | None":
        """Return the page of a device that takes part; None for another far end. Raises PeerUnreachable."""
        return self._room.find_page(peer) if self._room is not None and peer.is_browser else None

    def export(self, run_ids: Sequence[str], form: "ExportFormat", path: Path) -> Path:
        """Write runs of the log to a file; return its path. Raise RunLogError without a log."""
        from ...session.run_exports import export_runs

        log = self._open_log()
        if log is None:
            raise RunLogError("; ".join(self._notices) or "this run is not saved")
        return export_runs(log, run_ids, form, path)
