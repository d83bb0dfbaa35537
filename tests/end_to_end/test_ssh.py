"""Far ends that a real OpenSSH server starts: with nothing installed there, and with nothing left behind."""

import os
import pty
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from linkgauge.engine.model.events import Started
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.results.run_log import RunLog

from ..command_line import SHORT_RUN as SHORT
from ..command_line import wait_for_rows
from .conftest import assert_not_run

DEADLINE_S: Final = 30.0


def children_of(pid: int) -> list[int]:
    """Return the processes that a process's first thread has started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def far_facts(linkgauge: Any, run_id: str) -> HostInfo:
    """Return who the far end of a run was."""
    log = RunLog.open(linkgauge.data_dir)
    try:
        (started,) = [event for event in log.events(run_id) if isinstance(event, Started)]
    finally:
        log.close()
    return started.far


@pytest.mark.every
def test_a_host_without_this_linkgauge_gets_the_engine_and_keeps_nothing_of_it(linkgauge: Any, sshd: Any) -> None:
    """The standard library is all it runs on; it writes no file, and no process stays.

    One of another protocol leaves as from any command line that it does not know.
    """
    sshd.provide("linkgauge", "/bin/sh", "-c", "echo no such option >&2; exit 2")
    sshd.start()
    answer = linkgauge("check", "auto", sshd.peer, "--json", "--sessions", "2", "--direction", "duplex", *SHORT)
    assert answer.status == 0, answer
    assert answer.document["preset"] == "loopback"
    assert answer.document["warnings"] == []
    far = far_facts(linkgauge, answer.document["run_id"])
    assert far.event_loop == "asyncio"
    assert far.nic is not None
    assert far.nic.sort == "loopback"
    sshd.wait_until_gone()
    assert list(sshd.home.iterdir()) == []
    assert linkgauge("runs", "list", "--json").document[0]["peer"] == sshd.peer


@pytest.mark.every
def test_an_installed_linkgauge_is_used(linkgauge: Any, sshd: Any) -> None:
    """Its far end has uvloop; what the login prints by itself does no harm."""
    sshd.provide("linkgauge", sys.executable, "-m", "linkgauge")
    sshd.start(before="echo Welcome to this host")
    answer = linkgauge("run", sshd.peer, "--json", *SHORT)
    assert answer.status == 0, answer
    assert far_facts(linkgauge, answer.document["run_id"]).event_loop == "uvloop"
    sshd.wait_until_gone()


@pytest.mark.parametrize(
    "act", ["kill the near end", *(pytest.param(act, marks=pytest.mark.every) for act in ("kill ssh", "stop ssh"))]
)
def test_the_far_end_goes_with_its_near_end_however_that_goes(linkgauge: Any, sshd: Any, act: str) -> None:
    """In the middle of a run: nothing can be said any more, and the far end goes all the same.

    Of an ssh that is stopped its network says nothing: the near end notices, and says so.
    """
    sshd.start()
    process = linkgauge.start("run", sshd.peer, "--seconds", "60", *SHORT[2:], "--csv", sshd.folder / "rows.csv")
    wait_for_rows(sshd.folder / "rows.csv", process, 2)
    assert len(sshd.processes()) >= 2
    if act == "kill the near end":
        process.kill()
        sshd.wait_until_gone()
        return
    (ssh,) = [pid for pid in children_of(process.pid) if Path(f"/proc/{pid}/comm").read_text() == "ssh\n"]
    os.kill(ssh, signal.SIGKILL if act == "kill ssh" else signal.SIGSTOP)
    sshd.wait_until_gone()
    answer = linkgauge.finish(process)
    assert answer.status == 3
    output = " ".join((answer.out + answer.err).split())
    assert (
        f"the connection to the remote host was lost: ssh {'ended' if act == 'kill ssh' else 'was stopped'}"
        in output
    )


def test_a_locked_key_that_nobody_can_unlock_is_named_with_the_remedy(linkgauge: Any, sshd: Any) -> None:
    """Without a terminal ssh only says that its login was refused."""
    sshd.start()
    sshd.make_key("locked", "open sesame")
    (sshd.folder / "authorized_keys").write_text((sshd.folder / "locked.pub").read_text())
    linkgauge.environment |= {"LINKGAUGE_SSH_COMMAND": sshd.command("locked")}
    linkgauge.environment.pop("SSH_ASKPASS", None)
    answer = linkgauge.in_process("run", sshd.peer, *SHORT, start_new_session=True)
    key = sshd.folder / "locked"
    assert_not_run(answer, f"the key {key} needs its passphrase; give it to an agent: ssh-add {key}")


def test_a_denied_login_shows_the_message_of_ssh(linkgauge: Any, sshd: Any) -> None:
    """And how a person tries the same."""
    sshd.start()
    sshd.make_key("other")
    linkgauge.environment["LINKGAUGE_SSH_COMMAND"] = sshd.command("other")
    assert_not_run(linkgauge("run", sshd.peer, *SHORT), sshd.peer, "Permission denied (publickey)", "ssh -F none")


@pytest.mark.every
def test_a_host_with_an_unknown_host_key_is_not_trusted(linkgauge: Any, sshd: Any) -> None:
    """Nobody is there to be asked: ssh declines by itself."""
    sshd.start()
    linkgauge.environment["LINKGAUGE_SSH_COMMAND"] = sshd.command(known_hosts="nobody")
    answer = linkgauge("run", sshd.peer, start_new_session=True)
    assert_not_run(answer, "Host key verification failed")


def test_unreachable_hosts_are_reported_with_the_message_of_ssh(linkgauge: Any, sshd: Any) -> None:
    """A name that means nothing, and a port that nobody listens on."""
    assert_not_run(linkgauge("run", "ssh://no-such-host.invalid"), "ssh://no-such-host.invalid", "resolve")
    assert_not_run(linkgauge("check", "auto", "ssh://127.0.0.1:1"), "ssh://127.0.0.1:1", "refused")


def test_a_missing_ssh_command_is_reported(linkgauge: Any) -> None:
    """The variable's words are a command line."""
    linkgauge.environment["LINKGAUGE_SSH_COMMAND"] = "no-such-ssh -v"
    assert_not_run(linkgauge("run", "ssh://db-02"), "no-such-ssh", "cannot be run")


