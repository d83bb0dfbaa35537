"""Each key of the cockpit, pressed as a person would, on a small and on a large screen."""

# pyright: reportPrivateUsage=false

from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.events import Reason
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, Plan, Settings
from linkgauge.tui.actions import ACTIONS, ScreenKind, actions_of
from linkgauge.tui.screens.dialogs.export import ExportScreen
from linkgauge.tui.screens.dialogs.help import HelpScreen
from linkgauge.tui.screens.dialogs.preset_picker import PresetPicker
from linkgauge.tui.screens.dialogs.text_prompt import TextPrompt
from linkgauge.tui.screens.endpoint.endpoint_status import EndpointScreen
from linkgauge.tui.screens.history.compare_screen import CompareScreen
from linkgauge.tui.screens.history.history_screen import HistoryScreen
from linkgauge.tui.screens.history.stored_run_screen import StoredRunScreen
from linkgauge.tui.screens.run.cockpit_screen import CockpitScreen
from linkgauge.tui.screens.sweep.sweep_screen import SweepScreen
from linkgauge.tui.state.instrument_values import Phase
from textual.widgets import Input

both_sizes = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])


@both_sizes
async def test_space_starts_a_run_and_stops_it(world: Any, size: tuple[int, int]) -> None:
    """The run gets the plan that is set; a stop is asked for once, and the verdict follows."""
    async with world.cockpit(size) as cockpit:
        assert "READY" in cockpit.line(0)
        await cockpit.press("space")
        world.script.run_for(8, 7.1e9)
        await cockpit.settle()
        assert "RUNNING 00:02 / 00:30" in cockpit.line(0)
        await cockpit.press("space")
        await cockpit.end()
        assert world.script.stops == [Reason.STOPPED]
        assert world.script.closed
        assert "PASS" in cockpit.line(0)
        await cockpit.press("space")
        assert len(world.scripts) == 2


@both_sizes
async def test_plus_goes_up_the_steps_of_sessions(world: Any, size: tuple[int, int]) -> None:
    """One step a key press, up to the most that a run may have."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("plus", "equals_sign", "plus")
        assert cockpit.app.cockpit.plan.settings.sessions == 5
        assert "[5]" in cockpit.line(2)
        await cockpit.press(*["plus"] * 8)
        assert cockpit.app.cockpit.plan.settings.sessions == 128


@both_sizes
async def test_minus_goes_down_the_steps_of_sessions(world: Any, size: tuple[int, int]) -> None:
    """From a number that is no step, down to the next one that is; never below one."""
    async with world.cockpit(size, plan=Plan(Settings(sessions=7))) as cockpit:
        await cockpit.press("minus")
        assert cockpit.app.cockpit.plan.settings.sessions == 5
        await cockpit.press("underscore", *["minus"] * 6)
        assert cockpit.app.cockpit.plan.settings.sessions == 1
        assert "[1]" in cockpit.line(2)


@both_sizes
async def test_brackets_go_through_the_windows(world: Any, size: tuple[int, int]) -> None:
    """From auto up, and down to auto again."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press(*["right_square_bracket"] * 3)
        assert cockpit.app.cockpit.plan.settings.window_bytes == 56 * 1024
        assert "[56K]" in cockpit.line(2)
        await cockpit.press(*["right_square_bracket"] * 9)
        assert "[4M]" in cockpit.line(2)
        await cockpit.press(*["left_square_bracket"] * 11)
        assert cockpit.app.cockpit.plan.settings.window_bytes is None
        assert "[auto]" in cockpit.line(2)


@both_sizes
async def test_d_goes_around_the_directions(world: Any, size: tuple[int, int]) -> None:
    """Out, in, duplex, out; the expected rate follows."""
    async with world.cockpit(size) as cockpit:
        seen: list[Direction] = []
        for _ in range(3):
            await cockpit.press("d")
            seen.append(cockpit.app.cockpit.plan.settings.direction)
        assert seen == [Direction.IN, Direction.DUPLEX, Direction.OUT]
        await cockpit.press("d", "d")
        assert "14 400" in cockpit.line(1)


