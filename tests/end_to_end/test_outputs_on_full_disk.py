"""Outputs that were asked for, on a disk that fills up: the exit status says so, unless a verdict says more."""

import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ..command_line import RATE_LIMIT

SMALL = 'mount -t tmpfs -o size=8k none "$1" && shift && exec "$@"'
CONNECTIONS = 20  # rows of observe
MANY_ROWS = ("--seconds", "1", "--interval", "50ms", "--sessions", "16", *RATE_LIMIT)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare mounts a small file system")
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("run", "loopback", *MANY_ROWS), 3),
        pytest.param(("check", "10gbe-1500", "loopback", *MANY_ROWS), 1, marks=pytest.mark.every),
        pytest.param(("observe", "127.0.0.1", "--seconds", "2", "--interval", "250ms"), 3, marks=pytest.mark.every),
    ],
    ids=["run", "failed-check", "observe"],
)
def test_rows_that_cannot_all_be_written_are_an_error_unless_the_verdict_is_one(
    linkgauge: Any, tmp_path: Path, words: tuple[str, ...], status: int
) -> None:
    """A script that asked for a file must not go on without its rows."""
    small = tmp_path / "small"
    small.mkdir()
    (tmp_path / "fill").write_bytes(b"x" * 4_000)
    within = ("unshare", "-rm", "sh", "-c", SMALL, "sh", str(small), "sh", "-c")
    command = [sys.executable, "-P", "-m", "linkgauge", *words, "--csv", str(small / "rows.csv")]
    script = f'cp {tmp_path / "fill"} {small}; exec "$@"'
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS))
        for _ in range(CONNECTIONS):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        done = subprocess.run(
            [*within, script, "sh", *command],
            capture_output=True,
            text=True,
            env=linkgauge.environment,
            timeout=60,
            check=False,
        )
    assert done.returncode == status, done
    assert "Traceback" not in done.stderr
    assert "no space left on device" in done.stderr
