"""A debug log that cannot be written holds up neither a test nor an endpoint, and is reported once."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.host.debug_log import LOG_VARIABLE

from ..command_line import RATE_LIMIT
from .conftest import CommandLine
from .test_command_line_log import can_mount

SHORT = ("--seconds", "0.5", "--warmup", "0", "--interval", "100ms", *RATE_LIMIT)
FULL = "no space left on device"
SMALL_DISK = (shutil.which("env"), "unshare", "-rm", "sh", "-c")
FILL = 'mount -t tmpfs -o size=4k none "$1" && head -c 4000 /dev/zero > "$1/log" && shift && exec "$@"'


def make_target(kind: str, folder: Path) -> tuple[str, str, tuple[object, ...]]:
    """Return where the log goes, why it lacks lines, and a command that starts another one there."""
    if kind == "pipe":
        os.mkfifo(folder / "pipe")
        return str(folder / "pipe"), "nobody reads it", ()
    if kind == "small disk":
        if not can_mount():
            pytest.skip("cannot mount a file system here")
        (folder / "disk").mkdir()
        return str(folder / "disk" / "log"), FULL, (*SMALL_DISK, FILL, "sh", folder / "disk")
    return "/dev/full", FULL, ()


@pytest.mark.every
@pytest.mark.parametrize("kind", ["pipe", pytest.param("full device", marks=pytest.mark.every), "small disk"])
def test_an_endpoint_whose_debug_log_cannot_be_written_serves_and_ends(
    linkgauge: CommandLine, tmp_path: Path, kind: str
) -> None:
    """A client has its result; SIGTERM ends the endpoint, which says once what is missing."""
    log, reason, within = make_target(kind, tmp_path)
    options = ("--bind", "127.0.0.1", "--port", "0", "--open")
    environment = linkgauge.environment | {LOG_VARIABLE: log}
    endpoint = linkgauge.start("endpoint", *options, within=within, env=environment)
    assert endpoint.stdout is not None
    address = endpoint.stdout.readline().removeprefix("listening on ").strip()
    assert linkgauge("run", address, "--open", *SHORT).status == 0
    endpoint.send_signal(signal.SIGTERM)
    answer = linkgauge.finish(endpoint)
    assert answer.status == 0
    assert answer.err.count(f"linkgauge: the log in {log} lacks lines: {reason}\n") == 1, answer.err
    assert answer.err.count(log) == 1


@pytest.mark.every
@pytest.mark.parametrize("kind", [pytest.param("pipe", marks=pytest.mark.every), "full device"])
@pytest.mark.parametrize("ends_early", [False, pytest.param(True, marks=pytest.mark.every)])
def test_a_run_whose_debug_log_cannot_be_written_has_its_result(
    linkgauge: CommandLine, tmp_path: Path, kind: str, ends_early: bool
) -> None:
    """With a far end and workers that log there as well; a signal ends it as ever."""
    log, reason, within = make_target(kind, tmp_path)
    environment = linkgauge.environment | {LOG_VARIABLE: log}
    length = ("--seconds", "60", *RATE_LIMIT, "--json-stream") if ends_early else SHORT
    run = linkgauge.start("run", "loopback", *length, within=within, env=environment)
    if ends_early:
        assert run.stdout is not None
        assert run.stdout.readline()
        run.send_signal(signal.SIGTERM)
    answer = linkgauge.finish(run)
    assert answer.status == (143 if ends_early else 0), answer
    assert answer.err.count(f"linkgauge: the log in {log} lacks lines: {reason}\n") == 1, answer.err


@pytest.mark.every
def test_a_far_end_by_ssh_whose_debug_log_nobody_reads_ends(linkgauge: CommandLine, sshd: Any) -> None:
    """Its host has the variable set; the run has its result, and nothing is left there."""
    log, _, _ = make_target("pipe", sshd.home)
    sshd.start(**{LOG_VARIABLE: log})
    answer = linkgauge("run", sshd.peer, "--ssh-command", sshd.command(), *SHORT)
    assert answer.status == 0, answer
    sshd.wait_until_gone()