@both_sizes
async def test_t_goes_around_the_durations(world: Any, size: tuple[int, int]) -> None:
    """30 s, 60 s, 5 min, until stopped, and 5 s again."""
    async with world.cockpit(size) as cockpit:
        seen: list[int | None] = []
        for _ in range(4):
            await cockpit.press("t")
            seen.append(cockpit.app.cockpit.plan.duration_ns)
        assert seen == [60 * SECOND_NS, 300 * SECOND_NS, None, 5 * SECOND_NS]
        assert "[5 s]" in cockpit.line(2)


@both_sizes
async def test_setting_keys_change_the_current_run(world: Any, size: tuple[int, int]) -> None:
    """Each change reaches the run at once, and shows in the settings bar and in the plot."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 7.1e9)
        await cockpit.press("plus", "right_square_bracket", "d")
        world.script.run_for(12, 7.1e9)
        await cockpit.settle()
        assert world.script.changes == [
            Settings(sessions=2),
            Settings(sessions=2, window_bytes=16 * 1024),
            Settings(Direction.IN, 2, 16 * 1024),
        ]
        assert "[2]" in cockpit.line(2)
        assert [mark.label for mark in cockpit.app.cockpit.readings.change_marks] == [
            "2\u00a0sessions",
            "window\u00a016K",
            "in",
        ]


@both_sizes
async def test_p_freezes_the_instruments_and_releases_them(world: Any, size: tuple[int, int]) -> None:
    """The stopwatch, the settings and the run continue; after the pause everything is up to date."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("p")
        assert not cockpit.app.cockpit.state.is_paused
        await cockpit.press("space")
        world.script.run_for(8, 7.1e9)
        await cockpit.settle()
        assert "sessions 1" in cockpit.text()
        await cockpit.press("p", "plus")
        world.script.run_for(8, 2e9)
        await cockpit.settle()
        assert "PAUSED 00:04" in cockpit.line(0)
        assert "[2]" in cockpit.line(2)
        assert "sessions 1" in cockpit.text()
        assert cockpit.app.cockpit.readings.elapsed_ns == 4 * SECOND_NS
        await cockpit.press("p")
        assert "RUNNING" in cockpit.line(0)
        assert "sessions 2" in cockpit.text()
        await cockpit.press("p", "space")
        await cockpit.end()
        assert not cockpit.app.cockpit.state.is_paused


@both_sizes
async def test_the_preset_keys_open_a_list_with_a_filter(world: Any, size: tuple[int, int]) -> None:
    """Type, go down with the arrow, choose with enter."""
    async with world.cockpit(size) as cockpit:
        for key in ("n", "f", "slash"):
            await cockpit.press("escape", key)
            assert isinstance(cockpit.app.screen, PresetPicker)
        await cockpit.press(*"atm 622")
        assert "ATM 155" not in cockpit.text()
        await cockpit.press("down", "enter")
        assert isinstance(cockpit.app.screen, CockpitScreen)
        assert cockpit.app.cockpit.preset.id == "atm622-9180"
        assert "ATM 622, MTU 9180" in cockpit.line(1)


@both_sizes
async def test_escape_leaves_the_list_and_the_preset_alone(world: Any, size: tuple[int, int]) -> None:
    """A filter that matches nothing chooses nothing either."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("n", *"zzz", "enter")
        assert isinstance(cockpit.app.screen, PresetPicker)
        await cockpit.press("escape")
        assert cockpit.app.cockpit.preset.id == "10gbe-fd-1500"


@both_sizes
async def test_c_connects_to_another_peer(world: Any, size: tuple[int, int]) -> None:
    """The dialog explains an invalid peer; a valid one is queried at once."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("c")
        field = cockpit.app.screen.query_one(Input)
        field.value = "db-02:99999"
        await cockpit.press("enter")
        assert isinstance(cockpit.app.screen, TextPrompt)
        assert "port: 99999 is not possible" in cockpit.text()
        field.value = "db-02:6000"
        await cockpit.press("enter")
        await cockpit.end()
        assert world.probed[-1] == Peer("db-02", 6000)
        assert "db-02:6000" in cockpit.line(0)


@both_sizes
async def test_r_asks_the_far_end_again(world: Any, size: tuple[int, int]) -> None:
    """Once more for each key press."""
    async with world.cockpit(size, peer=Peer("db-02")) as cockpit:
        await cockpit.press("r")
        await cockpit.end()
        assert len(world.probed) == 2


