"""Processes that a lab left behind: found and ended."""

import os
import signal
from pathlib import Path

import pytest
from linkgauge.engine.lab.cleanup import find_orphans, terminate_orphans

from .labs import DEADLINE_S, LabProcess


@pytest.mark.usefixtures("lab")
def test_processes_that_outlive_lab_and_keeper_are_found_and_ended() -> None:
    """A daemon that a person started in the lab's shell; a lab that is up is left alone."""
    held = LabProcess("setsid sh -c 'trap \"\" HUP; echo up; exec sleep 600' < /dev/null & exec sleep 600")
    keeper = next(pid for pid in held.parts if b"engine.lab.keeper" in Path(f"/proc/{pid}/cmdline").read_bytes())
    assert not held.parts & set(find_orphans())
    os.kill(keeper, signal.SIGKILL)
    held.process.kill()
    held.process.wait(DEADLINE_S)
    assert set(terminate_orphans()) <= held.parts
    held.check_gone()
