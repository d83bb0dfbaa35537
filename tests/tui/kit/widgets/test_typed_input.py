"""Calls that wait until the user pauses."""

from collections.abc import AsyncIterator

import pytest
from linkgauge.tui.kit.widgets.typed_input import Debounce
from textual.app import App
from textual.pilot import Pilot

from ...app_driver import until

SOON_S, NEVER_S = 0.01, 3_600.0


@pytest.fixture
async def pilot() -> AsyncIterator[Pilot[None]]:
    """Give an app, whose timers run."""
    async with App[None]().run_test() as pilot:
        yield pilot


async def test_several_schedules_make_one_call(pilot: Pilot[None]) -> None:
    """Only the timer of the last one is left."""
    calls: list[str] = []
    debounced = Debounce(pilot.app, SOON_S, lambda: calls.append("call"))
    for _ in range(3):
        debounced.schedule()
    assert debounced.is_pending
    assert calls == []
    later = Debounce(pilot.app, SOON_S, lambda: calls.append("later"))  # its timer fires after all of the others
    later.schedule()
    await until(pilot, lambda: "later" in calls)
    assert calls == ["call", "later"]
    assert not debounced.is_pending


async def test_a_flush_calls_at_once_and_only_if_a_call_is_pending(pilot: Pilot[None]) -> None:
    """The timer is then stopped."""
    calls: list[str] = []
    debounced = Debounce(pilot.app, NEVER_S, lambda: calls.append("call"))
    debounced.flush()
    assert calls == []
    debounced.schedule()
    debounced.flush()
    assert calls == ["call"]
    assert not debounced.is_pending


async def test_a_cancelled_call_is_dropped(pilot: Pilot[None]) -> None:
    """A flush does not bring it back."""
    calls: list[str] = []
    debounced = Debounce(pilot.app, NEVER_S, lambda: calls.append("call"))
    debounced.schedule()
    debounced.cancel()
    debounced.flush()
    assert calls == []
    assert not debounced.is_pending
