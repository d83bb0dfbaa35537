"""The app, joined to the real world: engine, run log, export."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from ...engine.connect import probe
from ...engine.dataplane.starting import Hold
from ...engine.errors import StoreError
from ...engine.loop import run
from ...engine.plan import Peer, Plan
from ...engine.runlog import RunLog
from ...engine.samples import HostFacts, Reason
from ...presets.catalog import Catalog
from ...presets.model import Preset
from ...presets.pick import AUTO, Picked
from ...presets.wire import PLAIN, Variant
from ..app import LinkgaugeApp
from ..conduct import Conducted, conduct, open_log
from ..exports import export_runs
from ..known import known_presets, problem_lines
from ..paths import config_dir
from ..ports import Form
from ..preferences import keep_preferences, read_preferences
from .app_preset import named_preset, picked_preset
from .app_sweeps import KeptSweeps
from .output import say
from .standing import Standing

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
