"""The apps with their real services (`tui/run/run_services`): engine, run log, sweeps, meshes, export.

The cockpit draws its first frame before it imports what a run needs: the engine, the run log and the diagnosis take
longer to import than Textual.
"""

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...engine.host.event_loop import run
from ...engine.host.nics.nic import read_own_nics
from ...engine.model.errors import LinkgaugeError, RunLogError
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan
from ...presets.auto_select import AUTO, PresetSelection
from ...presets.catalog import Catalog
from ...presets.sending_rate import SendingRate
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..app.app import BaseApp, LinkgaugeApp, MeshApp, ObserveApp, ReplayApp, WatchApp
from ..app.far_end_keeper import FarEndKeeper
from ..app.look import read_look
from ..kit.screens.feature_app import StoredServices
from ..run.run_services import RunServices
from ..session.preferences import Preferences, save_preferences
from ..session.run_spec import Judging, RunSpec, find_initial_preset
from ..session.storage import config_dir, open_run_log
from ..session.user_presets import load_presets, problem_lines
from ..words.redaction import REDACTION
from .output import PROGRAM, print_stderr, write_in_background
from .runners.app_backend import AppBackend
from .termination import handle_signals, signal_exit_status

if TYPE_CHECKING:
    from ...discovery.announcement import FoundEndpoint
    from ...engine.results.run_log import RunLog
    from ...observe.request import ObserveRequest
    from ...watch.watch_plan import WatchPlan
    from ..endpoint.browser.browser_setup import RoomConfig
    from ..endpoint.browser.waiting_room import WaitingRoom
    from ..mesh.mesh_session import MeshSession
    from ..session.run_exports import ExportFormat
    from ..session.run_recorder import Outcome
    from ..watch.watch_screen import Watch

# What the first run and the history need, in the order of their imports. Each takes a moment; keys come between.
_AFTER_FIRST_FRAME: Final = (
    "...engine.results.run_log",
    "...engine.results.meter",
    "...engine.results.run_result",
    "..readings.live_readings",
    "...presets.diagnosis.live",
    "...engine.protocol.state_machine",
    "...engine.control.connection",
    "...engine.workers.fork_client",
    "...engine.near.connect",
    "...engine.results.csv_export",
    "..session.run_session",
    "...engine.far.loopback",
)

_RUN_END_TIMEOUT_S: Final = 5.0
_IDLE_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class AppStart:
    """The options that the app opens with."""

    catalog: Catalog
    selection: PresetSelection
    spec: RunSpec
    language: str
    is_preset_auto: bool
    preferences: Preferences
    page: "RoomConfig | None" = None


def run_app(
    peer: Peer,
    preset_id: str | None,
    language: str,
    plan: Plan,
    sending_rate: SendingRate | None = None,
    page: "RoomConfig | None" = None,
) -> int:
    """Run the app until the user quits; return the exit status.

    Args:
        peer: the far end of the first run.
        preset_id: the preset to compare with; None for the one that fits the link.
        language: the language of the presets' names.
        plan: the plan of the first run, which keys change.
        sending_rate: the requested rate of datagrams, if any.
        page: where to serve the page for devices that join; None if the far end is another one.
    """
    preferences, catalog = read_look(), load_presets()
    try:
        selection = find_initial_preset(catalog, preset_id, peer)
        spec = RunSpec(plan, peer, Judging(preset=selection.preset), sending_rate=sending_rate)
        is_auto = preset_id in {None, AUTO}
        return _run_with_log(AppStart(catalog, selection, spec, language, is_auto, preferences, page))
    finally:
        for line in problem_lines(catalog):  # the app shows them too, but its screen is gone now
            print_stderr(line)


def _run_with_log(start: AppStart) -> int:
    notices: list[str] = []
    open_log = cache(partial(open_run_log, notices.append))
    try:
        status, outcome = run(_run_app(start, open_log, notices))
    finally:
        write_in_background()  # the terminal may have stopped
        log = open_log() if open_log.cache_info().currsize else None
        if log is not None:
            log.close(print_stderr)
    _print_result(outcome, log)
    from ..session.pruning import thin_old_runs

    thin_old_runs()
    return status


