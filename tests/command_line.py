"""A command line carried out in the process of the tests: starting an interpreter for it takes half a second."""

import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from linkgauge.tui.cli.main import run_command_line


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