@both_sizes
async def test_e_exports_the_last_run(world: Any, size: tuple[int, int], tmp_path: Path) -> None:
    """A small choice; then the file that is named, and never one that exists."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 7.1e9)
        world.script.end()
        await cockpit.end()
        await cockpit.press("e")
        assert isinstance(cockpit.app.screen, ExportScreen)
        await cockpit.press("c")
        taken = tmp_path / "taken.csv"
        taken.write_text("mine")
        field = cockpit.app.screen.query_one(Input)
        assert field.value == f"linkgauge-{world.script.run_id}.csv"
        field.value = str(taken)
        await cockpit.press("enter")
        assert "exists already" in cockpit.text()
        field.value = str(tmp_path / "new.csv")
        await cockpit.press("enter")
        await cockpit.end()
        assert world.exports == [([world.script.run_id], "csv", tmp_path / "new.csv")]
        assert taken.read_text() == "mine"
        assert "exported" in [told.title for told in cockpit.app._notifications]


async def test_without_a_run_only_the_screen_can_be_exported(world: Any, tmp_path: Path) -> None:
    """The picture is of the cockpit, and not of the question that was asked over it."""
    async with world.cockpit() as cockpit:
        await cockpit.press("e", "c", "j", "h")
        assert isinstance(cockpit.app.screen, ExportScreen)
        assert "CSV" not in cockpit.text()
        await cockpit.press("enter")
        cockpit.app.screen.query_one(Input).value = str(tmp_path / "screen.svg")
        await cockpit.press("enter")
        await cockpit.end()
        picture = (tmp_path / "screen.svg").read_text()
        assert picture.startswith("<svg")
        assert "READY" in picture
        assert "export&#160;the&#160;screen" not in picture


@both_sizes
async def test_the_help_keys_explain_every_key(world: Any, size: tuple[int, int]) -> None:
    """Every action of the registry is on the page; escape closes it."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("f1", "f1", "question_mark")
        assert isinstance(cockpit.app.screen, HelpScreen)
        said = "\n".join(line.plain for line in cockpit.app.screen._lines(400))  # no text is broken in two
        of_the_app = [action for action in ACTIONS if action.screens != (ScreenKind.ENDPOINT,)]
        assert all(action.help in said for action in of_the_app)
        await cockpit.press("escape")
        assert isinstance(cockpit.app.screen, CockpitScreen)


@both_sizes
async def test_quitting_stops_the_run_first(world: Any, size: tuple[int, int]) -> None:
    """The run's end is seen before the app is gone, so that it is kept with the run."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 7.1e9)
        await cockpit.settle()
        await cockpit.press("q")
        await cockpit.end()
        assert world.script.stops == [Reason.STOPPED]
        assert world.script.closed
        assert cockpit.app.cockpit.phase is Phase.DONE
        assert cockpit.app._exit


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_quitting_without_a_run_quits_at_once(world: Any, key: str) -> None:
    """Nothing to wait for."""
    async with world.cockpit() as cockpit:
        await cockpit.press(key)
        assert cockpit.app._exit


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


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
async def test_the_footer_and_the_settings_bar_name_their_keys(world: Any, size: tuple[int, int]) -> None:
    """The footer has the actions, the settings bar those of the settings."""
    async with world.cockpit(size) as cockpit:
        footer = cockpit.text().splitlines()[-1]
        for word in ("space", "pause", "network", "peer", "help", "quit"):
            assert word in footer
        toggles = cockpit.line(2)
        assert all(key in toggles for key in ("d ", "+- ", "[] ", "t "))


@both_sizes
async def test_the_workload_is_that_of_the_next_run(world: Any, size: tuple[int, int]) -> None:
    """The current run keeps its own; the settings bar names every other workload than stream."""
    async with world.cockpit(size) as cockpit:
        seen: list[str] = []
        for _ in range(4):
            await cockpit.press("w")
            seen.append(str(cockpit.app.cockpit.plan.workload))
        assert seen == ["rr", "crr", "fetch", "stream"]
        await cockpit.press("w")
        await cockpit.press("space")
        await cockpit.press("w")
        assert world.script.plan.workload == "rr"
        assert cockpit.app.cockpit.plan.workload == "crr"
