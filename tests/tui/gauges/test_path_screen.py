"""The path of a run in the cockpit: the key that traces it, its panel, and its screen."""

from functools import partial
from typing import Any

import pytest
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.events import PathTraced
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.results.responsiveness.plan import with_path
from linkgauge.tui.gauges.path_screen import PathScreen

from ...engine.results.path.traced_chain import Chain
from ..app_driver import before_snapshot
from ..scripted_loads import A_LOAD, emit_loads

QUEUE = Chain(routers=4, out_ms=((2, 45.0),), silent=(2,), limited=(3,), seed=7)
LONG = Chain(routers=16, out_ms=((9, 45.0),), silent=(2, 3), slow_under_load=(5,), lossy_link=12, seed=7)
HEALTHY = Chain(routers=3, seed=7)


def emit(chain: Chain) -> Any:
    """Return a script of loads whose path is traced."""
    return partial(emit_loads, traces=tuple(chain.traces().values()))


async def test_the_key_traces_the_next_test_and_the_screen_shows_its_hops(world: Any) -> None:
    """The queue is drawn at its hop, a silent hop is silent, and the cockpit says which hop it is."""
    async with world.cockpit((120, 40), preset="100mb-fd") as cockpit:
        await cockpit.press("x")
        assert "has not traced its path. Press y before" in cockpit.text()
        await cockpit.press("y")
        assert "y [hops]" in cockpit.text()
        await cockpit.press("u")
        assert world.script.plan.path
        await cockpit.press("x")
        assert "The hops are shown as soon as they have answered under load" in cockpit.text()
        emit(QUEUE)(world.script)
        await cockpit.end()
        text = " ".join(cockpit.text().split())
        assert "◆ The queue is before hop 3 (192.0.2.4)" in text
        assert "path, hop by hop" in text
        await cockpit.press("x")
        assert isinstance(cockpit.app.screen, PathScreen)
        text = " ".join(cockpit.text().split())
        assert "The queue is before hop 3 (192.0.2.4) and behind hop 1 (hop 2 does not tell)" in text
        assert "way out, hops from the local end, load out" in text
        assert "(2)" in text
        assert "limits its answers" in text
        await cockpit.press("escape")
        assert not isinstance(cockpit.app.screen, PathScreen)


async def test_hops_are_shown_while_the_test_runs_as_far_as_they_have_answered(world: Any) -> None:
    """The way out, by this end's trace, once a second; both ways, by the traces of both ends, take its place."""
    async with world.cockpit((120, 40), preset="100mb-fd") as cockpit:
        await cockpit.press("y", "u")
        world.script.emitted.trace = QUEUE.traces()[End.NEAR]
        emit_loads(world.script, most=A_LOAD)
        await cockpit.settle()
        text = " ".join(cockpit.text().split())
        assert "out → local" in text
        assert "in ← local" not in text
        assert "▓ +" in text
        await cockpit.press("x")
        assert "path, hop by hop, so far" in cockpit.text()
        assert "way in" not in cockpit.text()
        await cockpit.press("escape")
        world.script.emit(*map(PathTraced, QUEUE.traces().values()))
        world.script.end()
        await cockpit.end()
        await cockpit.press("x")
        assert "so far" not in cockpit.text()
        assert "way in, hops from the remote end" in cockpit.text()


async def test_the_key_turns_the_trace_on_and_off_and_only_streams_have_it(world: Any) -> None:
    """The probe that it needs ends it; another workload has no path to load."""
    async with world.cockpit((120, 40)) as cockpit:
        state = cockpit.app.cockpit.state
        await cockpit.press("y")
        assert state.plan == with_path(state.plan)
        await cockpit.press("y")
        assert not state.plan.path
        assert state.plan.responsiveness is None
        await cockpit.press("y", "l")
        assert not state.plan.path
        assert not state.plan.probe
        await cockpit.press("y", "w")
        assert not state.plan.path
        await cockpit.press("y")
        assert not state.plan.path
        assert "Only a stream loads the path" in cockpit.text()


@pytest.mark.parametrize(
    ("name", "size", "keys"),
    [
        ("queue", (80, 24), ("x",)),
        ("queue", (120, 40), ("x",)),
        pytest.param("queue", (200, 60), ("x",), marks=pytest.mark.every),
        ("long", (80, 24), ("x",)),
        pytest.param("healthy", (120, 40), ("x",), marks=pytest.mark.every),
        ("queue", (120, 40), ()),
        pytest.param("queue", (200, 60), (), marks=pytest.mark.every),
        pytest.param("long", (120, 40), (), marks=pytest.mark.every),
        pytest.param("queue", (80, 24), (), marks=pytest.mark.every),
    ],
    ids=lambda value: "x".join(map(str, value)) if isinstance(value, tuple) and value else str(value or "cockpit"),
)
def test_picture(snap_compare: Any, world: Any, name: str, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    """A queue behind a silent hop; 17 hops in rows; a healthy path. On the screen, and in the cockpit."""
    chain = {"queue": QUEUE, "long": LONG, "healthy": HEALTHY}[name]
    app = world.app("100mb-fd", plan=with_path(Plan()))
    before = before_snapshot(world, emit(chain), *keys, start="u")
    assert snap_compare(app, terminal_size=size, run_before=before)
