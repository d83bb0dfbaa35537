"""The choice of an export: formats, file names, and files that exist."""

import resource
from pathlib import Path
from typing import Any

import pytest
from linkgauge.tui.kit.screens.export import ExportScreen
from textual.widgets import Input


async def test_e_exports_the_last_run(world: Any, tmp_path: Path) -> None:
    """A small choice; then the file that is named, and never one that exists."""
    async with world.cockpit() as cockpit:
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
        assert "already exists" in cockpit.text()
        field.value = str(tmp_path / "new.csv")
        await cockpit.press("enter")
        await cockpit.end()
        assert world.exports == [([world.script.run_id], "csv", tmp_path / "new.csv")]
        assert taken.read_text() == "mine"
        assert cockpit.app.shown_message.title == "exported"


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


def files_of(folder: Path) -> list[Path]:
    """Return what is in a folder."""
    return list(folder.iterdir())


async def test_a_picture_without_room_is_named_and_leaves_nothing(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit of the process stands for a full disk (RLIMIT_FSIZE, setrlimit(2))."""
    picture = tmp_path / "screen.svg"
    async with world.cockpit() as cockpit:
        monkeypatch.chdir(tmp_path)
        await cockpit.press("e", "enter")
        cockpit.app.screen.query_one(Input).value = str(picture)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, before[1]))
        try:
            await cockpit.press("enter")
            await cockpit.end()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        shown = cockpit.app.shown_message
    assert shown.title == "export failed"
    assert str(picture) in str(shown.message)
    assert "file too large" in str(shown.message)
    assert not files_of(tmp_path)
