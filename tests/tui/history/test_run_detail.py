"""The label and the note of a stored run, and the field that edits them."""

from typing import Any

import pytest
from linkgauge.tui.history.history_screen import HistoryScreen
from textual.widgets import Input

from ..stored_runs import CHANGED, FIRST, LOST, SHORT, notifications, open_history, run_at_cursor, until


@pytest.mark.every
async def test_a_label_and_a_note_are_written_in_their_place(world: Any, history_log: Any) -> None:
    """Enter keeps what is written, escape does not; the cursor stays at its run."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit, "down", "down", "l", *"slow x", "enter")
        await until(cockpit, lambda: "slow x" in cockpit.text())
        assert history_log.find(SHORT).label == "slow x"
        await cockpit.press("n", *"MTU", "slash", *"q x", "enter")
        await until(cockpit, lambda: history_log.find(SHORT).note == "MTU/q x")
        await cockpit.press("l", *"nonsense", "escape")
        assert isinstance(cockpit.app.screen, HistoryScreen)
        assert history_log.find(SHORT).label == "slow x"
        assert run_at_cursor(cockpit) == SHORT


@pytest.mark.every
async def test_a_label_is_written_to_all_marked_runs(world: Any, history_log: Any) -> None:
    """The field begins with the text that they share. Enter without a change leaves different texts as they are."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit, "space", "space", "l", *"lab 3", "enter")
        await until(cockpit, lambda: history_log.find(LOST).label == history_log.find(CHANGED).label == "lab 3")
        assert history_log.find(SHORT).label is None
        await cockpit.press("l")
        assert "label of 2 marked runs" in cockpit.text()
        assert cockpit.app.screen.query_one("RunDetail Input", Input).value == "lab 3"
        await cockpit.press("escape", "down", "space", "n", *"one note", "enter")
        await until(cockpit, lambda: history_log.find(FIRST).note == "one note")
        await cockpit.press("l", "enter")
        assert (history_log.find(LOST).label, history_log.find(FIRST).label) == ("lab 3", "before")


@pytest.mark.every
async def test_keys_scroll_a_note_that_is_longer_than_its_panel(world: Any, history_log: Any) -> None:
    """Tab goes to the panel, end to its last word."""
    history_log.set_note(LOST, f"{'word ' * 200}last")
    async with world.cockpit() as cockpit:
        await open_history(cockpit)
        assert "last" not in cockpit.text()
        await cockpit.press("tab", "end")
        assert "last" in cockpit.text()


async def test_a_label_that_is_too_long_is_refused(world: Any, history_log: Any) -> None:
    """As on the command line."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit, "l")
        cockpit.app.screen.query_one("RunDetail Input", Input).value = "x" * 81
        await cockpit.press("enter")
        await until(cockpit, lambda: any("81 characters" in text for text in notifications(cockpit)))
        assert history_log.find(LOST).label is None
