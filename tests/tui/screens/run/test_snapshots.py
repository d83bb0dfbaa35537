"""Pictures of the main states, from a script of events: a change of looks is a change of these files."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from linkgauge.engine.model.errors import PeerUnreachable
from linkgauge.engine.model.events import Warned
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, Plan, Settings
from linkgauge.engine.model.workload import Workload

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
FAR = Peer("db-02")


Before = Callable[[Any], Awaitable[None]]


def driven(world: Any, drive: Callable[[Any], object] | None, *press: str, ends: bool = True) -> Before:
    """Return what a snapshot runs first: start a run, let the script happen, press keys, and let it all settle."""

    async def run(pilot: Any) -> None:
        await pilot.pause()
        if drive is not None:
            await pilot.press("space")
            await pilot.pause()
            drive(world.script)
            if ends:
                await pilot.app.workers.wait_for_complete()
            else:
                await asyncio.wait_for(world.script.queue.join(), 30)
        await pilot.press(*press)
        await world.still(pilot)

    return run


def half_way(script: Any) -> None:
    """Five seconds of one session, then seven of five."""
    script.emit(Warned("far granted a window of 212K, less than the 4M asked for"))
    script.run_for(20, 6.9e9)
    script.change_settings(script.settings.with_changes(sessions=5))
    script.run_for(28, 9.38e9)


@SIZES
def test_idle(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """First steps, and what the preset expects."""
    app = world.app(peer=FAR)
    assert snap_compare(app, terminal_size=size, run_before=driven(world, None))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_running(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """A change of sessions in the plot, one core busy, a warning."""
    app = world.app(peer=FAR)
    assert snap_compare(app, terminal_size=size, run_before=driven(world, half_way, ends=False))


@SIZES
def test_running_duplex(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Three gauges, and the total judged."""
    plan = Plan(Settings(Direction.DUPLEX, 2), duration_ns=30 * SECOND_NS)
    app = world.app(peer=FAR, plan=plan)
    before = driven(world, lambda script: script.run_for(60, 7.2e9), ends=False)
    assert snap_compare(app, terminal_size=size, run_before=before)


def _loaded(script: Any) -> None:
    script.took_ns = (19_000_000, 24_000_000, 25_000_000, 31_000_000)
    script.run_for(40, 9.2e9)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_latency_under_load(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The probe's percentiles beside the plot, with the idle ones as ticks."""
    app = world.app(peer=FAR, plan=Plan(duration_ns=30 * SECOND_NS, probe=True))
    assert snap_compare(app, terminal_size=size, run_before=driven(world, _loaded, ends=False))


def _answered(script: Any) -> None:
    script.took_ns = (*(641_000 + 3_000 * n for n in range(96)), 1_062_000, 1_071_000, 1_800_000, 19_000_000)
    script.run_for(40, 9.6e6)


@SIZES
def test_running_transactions(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Transactions a second in the gauge and in the plot, and how long they take."""
    app = world.app("zvm-qdio-1500", FAR, Plan(workload=Workload.RR, duration_ns=30 * SECOND_NS))
    assert snap_compare(app, terminal_size=size, run_before=driven(world, _answered, ends=False))


@SIZES
def test_finished_pass(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The whole duration, as fast as it should be."""
    app = world.app(peer=FAR, plan=Plan(Settings(sessions=5), duration_ns=30 * SECOND_NS))
    before = driven(world, lambda script: (script.run_for(120, 9.38e9), script.end()))
    assert snap_compare(app, terminal_size=size, run_before=before)


@SIZES
def test_finished_short(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Under the pass mark, told by number, mark and word."""
    app = world.app(peer=FAR, plan=Plan(Settings(window_bytes=57_344), duration_ns=30 * SECOND_NS))
    before = driven(world, lambda script: (script.run_for(120, 5.5e9), script.end()))
    assert snap_compare(app, terminal_size=size, run_before=before)


@SIZES
def test_no_expectation(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Loopback: measured, not judged."""
    app = world.app("loopback", LOOPBACK, Plan(duration_ns=None))
    before = driven(world, lambda script: script.run_for(50, 61e9), ends=False)
    assert snap_compare(app, terminal_size=size, run_before=before)


@SIZES
def test_peer_refused(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """A message with what to do."""
    world.refusal = PeerUnreachable("db-02:5820 refused the connection: start linkgauge endpoint there")
    app = world.app(peer=FAR)
    assert snap_compare(app, terminal_size=size, run_before=driven(world, None))


@SIZES
def test_help(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Every key, made from the registry."""
    app = world.app(peer=FAR)
    assert snap_compare(app, terminal_size=size, run_before=driven(world, None, "question_mark"))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_presets(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The list by family, and beside it, where there is room, the sheet of what is highlighted."""
    app = world.app(peer=FAR)
    before = driven(world, None, "n", *"ethernet 1500", "down")
    assert snap_compare(app, terminal_size=size, run_before=before)


def test_a_presets_sheet(snap_compare: Any, world: Any) -> None:
    """On a small screen it takes the list's place."""
    app = world.app(peer=FAR)
    assert snap_compare(app, terminal_size=(80, 24), run_before=driven(world, None, "n", "tab"))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_settings(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Over the instruments, which show at once what was set; a message beside a field that cannot be."""
    app = world.app(peer=FAR)
    keys = ("s", "tab", "enter", "down", "enter", "tab", "tab", "1", "2", "0")
    assert snap_compare(app, terminal_size=size, run_before=driven(world, half_way, *keys, ends=False))


@pytest.mark.parametrize("theme", ["textual-light", "no colour"])
def test_running_in_light_and_without_colour(
    snap_compare: Any, world: Any, monkeypatch: pytest.MonkeyPatch, theme: str
) -> None:
    """Good is told by number, mark and word; the area and the expected rate are told apart."""
    if theme == "no colour":
        monkeypatch.setenv("NO_COLOR", "1")
    app = world.app(peer=FAR)
    if theme != "no colour":
        app.theme = theme
    assert snap_compare(app, terminal_size=(120, 40), run_before=driven(world, half_way, ends=False))


@SIZES
def test_peers(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """A line to type into, and below it this machine alone; nothing is known of others yet."""
    app = world.app(peer=FAR)
    assert snap_compare(app, terminal_size=size, run_before=driven(world, None, "c"))
