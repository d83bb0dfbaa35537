"""`linkgauge watch` as a process: once, as JSON lines, from a file, and what it refuses."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Cli = Callable[..., subprocess.CompletedProcess[str]]
ONCE = ("--once", "--seconds", "1", "--rate", "20M")


def test_a_peer_is_tested_once_and_the_status_is_its_verdict(cli: Cli, tmp_path: Path) -> None:
    """A line for each event, and 0 for a peer at its mark or without one."""
    result = cli("watch", "loopback", *ONCE, "--preset", "none", "--json-stream", LINKGAUGE_DATA_DIR=str(tmp_path))
    assert result.returncode == 0, result.stderr
    types = [json.loads(line)["type"] for line in result.stdout.splitlines()]
    assert types == ["watch_start", "probe", "check_start", "check_end", "watch_end"]


def test_a_peer_that_is_down_is_status_3(cli: Cli, tmp_path: Path) -> None:
    """A program of cron sees that there was no result."""
    result = cli("watch", "127.0.0.1:1", *ONCE, "--retests", "0", LINKGAUGE_DATA_DIR=str(tmp_path))
    assert result.returncode == 3
    assert "nothing listens" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no-such-file.toml",), "no-such-file.toml"),
        (("loopback", "--every", "never"), "every"),
        (("none", "loopback", "--line-rate", "1G"), "they need a preset"),
        (("loopback", "--seconds", "none"), "duration"),
        (("loopback", "--follow", "--once"), "--follow only shows a watch"),
        (("loopback", "--follow", "--metrics", "127.0.0.1:0"), "--follow only shows a watch"),
    ],
)
def test_a_wrong_command_line_is_status_2(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """With what is wrong, before anything is tested."""
    result = cli("watch", *arguments, LINKGAUGE_DATA_DIR=str(tmp_path))
    assert result.returncode == 2
    assert words in result.stderr


def test_a_watch_that_is_followed_makes_no_run_log(cli: Cli, tmp_path: Path) -> None:
    """A wrong directory is an error, and stays as it is."""
    result = cli("watch", "loopback", "--follow", LINKGAUGE_DATA_DIR=str(tmp_path / "none"))
    assert result.returncode == 3
    assert "has no run log" in result.stderr
    assert not (tmp_path / "none").exists()
