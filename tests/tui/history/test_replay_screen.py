"""The screen that plays a stored run."""

from typing import Any

from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.app.app import ReplayApp
from linkgauge.tui.history.stored_run_screen import StoredRunScreen
from linkgauge.tui.kit.screens.feature_app import StoredServices

from ..app_driver import screen_text, until
from ..stored_runs import CHANGED, open_history
from ..stored_runs import until as until_shown


async def test_keys_pause_a_replay_jump_in_it_and_show_its_result(world: Any, history_log: RunLog) -> None:
    """While it is paused, a jump shows that moment of the run."""
    services = StoredServices(
        catalog=world.catalog, export=world.export, open_log=lambda: history_log, clock=lambda: 0
    )
    app = ReplayApp(CHANGED, history_log, services, speed=4.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "▶ replay  4×" in screen_text(app))
        await pilot.press("space", "plus")
        await until(pilot, lambda: "‖ paused  8×" in screen_text(app))
        await pilot.press("right", "right", "right")
        await until(pilot, lambda: "00:15 / 00:30" in screen_text(app))
        assert "RUNNING" in screen_text(app)
        await pilot.press("left")
        await until(pilot, lambda: "00:10 / 00:30" in screen_text(app))
        await pilot.press("r")
        await until(pilot, lambda: "end of the replay" in screen_text(app))
        assert "RUNNING" not in screen_text(app)
        await pilot.press("0")
        await until(pilot, lambda: "00:00 / 00:30" in screen_text(app))
        await pilot.press("q")
        assert not app.is_running or app._exit


async def test_a_run_of_the_history_is_played_and_left_for_the_list(world: Any, history_log: RunLog) -> None:
    """Space plays the run that is open, escape comes back to it."""
    async with world.cockpit((120, 40)) as cockpit:
        await open_history(cockpit, "enter")
        await until_shown(cockpit, lambda: "loading" not in cockpit.line(1))
        await cockpit.pilot.press("space")
        await until(cockpit.pilot, lambda: "replay" in cockpit.line(1) and "×" in cockpit.line(1))
        await cockpit.pilot.press("escape")
        await until(cockpit.pilot, lambda: isinstance(cockpit.app.screen, StoredRunScreen))
