"""The registry of actions: keys, methods, and the command palette."""

from typing import Any

from linkgauge.engine.model.plan import Direction
from linkgauge.tui.actions import ScreenKind, actions_of
from linkgauge.tui.screens.endpoint.endpoint_status import EndpointScreen
from linkgauge.tui.screens.history.compare_screen import CompareScreen
from linkgauge.tui.screens.history.history_screen import HistoryScreen
from linkgauge.tui.screens.history.stored_run_screen import StoredRunScreen
from linkgauge.tui.screens.run.cockpit_screen import CockpitScreen
from linkgauge.tui.screens.sweep.sweep_screen import SweepScreen


async def test_every_action_has_a_key_a_method_and_a_screen(world: Any) -> None:
    """The registry is complete: keys are unique, methods exist, the palette knows each action by name."""
    screens = (CockpitScreen, HistoryScreen, StoredRunScreen, CompareScreen, EndpointScreen, SweepScreen)
    assert {screen.SCREEN_KIND for screen in screens} == set(ScreenKind)
    for screen in screens:
        actions = actions_of(screen.SCREEN_KIND)
        keys = [key for action in actions for key in action.keys]
        assert len(keys) == len(set(keys))
        assert all(hasattr(screen, f"action_{action.id}") for action in actions)
    app = world.app()
    async with app.run_test():
        titles = [command.title for command in app.get_system_commands(app.screen)]
    assert {action.title for action in actions_of(ScreenKind.COCKPIT)} <= set(titles)


async def test_the_palette_does_what_the_key_does(world: Any) -> None:
    """A command of the palette runs the cockpit's own action."""
    async with world.cockpit() as cockpit:
        commands = cockpit.app.get_system_commands(cockpit.app.screen)
        direction = next(command for command in commands if command.title == "Next direction")
        await direction.callback()
        assert cockpit.app.cockpit.plan.settings.direction is Direction.IN
