"""Network namespaces: their numbers, and the processes in them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from linkgauge.engine.lab.link_lab import Lab
from linkgauge.engine.lab.namespaces import NetworkNamespace, find_processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's")


def test_the_current_namespace_is_that_of_this_process() -> None:
    """Its path leads another process to it."""
    namespace = NetworkNamespace.current()
    assert namespace.inode == Path("/proc/self/ns/net").stat().st_ino
    assert Path(namespace.path).stat().st_ino == namespace.inode


def test_processes_are_found_by_their_namespace_without_this_one() -> None:
    """A namespace that does not exist has none."""
    processes = find_processes({NetworkNamespace.current().inode})
    assert os.getppid() in processes
    assert os.getpid() not in processes
    assert find_processes({0}) == []


def test_a_commands_exit_status_is_the_labs(lab: Lab) -> None:
    """So that a check in a lab can be scripted."""
    assert lab.run(["sh", "-c", "exit 7"]) == 7
    assert lab.run(["sh", "-c", "kill -9 $$"]) == 128 + 9


def test_a_missing_command_is_reported(lab: Lab) -> None:
    """And has the status of a test that could not be run."""
    done = subprocess.run(
        lab.near_end_command(["/nonexistent"]), capture_output=True, text=True, check=False, timeout=9
    )
    assert done.returncode == 3
    assert "/nonexistent cannot be run at the lab's local end" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_cannot_enter_a_lab(lab: Lab) -> None:
    """The lab's far end asks for no key, and only its owner and root reach it."""
    code = (
        "import os, sys; os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534);"
        "os.open(f'/proc/{sys.argv[1]}/ns/net', os.O_RDONLY)"
    )
    command = [sys.executable, "-c", code, str(lab.keeper_pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=9)
    assert "PermissionError" in done.stderr
