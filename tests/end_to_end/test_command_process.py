"""A command that is forked for a test is the process that a new interpreter would be."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ..command_process import COMMAND, CommandProcess
from .conftest import CommandLine
from .namespaces import Namespaces

DEADLINE_S = 30.0
_SERVE = ("endpoint", "--bind", "127.0.0.1", "--port", "0")
_FIELDS = {"PPid", "NSsid", "NSpgid", "Umask", "SigBlk", "SigIgn", "SigCgt", "Uid", "Threads", "Seccomp", "CapEff"}


def facts(pid: int) -> dict[str, str]:
    """Return the kernel's facts of a process that a test may depend on."""
    deadline = time.monotonic() + DEADLINE_S
    while True:  # while it starts its fork server, a process blocks all signals
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
        found = {
            name: value.strip() for name, _, value in (line.partition(":") for line in lines) if name in _FIELDS
        }
        if not int(found["SigBlk"], 16) or time.monotonic() > deadline:
            break
    # uvloop catches SIGCHLD from its first child on.
    found["SigCgt"] = hex(int(found["SigCgt"], 16) & ~(1 << (signal.SIGCHLD - 1)))
    own = {"NSsid", "NSpgid"} if found["NSsid"] == str(pid) else set[str]()
    streams = {f"fd {fd}": str(Path(f"/proc/{pid}/fd/{fd}").readlink()).partition(":")[0] for fd in range(3)}
    found |= dict.fromkeys(own, "itself") | streams
    return found | {
        "cwd": str(Path(f"/proc/{pid}/cwd").readlink()),
        "net": str(Path(f"/proc/{pid}/ns/net").readlink()),
    }


@pytest.mark.every
@pytest.mark.parametrize("is_session", [False, True])
def test_an_endpoint_is_the_same_process_forked_or_started(
    linkgauge: CommandLine, tmp_path: Path, is_session: bool
) -> None:
    """Its parent, session, signals, umask, folder, streams and threads, and its end."""
    seen: list[dict[str, str]] = []
    environment = {**linkgauge.environment, "TEXTUAL": "anything that is read at the start of an interpreter"}
    for env in (linkgauge.environment, environment):
        process = linkgauge.start(*_SERVE, cwd=tmp_path, umask=0o27, start_new_session=is_session, env=env)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on 127.0.0.1:")
        seen.append(facts(process.pid))
        program = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert (b"command_parent" in program) is (env is linkgauge.environment)
        process.send_signal(signal.SIGTERM)
        assert linkgauge.finish(process).status == 0
    forked, started = seen
    assert {name: (value, started[name]) for name, value in forked.items() if value != started[name]} == {}
    assert forked["PPid"] == str(os.getpid())


def test_a_forked_command_has_its_variables_and_input_and_ends_by_a_signal(linkgauge: CommandLine) -> None:
    """Its parent stays as it was: the next command has none of them."""
    answer = linkgauge.in_process("runs", "list", env={**linkgauge.environment, "LINKGAUGE_PEER": ""})
    assert (answer.status, answer.err) == (0, "linkgauge: no saved runs yet\n")
    process = linkgauge.start(*_SERVE)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.kill()
    assert process.wait(DEADLINE_S) == -signal.SIGKILL
    assert linkgauge.in_process("nonsense", "x", "y").status == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces")
def test_a_forked_command_runs_in_the_network_namespace_that_is_asked_for(linkgauge: CommandLine) -> None:
    """As by nsenter(1)."""
    namespaces = Namespaces(1)
    try:
        process = linkgauge.start(*_SERVE[:1], "--bind", "0.0.0.0", "--open", within=namespaces.entries[0])  # noqa: S104
        assert process.stdout is not None
        assert process.stdout.readline()
        assert facts(process.pid)["net"] == facts(int(namespaces.pids[0]))["net"]
        assert b"command_parent" in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    finally:
        linkgauge.close()
        namespaces.close()


@pytest.mark.every
def test_any_other_start_is_a_new_interpreter(tmp_path: Path) -> None:
    """With descriptors to inherit, a function to call first, or options of Python."""
    reading, writing = os.pipe()
    plain = {**os.environ, "PYTHONWARNINGS": "error"}
    starts: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (COMMAND, {"pass_fds": [writing]}),
        (COMMAND, {"env": {**plain, "PYTHONOPTIMIZE": "1"}}),
        ((sys.executable, "-O", *COMMAND[1:]), {}),
    ]
    for command, options in starts:
        process = CommandProcess(
            [*command, *_SERVE], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **{"env": plain, **options}
        )
        assert process.stdout is not None
        assert process.stdout.readline()
        assert b"command_parent" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.terminate()
        process.communicate(timeout=DEADLINE_S)
    for fd in (reading, writing):
        os.close(fd)
