"""`linkgauge runs delete` and `prune` ask a person; a script must say --yes."""

import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.engine.model.events import Ended, Started
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.results.run_log import RunLog

from ..... import command_line
from .....engine.results.day_of_samples import samples
from .....engine.results.log_entries import ENDED, STARTED

DEADLINE_S = 30.0
RUN_ID = "20261121-014629-7f3a"


def keep_run(data_dir: Path) -> None:
    """Keep a run without samples; what it measured does not matter here."""
    host = HostInfo("host", "Linux", 2, "linkgauge 0.1.0", "uvloop")
    with RunLog.open(data_dir) as log:
        log.begin(RUN_ID, "gbe-fd-1500", "db-02")
        log.append_event(
            RUN_ID, Started("2026-11-21T01:46:29.023+00:00", "db-02:5820", host, host, Plan(), Expectation())
        )
        log.append_event(RUN_ID, Ended(RunEnd(Reason.COMPLETED, "its duration is up")))
        log.finish(RUN_ID, "pass", {})


def stored_run_ids(data_dir: Path) -> list[str]:
    """Return the runs that are kept."""
    with RunLog.open(data_dir, create=False) as log:
        return [row.run_id for row in log.list_runs()]


def delete(data_dir: Path, *options: str, answer: str | None = None) -> tuple[int, str]:
    """Delete the run, on a terminal where there is an answer to give; return status and what was told."""
    return carry_out(data_dir, "delete", RUN_ID, *options, answer=answer)


def carry_out(data_dir: Path, *options: str, answer: str | None = None) -> tuple[int, str]:
    """Carry out a command of `runs`, on a terminal where there is an answer to give."""
    if answer is None:
        result = command_line.carry_out(["runs", *options], {"LINKGAUGE_DATA_DIR": str(data_dir)})
        return result.status, result.err
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    done = subprocess.run(
        [sys.executable, "-m", "linkgauge", "runs", *options],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "LINKGAUGE_DATA_DIR": str(data_dir)},
        timeout=DEADLINE_S,
        check=False,
    )
    os.set_blocking(ours, False)
    output = os.read(ours, 65_536).decode()
    os.close(theirs)
    os.close(ours)
    assert done.stdout == b""
    return done.returncode, output


@pytest.mark.parametrize(("answer", "left"), [("y\n", []), ("n\n", [RUN_ID]), ("\n", [RUN_ID])])
def test_on_a_terminal_a_run_is_deleted_only_after_a_yes(tmp_path: Path, answer: str, left: list[str]) -> None:
    """The question names the run, its peer and its preset."""
    keep_run(tmp_path)
    status, output = delete(tmp_path, answer=answer)
    assert status == 0
    for words in (
        f"Delete run {RUN_ID} of 2026-11-21 01:46 UTC, peer db-02, preset gbe-fd-1500? [y/N]",
        "not deleted" if left else f"run {RUN_ID} deleted",
    ):
        assert words in output
    assert stored_run_ids(tmp_path) == left


def test_the_end_of_input_is_no_yes(tmp_path: Path) -> None:
    """Ctrl-D keeps the run."""
    keep_run(tmp_path)
    status, output = delete(tmp_path, answer="\x04")
    assert "Traceback" not in output
    assert status == 0
    assert stored_run_ids(tmp_path) == [RUN_ID]


@pytest.mark.parametrize(("options", "answer"), [(("--yes",), "n\n"), (("-y",), None)])
def test_with_yes_there_is_no_question(tmp_path: Path, options: tuple[str, ...], answer: str | None) -> None:
    """A script has said what it wants."""
    keep_run(tmp_path)
    status, output = delete(tmp_path, *options, answer=answer)
    assert status == 0
    assert "[y/N]" not in output
    assert stored_run_ids(tmp_path) == []


def test_without_a_terminal_and_without_yes_nothing_is_deleted(tmp_path: Path) -> None:
    """Nobody can answer the question: that is a wrong command line."""
    keep_run(tmp_path)
    status, text = delete(tmp_path)
    assert status == 2
    assert text.startswith("linkgauge: runs delete asks first")
    assert "--yes" in text
    assert stored_run_ids(tmp_path) == [RUN_ID]


@pytest.mark.parametrize(("answer", "left"), [("y\n", []), ("n\n", [RUN_ID])])
def test_prune_says_what_it_would_delete_and_asks(tmp_path: Path, answer: str, left: list[str]) -> None:
    """On a terminal; the size that the log has then is in the last line."""
    keep_run(tmp_path)
    status, output = carry_out(tmp_path, "prune", "--max", "0", answer=answer)
    assert status == 0
    assert f"Delete 1 run ({RUN_ID}, under 1 MB)? [y/N]" in output.replace("\xa0", " ")
    assert ("0 runs, under 1 MB in" in output.replace("\xa0", " ")) == (not left)
    assert stored_run_ids(tmp_path) == left


