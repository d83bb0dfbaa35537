"""Groups of commands and their default commands."""

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
