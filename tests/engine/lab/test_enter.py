"""Commands at the near end of a lab."""

import subprocess

from linkgauge.engine.lab.builder import Lab


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
    assert "/nonexistent cannot be run at the lab's near end" in done.stderr
