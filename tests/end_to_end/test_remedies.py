"""Remedies that change a setting: carried out on the link that they are for, they end what they were named for.

What is done to a link is undone by nothing but the words of the finding, at the end that it names. `--confirm`
carries an option out by itself, and tries what it can where the remedy is a command for an end.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.lab.link_lab import Lab, open_lab
from linkgauge.engine.model.errors import LabUnavailable
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import Faults, plan_lab_link

from .. import json_schemas

pytestmark = [
    pytest.mark.every,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="sets sysctls of a lab's namespaces, which only root may"),
]

DEADLINE_S = 60.0
PRESET = "100mb-fd"
OPTION = re.compile(r"linkgauge … .*?(--[a-z]+ [\w.]+)")
COMMAND = re.compile(r"at the (local|remote) end: ([^;]+)")


@dataclass(frozen=True)
class Fault:
    """A fault of a link or of its ends, and the code of its finding."""

    code: str
    faults: Faults
    options: tuple[str, ...] = ()
    near_sysctl: str = ""
    far_sysctl: str = ""


LATE = Faults(delay_ms=10)
FAULTS = {
    "window": Fault("window-below-bdp", LATE, ("--window", "32K")),
    "window inwards": Fault("window-below-bdp", LATE, ("--window", "48K", "--direction", "in")),
    "receive limit": Fault("window-clamped", LATE, far_sysctl="tcp_rmem=4096 65536 65536"),
    "send limit": Fault("window-clamped", LATE, near_sysctl="tcp_wmem=4096 16384 32768"),
    "scaling": Fault("window-scaling-off", LATE, far_sysctl="tcp_window_scaling=0"),
    "mtu": Fault("mtu-mismatch", Faults(wrong_mtu_bytes=576)),
    "responses": Fault("round-trip", LATE, ("--why", "--workload", "fetch", "--response", "64K")),
    "loss": Fault("loss", Faults(delay_ms=5, loss_percent=0.5), ("--congestion", "cubic")),
}
# Remedies that only show where to look.
OTHER_FAULTS = {"slow": Fault("path-slow", Faults(slow_percent=40), ("--congestion", "cubic"))}
CONFIRMED_BY = {
    "window": "--window",
    "receive limit": "--sessions",
    "scaling": "--sessions",
    "responses": "--response",
    "loss": "--congestion",
    "slow": "--sessions",
}


@pytest.fixture(autouse=True)
def _data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))


@pytest.fixture(params=FAULTS, ids=str)
def fault(request: pytest.FixtureRequest) -> Iterator[tuple[Fault, Lab]]:
    """Give a fault, and the link that has it."""
    which = (FAULTS | OTHER_FAULTS)[request.param]
    try:
        with open_lab(plan_lab_link(load_catalog().find(PRESET), which.faults)) as lab:
            for label, line in (("local", which.near_sysctl), ("remote", which.far_sysctl)):
                if line:
                    at_end(lab, label, f"sysctl -qw 'net.ipv4.{line}'")
            yield which, lab
    except LabUnavailable as error:
        pytest.skip(str(error))


def at_end(lab: Lab, label: str, command: str) -> None:
    """Carry a command out in the namespace of one end."""
    pid = lab.keeper_pid if label == "local" else far_pid(lab)
    line = ["nsenter", f"--net=/proc/{pid}/ns/net", "sh", "-c", command]
    subprocess.run(line, check=True, timeout=DEADLINE_S, stdout=subprocess.DEVNULL)


def far_pid(lab: Lab) -> int:
    """Return the process of the lab's far end, a child of its keeper."""
    children = Path(f"/proc/{lab.keeper_pid}/task/{lab.keeper_pid}/children").read_text(encoding="ascii").split()
    return next(int(pid) for pid in children if b"far.loopback" in Path(f"/proc/{pid}/cmdline").read_bytes())


def check(lab: Lab, *options: str) -> Any:
    """Return the result of a check over a lab's link."""
    command = [sys.executable, "-P", "-m", "linkgauge", "check", PRESET, str(lab.peer), "--json", "--seconds", "3"]
    done = subprocess.run(
        lab.near_end_command([*command, *options]), capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def gap(result: Any) -> float:
    """Return the missing part of the expected rate; without one, the time that a bit takes."""
    mbit_s, expected = result["measured"]["total"]["mbit_s"], result["expected"]["total"]
    return 1 / mbit_s if expected is None else max(0.0, 1 - mbit_s / expected["mbit_s"])


def test_a_remedy_that_is_carried_out_ends_its_finding(fault: tuple[Fault, Lab]) -> None:
    """The gap is half of what it was, or the next finding is another one."""
    which, lab = fault
    before = check(lab, *which.options)
    finding = before["why"][0]
    assert finding["code"] == which.code
    option, command = OPTION.search(finding["remedy"]), COMMAND.search(finding["remedy"])
    options = list(which.options)
    if option is not None:
        name, value = option[1].split()
        if name in options:
            options[options.index(name) + 1] = value
        else:
            options += [name, value]
    elif command is not None:
        at_end(lab, command[1], command[2])
    assert option is not None or command is not None, finding
    after = check(lab, *options)
    assert gap(after) <= 0.5 * gap(before) or after["why"][0]["code"] != which.code, (finding, after["why"])


@pytest.mark.parametrize(("fault", "option"), CONFIRMED_BY.items(), ids=CONFIRMED_BY, indirect=["fault"])
def test_a_confirmation_says_that_the_first_finding_is_the_limit(fault: tuple[Fault, Lab], option: str) -> None:
    """By its option, or by the number of sessions; the result is that of the link as it is."""
    which, lab = fault
    result = check(lab, *which.options, "--confirm")
    json_schemas.check("run.schema.json", result)
    confirmation = result["confirmation"]
    assert (confirmation["code"], confirmation["confirmed"]) == (which.code, True), confirmation
    assert confirmation["option"].split()[0] == option, confirmation
    assert confirmation["mbit_s_before"] == pytest.approx(result["measured"]["total"]["mbit_s"], rel=0.001)
    with RunLog.open(Path(os.environ["LINKGAUGE_DATA_DIR"]), create=False) as log:
        second = log.find(confirmation["run_id"])
    assert second.group == f"confirms-{result['run_id']}"
