"""Answers to the completion of a shell: commands, options and values; tests/packaging asks from real shells."""

import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.cli import completion
from linkgauge.tui.cli.completion import COMPLETION_VARIABLE

Cli = Callable[..., subprocess.CompletedProcess[str]]


def complete(cli: Cli, line: str, **environment: str) -> list[str]:
    """Return the completions of the last word of a command line in bash."""
    words = line.split(" ")
    question = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), COMPLETION_VARIABLE: "complete_bash"}
    done = cli(**question, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("linkgauge chec", ["check"]),
        ("linkgauge runs sh", ["show"]),
        ("linkgauge check --direc", ["--direction"]),
        ("linkgauge check --direction d", ["duplex"]),
        ("linkgauge db-02 --sess", ["--sessions"]),
        ("linkgauge check gbe-fd-1", ["gbe-fd-1500"]),
        ("linkgauge check aut", ["auto"]),
        ("linkgauge run --preset gbe-fd-9", ["gbe-fd-9000"]),
        ("linkgauge presets show gbe-fd-1", ["gbe-fd-1500"]),
        ("linkgauge lab gbe-fd-1", ["gbe-fd-1500"]),
        ("linkgauge check nothing-begins-so", []),
    ],
)
def test_commands_options_and_presets_are_completed(cli: Cli, line: str, completions: list[str]) -> None:
    """Also the options of the app, whose command need not be typed."""
    assert complete(cli, line) == completions


def test_the_first_word_is_completed_by_the_commands(cli: Cli) -> None:
    """And not by the options of the app, which opens without one."""
    assert {"app", "check", "run", "endpoint", "presets", "runs"} <= set(complete(cli, "linkgauge "))


def test_saved_runs_complete_an_id(cli: Cli, history_log: RunLog) -> None:
    """By the beginning of the id."""
    folder = str(history_log.path.parent)
    assert complete(cli, "linkgauge runs show 20261119", LINKGAUGE_DATA_DIR=folder) == ["20261119-221030-c4d5"]


def test_the_run_log_is_opened_as_often_for_many_runs_as_for_one(
    history_log: RunLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell waits for the answer. The newest run comes first."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(history_log.path.parent))
    opened, connect = Counter[str](), sqlite3.connect
    ids: dict[str, list[str]] = {}
    for beginning in ("20261119", "2026"):

        def count_and_connect(*arguments: Any, of: str = beginning, **options: Any) -> sqlite3.Connection:
            opened[of] += 1
            return connect(*arguments, **options)

        monkeypatch.setattr(sqlite3, "connect", count_and_connect)
        ids[beginning] = [run_id for run_id, _words in completion.complete_run(beginning)]
    assert [len(each) for each in ids.values()] == [1, 4]
    assert ids["2026"] == sorted(ids["2026"], reverse=True)
    assert opened["2026"] == opened["20261119"] > 0


def test_runs_that_cannot_be_read_complete_nothing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question of the shell prints no error into the command line."""
    (tmp_path / "runs.sqlite3").write_bytes(b"no database at all" * 100)
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    assert completion.complete_run("2026") == []


def test_fish_learns_by_the_exit_status_whether_there_are_completions(cli: Cli) -> None:
    """With 1 it completes files."""
    question = {COMPLETION_VARIABLE: "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "is-args"}
    assert cli(**question, _TYPER_COMPLETE_ARGS="linkgauge chec").returncode == 0
    assert cli(**question, _TYPER_COMPLETE_ARGS="linkgauge check gbe-fd-1500 x --csv ").returncode == 1


@pytest.mark.parametrize("shell", sorted(completion.SCRIPTS))
def test_the_script_of_a_shell_is_printed(cli: Cli, shell: str) -> None:
    """As a package installs it; another shell is refused with the names of those that have one."""
    done = cli("completions", shell)
    assert (done.returncode, done.stdout) == (0, completion.SCRIPTS[shell])
    refused = cli("completions", "ksh")
    assert refused.returncode == 2
    assert "bash, zsh or fish" in refused.stderr
