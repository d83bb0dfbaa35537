"""The systemd units of a watch: hardened as the endpoint's, and what systemd itself says of them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).parents[2] / "packaging"
SERVICES: Final = ("linkgauge-watch.service", "linkgauge-watch-once.service")
UNITS: Final = (*SERVICES, "linkgauge-watch.timer")


def settings(name: str) -> list[tuple[str, str]]:
    """Return the settings of a unit, in their order."""
    return re.findall(r"^(\w+)=(.*)$", (FOLDER / name).read_text(encoding="ascii"), re.MULTILINE)


@pytest.mark.parametrize("name", SERVICES)
def test_a_watch_is_as_confined_as_an_endpoint(name: str) -> None:
    """All that follows the first setting of confinement is the same."""
    endpoint = settings("linkgauge.service")
    first = [key for key, _ in endpoint].index("CapabilityBoundingSet")
    confinement = [each for each in endpoint[first:] if each[0] not in {"WantedBy", "Also"}]
    assert [each for each in confinement if each not in settings(name)] == []


def test_a_watch_reloads_its_file_and_a_stop_is_no_failure() -> None:
    """SIGHUP reads the file; a watch that SIGTERM ends has the status 143."""
    service = dict(settings(SERVICES[0]))
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert service["SuccessExitStatus"] == "143"


def test_the_timer_tests_each_peer_once() -> None:
    """By a service of its own, which ends."""
    once = dict(settings(SERVICES[1]))
    assert dict(settings(UNITS[2]))["Unit"] == SERVICES[1]
    assert once["Type"] == "oneshot"
    assert "--once" in once["ExecStart"].split()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is needed")
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    """With a program that exists."""
    for name in UNITS:
        text = (FOLDER / name).read_text(encoding="ascii")
        (tmp_path / name).write_text(text.replace("/usr/local/bin/linkgauge", sys.executable), encoding="ascii")
    command = ["systemd-analyze", "verify", *(str(tmp_path / name) for name in UNITS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=40)
    ours = [line for line in done.stderr.splitlines() if "linkgauge-watch" in line]
    assert (done.returncode, ours) == (0, []), done.stderr
