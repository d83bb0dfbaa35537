"""The benchmark as a command: its options, missing tools, Ctrl-C."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
import run
from cases import CASES

COMMAND = [sys.executable, run.__file__]
DEADLINE_S = 50.0
# No round is repeated, whatever the host of a virtual machine takes.
QUICKLY = """
import os, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
import stolen_time, run
stolen_time.MAX_STOLEN_SHARE = 1.0
run.measure_memory = lambda: 80e9
raise SystemExit(run.main())
"""


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the benchmark with arguments that measure nothing."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=DEADLINE_S)


def test_every_entry_of_a_case_has_a_name_of_its_own() -> None:
    """Rows of two entries with one name could not be told apart; ours comes first."""
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        labels = [entry.label for entry in case.entries]
        assert len(set(labels)) == len(labels)
        assert case.ours.role == "ours"
        assert {entry.role for entry in case.floors} <= {"floor"}
        assert {other.entry.unit for other in case.others} == {case.ours.unit}


def test_every_tool_has_a_row_as_it_comes() -> None:
    """Without any option but host, port, time and machine-readable output."""
    (plain,) = (case for case in CASES if case.name == "as-it-comes")
    assert plain.ours.client(7, 3)[-5:] == ["run", "127.0.0.1:7", "--json", "--seconds", "3"]
    clients = {other.entry.tool.name: other.entry.client(7, 3) for other in plain.others}
    assert clients["iperf3"] == ["iperf3", "-c", "127.0.0.1", "-p", "7", "-J", "-t", "3"]
    assert clients["iperf"] == ["iperf", "-c", "127.0.0.1", "-p", "7", "-y", "C", "-t", "3"]
    assert set(clients) == {"iperf3", "iperf", "netperf", "neper", "nuttcp", "qperf", "xfr", "ethr"}


def test_the_estimate_at_the_defaults_is_below_25_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every tool installed but ethr, which few have."""
    monkeypatch.setattr("tools.Tool.path", property(lambda self: None if self.name == "ethr" else "/usr/bin/there"))
    cases = [case for case in CASES if not case.is_on_request]
    assert sum(run.search_s(case) + run.estimate_s(case, 7, 2) for case in cases) < 25 * 60


def test_cases_are_listed_with_their_entries_and_targets() -> None:
    """Nothing is measured."""
    done = bench("--list")
    assert done.returncode == 0
    assert "best: one stream, the best options of each tool" in done.stdout
    assert "  iperf3 -Z -l 1M (target 1" in done.stdout
    assert "iperf3-client" not in done.stdout
    assert "to linkgauge endpoint" in bench("--list", "--only", "iperf3*").stdout
    of_udp = bench("--list", "--only", "udp*").stdout
    assert [line for line in of_udp.splitlines() if not line.startswith(" ")] == [
        f"{case.name}: {case.title}" for case in CASES if case.name.startswith("udp-")
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "nosuch,best"], "no case is called nosuch; there are as-it-comes, best"),
        (["--only", "nosuch*"], "no case is called nosuch*; there are"),
        (["--rounds", "0"], "need at least 1"),
        (["--markdown", "/nonexistent/report.md"], "No such file"),
        (["--output", "/proc/nowhere"], "No such file"),
    ],
)
def test_a_wrong_option_is_refused_before_the_first_round(arguments: list[str], words: str) -> None:
    """Half an hour later would be too late."""
    done = bench(*arguments)
    assert done.returncode == 2
    assert words in done.stderr


def _read_until(stream: IO[str], words: str) -> str:
    """Return what a process prints until a line has some words."""
    text = ""
    while words not in text:
        assert select.select([stream], [], [], DEADLINE_S)[0], text
        line = stream.readline()
        assert line, text
        text += line
    return text


@pytest.mark.every
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.every)])
def test_a_benchmark_that_is_broken_off_writes_what_is_there(number: signal.Signals, tmp_path: Path) -> None:
    """A tool that is missing is left out, all files are written, and no process stays."""
    environment = {**os.environ, "PATH": str(tmp_path), "LINKGAUGE_BENCH_INSIDE": "1"}
    arguments = ["--only", "crr-10", "--rounds", "50", "--seconds", "1", "--output", str(tmp_path / "results")]
    command = [sys.executable, "-c", QUICKLY, run.__file__, *arguments, "--markdown", str(tmp_path / "report.md")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        text = _read_until(process.stdout, "round 1 of 50")
        process.send_signal(number)
        process.send_signal(number)
        rest, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, errors) == (130, "")
    assert "50 rounds of 1 s: about " in text
    assert "neper tcp_crr -F 10 -Q 64 -R 8192: tcp_stream is not on PATH, left out" in text
    assert "**This benchmark was broken off" in rest
    written = json.loads((tmp_path / "results" / "bench.json").read_text(encoding="utf-8"))
    assert written["is_interrupted"]
    assert [entry["role"] for entry in written["cases"][0]["entries"]] == ["ours", "floor"]
    assert all(entry["rounds"]["0"]["rate"] > 0 for entry in written["cases"][0]["entries"])
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert report.startswith("**This benchmark was broken off")
    assert report in (tmp_path / "results" / "bench.md").read_text(encoding="utf-8")
    assert "floor.py crr, 10 pairs" in report
