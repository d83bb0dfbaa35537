"""Commands without memory, threads or processes: one line, status 3, and no hang."""

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LINE = "linkgauge: out of memory, threads or processes: raise ulimit -d, -v, -u, or the limits of the service"
DEADLINE_S = 60.0
COMMANDS = {
    "check": ("check", "loopback", "--seconds", "1"),
    "endpoint": ("endpoint", "--bind", "127.0.0.1", "--port", "0"),
    "mesh": ("mesh", "--local", "2", "--seconds", "1", "--headless"),
    "app": (),
}
pytestmark = pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit limits a command (util-linux)")


def limited(*options: str, name: str) -> list[str]:
    """Return the command line of a limited command."""
    return ["prlimit", *options, sys.executable, "-P", "-m", "linkgauge", *COMMANDS[name]]


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a command with folders of its own."""
    home = folder / "own"
    return {
        **os.environ,
        "TERM": "xterm",
        **{f"LINKGAUGE_{name}_DIR": str(home / name) for name in ("DATA", "CONFIG", "CACHE")},
    }


@pytest.mark.parametrize(
    ("mib", "name"),
    [
        (25, "check"),
        *(pytest.param(mib, name, marks=pytest.mark.every) for mib in (15, 20, 30) for name in ("check", "app")),
        *(
            pytest.param(mib, name, marks=pytest.mark.every)
            for mib in (15, 20, 25)
            for name in ("endpoint", "mesh")
        ),
    ],
)
def test_a_command_without_memory_says_so_in_one_line(tmp_path: Path, mib: int, name: str) -> None:
    """Wherever Python notices it: in an import, at a thread, in a library (RLIMIT_DATA)."""
    command = limited(f"--data={mib << 20}", name=name)
    status, output = on_terminal(command, environment(tmp_path))
    assert "Traceback" not in output
    assert status == 3, output
    assert output.splitlines()[-1].strip() == LINE or "cannot allocate memory: raise ulimit -d and -v" in output


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="another user is made as root")
@pytest.mark.parametrize(
    ("tasks", "name"),
    [(2, "check"), *(pytest.param(1, name, marks=pytest.mark.every) for name in COMMANDS), (2, "app")],
)
def test_a_command_of_a_user_without_processes_says_so_and_ends(tmp_path: Path, tasks: int, name: str) -> None:
    """RLIMIT_NPROC counts the threads of a user, and root has as many as it likes."""
    uid = 40_000 + os.getpid() % 10_000
    as_user = ["setpriv", f"--reuid={uid}", "--clear-groups"]
    # The capability is for this user's Python, which others may not read.
    as_user += [f"--{which}=-all,+dac_override" for which in ("inh-caps", "ambient-caps", "bounding-set")]
    status, output = on_terminal([*as_user, *limited(f"--nproc={tasks}", name=name)], environment(tmp_path))
    assert "Traceback" not in output, output
    assert status == 3, output
    assert "ulimit -u" in output or LINE in output.replace("\r", ""), output


def on_terminal(command: list[str], variables: dict[str, str]) -> tuple[int, str]:
    """Carry a command out on a terminal of its own; return its status and all that it has shown there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True
    )
    os.close(theirs)
    shown = b""
    try:
        while more := os.read(ours, 65_536):
            shown += more
    except OSError:  # nobody is left inside
        pass
    finally:
        os.close(ours)
    return process.wait(DEADLINE_S), shown.decode(errors="replace")
