"""Telling a run that goes on from one whose process died."""

import platform
import subprocess
import sys

import pytest
from linkgauge.engine.host.process_identity import is_process_alive, process_identity, saved_process_identity

_SAY = (
    "from linkgauge.engine.host.process_identity import process_identity; "
    "print(process_identity(), flush=True); input()"
)


def test_a_process_is_alive_until_it_is_dead() -> None:
    """Also before its parent has taken notice of its death."""
    assert is_process_alive(process_identity())
    command = [sys.executable, "-c", _SAY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        name = child.stdout.readline().strip()
        assert name != process_identity()
        assert is_process_alive(name)
        child.kill()
        child.wait(20)
        assert not is_process_alive(name)


def _parts() -> tuple[str, str, str]:
    """Return the identity of this process: host and pid, start, boot."""
    host_and_pid, _, start_and_boot = saved_process_identity().rpartition("/")
    start, _, boot = start_and_boot.partition("@")
    if not start or not boot:
        pytest.skip("this system does not tell when a process started, or which boot this is")
    return host_and_pid, start, boot


def test_another_process_of_the_same_number_is_not_the_owner() -> None:
    """Numbers are used again; when a process started is not."""
    host_and_pid, start, boot = _parts()
    assert is_process_alive(f"{host_and_pid}/{start}@{boot}")
    assert not is_process_alive(f"{host_and_pid}/1")
    assert not is_process_alive(f"{host_and_pid}/1@{boot}")


def test_a_process_of_an_earlier_boot_is_not_alive() -> None:
    """A process of this boot may have the same number and start: services start alike each time."""
    host_and_pid, start, _ = _parts()
    assert not is_process_alive(f"{host_and_pid}/{start}@6a9f2c3e-0000-4000-8000-1234567890ab")
    assert is_process_alive(f"{host_and_pid}/{start}")  # as an earlier version saved it


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "//",
        "elsewhere/1/1",
        f"{platform.node()}/x/1",
        f"{platform.node()}/-1/1",
        f"{platform.node()}/²/1",
        f"{platform.node()}/{10**30}/1",
        "no slash at all",
    ],
)
def test_a_name_that_is_no_process_of_this_host_is_not_alive(name: str) -> None:
    """Nothing is sent to it, and nothing is raised."""
    assert not is_process_alive(name)
