"""A check by steps of a rate: its runs, its document, its exit status, over real sockets."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.results.run_log import RunLog

from .... import json_schemas

DEADLINE_S = 60.0
# A busy machine lets the sender run late, and what it skips does not arrive: rates are judged elsewhere.
STEPS = (
    "check",
    "loopback",
    "--workload",
    "udp",
    "--rate",
    "2M",
    "-t",
    "0.5",
    "--warmup",
    "0.1",
    "--pass-mark",
    "10",
)


def start(tmp_path: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Start a check by steps."""
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(tmp_path), "LINKGAUGE_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-P", "-m", "linkgauge", *arguments]
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Return exit status, stdout and stderr."""
    try:
        out, err = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.every
def test_a_check_of_datagrams_has_a_run_for_each_step(tmp_path: Path) -> None:
    """Each is in the run log, all in one group; the document is that of the last, with the verdict of all."""
    status, out, err = finish(start(tmp_path, *STEPS, "--direction", "duplex", "--json"))
    assert status == 0, err
    document: dict[str, Any] = json.loads(out)
    json_schemas.check("run.schema.json", document)
    assert document["verdict"] == "pass"
    assert [(step["percent"], step["rate_mbit_s"]) for step in document["steps"]] == [
        (50, 1.0),
        (75, 1.5),
        (90, 1.8),
        (100, 2.0),
    ]
    assert all(step[flow]["misses"] == [] for step in document["steps"] for flow in ("out", "in"))
    assert document["goals"] == {"pass_percent": 10.0, "loss_percent": 0.1, "max_jitter_ms": None}
    assert document["run_id"] == document["steps"][-1]["run_id"]
    with RunLog.open(tmp_path, create=False) as log:
        runs = log.runs_of_group(document["group"])
    assert {row.run_id for row in runs} == {step["run_id"] for step in document["steps"]}


@pytest.mark.every
def test_a_jitter_beyond_the_goal_fails_with_exit_status_1(tmp_path: Path) -> None:
    """No host keeps a nanosecond. The table has a row for each step, the verdict says why."""
    status, out, _ = finish(start(tmp_path, *STEPS, "--max-jitter", "0.001"))
    assert status == 1
    assert out.count("FAIL") == 5
    assert "the goal is 1 µs" in out.replace("\u00a0", " ").replace("\n", " ")


@pytest.mark.every
def test_a_stream_of_lines_ends_with_all_steps(tmp_path: Path) -> None:
    """There is one end for each run; the last one has the steps."""
    status, out, _ = finish(start(tmp_path, *STEPS, "--json-stream"))
    assert status == 0
    lines = [json.loads(line) for line in out.splitlines()]
    for line in lines:
        json_schemas.check("stream.schema.json", line)
    ends = [line for line in lines if line["type"] == "end"]
    assert [line["type"] for line in lines].count("start") == len(ends) == 4
    assert ["steps" in line["summary"] for line in ends] == [False, False, False, True]
    assert len({line["run_id"] for line in ends}) == 4


@pytest.mark.every
def test_a_check_that_is_interrupted_has_no_verdict(tmp_path: Path) -> None:
    """The first step's end is in the document; the exit status is the signal's."""
    process = start(tmp_path, *STEPS, "--json")
    assert process.stderr is not None
    for line in process.stderr:
        if "of the rate" in line:
            break
    process.send_signal(signal.SIGTERM)
    status, out, _ = finish(process)
    assert status == 128 + signal.SIGTERM
    document = json.loads(out)
    assert document["verdict"] == "none"
    assert 1 <= len(document["steps"]) < 4


@pytest.mark.every
def test_a_search_is_one_test(tmp_path: Path) -> None:
    """It looks for the rate itself."""
    arguments = ("check", "loopback", "--workload", "udp", "--rate", "max", "-t", "0.5", "--json")
    status, out, _ = finish(start(tmp_path, *arguments))
    assert status == 0
    assert "steps" not in json.loads(out)


@pytest.mark.every
def test_an_unknown_far_end_is_reported_once(tmp_path: Path) -> None:
    """Before the first step, in the words of every test."""
    arguments = [*STEPS, "--json"]
    arguments[1] = "127.0.0.1:9"
    status, out, err = finish(start(tmp_path, *arguments))
    assert (status, out) == (3, "")
    assert "127.0.0.1" in err
    assert "Traceback" not in err


@pytest.mark.every
def test_a_link_that_loses_at_every_rate_fails_every_step(tmp_path: Path) -> None:
    """2 % of the frames of an emulated link; the rate of its preset is the expected one."""
    options = ("--workload", "udp", "-t", "1", "--warmup", "0.1", "--pass-mark", "10", "--json")
    status, out, err = finish(start(tmp_path, "lab", "10mb-fd", "--loss", "2", "--check", "--", *options))
    if "root" in err and not out:
        pytest.skip(err)
    assert status == 1, err
    document = json.loads(out)
    assert document["verdict"] == "fail"
    assert [step["out"]["misses"] for step in document["steps"]] == [["loss"]] * 4
    assert [step["rate_mbit_s"] for step in document["steps"]] == [4.785, 7.178, 8.614, 9.571]
