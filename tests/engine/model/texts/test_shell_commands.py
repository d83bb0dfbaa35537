"""Commands to paste: whatever the other end calls itself, a shell takes it as one word."""

import ast
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import linkgauge
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import make_printable
from linkgauge.engine.model.texts.shell_commands import (
    enable_offloads_command,
    negotiate_command,
    set_mtu_command,
    set_sysctl_command,
    shell_command,
)

EVIL = (
    "eth0;id>stolen",
    "$(id>stolen)",
    "`id>stolen`",
    "a'b\"c;id>stolen",
    "x=1;id>stolen",
    "eth0|id>stolen #",
    "",
)


@given(words=st.lists(st.text(min_size=1).map(make_printable), min_size=1))
@example(words=["x=1;id", "=", "a='b'"])
def test_a_command_is_split_into_the_words_that_it_was_made_of(words: list[str]) -> None:
    """Each is one argument, whatever is in it."""
    assert shlex.split(shell_command(*words)) == words


@given(name=st.text(min_size=1, max_size=15).map(make_printable))
def test_the_name_of_an_interface_is_one_word_of_every_command(name: str) -> None:
    """Also if it is a command itself."""
    commands = [
        *(enable_offloads_command(name, is_bsd=is_bsd) for is_bsd in (False, True)),
        *(negotiate_command(name, is_bsd=is_bsd) for is_bsd in (False, True)),
        *(set_mtu_command(name, 1_500, is_linux=is_linux) for is_linux in (False, True)),
    ]
    assert [shlex.split(command).count(name) for command in commands] == [1] * len(commands)


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh"])
def test_a_shell_carries_out_nothing_of_a_name(shell: str, tmp_path: Path) -> None:
    """It passes the name on to the program, and makes no file that the name asks for."""
    program = shutil.which(shell) or pytest.skip(f"there is no {shell}")
    lines = "\n".join(shell_command("printf", "%s\\n", name) for name in EVIL)
    done = subprocess.run(
        [program, "-c", lines], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=9
    )
    assert done.stdout == "".join(f"{name}\n" for name in EVIL)
    assert not list(tmp_path.iterdir())


def test_control_characters_do_not_reach_a_terminal_and_only_values_are_quoted() -> None:
    """A person can still read what the command sets."""
    assert shell_command("ethtool", "a\x1b[2J\nid") == "ethtool 'a\ufffd[2J\ufffdid'"
    assert set_sysctl_command("net.ipv4.tcp_rmem", "1 2 3") == "sysctl -w net.ipv4.tcp_rmem='1 2 3'"


_PROGRAMS = (
    r"(ethtool|ifconfig|sysctl|chmod|ip( -\w+)* (link|route|addr)|tc|linkgauge (run|check|app|runs delete)) "
)


def _filled_commands(path: Path) -> list[str]:
    """Return the f-strings of a module that put a value behind the name of a program."""
    found: list[str] = []
    source = path.read_text(encoding="utf-8")
    if not re.search(r"ethtool|ifconfig|sysctl|chmod|\bip\b|\btc\b|linkgauge", source):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            if re.search(_PROGRAMS + r"[^;:,)\u2026]*\{\}", text):
                found.append(text)
    return found


def test_no_other_module_puts_a_value_into_a_command() -> None:
    """A word that is not quoted there is a command of its own."""
    root = Path(linkgauge.__file__).parent
    modules = [
        path
        for name in ("engine", "mesh", "metrics", "presets", "tui", "watch")
        for path in (root / name).rglob("*.py")
    ]
    assert len(modules) > 100
    assert {path.name: found for path in modules if (found := _filled_commands(path))} == {}
