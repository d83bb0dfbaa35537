"""The run log from the command line: kept, shown again, exported, deleted; and when it cannot be kept."""

import csv
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.directions import PerDirection
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.results.run_log import RunLog, thinning
from linkgauge.engine.results.summary import Measurement, Summary
from linkgauge.tui.session.stored_run import load_stored_run

from ..command_line import RATE_LIMIT
from ..command_line import SHORT_RUN as SHORT
from ..engine.results.day_of_samples import samples
from ..engine.results.log_entries import ENDED, STARTED
from ..engine.results.log_lock import hold_lock


def can_mount() -> bool:
    """Return whether this user may mount a file system in a name space of its own."""
    if shutil.which("unshare") is None:
        return False
    done = subprocess.run(
        ["/usr/bin/env", "unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"],
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


@pytest.mark.every
def test_a_run_is_shown_again_as_it_was_shown(linkgauge: Any, far_end: str) -> None:
    """From its events alone: the same summary, the same document, by a part of its id, too. Its lines are not."""
    shown = linkgauge("check", "10mb-fd", far_end, *SHORT, "--sessions", "2")
    run_id = shown.err.split()[-1]
    again = linkgauge("runs", "show", run_id)
    assert again.status == 0
    first, _, summary = again.out.partition("\n")
    assert first == run_id
    assert shown.out.endswith(f"\n{summary}")
    assert linkgauge("runs", "show", run_id[:15]).out == again.out
    document = linkgauge("runs", "show", run_id, "--json").document
    assert document["run_id"] == run_id
    assert linkgauge("runs", "export", run_id, "--json").document == document
    assert linkgauge("runs", "export", "all", "--json").document == [document]


@pytest.mark.every
def test_runs_are_listed_the_newest_first_and_can_be_deleted(linkgauge: Any, far_end: str) -> None:
    """`linkgauge runs` is `linkgauge runs list`."""
    ids = [linkgauge("run", far_end, *SHORT, "--json").document["run_id"] for _ in range(2)]
    listed = linkgauge("runs")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == ids[::-1]
    assert linkgauge("runs", "delete", ids[0], "-y").status == 0
    assert [run["run_id"] for run in linkgauge("runs", "list", "--json").document] == ids[1:]
    assert linkgauge("runs", "show", ids[0]).status == 2


@pytest.mark.every
def test_a_run_is_saved_whole_when_another_process_unlocks_the_log_after_its_end(
    linkgauge: Any, far_end: str
) -> None:
    """Its end is shown at once; nothing of it is lost, and `runs` reads the log meanwhile."""
    linkgauge("run", far_end, *SHORT)
    with RunLog.open(Path(linkgauge.environment["LINKGAUGE_DATA_DIR"])) as log:
        path = log.path
    with hold_lock(path, "EXCLUSIVE") as lock:
        run = linkgauge.start("run", far_end, *SHORT, "--csv", path.parent / "rows.csv")
        lines = [run.stderr.readline()]
        while "waiting for up to" not in lines[-1]:
            assert lines[-1], lines
            lines.append(run.stderr.readline())
        assert linkgauge("runs").out.count("completed") == 1
        lock.release()
        answer = linkgauge.finish(run)
    assert answer.status == 0
    assert "completed" in answer.out
    lines += answer.err.splitlines()
    assert not [line for line in lines if "Traceback" in line or "not saved" in line]
    listed = linkgauge("runs", "list", "--json").document
    assert len(listed) == 2
    exported = linkgauge("runs", "export", listed[0]["run_id"])
    with (path.parent / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert list(csv.reader(exported.out.splitlines())) == rows
    assert len(rows) > 5


@pytest.mark.every  # each waits ten seconds for the lock
@pytest.mark.parametrize("command", [("delete", "all"), ("prune", "--keep", "1h"), ("prune", "--thin", "1h")])
def test_a_locked_log_is_an_error_of_commands_that_change_it(
    linkgauge: Any, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """With its cause and what to do; nothing is lost."""
    linkgauge.environment["LINKGAUGE_DATA_DIR"] = str(tmp_path)
    yesterday = datetime.now(UTC) - timedelta(days=1)
    with RunLog.open(tmp_path) as log:
        log.begin("20200101-000000-aaaa", "p", "h:1")
        log.append_event("20200101-000000-aaaa", replace(STARTED, started_utc=yesterday.isoformat()))
        for sample in samples(600):
            log.append_event("20200101-000000-aaaa", sample)
        log.append_event("20200101-000000-aaaa", ENDED)
        log.finish("20200101-000000-aaaa", "pass", {})
    before = linkgauge("runs", "list", "--json").document
    words = [before[0]["run_id"] if word == "all" else word for word in command]
    with hold_lock(tmp_path / "runs.sqlite3", "EXCLUSIVE"):
        answer = linkgauge("runs", *words, "--yes")
    assert answer.status == 3
    assert "another process has locked it" in answer.err
    assert "Traceback" not in answer.err
    assert linkgauge("runs", "list", "--json").document == before


def test_a_near_end_that_is_killed_leaves_its_run_in_the_log(linkgauge: Any, far_end: str) -> None:
    """What was measured until kill -9 is there, and the run is told to have been cut off."""
    process = linkgauge.start(
        "run", far_end, "--seconds", "60", "--interval", "100ms", "--warmup", "0", "--csv", "/dev/stdout",
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    for _ in range(12):
        assert process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    listed = linkgauge("runs", "list", "--json").document
    assert [(run["ended"], run["is_running"]) for run in listed] == [(None, False)]
    assert "interrupted" in linkgauge("runs").out
    shown = linkgauge("runs", "show", listed[0]["run_id"], "--json").document
    assert shown["measured"]["total"]["bytes"] > 0
    assert shown["ended"]["reason"] == "failed"


@pytest.mark.parametrize("where", ["file", "file/below", "other"])
def test_a_data_directory_that_cannot_be_used_costs_the_keeping_and_not_the_run(
    linkgauge: Any, far_end: str, tmp_path: Path, where: str
) -> None:
    """The run goes on, its verdict counts, and stderr says that it is not kept."""
    (tmp_path / "file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "runs.sqlite3").write_bytes(b"no database at all" * 100)
    environment = {**linkgauge.environment, "LINKGAUGE_DATA_DIR": str(tmp_path / where)}
    answer = linkgauge("check", "10mb-fd", far_end, *SHORT, "--json", env=environment)
    assert answer.status == 0, answer
    assert answer.document["verdict"] == "none"
    assert "not saved" in answer.err
    assert "saved as run" not in answer.err


@pytest.mark.every
@pytest.mark.skipif(os.name != "posix" or not can_mount(), reason="cannot mount a file system here")
@pytest.mark.parametrize("options", ["ro", "size=80k"])
def test_a_full_or_read_only_disk_costs_the_keeping_and_not_the_run(
    linkgauge: Any, far_end: str, tmp_path: Path, options: str
) -> None:
    """A file system of its own, too small for a run's samples, or not writable at all."""
    linkgauge.data_dir.mkdir()
    script = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"'
    command = [sys.executable, "-m", "linkgauge", "check", "10mb-fd", far_end, "--json"]
    command += ["--seconds", "1", "--interval", "50ms", "--sessions", "64", *RATE_LIMIT]
    done = subprocess.run(
        ["/usr/bin/env", "unshare", "-rm", "sh", "-c", script, "sh", options, linkgauge.data_dir, *command],
        capture_output=True,
        text=True,
        env=linkgauge.environment,
        timeout=40,
        check=False,
    )
    assert done.returncode == 0, done
    assert "Traceback" not in done.stderr
    assert "not saved" in done.stderr
    assert "saved as run" not in done.stderr


@pytest.mark.parametrize("command", [["runs", "list"], ["runs", "show", "x"], ["runs", "export", "all"]])
def test_a_log_that_cannot_be_read_is_not_the_command_lines_fault(linkgauge: Any, command: list[str]) -> None:
    """Exit 3, and what is wrong with which file."""
    linkgauge.data_dir.mkdir()
    (linkgauge.data_dir / "runs.sqlite3").write_bytes(b"no database at all" * 100)
    answer = linkgauge(*command)
    assert answer.status == 3, answer
    assert "runs.sqlite3" in answer.err


def test_looking_at_runs_makes_nothing(linkgauge: Any) -> None:
    """Who only reads leaves no trace."""
    answer = linkgauge("runs")
    assert answer.status == 0
    assert "no saved runs yet" in answer.err
    assert not linkgauge.data_dir.exists()


@pytest.mark.every
def test_an_export_into_a_pipe_that_closes_is_quiet(linkgauge: Any, far_end: str) -> None:
    """`linkgauge runs export all | head -1`."""
    linkgauge("run", far_end, *SHORT, "--sessions", "64")
    process = linkgauge.start("runs", "export", "all")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("run_id,")
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(timeout=30) == 0


def without_rtts(summary: Summary) -> Summary:
    """Return a summary without the middle values of RTTs and of the delay of reports."""

    def plain(measured: PerDirection[Measurement | None]) -> PerDirection[Measurement | None]:
        return PerDirection(*(each and without(each) for each in (measured.out, measured.in_, measured.total)))

    def without(measured: Measurement) -> Measurement:
        counts = measured.datagrams
        return replace(measured, datagrams=counts and replace(counts, rtt_us=None, return_rise_ns=None))

    return replace(
        summary,
        tcp=replace(summary.tcp, rtt_us=None, mean_rtt_us=None),
        measured=plain(summary.measured),
        periods=tuple(replace(period, measured=plain(period.measured)) for period in summary.periods),
    )


@pytest.mark.every
@pytest.mark.parametrize("workload", ["stream", "rr", pytest.param("udp", marks=pytest.mark.every)])
def test_a_recorded_run_has_the_same_results_after_it_is_thinned(
    linkgauge: Any, far_end: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workload: str
) -> None:
    """Summary, verdict and document by its events, and the bytes of its CSV; only the middle of RTTs may differ."""
    monkeypatch.setattr(thinning, "_MIN_NS", 0)
    monkeypatch.setattr(thinning, "_MIN_EVENTS", 1)
    words = ("--bidir", "--sessions", "2", "--interval", "50ms", "--seconds", "2.5", "--warmup", "0.5")
    words += RATE_LIMIT if workload == "stream" else ("--workload", workload)
    run_id = linkgauge("run", far_end, *words, "--json").document["run_id"]
    found: list[object] = []
    counts: list[int] = []
    for step in ("recorded", "thinned"):
        if step == "thinned":
            message = linkgauge("runs", "prune", "--thin", "0h", "-y").err.replace("\xa0", " ")
            assert "1 run thinned" in message
        with RunLog.open(tmp_path / "data", create=False) as log:
            counts.append(len(list(log.events(run_id))))
            stored = load_stored_run(log, log.find(run_id))
        summary = stored.outcome.summary
        plain = without_rtts(summary)
        sums: dict[tuple[str, ...], int] = {}
        for row in csv.DictReader(linkgauge("runs", "export", run_id).out.splitlines()):
            key = (row["direction"], row["session"], row["warmup"])
            sums[key] = sums.get(key, 0) + int(row["bytes"] or 0)
        document = linkgauge("runs", "show", run_id, "--json").document
        found.append((plain, stored.outcome.verdict, stored.outcome.findings, document, sums))
    assert found[0] == found[1]
    assert counts[1] < counts[0] / 3


@pytest.mark.every
def test_a_test_thins_old_runs_once_it_has_ended(linkgauge: Any, far_end: str, tmp_path: Path) -> None:
    """As the preference says; its own run has every sample."""
    (tmp_path / "settings.toml").write_text('thin_after = "30d"')
    environment = {**linkgauge.environment, "LINKGAUGE_CONFIG_DIR": str(tmp_path)}
    two_months_ago = datetime.now(UTC) - timedelta(days=60)  # a pause of years would make its age uncertain
    with RunLog.open(tmp_path / "data") as log:
        log.begin("20200101-000000-long", "", "h")
        for event in (replace(STARTED, started_utc=two_months_ago.isoformat()), *samples(496), ENDED):
            log.append_event("20200101-000000-long", event)
        log.finish("20200101-000000-long", "none", {})
        run_id = linkgauge("run", far_end, *SHORT, "--json", env=environment).document["run_id"]
        assert len(list(log.events("20200101-000000-long"))) < 498
        assert sum(isinstance(event, Sampled) for event in log.events(run_id)) > 15
