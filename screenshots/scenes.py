"""What the pictures show: each scene drives the app by its keys through real runs, and takes pictures."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import Final

from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import open_run
from linkgauge.observe.observer import observe as observed
from linkgauge.observe.request import ObserveRequest
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.app.app import EndpointApp, ObserveApp
from linkgauge.tui.endpoint.endpoint_log import EndpointLog
from linkgauge.tui.endpoint.endpoint_setup import EndpointConfig, prepare_endpoint
from linkgauge.tui.endpoint.served_endpoint import ServedEndpoint
from linkgauge.tui.kit.widgets.typed_input import TextField
from linkgauge.tui.observe.observe_screen import screen_request
from picture import film, take
from world import WIDE, Driver, World

SMALL: Final = (80, 24)
HUGE: Final = (200, 60)
PLAN: Final = Plan(Settings(window_bytes=131_072), duration_ns=15 * SECOND_NS)
_LINE_BIT_S: Final = 100_000_000
_BEGUN_S: Final = 20.0
_OBSERVED_S: Final = 12.0
SHORT: Final = Plan(Settings(window_bytes=57_344), duration_ns=5 * SECOND_NS)


async def cockpit(world: World) -> None:
    """Show a window that is too small, then a larger one, then more sessions; at its end, dark and light."""
    async with world.app(PLAN) as driver:
        take(driver.app, "idle")
        await driver.press("space")
        for seconds, key in ((4.0, "right_square_bracket"), (8.0, "plus")):
            await driver.reach(seconds)
            await driver.press(key)
        await driver.reach(11.5)
        await _in_all_sizes(driver, "running")
        await driver.end()
        await _in_all_sizes(driver, "done")
        driver.app.theme = "textual-light"
        await driver.pilot.pause(0.4)
        take(driver.app, "light")


async def moving(world: World) -> None:
    """Film a window that is too small, its finding, the larger window, and the result."""
    async with world.app(PLAN) as driver:
        film(driver.app, "moving", 2_000)
        await driver.press("space")
        for half_seconds in range(1, 30):
            await driver.reach(half_seconds / 2)
            if half_seconds in {12, 20}:
                await driver.press("right_square_bracket" if half_seconds == 12 else "plus")
            film(driver.app, "moving", 500)
        await driver.end()
        film(driver.app, "moving", 0)


async def _in_all_sizes(driver: Driver, name: str) -> None:
    take(driver.app, name)
    for size in (SMALL, HUGE):
        await driver.resize(size)
        take(driver.app, name)
    await driver.resize(WIDE)


async def why(world: World) -> None:
    """Show a run that is short, and what holds it; then the dialogs of the cockpit."""
    async with world.app(SHORT) as driver:
        await driver.press("space")
        await driver.end()
        take(driver.app, "why")
        for name, keys in (
            ("presets", ("n",)),
            ("help", ("question_mark",)),
            ("peers", ("c",)),
            ("export", ("e",)),
        ):
            await driver.press(*keys)
            await driver.pilot.pause(0.6)
            take(driver.app, name)
            await driver.press("escape")
        await driver.resize(SMALL)
        await driver.press("n", "tab")
        await driver.pilot.pause(0.4)
        take(driver.app, "sheet")
        await driver.press("escape", "escape")
        await driver.resize(WIDE)
        asking = asyncio.create_task(driver.app.ask("Enter passphrase for key '/home/me/.ssh/id_ed25519':"))
        await driver.pilot.pause(0.6)
        take(driver.app, "ask")
        await driver.press("escape")
        await asking


async def duplex(world: World) -> None:
    """Show both directions at once, with what the load does to latency."""
    plan = replace(SHORT, settings=Settings(Direction.DUPLEX, 2), probe=True)
    async with world.app(plan) as driver:
        await driver.press("space")
        await driver.reach(4.0)
        take(driver.app, "duplex")
        await driver.end()


async def respond(world: World) -> None:
    """Show what loads do to latency, in the middle of the test and at its end."""
    async with world.app(PLAN) as driver:
        await driver.press("u")
        await driver.reach(8.0)
        await _in_all_sizes(driver, "respond-running")
        await driver.end()
        await _in_all_sizes(driver, "respond")


async def path(world: World) -> None:
    """Show the hops of a path with a queue at one of its routers: under way, at the end, and both directions."""
    async with world.app(PLAN) as driver:
        await driver.press("y", "u")
        await driver.reach(8.0)
        await _in_all_sizes(driver, "path-running")
        await driver.end()
        await _in_all_sizes(driver, "path")
        await driver.press("x")
        await _in_all_sizes(driver, "path-hops")


async def transactions(world: World) -> None:
    """Show ten pairs that ask and answer."""
    async with world.app(Plan(Settings(sessions=10), Workload.RR, duration_ns=5 * SECOND_NS)) as driver:
        await driver.press("space")
        await driver.reach(4.0)
        take(driver.app, "transactions")
        await driver.end()


async def datagrams(world: World) -> None:
    """Show datagrams at the expected rate, then at more than the link carries, when they are lost."""
    async with world.app(Plan(workload=Workload.UDP, duration_ns=12 * SECOND_NS)) as driver:
        await driver.press("space")
        await driver.reach(6.0)
        await driver.press("k")
        await driver.reach(10.0)
        await _in_all_sizes(driver, "udp")
        await driver.end()


async def monochrome(world: World) -> None:
    """Show the same cockpit on a terminal without colours."""
    os.environ["NO_COLOR"] = "1"
    try:
        async with world.app(replace(SHORT, settings=Settings())) as driver:
            await driver.press("space")
            await driver.end()
            take(driver.app, "monochrome")
    finally:
        del os.environ["NO_COLOR"]


async def history(world: World) -> None:
    """Show the runs that the scenes before have left, and two of them beside each other."""
    rows = world.log.list_runs()
    world.log.set_label(rows[-1].run_id, "before the new window")
    world.log.set_label(rows[0].run_id, "after")
    async with world.app(PLAN) as driver:
        await driver.press("h")
        await driver.until("saved runs")
        await driver.press("space", "end", "space", "home")
        take(driver.app, "history")
        await driver.press("c")
        await driver.until("compared with A")
        await driver.pilot.pause(0.4)
        take(driver.app, "compare")


async def sweep(world: World) -> None:
    """Show what settings are worth, from six short runs."""
    with _own_data():
        async with world.app(PLAN) as driver:
            await driver.press("g")
            await driver.until("window")
            for name, value in (("window", "64K..256K"), ("sessions", "1,4"), ("seconds", "1.5")):
                driver.app.screen.query_one(f"#{name}", TextField).value = value
            await driver.pilot.pause(0.4)
            take(driver.app, "sweep-form")
            await driver.press("enter")
            await driver.until("Sweep complete", deadline_s=120)
            await driver.pilot.pause(0.4)
            take(driver.app, "sweep")


async def settings(world: World) -> None:
    """Show what can be set, beside what it changes."""
    async with world.app(PLAN) as driver:
        await driver.press("s")
        await driver.pilot.pause(0.4)
        take(driver.app, "settings")


async def endpoint(_world: World) -> None:
    """Show an endpoint with a client in the middle of a run, on loopback."""
    service = EndpointConfig("127.0.0.1", 0)
    journal = EndpointLog(lambda: datetime.now().astimezone())
    entrance = prepare_endpoint(service, journal.append_entry)
    async with Endpoint(entrance.listener, journal.append_entry, limits=entrance.limits) as serving:
        app = EndpointApp(ServedEndpoint(service, entrance, serving, journal))
        plan = Plan(Settings(Direction.DUPLEX, 2), duration_ns=4 * SECOND_NS)
        async with app.run_test(size=WIDE) as pilot, open_run(plan, Peer(*serving.address)) as run:
            async for event in run:
                if isinstance(event, Sampled) and event.sample.index == 11:
                    await pilot.pause(0.4)
                    take(app, "endpoint")


async def observe(world: World) -> None:
    """Show the connections of other programs: two tests with small windows, and one that receives."""
    options = (("--window", "32K"), ("--window", "64K"), ("--direction", "in", "--rate", "4M"))
    command = (sys.executable, "-m", "linkgauge", "run", str(world.peer), "--seconds", "90", "--json")
    async with contextlib.AsyncExitStack() as stack:
        for each in options:
            quiet = asyncio.subprocess.DEVNULL
            program = await asyncio.create_subprocess_exec(*command, *each, stdout=quiet, stderr=quiet)
            stack.push_async_callback(program.wait)
            stack.callback(program.terminate)
        await asyncio.sleep(_BEGUN_S)
        request = ObserveRequest(line_rate_bit_s=_LINE_BIT_S)
        app = ObserveApp(observed(screen_request(request), load_catalog()))
        pilot = await stack.enter_async_context(app.run_test(size=WIDE))
        await pilot.pause(_OBSERVED_S)
        take(app, "observe")


@contextmanager
def _own_data() -> Generator[None]:
    """Keep definitions of sweeps for as long as this lasts."""
    name = "LINKGAUGE_DATA_DIR"
    before = os.environ.get(name)
    with TemporaryDirectory() as folder:
        os.environ[name] = folder
        try:
            yield
        finally:
            del os.environ[name]
            if before is not None:
                os.environ[name] = before


@dataclass(frozen=True, slots=True)
class Scene:
    """Drives the app through real runs and takes pictures.

    `findings` are the codes that a run may have on the emulated link: the scene makes these, and no other. A scene
    that `has_routers` needs a chain of them in place of the link.
    """

    play: Callable[[World], Awaitable[None]]
    findings: frozenset[str]
    has_routers: bool = False

    @property
    def name(self) -> str:
        """The name on the command line."""
        return self.play.__name__


_SMALL_WINDOW: Final = frozenset({"window-below-bdp"})
_FAST: Final = frozenset({"at-expected"})
# The link has a queue at each end's own interface.
_QUEUES: Final = frozenset({"queue-local", "queue-remote"})
# What a rate above the link's makes: a full queue, by the pattern of its losses.
_TOO_FAST: Final = frozenset({"policer", "loss-bursts", "loss", "path-slow", "send-queue-full", "nic-drops"})

SCENES: Final[tuple[Scene, ...]] = (
    Scene(cockpit, _SMALL_WINDOW | _FAST),
    Scene(moving, _SMALL_WINDOW | _FAST),
    Scene(why, _SMALL_WINDOW),
    Scene(duplex, _FAST),
    Scene(respond, _QUEUES),
    Scene(path, frozenset({"queue-path"}), has_routers=True),
    Scene(transactions, _FAST | {"round-trip"}),
    Scene(datagrams, _FAST | _TOO_FAST),
    Scene(monochrome, _FAST),
    Scene(history, frozenset()),
    Scene(sweep, _SMALL_WINDOW | _FAST),
    Scene(settings, frozenset()),
    Scene(endpoint, _FAST),
    Scene(observe, frozenset()),
)
