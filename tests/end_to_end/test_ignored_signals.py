"""Signals that a command was started to ignore, as nohup(1) and background jobs of a shell have them."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ..command_line import RATE_LIMIT, wait_for_rows
from .terminal import DEADLINE_S, OpenTerminal

LONG = ("--seconds", "60", "--interval", "100ms", "--warmup", "0", *RATE_LIMIT)


def ignoring(number: signal.Signals) -> tuple[str, ...]:
    """Return the beginning of a command line that runs a command with a signal ignored."""
    return ("/bin/sh", "-c", f"trap '' {number.name.removeprefix('SIG')}; exec \"$@\"", "sh")


def assert_goes_on_until_terminated(
    linkgauge: Any, process: "subprocess.Popen[str]", path: Path, number: signal.Signals
) -> None:
    """Send the signal to the whole process group; check that the run goes on, and that SIGTERM ends it in order."""
    wait_for_rows(path, process, 4)
    os.killpg(process.pid, number)
    wait_for_rows(path, process, path.read_text().count("\n") + 8)
    process.send_signal(signal.SIGTERM)
    answer = linkgauge.finish(process)
    assert answer.status == 128 + signal.SIGTERM, answer
    assert answer.document["ended"]["detail"] == "interrupted by SIGTERM"


@pytest.mark.every
@pytest.mark.parametrize(
    "number",
    [signal.SIGHUP, pytest.param(signal.SIGINT, marks=pytest.mark.every)],
    ids=["nohup", "a background job"],
)
def test_a_run_does_not_end_by_a_signal_that_it_was_started_to_ignore(
    linkgauge: Any, tmp_path: Path, number: signal.Signals
) -> None:
    """The workers and the built-in endpoint go on as well."""
    path = tmp_path / "rows.csv"
    arguments = ("run", "loopback", *LONG, "--csv", path, "--json")
    process = linkgauge.start(*arguments, within=ignoring(number), start_new_session=True)
    assert_goes_on_until_terminated(linkgauge, process, path, number)


@pytest.mark.every
def test_an_ignored_signal_does_not_end_the_ssh_of_a_run(linkgauge: Any, sshd: Any, tmp_path: Path) -> None:
    """The ssh program is in the terminal's process group, and shells send SIGHUP to all of it."""
    sshd.start()
    path = tmp_path / "rows.csv"
    arguments = ("run", sshd.peer, *LONG, "--csv", path, "--json")
    process = linkgauge.start(*arguments, within=ignoring(signal.SIGHUP), start_new_session=True)
    assert_goes_on_until_terminated(linkgauge, process, path, signal.SIGHUP)


@pytest.mark.every
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_an_endpoint_serves_on_after_a_signal_that_it_was_started_to_ignore(
    linkgauge: Any, number: signal.Signals
) -> None:
    """SIGTERM still ends it in order."""
    arguments = ("endpoint", "--bind", "127.0.0.1", "--port", "0")
    process = linkgauge.start(*arguments, within=ignoring(number), stderr=subprocess.DEVNULL)
    address = process.stdout.readline().removeprefix("listening on ").strip()
    process.send_signal(number)
    assert linkgauge("run", address, "--seconds", "0.5", *RATE_LIMIT).status == 0
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=40)
    assert process.returncode == 0
    assert "reload" not in out


@pytest.mark.every
@pytest.mark.usefixtures("lab")
def test_a_lab_does_not_pass_on_a_signal_that_it_was_started_to_ignore(linkgauge: Any, tmp_path: Path) -> None:
    """Its command goes on, and gets what the lab does not ignore."""
    path = tmp_path / "rows.csv"
    arguments = ("lab", "100mb-fd", "--check", "--json", "--", "--csv", path, *LONG)
    process = linkgauge.start(*arguments, within=ignoring(signal.SIGHUP), start_new_session=True)
    assert_goes_on_until_terminated(linkgauge, process, path, signal.SIGHUP)


@pytest.mark.every
def test_an_app_ends_with_its_terminal_even_if_it_was_started_to_ignore_that(
    linkgauge: Any, terminal: OpenTerminal
) -> None:
    """It would draw for ever, and nobody could end it."""
    screen = terminal("loopback", within=ignoring(signal.SIGHUP))
    screen.see("READY")
    screen.hang_up()
    assert screen.process.wait(timeout=DEADLINE_S) == 128 + signal.SIGHUP
    assert linkgauge("runs", "list", "--json").document == []
