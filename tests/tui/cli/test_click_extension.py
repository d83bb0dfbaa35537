"""Groups of commands, their default commands, mistyped ones, and the help of each."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from linkgauge.tui.cli.click_extension import HelpCommand, spelling
from linkgauge.tui.cli.main import program, run_command_line

Cli = Callable[..., subprocess.CompletedProcess[str]]


def commands(group: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, those of groups included."""
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *path, name)


COMMANDS = list(commands(program))
LONG = [name for name, command in program.commands.items() if isinstance(command, HelpCommand) and command.is_long]


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
    monkeypatch.setattr("linkgauge.tui.cli.click_extension.nearest_command", lambda *_: "run")
    done = cli("localhost")
    assert "needs a terminal" in done.stderr


@pytest.mark.parametrize("words", [(), ("check",), ("runs", "delete")])
def test_help_as_a_command_is_the_option(cli: Cli, words: tuple[str, ...]) -> None:
    """Of the program, of a command, of a command in a group."""
    assert cli("help", *words).stdout == cli(*words, "--help").stdout != ""


@pytest.mark.parametrize("name", LONG)
def test_a_command_with_many_options_has_a_short_help_and_a_whole_one(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short one fits on a screen; the whole one has every option, and both say how to get the other."""
    monkeypatch.setenv("COLUMNS", "80")
    helps: list[str] = []
    for option in ("--help", "--help-all"):
        assert run_command_line([name, option]) == 0
        helps.append(capsys.readouterr().out)
    short, whole = helps
    assert len(short.splitlines()) <= 40
    assert max(map(len, whole.splitlines())) <= 80
    options = [each for each in program.commands[name].params if not getattr(each, "hidden", False)]
    assert all(spelling(each) in whole for each in options)
    assert len([each for each in options if f" {spelling(each)}" in short]) >= 8
    assert "--help-all" in short


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_help_fits_80_columns_in_plain_words(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No box, no parentheses around a default, no word of the engine, no text of Click."""
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command_line([*words, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: {' '.join(('linkgauge', *words))} [")
    assert max(map(len, text.splitlines())) <= 80
    for word in (
        "│",
        "[default: (",
        "<str>",
        "<bool>",
        "nothing to expect",
        "near end",
        "far end",
        "gone on",
        "kept",
    ):
        assert word not in text
    assert text.count("-h, --help") == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--iperf3",), ""),
        (("--iperf3", "--iperf3", "5202"), ""),
        (("--iperf3=5202", "--port", "0"), ""),
        (("--iperf3", "70000"), "--iperf3 70000 is invalid"),
        (("--iperf3=x",), "--iperf3 'x' is invalid"),
        (("--iperf3", "x"), "--iperf3 'x' is invalid"),
    ],
)
def test_an_option_may_go_without_its_value(cli: Cli, words: tuple[str, ...], problem: str) -> None:
    """A word that follows is the value, unless it is an option."""
    done = cli("endpoint", *words, "--show-limits")
    assert done.returncode == (2 if problem else 0)
    assert problem in done.stderr
