"""The label and the note of a stored run, and the field that edits them."""

from typing import Any

from linkgauge.tui.screens.history.history_screen import HistoryScreen
from linkgauge.tui.widgets.history.run_table import RunTable
from textual.widgets import Input

from ...stored_runs import LOST, SHORT, notifications, open_history, until


async def test_a_label_and_a_note_are_written_in_their_place(world: Any, kept: Any) -> None:
    """Enter keeps what is written, escape does not; the cursor stays at its run."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit, "down", "down", "l", *"slow x", "enter")
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
        await open_history(cockpit, "l")
        cockpit.app.screen.query_one("RunDetail Input", Input).value = "x" * 81
        await cockpit.press("enter")
        await until(cockpit, lambda: any("81 characters" in text for text in notifications(cockpit)))
        assert kept.find(LOST).label is None
