"""Groups of commands, their default commands, and mistyped ones."""

import subprocess
from collections.abc import Callable

import pytest

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_group_without_a_command_is_its_list(cli: Cli, options: tuple[str, ...]) -> None:
    """Options go with it."""
    assert cli("presets", *options).stdout == cli("presets", "list", *options).stdout != ""


def test_the_help_of_a_group_is_not_that_of_its_default_command(cli: Cli) -> None:
    """It names every command of the group."""
    text = cli("presets", "--help").stdout
    assert "list" in text
    assert "show" in text


def test_a_word_that_is_no_command_is_a_peer(cli: Cli) -> None:
    """Without a terminal there is no app to connect it with."""
    done = cli("db-02")
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["chekc", "db-02"], "linkgauge check"),
        (["preset"], "linkgauge presets"),
        (["endpiont"], "linkgauge endpoint"),
        (["runs", "exprot"], "linkgauge runs export"),
        (["presets", "shwo", "gbe-fd-1500"], "linkgauge presets show"),
    ],
)
def test_a_mistyped_command_is_reported_with_the_nearest(cli: Cli, words: list[str], nearest: str) -> None:
    """It is not opened as a host."""
    done = cli(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("linkgauge: there is no command '")
    assert done.stderr.endswith(f"; did you mean {nearest}?\n")


def test_a_host_whose_name_is_like_a_command_is_a_peer(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """What resolves is a host."""
    monkeypatch.setattr("linkgauge.tui.cli.click_extension.command_groups.nearest_command", lambda *_: "run")
    done = cli("localhost")
    assert "needs a terminal" in done.stderr


@pytest.mark.parametrize("words", [(), ("check",), ("runs", "delete")])
def test_help_as_a_command_is_the_option(cli: Cli, words: tuple[str, ...]) -> None:
    """Of the program, of a command, of a command in a group."""
    assert cli("help", *words).stdout == cli(*words, "--help").stdout != ""
