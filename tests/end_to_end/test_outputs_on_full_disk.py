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


needs_unshare = pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare mounts a small file system")


def on_small_disk(folder: Path, script: str, *words: str) -> list[str]:
    """Return the command line of a command with a small file system in a folder, which a script fills before."""
    command = [sys.executable, "-P", "-m", "linkgauge", *words]
    return ["unshare", "-rm", "sh", "-c", SMALL, "sh", str(folder), "sh", "-c", script, "sh", *command]


@needs_unshare
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
    script = f'cp {tmp_path / "fill"} {small}; exec "$@"'
    command = on_small_disk(small, script, *words, "--csv", str(small / "rows.csv"))
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS))
        for _ in range(CONNECTIONS):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=linkgauge.environment,
            timeout=60,
            check=False,
        )
    assert done.returncode == status, done
    assert "Traceback" not in done.stderr
    assert "no space left on device" in done.stderr


@pytest.mark.every
@needs_unshare
@pytest.mark.parametrize("is_json", [False, True], ids=["lines", "json"])
def test_a_watch_whose_log_file_lacks_lines_ends_with_an_error(
    linkgauge: Any, tmp_path: Path, is_json: bool
) -> None:
    """The file has the place of stdout. The watch tests on, and its journal is whole."""
    small = tmp_path / "small"
    small.mkdir()
    script = f'cat /dev/zero > {small / "fill"} 2> {tmp_path / "why"}; exec "$@"'
    words = ["watch", "loopback", "--once", "--seconds", "0.5", *RATE_LIMIT, "--log-file", str(small / "log")]
    words.append("--json-stream" if is_json else "--headless")
    done = subprocess.run(
        on_small_disk(small, script, *words),
        capture_output=True,
        text=True,
        env=linkgauge.environment,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done
    assert f"the log in {small / 'log'} lacks lines: no space left on device" in done.stderr
    assert len(linkgauge("runs", "list", "--json").document) == 1
