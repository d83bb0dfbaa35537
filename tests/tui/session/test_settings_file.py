"""The user's settings: which value holds, and which mistakes are named with file, line and key."""

import os
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import UsageError
from linkgauge.tui.session.setting_table import SETTINGS
from linkgauge.tui.session.settings_file import BUILT_IN, FILE_NAME, read_settings, settings_template


def test_a_variable_comes_before_the_file_and_the_file_before_the_default(tmp_path: Path) -> None:
    """An empty variable counts as absent, as in Click."""
    path = tmp_path / FILE_NAME
    path.write_text("# mine\nsessions = 4\n\nwindow = 65536\n")
    held = read_settings(tmp_path, {"LINKGAUGE_SESSIONS": "8", "LINKGAUGE_WINDOW": ""})
    assert (held.value("sessions"), held.values["sessions"].source) == (8, "LINKGAUGE_SESSIONS")
    assert (held.value("window"), held.values["window"].source) == (65_536, f"{path}, line 4")
    assert (held.value("pass_mark"), held.values["pass_mark"].source) == (95.0, BUILT_IN)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("\ntheme = pink", ", line 2", "it is not TOML: Invalid value"),
        ("\udcff", "", "it is not text in UTF-8"),
        pytest.param("pass_mark = " + "9" * 5_000, "", "it is not TOML", id="digits without end"),
        pytest.param("".join(f"k{i} = 1\n" for i in range(9_000)), "", "it is larger than 64 KiB", id="keys"),
        pytest.param("theme = " + "[" * 5_000, "", "it is not TOML", id="lists without end"),
        pytest.param(
            "\n" + "a." * 20_000 + "a = 1", ", line 2", "it is not TOML: A key has over 64 parts", id="parts"
        ),
        ('\n"theme" = "pink"', ", line 2", "theme 'pink' is invalid; give one of textual-dark"),
        ("seconds = 5\nsessions = 200", ", line 2", "sessions 200 is invalid; give 1 to 128"),
        ("pass_mark = nan", ", line 1", "pass_mark nan is invalid; give percents"),
        ("window = true", ", line 1", "window True is invalid; give a text or a number"),
        ('preset = "10gbe"', ", line 1", "preset '10gbe' is not known; did you mean"),
        ("[keys]\ntheme = 1\n[kyes]", ", line 3", "'kyes' is not a setting; known: preset, seconds"),
        ("keys = 1", ", line 1", "'keys' is not a setting"),
    ],
)
def test_a_mistake_is_named_with_its_file_line_key_and_what_is_allowed(
    tmp_path: Path, text: str, where: str, says: str
) -> None:
    """The file is refused as a whole: half of it would be a surprise."""
    path = tmp_path / FILE_NAME
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError) as caught:
        read_settings(tmp_path, {})
    assert str(caught.value).startswith(f"{path}{where}: {says}")


def test_every_mistake_is_named_and_a_variable_by_its_name(tmp_path: Path) -> None:
    """One line each."""
    (tmp_path / FILE_NAME).write_text("refresh = 4\ninterval = 60\n")
    with pytest.raises(UsageError) as caught:
        read_settings(tmp_path, {"LINKGAUGE_FAMILY": "5"})
    lines = str(caught.value).splitlines()
    assert [line.partition(": ")[0][-len("line 1") :] for line in lines] == ["line 1", "line 2", "FAMILY"]
    assert lines[2] == "LINKGAUGE_FAMILY: family '5' is invalid; give 4, 6 or any"


def test_the_template_is_a_file_that_says_nothing_until_a_line_is_uncommented(tmp_path: Path) -> None:
    """Then each example is allowed."""
    path = tmp_path / FILE_NAME
    path.write_text(settings_template())
    assert read_settings(tmp_path, {}).values == read_settings(tmp_path / "none", {}).values
    examples = [
        line[1:] for line in settings_template().splitlines() if line[:1] == "#" != line[1:2] and line[1] != " "
    ]
    path.write_text("\n".join(examples[: examples.index("[theme]")]))
    held = read_settings(tmp_path, {})
    assert [name for name in SETTINGS if held.values[name].text is None] == []


@pytest.mark.parametrize("key", ["key_file", "endpoint_key_file", "bind"])
@pytest.mark.parametrize("value", [r"a\u0000b", r"\u001b[31m", r"a\nb"])
def test_a_path_or_address_with_a_control_character_is_a_mistake(tmp_path: Path, key: str, value: str) -> None:
    """No file has a NUL in its name, and no line of an error has two lines."""
    (tmp_path / FILE_NAME).write_text(f'{key} = "{value}"')
    with pytest.raises(UsageError, match=f"line 1: {key} '[^\n]+' is invalid; give "):
        read_settings(tmp_path, {})


@pytest.mark.parametrize("value", ["9" * 4_000, "0x" + "f" * 5_000, "'" + "x" * 60_000 + "'"])
def test_a_mistake_of_any_length_is_one_short_line(tmp_path: Path, value: str) -> None:
    """The id of a preset too."""
    for key in SETTINGS.keys() - {"key_file", "endpoint_key_file", "bind"}:
        (tmp_path / FILE_NAME).write_text(f"{key} = {value}")
        with pytest.raises(UsageError) as raised:
            read_settings(tmp_path, {})
        assert len(str(raised.value)) < 600
        assert "\n" not in str(raised.value)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """Nobody may ever write to it."""
    os.mkfifo(tmp_path / FILE_NAME)
    with pytest.raises(UsageError, match="it is a pipe; the settings are a file"):
        read_settings(tmp_path, {})


def test_a_file_without_an_end_is_refused(tmp_path: Path) -> None:
    """A device has no size."""
    (tmp_path / FILE_NAME).symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="larger than 64 KiB"):
        read_settings(tmp_path, {})
