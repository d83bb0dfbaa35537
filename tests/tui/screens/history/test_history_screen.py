"""The runs that are kept, in the app: found, sorted, named, opened, compared, exported, deleted."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from linkgauge.tui.actions import ScreenKind, actions_of
from linkgauge.tui.screens.dialogs.confirm import ConfirmScreen
from linkgauge.tui.screens.history.compare_screen import CompareScreen
from linkgauge.tui.screens.history.history_screen import HistoryScreen
from linkgauge.tui.screens.history.stored_run_screen import StoredRunScreen
from linkgauge.tui.screens.run.cockpit_screen import CockpitScreen
from linkgauge.tui.widgets.history.run_table import RunTable
from textual.widgets import Input

FIRST, SHORT, CHANGED, LOST = (
    "20261118-091200-a2b3",
    "20261119-221030-c4d5",
    "20261120-070000-e6f7",
    "20261121-014629-g8h9",
)


async def until(cockpit: Any, condition: Callable[[], bool]) -> None:
    """Wait until what was asked for is on the screen."""
    async with asyncio.timeout(30):
        while not condition():
            await cockpit.app.workers.wait_for_complete()
            await cockpit.settle()


async def opened(cockpit: Any, *keys: str) -> None:
    """Open the list, wait for it, and press keys."""
    await cockpit.press("h")
    await until(cockpit, lambda: bool(shown(cockpit)))
    for key in keys:
        await cockpit.press(key)


def shown(cockpit: Any) -> list[str]:
    """Return the ids in the table, top down."""
    return [line.run_id for line in cockpit.app.screen.query_one(RunTable)._list.lines]


def told(cockpit: Any) -> list[str]:
    """Return what the app has told in the corner."""
    return [one.message for one in cockpit.app._notifications]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_h_lists_the_stored_runs_newest_first(world: Any, kept: Any, size: tuple[int, int]) -> None:
    """With rate, percentage, verdict and label; escape goes back."""
    async with world.cockpit(size) as cockpit:
        await opened(cockpit)
        assert shown(cockpit) == [LOST, CHANGED, SHORT, FIRST]
        text = cockpit.text()
        for word in ("4 runs kept", "11-18 09:12", "9 379", "99.6", "✓ PASS", "▼ SHORT", "before"):
            assert word in text
        await cockpit.press("escape")
        assert isinstance(cockpit.app.screen, CockpitScreen)


async def test_without_a_log_there_is_no_history(world: Any) -> None:
    """A message says why."""
    async with world.cockpit() as cockpit:
        await cockpit.press("h")
        assert isinstance(cockpit.app.screen, CockpitScreen)
        assert any("runs are not kept" in text for text in told(cockpit))


async def test_the_list_is_filtered_as_it_is_typed(world: Any, kept: Any) -> None:
    """Letters go only into the filter; escape clears it."""
    async with world.cockpit() as cockpit:
        await opened(cockpit, "slash", *"peer:db-02 pass")
        assert shown(cockpit) == [CHANGED, FIRST]
        assert "2 of 4 runs kept" in cockpit.text()
        await cockpit.press("enter", "escape")
        assert len(shown(cockpit)) == 4


async def test_the_list_is_sorted_by_each_column(world: Any, kept: Any) -> None:
    """The next one with `s`, the other way around with `S`, and by a click on the column's head."""
    async with world.cockpit((120, 40)) as cockpit:
        await opened(cockpit, *["s"] * 4)
        assert "Mb/s▼" in cockpit.text()
        assert shown(cockpit)[0] == FIRST
        await cockpit.press("S")
        assert shown(cockpit)[0] == CHANGED
        await cockpit.pilot.click(RunTable, offset=(4, 0))
        await cockpit.settle()
        assert shown(cockpit) == [LOST, CHANGED, SHORT, FIRST]


