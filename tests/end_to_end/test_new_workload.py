"""A workload of somebody else's: one module and its registration, and every part of linkgauge knows it."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_MODULE = '''
"""Echo: small requests, each answered by as many bytes."""
from linkgauge.engine.model.workload import Workload, register_workload
from linkgauge.engine.workloads.registry import register_sessions
from linkgauge.engine.workloads.request_response import RrRequester, RrResponder

class EchoRequester(RrRequester):
    """Request as rr does."""

ECHO = register_workload(Workload("echo", request_bytes=48, response_bytes=48))
register_sessions(ECHO, sender=RrResponder, receiver=EchoRequester)
'''
_STEPS = """
from linkgauge.engine.model.workload import Workload, workload_named
from linkgauge.tui.readings.setting_steps import next_workload
assert next_workload(Workload.UDP) == "echo"
assert next_workload(workload_named("echo")) is Workload.STREAM
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Give an environment in which the module is found and named."""
    (tmp_path / "echo_workload.py").write_text(_MODULE, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "LINKGAUGE_WORKLOADS": "echo_workload",
        "LINKGAUGE_DATA_DIR": str(tmp_path / "data"),
    }


def _linkgauge(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "linkgauge", *arguments],
        capture_output=True, text=True, timeout=40, env=environment, check=False,
    )  # fmt: skip


@pytest.mark.every
def test_a_registered_workload_is_planned_run_and_written(environment: dict[str, str], tmp_path: Path) -> None:
    """By the command line, both ends' workers, CSV, JSON and the run log."""
    rows = tmp_path / "rows.csv"
    short = ("--seconds", "0.5", "--interval", "100ms", "--sessions", "2", "--csv", str(rows), "--json")
    done = _linkgauge(environment, "run", "loopback", "--workload", "echo", *short)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["plan"]["workload"] == "echo"
    assert document["plan"]["request_bytes"] == document["plan"]["response_bytes"] == 48
    measured = document["measured"]["out"]
    assert measured["transactions_s"] > 0
    assert measured["latency_us"]["p50"] > 0
    with rows.open(newline="", encoding="utf-8") as file:
        assert {row["workload"] for row in csv.DictReader(file)} == {"echo"}
    assert "echo" in _linkgauge(environment, "runs", "show", document["run_id"]).stdout


def test_a_registered_workload_is_offered_and_checked(environment: dict[str, str]) -> None:
    """In help, in the errors that list what there is, and by the key that steps through workloads."""
    assert "|echo" in _linkgauge({**environment, "COLUMNS": "200"}, "run", "--help").stdout
    refused = _linkgauge(environment, "run", "loopback", "--workload", "nothing")
    assert refused.returncode == 2
    assert "or echo" in refused.stderr
    burst = _linkgauge(environment, "run", "loopback", "--workload", "echo", "--burst", "2")
    assert burst.returncode == 2
    assert "only rr has several requests in flight" in burst.stderr
    subprocess.run([sys.executable, "-c", _STEPS], env=environment, check=True)


def test_a_workload_cannot_be_registered_twice_or_by_an_odd_name() -> None:
    """Each name is one workload."""
    from linkgauge.engine.model.workload import Workload, register_workload

    with pytest.raises(ValueError, match="already"):
        register_workload(Workload("rr"))
    with pytest.raises(ValueError, match="not the name of a workload"):
        Workload("Two Words")
