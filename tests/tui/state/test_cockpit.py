"""The state behind the cockpit: one run after the other, without an app."""

from typing import Any

import pytest
from linkgauge.engine.model.events import Reason
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, Plan
from linkgauge.tui.state.cockpit import (
    DURATION_STEPS,
    SESSION_STEPS,
    WINDOW_STEPS,
    CockpitState,
    RefreshPacer,
    next_duration,
    next_step,
    next_window,
)
from linkgauge.tui.state.instrument_values import Phase, RunProblem

from ..scripted_run import NEAR, ScriptedRun

PLAN = Plan(duration_ns=10 * SECOND_NS)


@pytest.fixture
def script(world: Any) -> ScriptedRun:
    """Return a run of 10 Gb Ethernet."""
    return world.script_of(world.catalog.find("10gbe-fd-1500"), PLAN)


@pytest.fixture
def state(script: ScriptedRun) -> CockpitState:
    """Return the state before its first run."""
    return CockpitState(LOOPBACK, PLAN, script.preset, 95.0)


def finish(state: CockpitState, script: ScriptedRun, bit_s: float) -> None:
    """Play a whole run."""
    state.begin_run()
    state.run_opened(script)
    script.run_for(20, bit_s)
    script.end()
    while not script.queue.empty():
        event = script.queue.get_nowait()
        script.meter.feed(event)
        state.handle_event(event)
    script.meter.flush()
    state.run_ended(script.meter.summary())


def test_a_run_that_is_stopped_while_it_is_being_opened_is_stopped_once_it_is_open(
    state: CockpitState, script: ScriptedRun
) -> None:
    """Nobody has to press the key twice."""
    state.begin_run()
    assert (state.phase, state.is_busy) == (Phase.STARTING, True)
    state.stop_run()
    assert script.stops == []
    state.run_opened(script)
    assert script.stops == [Reason.STOPPED]
    assert state.phase is Phase.STOPPING


def test_a_changed_setting_reaches_the_run_in_progress_and_the_next_plan(
    state: CockpitState, script: ScriptedRun
) -> None:
    """The same setting again changes nothing."""
    assert state.change_settings(sessions=2)
    assert script.changes == []
    state.begin_run()
    state.run_opened(script)
    assert state.change_settings(direction=Direction.IN, window=(65_536,))
    assert not state.change_settings(direction=Direction.IN, window=(65_536,))
    (settings,) = script.changes
    assert (settings.direction, settings.sessions, settings.window_bytes) == (Direction.IN, 2, 65_536)
    assert state.plan.settings == settings


def test_another_pass_mark_judges_the_run_that_has_ended_again(state: CockpitState, script: ScriptedRun) -> None:
    """7.2 Gb/s are expected of one session, and 6.9 are 95.8 percent."""
    finish(state, script, 6.9e9)
    assert state.phase is Phase.DONE
    assert state.verdict is not None
    assert state.verdict.word == "pass"
    state.set_pass_mark(99.0)
    assert state.verdict.word == "short"
    assert script.marks == [95.0]


def test_another_peer_is_unknown_until_it_has_answered(state: CockpitState) -> None:
    """A problem with the peer before it is gone as well."""
    state.set_far_info(NEAR)
    state.set_problem(RunProblem("refused", "no run", "try again"))
    assert state.snapshot().far == NEAR
    state.set_peer(Peer("db-02"))
    snapshot = state.snapshot()
    assert (snapshot.far, snapshot.problem, snapshot.phase) == (None, None, Phase.IDLE)


@pytest.mark.parametrize(
    ("steps", "value", "up", "down"),
    [
        (SESSION_STEPS, 1, 2, 1),
        (SESSION_STEPS, 7, 8, 5),
        (SESSION_STEPS, 128, 128, 64),
        (WINDOW_STEPS, None, 16_384, None),
        (WINDOW_STEPS, 16_384, 32_768, None),
        (WINDOW_STEPS, 100_000, 131_072, 65_536),
        (WINDOW_STEPS, 1 << 30, 1 << 30, 4_194_304),
    ],
)
def test_steps_go_to_the_next_value_and_stop_at_the_ends(steps: Any, value: Any, up: Any, down: Any) -> None:
    """Also from a value that is no step."""
    assert next_step(steps, value, 1) == up
    assert next_step(steps, value, -1) == down


def test_durations_go_around() -> None:
    """From any value every duration can be reached."""
    seen = [DURATION_STEPS[0]]
    for _ in range(len(DURATION_STEPS) - 1):
        seen.append(next_duration(seen[-1]))
    assert tuple(seen) == DURATION_STEPS
    assert next_duration(None) == DURATION_STEPS[0]


def test_frames_are_four_times_as_far_apart_where_the_host_has_no_time_for_them() -> None:
    """And near again once it has; where nobody knows how busy it is, they are as asked for."""
    pace = RefreshPacer(lambda: 5 * SECOND_NS, refresh_hz=4)
    assert pace.seconds_until_due() == 0
    for host_percent, due_s in ((None, 0.25), (50.0, 0.25), (97.0, 1.0), (0.0, 0.25)):
        pace.frame_drawn(host_percent)
        assert pace.seconds_until_due() == due_s


@pytest.mark.parametrize(
    ("window", "by", "used", "expected"),
    [
        (None, 1, None, 256 * 1024),
        (None, 1, 425_984, 512 * 1024),
        (None, 1, 6_291_456, 4_096 * 1024),
        (None, -1, 425_984, None),
        (16 * 1024, -1, 425_984, None),
        (16 * 1024, 1, 425_984, 32 * 1024),
    ],
)
def test_the_window_goes_up_from_the_one_in_use(
    window: int | None, by: int, used: int | None, expected: int | None
) -> None:
    """A step from auto to 16K would throttle the test; the small windows are reached by going down."""
    assert next_window(window, by, used) == expected