async def test_a_label_and_a_note_are_written_in_their_place(world: Any, kept: Any) -> None:
    """Enter keeps what is written, escape does not; the cursor stays at its run."""
    async with world.cockpit() as cockpit:
        await opened(cockpit, "down", "down", "l", *"slow x", "enter")
        await until(cockpit, lambda: "slow x" in cockpit.text())
        assert kept.find(SHORT).label == "slow x"
        await cockpit.press("n", *"MTU", "slash", *"q x", "enter")
        await until(cockpit, lambda: kept.find(SHORT).note == "MTU/q x")
        await cockpit.press("l", *"nonsense", "escape")
        assert isinstance(cockpit.app.screen, HistoryScreen)
        assert kept.find(SHORT).label == "slow x"
        assert cockpit.app.screen.query_one(RunTable).run_id == SHORT


async def test_a_label_that_is_too_long_is_refused(world: Any, kept: Any) -> None:
    """As on the command line."""
    async with world.cockpit() as cockpit:
        await opened(cockpit, "l")
        cockpit.app.screen.query_one("RunDetail Input", Input).value = "x" * 81
        await cockpit.press("enter")
        await until(cockpit, lambda: any("81 characters" in text for text in told(cockpit)))
        assert kept.find(LOST).label is None


async def test_deleting_asks_first(world: Any, kept: Any) -> None:
    """Anything but yes keeps the runs; yes deletes all that are marked."""
    async with world.cockpit() as cockpit:
        await opened(cockpit, "x")
        assert isinstance(cockpit.app.screen, ConfirmScreen)
        assert LOST in cockpit.text()
        await cockpit.press("enter")
        assert len(shown(cockpit)) == 4
        await cockpit.press("space", "space", "delete", "y")
        await until(cockpit, lambda: len(shown(cockpit)) == 2)
        assert [row.run_id for row in kept.list_runs()] == [SHORT, FIRST]


async def test_enter_opens_the_run(world: Any, kept: Any) -> None:
    """Its plot, its summary and its verdict's words, as they were then; its note can be written there, too."""
    async with world.cockpit((120, 40)) as cockpit:
        await opened(cockpit, "down", "enter")
        await until(cockpit, lambda: "reading" not in cockpit.line(1))
        assert isinstance(cockpit.app.screen, StoredRunScreen)
        text = " ".join(cockpit.text().split())
        for word in (
            "db-02:6000",
            "gbe-fd-1500 2026-11-20 07:00 UTC",
            "940.0",
            "5 sessions",
            "PASS",
            "AIX table 1",
        ):
            assert word in text
        await cockpit.press("n", *"new", "enter")
        await until(cockpit, lambda: "note new" in cockpit.text())
        await cockpit.press("escape")
        assert isinstance(cockpit.app.screen, HistoryScreen)


async def test_marked_runs_are_compared(world: Any, kept: Any) -> None:
    """The others are compared with the oldest; each difference has its significance."""
    async with world.cockpit((120, 40)) as cockpit:
        await opened(cockpit, "c")
        assert isinstance(cockpit.app.screen, HistoryScreen)
        await cockpit.press("down", "down", "space", "c")
        await until(cockpit, lambda: "against" in cockpit.text())
        assert isinstance(cockpit.app.screen, CompareScreen)
        text = cockpit.text()
        assert text.index("before") < text.index(SHORT)
        line = next(line for line in text.splitlines() if "out Mb/s" in line)
        assert line.split()[0] == "≠"
        assert "41.4 % slower" in line


async def test_marked_runs_are_exported_in_one_file(world: Any, kept: Any, tmp_path: Path) -> None:
    """The format is the chosen one."""
    async with world.cockpit() as cockpit:
        await opened(cockpit, "space", "space", "e", "j")
        cockpit.app.screen.query_one(Input).value = str(tmp_path / "runs.json")
        await cockpit.press("enter")
        await until(cockpit, lambda: bool(world.exports))
        assert world.exports == [([CHANGED, LOST], "json", tmp_path / "runs.json")]


async def test_the_palette_has_the_actions_of_the_screen(world: Any, kept: Any) -> None:
    """Each by its name."""
    async with world.cockpit() as cockpit:
        await opened(cockpit)
        titles = {command.title for command in cockpit.app.get_system_commands(cockpit.app.screen)}
        assert {action.title for action in actions_of(ScreenKind.HISTORY)} <= titles
        assert "Start or stop the run" not in titles