@pytest.mark.parametrize("found", ["an old one", pytest.param("none", marks=pytest.mark.every)])
def test_a_host_without_a_suitable_python_gets_the_required_version(linkgauge: Any, sshd: Any, found: str) -> None:
    """The version that is there is named."""
    if found == "none":
        (sshd.bin / "python3").unlink()
    else:
        script = 'case "$*" in -V) echo Python 3.9.2;; *pass) ;; *) exit 1;; esac'
        sshd.provide("python3", "/bin/sh", "-c", script, "python3")
    sshd.start()
    words = "no python3" if found == "none" else "its python3 is Python 3.9.2"
    assert_not_run(linkgauge("run", sshd.peer), words, "3.11 or newer")


def test_a_python_that_cannot_start_is_reported_with_the_first_line_that_it_prints(
    linkgauge: Any, sshd: Any
) -> None:
    """It is there, so that installing one would not help. Its version may still be printed."""
    script = r'test "$1" = -V && echo Python 3.12.1 && exit; printf "no \033[31mlibc\nmore\n" >&2; exit 127'
    sshd.provide("python3", "/bin/sh", "-c", script, "python3")
    sshd.start()
    answer = linkgauge("run", sshd.peer)
    assert_not_run(answer, "its python3 cannot start: no \ufffd[31mlibc; mend it")
    assert "no python3" not in answer.err


def test_the_last_output_of_a_failed_far_end_is_reported_without_control_characters(
    linkgauge: Any, sshd: Any
) -> None:
    """Whatever a login does to a command, and however it colours it."""
    sshd.provide("sh", "/bin/sh", "-c", r"printf '\033[31mthis account is closed\033[0m\n' >&2; exit 5")
    sshd.start()
    answer = linkgauge("run", sshd.peer)
    assert_not_run(answer, "status 5", "this account is closed")
    assert answer.err.strip().isprintable()


def test_an_unreachable_data_port_is_reported_with_the_remedy(linkgauge: Any, sshd: Any) -> None:
    """The far end listens where it believes that it was reached, and that is elsewhere."""
    sshd.start(SSH_CONNECTION="127.0.0.1 50000 127.0.0.2 22")
    assert_not_run(linkgauge("run", sshd.peer), sshd.peer, "TCP port", "firewall", "--data-port", "--via-ssh")
    sshd.wait_until_gone()