async def _run_app(
    start: AppStart, open_log: "Callable[[], RunLog | None]", notices: list[str]
) -> "tuple[int, Outcome | None]":
    """Run the app; return its exit status, and the last outcome if there is a terminal to print it on."""

    async def ask(question: str) -> str | None:
        return await app.ask(question)

    peer = start.spec.peer
    async with AsyncExitStack() as leases, aclosing(FarEndKeeper(ask, peer.ssh)) as far_ends:
        room = await _open_room(start.page, leases)
        backend = AppBackend(open_log, far_ends, notices, start.selection, start.catalog, room)
        app = LinkgaugeApp(
            RunServices(
                catalog=start.catalog,
                start_run=backend.start_run,
                query_host_info=backend.query_host_info,
                export=backend.export,
                open_log=open_log,
                variant_of=backend.variant_of,
                select_preset=backend.select_preset,
                remember_access=_remember_access,
                find_announced=None if find_spec("zeroconf") is None else _find_announced,
                nics=read_own_nics(),
                follow_device=None if room is None else room.follow,
            ),
            start.spec,
            language=start.language,
            is_preset_auto=start.is_preset_auto,
            preferences=start.preferences,
            save=partial(save_preferences, config_dir()),
        )
        with _leave_on_signal(app, backend.interrupt, lambda: backend.wait_until_idle(_RUN_END_TIMEOUT_S)):
            async with _warm_up(app.first_frame, partial(_prepare, leases, far_ends, peer, open_log)):
                await app.run_async()
            # Textual cancels its workers and does not wait for them.
            await backend.wait_until_idle(_IDLE_TIMEOUT_S)
        is_gone = app.return_code == signal_exit_status(signal.SIGHUP)  # nobody reads a terminal that has gone
        return app.return_code or 0, None if is_gone else backend.last_outcome


async def _open_room(page: "RoomConfig | None", leases: AsyncExitStack) -> "WaitingRoom | None":
    """Serve the page for devices that join; return None without a wait. Raises TlsError or EndpointError."""
    if page is None:
        return None
    from ..endpoint.browser.waiting_room import open_waiting_room

    return await leases.enter_async_context(open_waiting_room(page))


def _remember_access(peer: Peer) -> Path:
    """Save the key of a peer; return the file. Raises InvalidKeyError."""
    from ..session.credentials import remember_access

    return remember_access(peer)


async def _find_announced(seconds: float) -> "AsyncGenerator[FoundEndpoint]":
    """Yield the endpoints that announce themselves on this LAN. Raises OSError."""
    # In a thread: zeroconf takes a tenth of a second to import, and the screen is to go on.
    finder = await asyncio.to_thread(import_module, "...discovery.finder", __package__)
    async with aclosing(finder.watch_endpoints(seconds)) as endpoints:
        async for endpoint in endpoints:
            yield endpoint


def _print_result(outcome: "Outcome | None", log: "RunLog | None") -> None:
    """Print the result of the last run below the shell's prompt: the screen that showed it is gone."""
    if outcome is None:
        return
    from ..words.summary import headline

    result = headline(outcome.summary, outcome.verdict)
    print_stderr(f"{result.mark}  {result.text}")
    if log is None:
        return
    if log.problem is not None:
        print_stderr(log.problem)
    else:  # shorter than a line of 80 columns, which a terminal would break within the id
        print_stderr(f"saved; to see it: {PROGRAM} runs show {outcome.run_id}")


async def _prepare(
    leases: AsyncExitStack, far_ends: FarEndKeeper, peer: Peer, open_log: "Callable[[], RunLog | None]"
) -> None:
    """Import what a run needs, open the run log, and start the fork server and the endpoint of loopback.

    The first run reports why these cannot start.
    """
    for name in _AFTER_FIRST_FRAME:
        import_module(name, __package__)
        await asyncio.sleep(0)
    open_log()
    from ...engine.workers.fork_client import ForkServerLease

    await leases.enter_async_context(ForkServerLease())
    if peer.is_loopback:
        with suppress(LinkgaugeError):
            await far_ends.get_far_end(peer)


