"""What the screen of a responsiveness test shows, and which of its settings are fixed."""

from typing import Any

from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan
from linkgauge.tui.readings.cockpit_snapshot import why_settings_fixed

from ..scripted_loads import A_LOAD, state_after
from ..scripted_run import ScriptedRun


def test_the_header_shows_the_test_and_the_next_run_keeps_its_settings(world: Any) -> None:
    """The user's choice for ordinary tests stays."""
    state = state_after(world, A_LOAD + 5)
    assert state.snapshot().plan == responsiveness_plan()
    assert state.snapshot().next_plan is None
    assert state.snapshot().expectation.in_ is not None
    assert state.plan.settings.sessions == 3
    assert state.why_fixed is not None
    state.change_settings(sessions=5)
    assert isinstance(state.run, ScriptedRun)
    assert state.run.changes == []
    ended = state_after(world, None).snapshot()
    assert ended.plan == responsiveness_plan()
    assert ended.next_plan is not None
    assert ended.next_plan.settings.sessions == 3


def test_settings_are_fixed_by_the_test_or_by_the_far_end() -> None:
    """Each has its own reason."""
    assert why_settings_fixed(LOOPBACK, Plan()) is None
    assert "responsiveness test" in (why_settings_fixed(LOOPBACK, responsiveness_plan()) or "")
    assert "iperf3" in (why_settings_fixed(Peer.parse("iperf3://db-02"), Plan()) or "")
