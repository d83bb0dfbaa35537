"""The user's settings, and their file."""

from pathlib import Path

import pytest
from linkgauge.engine.model.errors import PreferencesNotSaved
from linkgauge.tui.session.preferences import (
    FILE_NAME,
    NO_SAVED_PREFERENCES,
    Preferences,
    read_pass_mark,
    read_preferences,
    save_preferences,
)
from linkgauge.tui.words.numbers import RateUnit

SET = Preferences("monochrome", RateUnit.MIB, 2.5, 90.0, "12w")


def test_saved_values_are_read_again_and_a_missing_file_is_fine(tmp_path: Path) -> None:
    """The folder is made with the first file; nothing else is left in it."""
    folder = tmp_path / "config"
    assert read_preferences(folder) == NO_SAVED_PREFERENCES
    assert save_preferences(folder, Preferences()) is None
    assert save_preferences(folder, SET) is None
    assert read_preferences(folder).preferences == SET
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize(
    ("text", "says", "read"),
    [
        ("theme = pink", "it is not TOML: Invalid value (at line 1", Preferences()),
        ("\udcff", "it is not TOML", Preferences()),
        pytest.param("pass_mark = " + "9" * 5_000, "it is not TOML", Preferences(), id="digits without end"),
        pytest.param("theme = " + "[" * 5_000, "it is not TOML", Preferences(), id="lists without end"),
        ('theme = "pink"\npass_mark = 80', "theme 'pink' is invalid; give one of", Preferences(pass_mark=80)),
        ("units = 3", "units 3 is invalid; give Mb/s or MiB/s; Mb/s is used", Preferences()),
        (
            "refresh_hz = 0",
            "refresh rate 0 Hz is invalid; give 0.5 to 30 a second; 4.0 is used",
            Preferences(),
        ),
        ("pass_mark = nan", "pass mark nan % is invalid", Preferences()),
        ("pass_mark = true", "pass_mark True is invalid; give a number; 95.0 is used", Preferences()),
        ("thin_after = 30", "thin_after 30 is invalid; give never, or an age such as 30d", Preferences()),
        ('thin_after = "soon"', "thin_after 'soon' is invalid; give never, or an age such as 30d", Preferences()),
        (
            "refresh = 4",
            "unknown setting 'refresh'; known: theme, units, refresh_hz, pass_mark, thin_after",
            Preferences(),
        ),
    ],
)
def test_an_error_is_reported_with_file_and_name_and_the_rest_is_used(
    tmp_path: Path, text: str, says: str, read: Preferences
) -> None:
    """A file with something wrong in it is not written over, but set aside."""
    path = tmp_path / FILE_NAME
    path.write_bytes(text.encode(errors="surrogateescape"))
    found = read_preferences(tmp_path)
    (problem,) = found.problems
    assert problem.startswith(f"{path}: ")
    assert says in problem
    assert found.preferences == read
    for number in (1, 2):
        path.write_bytes(text.encode(errors="surrogateescape"))
        aside = save_preferences(tmp_path, SET)
        assert aside is not None
        assert aside == tmp_path / f"{FILE_NAME}.bad-{number}"
        assert aside.read_bytes() == text.encode(errors="surrogateescape")
        assert read_preferences(tmp_path).preferences == SET


def test_a_file_that_is_linked_to_stays_linked_to(tmp_path: Path) -> None:
    """Some users keep such files in another folder."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "elsewhere" / "mine.toml")
    save_preferences(tmp_path, SET)
    assert (tmp_path / FILE_NAME).is_symlink()
    assert read_preferences(tmp_path).preferences == SET


def test_a_failed_save_is_reported_with_its_path(tmp_path: Path) -> None:
    """Here a file has the name of the folder."""
    (tmp_path / "config").write_text("")
    with pytest.raises(PreferencesNotSaved, match=r"config/settings.toml: .*(exists|directory)"):
        save_preferences(tmp_path / "config", SET)


def test_a_check_uses_the_saved_pass_mark_and_says_so(tmp_path: Path) -> None:
    """So the app and a script say the same of a link; the usual mark is no news."""
    reports: list[str] = []
    assert (read_pass_mark(tmp_path, reports.append), reports) == (95.0, [])
    save_preferences(tmp_path, SET)
    assert read_pass_mark(tmp_path, reports.append) == 90.0
    assert reports == [f"pass mark 90 % from {tmp_path / FILE_NAME}; --pass-mark gives another"]
