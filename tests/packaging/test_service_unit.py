"""The systemd units: their bounds on processes and memory against an endpoint's default limits."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from linkgauge.engine.far.memory_estimate import WORKER_BYTES, estimate_memory, windows_of
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.workloads.session import RECEIVE_BYTES

UNIT: Final = Path(__file__).parents[2] / "packaging" / "linkgauge.service"
_MOST_MEMORY_BYTES: Final = 4 << 30  # the largest default of memory_bytes, and at most half of the host's memory
_TASKS_OF_WORKER: Final = 2  # a worker whose session is alone has a thread
_OTHER_TASKS: Final = 64  # the endpoint, its fork server, and their threads


def setting(name: str) -> str:
    """Return the value of a setting of the service."""
    (value,) = re.findall(rf"^{name}=(.*)$", UNIT.read_text(encoding="ascii"), re.MULTILINE)
    return value


def test_the_service_may_have_as_many_tasks_as_the_limit_of_memory_allows() -> None:
    """Otherwise a run within the limits would find no process."""
    assert Limits().memory_bytes <= _MOST_MEMORY_BYTES
    workers = _MOST_MEMORY_BYTES // (WORKER_BYTES + RECEIVE_BYTES)
    assert int(setting("TasksMax")) >= workers * _TASKS_OF_WORKER + _OTHER_TASKS


def test_the_service_may_have_more_memory_than_the_limit_allows_and_leaves_some_to_others() -> None:
    """The limit is half of the host's memory at most: runs are refused before anything is killed."""
    assert 60 <= int(setting("MemoryMax").removesuffix("%")) <= 90


def test_a_default_run_of_every_client_is_within_the_default_limits_of_one_address() -> None:
    """On a host of some memory."""
    plan = Plan(Settings(sessions=4))
    assert estimate_memory(plan, windows_of(plan.settings), 4) < 64 << 20


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away as root")
def test_the_service_gets_a_copy_of_the_key_file_at_each_start_and_reload(tmp_path: Path) -> None:
    """It is of the user whom systemd made for the service, and for nobody else."""
    before = setting("ExecStartPre")
    reload = re.findall(r"^ExecReload=(.*)$", UNIT.read_text(encoding="ascii"), re.MULTILINE)
    assert reload == [before, "/bin/kill -HUP $MAINPID"]
    for key in ("alice the-key-of-alice", "alice the-key-of-alice\nbob the-key-of-bob"):
        (tmp_path / "key").write_text(key)
        (tmp_path / "linkgauge").mkdir(exist_ok=True)
        os.chown(tmp_path / "linkgauge", 5820, 5820)
        command = before.removeprefix("+").replace("$$", "$").replace("%%", "%").replace("%t", str(tmp_path))
        subprocess.run(shlex.split(command.replace("/etc/linkgauge/key", str(tmp_path / "key"))), check=True)
        copy = tmp_path / "linkgauge.key"
        assert copy.read_text() == key
        assert (copy.stat().st_uid, copy.stat().st_mode & 0o777) == (5820, 0o600)
        assert f"--key-file %t/{copy.name} " in setting("ExecStart")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is needed")
def test_systemd_finds_nothing_wrong_with_the_endpoints_unit(tmp_path: Path) -> None:
    """With this program in place of the installed one."""
    for name in ("linkgauge.service", "linkgauge.socket"):
        text = UNIT.with_name(name).read_text(encoding="ascii")
        (tmp_path / name).write_text(text.replace("/usr/local/bin/linkgauge", "/bin/true"))
    command = ["systemd-analyze", "verify", str(tmp_path / "linkgauge.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=40)
    ours = [line for line in done.stderr.splitlines() if "linkgauge" in line]
    assert (done.returncode, ours) == (0, []), done.stderr
