"""The app, joined to the real world: engine, run log, export."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from ...engine.host.event_loop import run
from ...engine.model.errors import PlanError, StoreError
from ...engine.model.events import Reason
from ...engine.model.host_info import HostFacts
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan
from ...engine.near.connect import probe
from ...engine.results.run_log import RunLog
from ...engine.results.sweep import Cell, Point, Sweep
from ...engine.workers.fork_client import Hold
from ...presets.auto_select import AUTO, Picked
from ...presets.catalog import Catalog
from ...presets.preset import Preset
from ...presets.wire import PLAIN, Variant
from ..app import LinkgaugeApp
from ..interfaces import Form
from ..report.sweep_page import check_report_path
from ..services.config import config_dir
from ..services.exports import export_runs, make_page
from ..services.far_end_keeper import Standing
from ..services.preferences import keep_preferences, read_preferences
from ..services.preset_choice import named_preset, picked_preset
from ..services.run_session import Conducted, conduct, open_log
from ..services.sweeps import find_sweep, keep_sweep, kept_cells
from ..services.user_presets import known_presets, problem_lines
from .output import say

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_END_DEADLINE_S: Final = 5.0
_REST_DEADLINE_S: Final = 10.0


class World:
    """What the app needs of the world, for real."""

    def __init__(self, log: RunLog | None, standing: Standing, notices: list[str], picked: Picked) -> None:
        self._log = log
        self._picked = picked
        self._standing = standing
        self._notices = notices
        self._run: Conducted | None = None
        self._at_rest = asyncio.Event()
        self._at_rest.set()

    @asynccontextmanager
    async def start_run(
        self,
        plan: Plan,
        preset: Preset | None,
        peer: Peer,
        *,
        group: str | None = None,
        variant: Variant | None = None,
    ) -> AsyncGenerator[Conducted]:
        """Give a run, one of a group where there is one; `variant` is what its preset's link is had with."""
        self._at_rest.clear()
        try:
            far = await self._standing.of(peer)
            # A preset that was picked is had with the options of this link; another one is taken as it stands.
            own = self._picked.variant if preset == self._picked.preset else PLAIN
            async with conduct(
                plan,
                preset,
                peer,
                log=self._log,
                embedded=far,
                notices=self._notices,
                variant=own if variant is None else variant,
                group=group,
            ) as self._run:
                yield self._run
        finally:
            self._run = None
            self._at_rest.set()

    def interrupt(self, number: signal.Signals) -> bool:
        """Begin to end the run that goes on, and have the log say why; return whether there is one."""
        if self._run is None:
            return False
        self._run.stop(Reason.INTERRUPTED, f"interrupted by {number.name}")
        return True

    async def rest(self, within_s: float) -> None:
        """Wait until no run holds on to anything: workers, sockets, the log."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._at_rest.wait()

    async def probe(self, peer: Peer) -> HostFacts:
        """Ask the far end who it is."""
        return await probe(await self._standing.of(peer))

    def export(self, run_ids: Sequence[str], form: Form, path: Path) -> Path:
        """Write runs of the log."""
        if self._log is None:
            raise StoreError("; ".join(self._notices) or "this run is not kept")
        return export_runs(self._log, run_ids, form, path)


def run_app(peer: Peer, preset_id: str | None, language: str, plan: Plan) -> int:
    """Open the app and stay in it until the person leaves; `language` is the one presets are named in.

    `plan` is that of the first run; keys change it.
    """
    catalog = known_presets()
    try:
        picked = None if preset_id == AUTO else named_preset(catalog, preset_id, peer)
        return _open_app(catalog, peer, picked, language, plan)
    finally:
        for line in problem_lines(catalog):  # the app tells them as well; here they stay
            say(line)


def _open_app(catalog: Catalog, peer: Peer, picked: Picked | None, language: str, plan: Plan) -> int:
    notices: list[str] = []
    log = open_log(notices.append)
    try:
        return run(_run_app(catalog, peer, picked, language, plan, log, notices))
    finally:
        if log is not None:
            log.close()


async def _run_app(
    catalog: Catalog,
    peer: Peer,
    picked: Picked | None,
    language: str,
    plan: Plan,
    log: RunLog | None,
    notices: list[str],
) -> int:
    picked = picked or await picked_preset(catalog, peer, notices)

    async def ask(question: str) -> str | None:
        return await app.ask(question)

    # The app is at rest until a key is pressed: what starts workers is there by then.
    async with Hold(), aclosing(Standing(ask, peer.ssh)) as standing:
        if peer.is_loopback:
            await standing.of(peer)
        world = World(log, standing, notices, picked)
        app = LinkgaugeApp(
            catalog,
            peer,
            start_run=world.start_run,
            probe=world.probe,
            export=world.export,
            history=log,
            sweeps=None if log is None else KeptSweeps(log, world.start_run, picked),
            initial_plan=plan,
            initial_preset=picked.preset,
            language=language,
            found=read_preferences(config_dir()),
            keep=partial(keep_preferences, config_dir()),
        )
        with _left_on_signals(app, world):
            await app.run_async()
            await world.rest(_REST_DEADLINE_S)  # Textual cancels what works for it, and does not wait for it
        return app.return_code or 0


@contextmanager
def _left_on_signals(app: LinkgaugeApp, world: World) -> Generator[None]:
    """Leave the app on a signal: the run ends in order, and the terminal is given back as it was."""
    loop = asyncio.get_running_loop()
    leaving: set[asyncio.Task[None]] = set()

    async def leave(number: signal.Signals) -> None:
        # Not after SIGHUP: drawing on a terminal that has gone blocks Textual before long, and for good.
        if world.interrupt(number) and number is not signal.SIGHUP:
            await world.rest(_END_DEADLINE_S)
        app.exit(return_code=128 + number)

    def receive(number: signal.Signals) -> None:
        leaving.add(loop.create_task(leave(number)))

    for number in _SIGNALS:
        loop.add_signal_handler(number, receive, number)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        for task in leaving:
            task.cancel()


# MERGED FROM tui/cli/app_sweeps:
# The app's sweeps, for real: kept beside the run log, with the app's own far end.


class StartInGroup(Protocol):
    """Opens a run that is one of a group."""

    def __call__(
        self,
        plan: Plan,
        preset: Preset | None,
        peer: Peer,
        *,
        group: str | None = None,
        variant: Variant | None = None,
    ) -> AbstractAsyncContextManager[Conducted]:
        """Return the context of one run."""
        ...


class KeptSweeps:
    """Keeps, finds and carries out; see ports.Sweeps."""

    def __init__(self, log: RunLog, start: StartInGroup, picked: Picked) -> None:
        self._log = log
        self._start = start
        self._picked = picked
        self._variants: dict[str, Variant] = {}

    def begin(self, sweep: Sweep) -> Sequence[Cell]:
        """Keep a definition, and return what was measured of it already; one that is kept stays as it is."""
        try:
            _, variant = find_sweep(sweep.group)
        except PlanError:
            # A preset that was picked is had with the options of this link; another one is taken as it stands.
            variant = self._picked.variant if sweep.preset == self._picked.preset.id else PLAIN
            keep_sweep(sweep, variant)
        self._variants[sweep.group] = variant
        return kept_cells(self._log, sweep)

    def find(self, group: str) -> tuple[Sweep, Sequence[Cell]]:
        """Return a sweep with what was measured of it."""
        sweep, _ = find_sweep(group)
        return sweep, kept_cells(self._log, sweep)

    def run(
        self, sweep: Sweep, point: Point, preset: Preset | None, peer: Peer
    ) -> AbstractAsyncContextManager[Conducted]:
        """Return the context of a point's run."""
        variant = self._variants.get(sweep.group, PLAIN)
        return self._start(point.plan(sweep.base), preset, peer, group=sweep.group, variant=variant)

    def report(self, sweep: Sweep, path: Path) -> Path:
        """Have the page of a sweep made by a process of its own."""
        check_report_path(path)
        make_page(self._log, ["linkgauge.tui.report.sweep_page", sweep.group, str(path)])
        return path