@asynccontextmanager
async def _warm_up(shown: asyncio.Event, prepare: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """Prepare for the first run in the background, as soon as the first frame is shown."""

    async def start() -> None:
        await shown.wait()
        await prepare()

    task = asyncio.create_task(start())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@contextmanager
def _leave_on_signal(
    app: BaseApp, stop: Callable[[signal.Signals], bool], wait: Callable[[], Awaitable[object]]
) -> Generator[list[signal.Signals]]:
    """Quit the app on a signal, once what runs in it has ended in order; Textual then restores the terminal.

    Args:
        app: the app.
        stop: begins to end what runs; returns whether the app is to wait for that.
        wait: waits until it has ended.

    Yields:
        the signals so far.
    """
    received: list[signal.Signals] = []
    tasks: set[asyncio.Task[None]] = set()

    async def leave(number: signal.Signals) -> None:
        app.is_ended_by_signal = True
        # Not after SIGHUP: drawing on a terminal that has gone blocks Textual before long, and for good.
        if stop(number) and number is not signal.SIGHUP:
            with suppress(TimeoutError):
                await asyncio.wait_for(wait(), _RUN_END_TIMEOUT_S)
        app.exit(return_code=signal_exit_status(number))

    def receive(number: signal.Signals) -> None:
        received.append(number)
        tasks.add(asyncio.create_task(leave(number)))

    with handle_signals(receive, draws=True):
        try:
            yield received
        finally:
            for task in tasks:
                task.cancel()


async def run_mesh_screen(
    session: "MeshSession", log: "RunLog | None", pass_percent: float = DEFAULT_PASS_PERCENT
) -> signal.Signals | None:
    """Show a mesh in progress until the user leaves its screen, or a signal ends it in order; return the signal.

    Args:
        session: the mesh, which nobody else iterates over.
        log: the run log with its runs; None if they are not stored.
        pass_percent: the pass mark of its cells in percent.
    """
    app = MeshApp(
        session,
        _stored_services(log),
        pass_percent=pass_percent,
        preferences=read_look(),
        save=partial(save_preferences, config_dir()),
    )

    return await _run_series(app, session, app.mesh.over)


async def run_watch_screen(
    session: "Watch", log: "RunLog | None", read_plan: "Callable[[], WatchPlan] | None" = None
) -> signal.Signals | None:
    """Show a watch in progress until the user leaves its screen, or a signal ends it in order; return the signal.

    SIGHUP ends it as well: the screen has lost its terminal. A key reloads the file.

    Args:
        session: the watch, which nobody else iterates over.
        log: the run log with its runs; None if they are not stored.
        read_plan: reads the file of the watch again, and raises LinkgaugeError; None for a watch without a file.
    """
    app = WatchApp(
        session,
        _stored_services(log),
        read_plan=read_plan,
        preferences=read_look(),
        save=partial(save_preferences, config_dir()),
    )

    return await _run_series(app, session, app.watching.over)


def run_observe_screen(request: "ObserveRequest", catalog: Catalog) -> int:
    """Show the connections of other programs until the user leaves, or a signal ends it; return the exit status.

    Raises LinkgaugeError if the target does not exist.
    """
    return run(_run_observe(request, catalog))


@contextmanager
def _log_on_demand() -> "Generator[Callable[[], RunLog | None]]":
    """Yield a function that opens the run log once; close it, and print what went wrong with it."""
    notices: list[str] = []
    open_log = cache(partial(open_run_log, notices.append))
    try:
        yield open_log
    finally:
        write_in_background()  # the terminal may have stopped
        log = open_log() if open_log.cache_info().currsize else None
        if log is not None:
            log.close(notices.append)
            notices += [] if log.problem is None or log.problem in notices else [log.problem]
        for notice in notices:
            print_stderr(notice)


async def _run_observe(request: "ObserveRequest", catalog: Catalog) -> int:
    from ...observe.observer import Observer, observe
    from ..observe.observe_screen import screen_request
    from ..observe.observed_records import ObservedRecords

    if request.target is not None and request.target.kind == "host":
        REDACTION.learn_host(request.target.host)
    with closing(Observer(request, catalog)) as observer:
        observer.step()  # a target that does not exist is an error of the command line
    with _log_on_demand() as open_log:
        app = ObserveApp(
            observe(screen_request(request), catalog),
            None if request.target is None else request.target.text,
            records=ObservedRecords(open_log),
            preferences=read_look(),
            save=partial(save_preferences, config_dir()),
        )
        with _leave_on_signal(app, lambda _number: False, asyncio.Event().wait):
            await app.run_async()
    return app.return_code or 0


def run_replay(run_id: str, log: "RunLog", speed: float) -> int:
    """Play a run of the log until the user leaves it, or a signal ends it; return the exit status."""
    return run(_run_replay(run_id, log, speed))


async def _run_replay(run_id: str, log: "RunLog", speed: float) -> int:
    app = ReplayApp(
        run_id,
        log,
        _stored_services(log),
        speed=speed,
        preferences=read_look(),
        save=partial(save_preferences, config_dir()),
    )
    with _leave_on_signal(app, lambda _number: False, asyncio.Event().wait):
        await app.run_async()
    return app.return_code or 0


async def _run_series(app: BaseApp, session: "MeshSession | Watch", over: asyncio.Event) -> signal.Signals | None:
    """Run an app until the user leaves it, or a signal ends its session in order; return the signal."""

    def stop(_number: signal.Signals) -> bool:
        session.stop()
        return True

    with _leave_on_signal(app, stop, over.wait) as received:
        await app.run_async()
    return received[0] if received else None


def _stored_services(log: "RunLog | None") -> StoredServices:
    """Return the services of a log; without one, an export raises RunLogError."""

    def export(run_ids: Sequence[str], form: "ExportFormat", path: Path) -> Path:
        from ..session.run_exports import export_runs

        if log is None:
            raise RunLogError("these runs are not saved")
        return export_runs(log, run_ids, form, path)

    return StoredServices(catalog=load_presets(), export=export, open_log=lambda: log)
