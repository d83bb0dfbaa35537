"""The help of every command, the short one and the whole one."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from linkgauge.tui.cli.click_extension.command_help import HelpCommand, spelling
from linkgauge.tui.cli.main import program, run_command_line

Cli = Callable[..., subprocess.CompletedProcess[str]]


def commands(group: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, those of groups included."""
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *path, name)


COMMANDS = list(commands(program))
LONG = [name for name, command in program.commands.items() if isinstance(command, HelpCommand) and command.is_long]


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
