"""The keeper of a lab: the lab ends with it, and it ends with the process that started it."""

import signal

import pytest

from .labs import LabProcess


@pytest.mark.every
@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_lab_whose_process_is_ended_is_gone(number: signal.Signals) -> None:
    """All of it: the command, the endpoint, the keeper, and with them the namespaces."""
    held = LabProcess()
    assert len(held.parts) >= 3
    assert len(held.networks) == 2
    held.process.send_signal(number)
    held.check_gone()


@pytest.mark.every
@pytest.mark.usefixtures("lab")
def test_what_a_shell_left_in_the_background_ends_with_the_lab() -> None:
    """Even if it hears no hangup."""
    held = LabProcess("trap '' HUP; sleep 600 & echo up; read -r _")
    held.check_gone()


@pytest.mark.every
@pytest.mark.usefixtures("lab")
def test_a_keeper_that_is_killed_takes_its_parts_with_it() -> None:
    """They see their input end; the command is the user's, and goes on until it ends."""
    held = LabProcess("echo up; read -r _; exit 5")
    held.kill_keeper()
    held.check_gone()
    assert held.process.returncode == 5
