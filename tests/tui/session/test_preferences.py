"""The preferences of the app, and how they are saved in the user's file."""

from pathlib import Path

import pytest
from linkgauge.engine.model.errors import PreferencesNotSaved, UsageError
from linkgauge.tui.session.preferences import Preferences, read_pass_mark, read_preferences, save_preferences
from linkgauge.tui.session.settings_file import FILE_NAME
from linkgauge.tui.words.numbers import RateUnit

SET = Preferences("monochrome", RateUnit.MIB, 2.5, 90.0, "12w")


def test_saved_values_are_read_again_and_a_missing_file_is_fine(tmp_path: Path) -> None:
    """The folder is made with the first file; nothing else is left in it."""
    folder = tmp_path / "config"
    assert read_preferences(folder) == Preferences()
    save_preferences(folder, SET)
    assert read_preferences(folder) == SET
    save_preferences(folder, Preferences())
    assert read_preferences(folder) == Preferences()
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


def test_a_change_in_the_app_leaves_everything_else_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comments, settings of the command line, tables; a value from a variable is not written."""
    monkeypatch.setenv("LINKGAUGE_UNITS", "MiB/s")
    path = tmp_path / FILE_NAME
    path.write_text('# mine\nseconds = 20\ntheme = "nord" # dark\n\n[keys]\ntoggle_run = "r"\n')
    save_preferences(tmp_path, Preferences("monochrome", RateUnit.MIB, 10.0, 95.0))
    assert path.read_text() == (
        '# mine\nseconds = 20\ntheme = "monochrome"\n\nrefresh_hz = 10.0\n\n[keys]\ntoggle_run = "r"\n'
    )


@pytest.mark.parametrize("text", ["theme = pink", 'theme = "pink"', 'theme = """\nnord"""'])
def test_a_file_that_cannot_be_changed_safely_stays_as_it_is(tmp_path: Path, text: str) -> None:
    """One with a mistake, or with a value over several lines."""
    path = tmp_path / FILE_NAME
    path.write_text(text)
    with pytest.raises(PreferencesNotSaved, match=r"settings.toml.*"):
        save_preferences(tmp_path, SET)
    assert path.read_text() == text


def test_a_file_that_is_linked_to_stays_linked_to(tmp_path: Path) -> None:
    """Some users keep such files in another folder."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "elsewhere" / "mine.toml")
    save_preferences(tmp_path, SET)
    assert (tmp_path / FILE_NAME).is_symlink()
    assert read_preferences(tmp_path) == SET


def test_a_failed_save_is_reported_with_its_path(tmp_path: Path) -> None:
    """Here a file has the name of the folder."""
    (tmp_path / "config").write_text("")
    with pytest.raises(PreferencesNotSaved, match=r"config/settings.toml: .*(exists|directory)"):
        save_preferences(tmp_path / "config", SET)


def test_preferences_are_never_read_from_a_file_with_a_mistake(tmp_path: Path) -> None:
    """The user hears of it before anything starts."""
    (tmp_path / FILE_NAME).write_text("units = 3")
    with pytest.raises(UsageError, match="units 3 is invalid; give Mb/s or MiB/s"):
        read_preferences(tmp_path)


def test_a_check_uses_the_saved_pass_mark_and_says_so(tmp_path: Path) -> None:
    """So the app and a script say the same of a link; the usual mark is no news."""
    reports: list[str] = []
    assert (read_pass_mark(tmp_path, reports.append), reports) == (95.0, [])
    save_preferences(tmp_path, SET)
    assert read_pass_mark(tmp_path, reports.append) == 90.0
    assert reports == [f"pass mark 90 % from {tmp_path / FILE_NAME}, line 5; --pass-mark gives another"]
