"""The app, joined to the real world: engine, run log, export."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from ...engine.host.event_loop import run
from ...engine.model.errors import PlanError, RunLogError
from ...engine.model.host_info import HostInfo
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan
from ...engine.near.connect import query_host_info
from ...engine.results.run_log import RunLog
from ...engine.results.sweep import Sweep, SweepPoint, SweepResult
from ...engine.workers.fork_client import ForkServerLease
from ...presets.auto_select import AUTO, PresetSelection
from ...presets.catalog import Catalog
from ...presets.preset import Preset
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..app import LinkgaugeApp
from ..interfaces import ExportFormat
from ..report.html import check_report_path
from ..services.config import config_dir
from ..services.exports import export_runs, generate_report
from ..services.far_end_keeper import FarEndKeeper
from ..services.preferences import read_preferences, save_preferences
from ..services.preset_choice import detect_initial_preset, find_initial_preset
from ..services.run_log_access import open_run_log
from ..services.run_session import RunSession, open_run_session
from ..services.sweeps import find_sweep, load_results, save_sweep
from ..services.user_presets import load_presets, problem_lines
from .output import print_stderr
from .signals import handle_signals, interruption

_END_DEADLINE_S: Final = 5.0
_REST_DEADLINE_S: Final = 10.0


class AppBackend:
    """What the app needs of the world, for real."""

    def __init__(
        self, log: RunLog | None, standing: FarEndKeeper, notices: list[str], picked: PresetSelection
    ) -> None:
        self._log = log
        self._picked = picked
        self._standing = standing
        self._notices = notices
        self._run: RunSession | None = None
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
    ) -> AsyncGenerator[RunSession]:
        """Give a run, one of a group where there is one; `variant` is what its preset's link is had with."""
        self._at_rest.clear()
        try:
            far = await self._standing.get_far_end(peer)
            # A preset that was picked is had with the options of this link; another one is taken as it stands.
            own = self._picked.variant if preset == self._picked.preset else DEFAULT_VARIANT
            async with open_run_session(
                plan,
                preset,
                peer,
                log=self._log,
                far_end=far,
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
        self._run.stop(*interruption(number))
        return True

    async def wait_until_idle(self, within_s: float) -> None:
        """Wait until no run holds on to anything: workers, sockets, the log."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._at_rest.wait()

    async def query_host_info(self, peer: Peer) -> HostInfo:
        """Ask the far end who it is."""
        return await query_host_info(await self._standing.get_far_end(peer))

    def export(self, run_ids: Sequence[str], form: ExportFormat, path: Path) -> Path:
        """Write runs of the log."""
        if self._log is None:
            raise RunLogError("; ".join(self._notices) or "this run is not kept")
        return export_runs(self._log, run_ids, form, path)


def run_app(peer: Peer, preset_id: str | None, language: str, plan: Plan) -> int:
    """Open the app and stay in it until the person leaves; `language` is the one presets are named in.

    `plan` is that of the first run; keys change it.
    """
    catalog = load_presets()
    try:
        picked = None if preset_id == AUTO else find_initial_preset(catalog, preset_id, peer)
        return _open_app(catalog, peer, picked, language, plan)
    finally:
        for line in problem_lines(catalog):  # the app tells them as well; here they stay
            print_stderr(line)


def _open_app(catalog: Catalog, peer: Peer, picked: PresetSelection | None, language: str, plan: Plan) -> int:
    notices: list[str] = []
    log = open_run_log(notices.append)
    try:
        return run(_run_app(catalog, peer, picked, language, plan, log, notices))
    finally:
        if log is not None:
            log.close()


async def _run_app(
    catalog: Catalog,
    peer: Peer,
    picked: PresetSelection | None,
    language: str,
    plan: Plan,
    log: RunLog | None,
    notices: list[str],
) -> int:
    picked = picked or await detect_initial_preset(catalog, peer, notices)

    async def ask(question: str) -> str | None:
        return await app.ask(question)

    # The app is at rest until a key is pressed: what starts workers is there by then.
    async with ForkServerLease(), aclosing(FarEndKeeper(ask, peer.ssh)) as standing:
        if peer.is_loopback:
            await standing.get_far_end(peer)
        world = AppBackend(log, standing, notices, picked)
        app = LinkgaugeApp(
            catalog,
            peer,
            start_run=world.start_run,
            query_host_info=world.query_host_info,
            export=world.export,
            history=log,
            sweeps=None if log is None else StoredSweeps(log, world.start_run, picked),
            initial_plan=plan,
            initial_preset=picked.preset,
            language=language,
            loaded=read_preferences(config_dir()),
            save=partial(save_preferences, config_dir()),
        )
        with _leave_on_signal(app, world):
            await app.run_async()
            await world.wait_until_idle(
                _REST_DEADLINE_S
            )  # Textual cancels what works for it, and does not wait for it
        return app.return_code or 0


@contextmanager
def _leave_on_signal(app: LinkgaugeApp, world: AppBackend) -> Generator[None]:
    """Leave the app on a signal: the run ends in order, and the terminal is restored."""
    leaving: set[asyncio.Task[None]] = set()

    async def leave(number: signal.Signals) -> None:
        # Not after SIGHUP: drawing on a terminal that has gone blocks Textual before long, and for good.
        if world.interrupt(number) and number is not signal.SIGHUP:
            await world.wait_until_idle(_END_DEADLINE_S)
        app.exit(return_code=128 + number)

    def receive(number: signal.Signals) -> None:
        leaving.add(asyncio.create_task(leave(number)))

    with handle_signals(receive):
        try:
            yield
        finally:
            for task in leaving:
                task.cancel()


class StartGroupedRun(Protocol):
    """Opens a run that is one of a group."""

    def __call__(
        self,
        plan: Plan,
        preset: Preset | None,
        peer: Peer,
        *,
        group: str | None = None,
        variant: Variant | None = None,
    ) -> AbstractAsyncContextManager[RunSession]:
        """Return the context of one run."""
        ...


class StoredSweeps:
    """Keeps, finds and carries out; see ports.Sweeps."""

    def __init__(self, log: RunLog, start: StartGroupedRun, picked: PresetSelection) -> None:
        self._log = log
        self._start = start
        self._picked = picked
        self._variants: dict[str, Variant] = {}

    def begin(self, sweep: Sweep) -> Sequence[SweepResult]:
        """Keep a definition, and return what was measured of it already; one that is kept stays as it is."""
        try:
            _, variant = find_sweep(sweep.group)
        except PlanError:
            # A preset that was picked is had with the options of this link; another one is taken as it stands.
            variant = self._picked.variant if sweep.preset == self._picked.preset.id else DEFAULT_VARIANT
            save_sweep(sweep, variant)
        self._variants[sweep.group] = variant
        return load_results(self._log, sweep)

    def find(self, group: str) -> tuple[Sweep, Sequence[SweepResult]]:
        """Return a sweep with what was measured of it."""
        sweep, _ = find_sweep(group)
        return sweep, load_results(self._log, sweep)

    def run_point(
        self, sweep: Sweep, point: SweepPoint, preset: Preset | None, peer: Peer
    ) -> AbstractAsyncContextManager[RunSession]:
        """Return the context of a point's run."""
        variant = self._variants.get(sweep.group, DEFAULT_VARIANT)
        return self._start(point.to_plan(sweep.base), preset, peer, group=sweep.group, variant=variant)

    def write_report(self, sweep: Sweep, path: Path) -> Path:
        """Have the page of a sweep made by a process of its own."""
        check_report_path(path)
        generate_report(self._log, ["linkgauge.tui.report.sweep_page", sweep.group, str(path)])
        return path
