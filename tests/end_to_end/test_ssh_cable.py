"""A far end that ssh started on a slow link: a full link does not end it, a cable that is pulled does, at once."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.lab.link_lab import Lab

DEADLINE_S = 60.0
PROMISED_S = 2.0
SLACK_S = 3.0  # of a machine that has other things to do; what was measured is printed
FULL = ("--sessions", "128", "--window", "1M", "--direction", "duplex")


def at_far_end(lab: Lab, command: list[str]) -> list[str]:
    """Return a command line that runs a command where the lab's far end is."""
    for pid in Path(f"/proc/{lab.keeper_pid}/task/{lab.keeper_pid}/children").read_text(encoding="ascii").split():
        if b"far.loopback" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return [
                sys.executable,
                "-P",
                "-m",
                "linkgauge.engine.lab.namespaces",
                pid,
                str(os.getpid()),
                "--",
                *command,
            ]
    raise AssertionError("the lab has no far end")


@pytest.mark.every
def test_a_full_link_keeps_a_far_end_and_a_pulled_cable_ends_both_with_the_reason(
    linkgauge: Any, lab: Lab, sshd: Any, tmp_path: Path
) -> None:
    """128 sessions with large windows both ways on 10 Mb/s for several seconds: words come late, no more."""
    sshd.start(address=lab.peer.host, within=lambda command: at_far_end(lab, command))
    rows = tmp_path / "rows.csv"
    command = [sys.executable, "-m", "linkgauge", "run", sshd.peer, "--seconds", "90", "--csv", str(rows), *FULL]
    process = subprocess.Popen(
        lab.near_end_command(command),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=linkgauge.environment,
    )
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not rows.exists() or rows.read_text().count(",all,") < 2 * 8:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert sshd.processes()
        subprocess.run(at_far_end(lab, ["ip", "link", "set", "far0", "down"]), check=True, timeout=DEADLINE_S)
        pulled = time.monotonic()
        assert sshd.wait_until_gone(pulled) < PROMISED_S + SLACK_S
        out, err = process.communicate(timeout=DEADLINE_S)
        sys.stdout.write(f"the near end was gone after {time.monotonic() - pulled:.2f} s\n")
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 3, err
    assert "the remote host has not answered" in " ".join((out + err).split())
