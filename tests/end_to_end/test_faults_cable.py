"""The cable is pulled from a link, for a moment and for good, and put back: a real link, a real command."""

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.lab.link_lab import Lab

DEADLINE_S = 50.0


def switch(lab: Lab, state: str) -> None:
    """Pull the cable out of the far end's interface (`down`), or put it back (`up`)."""
    children = Path(f"/proc/{lab.keeper_pid}/task/{lab.keeper_pid}/children").read_text(encoding="ascii")
    for pid in children.split():
        if b"far.loopback" in Path(f"/proc/{pid}/cmdline").read_bytes():
            entering = [sys.executable, "-P", "-m", "linkgauge.engine.lab.namespaces", pid, str(os.getpid()), "--"]
            subprocess.run([*entering, "ip", "link", "set", "far0", state], check=True, timeout=DEADLINE_S)
            return
    raise AssertionError("the lab has no far end")


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a direction as a whole that are in the file by now."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["session"] == "all" and row["cwnd_bytes"] is not None]


def wait_for_bytes(path: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Wait until so many more intervals in which something arrived are in the file."""
    deadline = time.monotonic() + DEADLINE_S
    want = count + sum(1 for row in rows_of(path) if row["bytes"] not in {"", "0"})
    while sum(1 for row in rows_of(path) if row["bytes"] not in {"", "0"}) < want:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, rows_of(path)[-3:]
        time.sleep(0.05)


@pytest.mark.every
def test_a_short_cable_pull_is_survived_and_a_permanent_one_ends_the_run_with_a_reason(
    linkgauge: Any, lab: Lab, tmp_path: Path
) -> None:
    """A second without a link costs no run; for good it ends with the reason, and all rows until then are kept.

    With the cable back in its place, the endpoint serves the next run at once.
    """
    path = tmp_path / "run.csv"
    small = ("--interval", "100ms", "--warmup", "0", "--json")
    command = [
        sys.executable,
        "-m",
        "linkgauge",
        "run",
        str(lab.peer),
        "--seconds",
        "60",
        "--csv",
        str(path),
        *small,
    ]
    process = subprocess.Popen(
        lab.near_end_command(command),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=linkgauge.environment,
    )
    try:
        wait_for_bytes(path, 5, process)
        switch(lab, "down")
        time.sleep(1)  # how long it is out is what is tested
        switch(lab, "up")
        wait_for_bytes(path, 5, process)
        switch(lab, "down")
        out, err = process.communicate(timeout=DEADLINE_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert "Traceback" not in err
    assert process.returncode == 3, err
    document = json.loads(out)
    assert document["ended"]["reason"] in {"peer_lost", "session_lost"}, document["ended"]
    rows = rows_of(path)
    assert document["measured"]["out"]["bytes"] == sum(int(row["bytes"] or 0) for row in rows) > 0
    shown = linkgauge("runs", "show", document["run_id"], "--json").document
    assert shown["measured"] == document["measured"]

    switch(lab, "up")
    again = subprocess.run(
        lab.near_end_command([*command[:5], "--seconds", "1", *small]),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env=linkgauge.environment,
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["measured"]["out"]["bytes"] > 0