@pytest.mark.every
def test_a_passphrase_is_requested_on_the_terminal(linkgauge: Any, sshd: Any) -> None:
    """By ssh itself, before anything is drawn."""
    sshd.make_key("locked", "open sesame")
    (sshd.folder / "authorized_keys").write_text((sshd.folder / "locked.pub").read_text())
    sshd.start()
    linkgauge.environment["LINKGAUGE_SSH_COMMAND"] = sshd.command("locked")
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-m", "linkgauge", "run", sshd.peer, *SHORT]
        os.execve(sys.executable, command, linkgauge.environment)  # noqa: S606
    output = b""
    try:
        while b"passphrase for key" not in output:
            output += os.read(terminal, 4_096)
        os.write(terminal, b"open sesame\n")
        while True:
            output += os.read(terminal, 4_096)
    except OSError:  # nobody is left inside
        pass
    finally:
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, output
    assert b"Mb/s" in output or b"Gb/s" in output
    assert b"open sesame" not in output


@pytest.mark.every
def test_ssh_carries_the_data_on_request_and_the_result_says_so(linkgauge: Any, sshd: Any) -> None:
    """Through a forwarded port, to the far end's loopback alone; what TCP over ssh cannot carry is declined."""
    sshd.start(SSH_CONNECTION="127.0.0.1 50000 127.0.0.2 22")  # nothing gets there by itself
    arguments = ("run", sshd.peer, "--via-ssh", "--ssh-command", sshd.command())
    answer = linkgauge(*arguments, "--direction", "duplex", "--why", "--json", *SHORT)
    assert answer.status == 0, answer
    assert [finding["code"] for finding in answer.document["why"]] == ["ssh-data-path"]
    (warning,) = answer.document["warnings"]
    assert warning.startswith("through ssh: ")
    assert answer.document["measured"]["total"]["bytes"] > 0
    for workload in ("crr", "udp"):
        answer = linkgauge(*arguments, "--workload", workload)
        assert_not_run(answer, f"--via-ssh cannot carry --workload {workload}")
    assert_not_run(linkgauge("mtu", *arguments[1:]), "--via-ssh cannot carry datagrams")
    sshd.wait_until_gone()


@pytest.mark.every
def test_a_far_end_that_ssh_starts_takes_udp_beside_its_data_port(linkgauge: Any, sshd: Any) -> None:
    """From the bundle alone: datagrams in both directions, and the path's MTU."""
    sshd.start()
    command = ("--ssh-command", sshd.command(), "--json")
    options = ("--workload", "udp", "--rate", "5M", "--direction", "duplex", *SHORT)
    answer = linkgauge("run", sshd.peer, *command, *options)
    assert answer.status == 0, answer
    assert min(answer.document["measured"][way]["bytes"] for way in ("out", "in")) > 0
    assert linkgauge("mtu", sshd.peer, *command).document["in"]["bound"] == "interface"
    sshd.wait_until_gone()


@pytest.mark.every
def test_latency_under_load_is_measured_to_a_far_end_that_ssh_starts(linkgauge: Any, sshd: Any) -> None:
    """From the bundle alone: datagrams, handshakes and requests; through ssh itself it is declined.

    ssh's own queue would be measured there, and none of the path.
    """
    sshd.start()
    command = ("respond", sshd.peer, "--ssh-command", sshd.command(), "--json")
    answer = linkgauge(*command, "--direction", "out")
    assert answer.status == 0, answer
    result = answer.document["responsiveness"]
    (load,) = result["loads"]
    assert (result["probe"], load["direction"]) == ("datagram", "out")
    assert min(result["idle_ms"]["count"], load["latency_ms"]["count"], load["handshake_ms"]["count"]) > 0
    assert load["round_trips"]["per_minute"] > 0
    assert answer.document["measured"]["out"]["bytes"] > 0
    answer = linkgauge(*command, "--via-ssh")
    assert (answer.status, "leave out --via-ssh" in answer.err) == (2, True), answer
    sshd.wait_until_gone()


@pytest.mark.every
def test_a_requested_data_port_is_used_or_reported_as_busy(linkgauge: Any, sshd: Any) -> None:
    """The option that chooses another is named."""
    sshd.start()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_not_run(linkgauge("run", sshd.peer, "--data-port", port), f"port {port}", "--data-port")
    assert linkgauge("run", sshd.peer, "--data-port", port, *SHORT).status == 0