@pytest.mark.parametrize(
    ("options", "status", "says", "left"),
    [
        (("--max", "0"), 2, "runs prune asks first", [RUN_ID]),
        ((), 2, "give --keep AGE, --max SIZE, --thin AGE, or several", [RUN_ID]),
        (("--thin", "90", "-y"), 2, "--thin '90' is invalid; give hours, days or weeks", [RUN_ID]),
        (("--thin", "0h", "-y"), 0, "0 runs thinned, under 1 MB given back; saved: 1 run", [RUN_ID]),
        (("--keep", "90", "-y"), 2, "90d", [RUN_ID]),
        (("--max", "much", "-y"), 2, "500M or 2G", [RUN_ID]),
        (("--keep", "9999w", "-y"), 0, "0 runs deleted; saved: 1 run", [RUN_ID]),
        (("--keep", "0h", "-y"), 0, "1 run deleted; saved: 0 runs", []),
    ],
)
def test_prune_without_a_terminal_needs_yes(
    tmp_path: Path, options: tuple[str, ...], status: int, says: str, left: list[str]
) -> None:
    """Wrong options delete nothing."""
    keep_run(tmp_path)
    done = carry_out(tmp_path, "prune", *options)
    assert done[0] == status
    assert says in done[1].replace("\xa0", " ")
    assert stored_run_ids(tmp_path) == left


@pytest.mark.parametrize("option", ["--keep", "--thin"])
def test_prune_asks_about_runs_before_a_long_pause_and_a_script_leaves_them(tmp_path: Path, option: str) -> None:
    """The clock of this host may be years ahead: with --yes nothing goes in silence, and a person is told why."""
    with RunLog.open(tmp_path) as log:
        log.begin("20210101-020000-long", "", "db-02")
        for event in (replace(STARTED, started_utc="2021-01-01T02:00:00.000+00:00"), *samples(496), ENDED):
            log.append_event("20210101-020000-long", event)
        log.finish("20210101-020000-long", "none", {})
    past = "deleted" if option == "--keep" else "thinned"
    status, output = carry_out(tmp_path, "prune", option, "90d", "--yes")
    assert status == 0
    assert f"1 run not {past}: no test was saved between 2021-01-01 and " in output.replace("\xa0", " ")
    assert "so the clock may be wrong" in output
    assert stored_run_ids(tmp_path) == ["20210101-020000-long"]
    status, output = carry_out(tmp_path, "prune", option, "90d", answer="y\n")
    assert status == 0
    assert ": check that the clock of this host is right" in output
    assert f"1 run {past}" in output.replace("\xa0", " ")


def keep_long_run(data_dir: Path, run_id: str, label: str | None = None) -> None:
    """Keep a run of 62 s with four samples a second."""
    with RunLog.open(data_dir) as log:
        log.begin(run_id, "", "db-02", label)
        for event in (STARTED, *samples(496), ENDED):
            log.append_event(run_id, event)
        log.finish(run_id, "none", {})


@pytest.mark.every
@pytest.mark.parametrize(("answer", "count"), [("y\n", 126), ("n\n", 498)])
def test_prune_thins_old_runs_after_a_yes(tmp_path: Path, answer: str, count: int) -> None:
    """What it deletes it does not thin; a run with a label stays as it is without --all."""
    keep_run(tmp_path)
    keep_long_run(tmp_path, "20261121-020000-long")
    keep_long_run(tmp_path, "20261121-030000-name", "cable")
    status, output = carry_out(tmp_path, "prune", "--thin", "0h", answer=answer)
    output = output.replace("\xa0", " ")
    assert status == 0
    assert "Thin 1 run (20261121-020000-long)? [y/N]" in output
    has_thinned = count == 126
    assert ("1 run thinned, under 1 MB given back; saved: 3 runs" in output) == has_thinned
    assert ("1 run with a label or a note not thinned; --all thins such runs too" in output) == has_thinned
    assert ("no runs deleted or thinned" in output) != has_thinned
    with RunLog.open(tmp_path, create=False) as log:
        assert len(list(log.events("20261121-020000-long"))) == count
        assert len(list(log.events("20261121-030000-name"))) == 498
    status, output = carry_out(tmp_path, "prune", "--keep", "0h", "--thin", "0h", answer="n\n")
    assert "Delete 2 runs (20261121-014629-7f3a to 20261121-020000-long, under 1 MB)?" in output.replace(
        "\xa0", " "
    )
    assert carry_out(tmp_path, "prune", "--thin", "0h", "--all", "--yes")[0] == 0
    with RunLog.open(tmp_path, create=False) as log:
        assert len(list(log.events("20261121-030000-name"))) == 126


def test_prune_without_a_log_makes_none(tmp_path: Path) -> None:
    """As all commands that only look."""
    assert carry_out(tmp_path / "data", "prune", "--max", "0", "-y")[0] == 0
    assert not (tmp_path / "data").exists()
