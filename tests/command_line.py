"""A command line carried out in the process of the tests: starting an interpreter for it takes half a second."""

import io
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from linkgauge.tui.cli.main import run_command_line

DEADLINE_S = 40.0
# Where nothing depends on the rate: at its full speed, loopback takes two cores for as long as a run lasts.
RATE_LIMIT = ("--rate", "100M")
SHORT_RUN = ("--seconds", "1", "--interval", "100ms", "--warmup", "0.2", *RATE_LIMIT)


@dataclass(frozen=True)
class CommandResult:
    """The exit status of a command and its output."""

    status: int
    out: str
    err: str


def carry_out(arguments: Sequence[str], environment: Mapping[str, str]) -> CommandResult:
    """Carry a command line out, without a terminal, with these variables added to the environment."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", io.StringIO())
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        status = run_command_line(arguments)
    texts = [stream.buffer.getvalue().decode() for stream in (out, err) if not stream.flush()]
    return CommandResult(status, *texts)


def wait_for_rows(path: Path, process: subprocess.Popen[str], count: int) -> None:
    """Follow a CSV file as it grows, as `tail -f` does, until it has so many rows under its head."""
    deadline = time.monotonic() + DEADLINE_S

    def wait() -> None:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)

    while not path.exists():
        wait()
    with path.open("rb") as file:
        lines = 0
        while (lines := lines + file.read().count(b"\n")) <= count:
            wait()
