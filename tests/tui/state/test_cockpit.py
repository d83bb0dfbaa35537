"""The state behind the cockpit: one run after the other, without an app."""

from typing import Any

import pytest
from linkgauge.engine.model.events import Reason
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, Plan
from linkgauge.tui.state.cockpit import CockpitState
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
