"""The command lines for ssh: the user's configuration stays, and nothing typed becomes an option."""

import asyncio
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import PeerUnreachable, PlanError
from linkgauge.engine.model.peer import Peer, SshSettings
from linkgauge.engine.ssh.bundle import REMOTE_COMMAND
from linkgauge.engine.ssh.login import (
    SSH_COMMAND_VARIABLE,
    PortForward,
    is_proxied,
    login_command,
    manual_login_command,
    query_ssh_config,
    serve_askpass,
)
from linkgauge.engine.ssh.ssh_far_end import open_ssh_far_end

DEADLINE_S = 40.0
PEER = Peer.parse("ssh://me@db-02:2222")


@pytest.fixture(autouse=True)
def _no_other_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SSH_COMMAND_VARIABLE, raising=False)


def test_the_host_follows_the_end_of_the_options() -> None:
    """And the command for the far end follows the host."""
    command = login_command(PEER, {}, None)
    assert command[-7:] == ["-p", "2222", "-l", "me", "--", "db-02", REMOTE_COMMAND]
    assert "ClearAllForwardings=yes" in command


@pytest.mark.parametrize(
    ("configuration", "has_timeout"),
    [
        ({"connecttimeout": "none"}, True),
        ({"connecttimeout": "30"}, False),
        ({"connecttimeout": "none", "proxyjump": "gate"}, False),
        ({"connecttimeout": "none", "proxyjump": "none"}, True),
        ({}, False),
    ],
)
def test_a_deadline_is_set_only_where_the_person_set_none(configuration: dict[str, str], has_timeout: bool) -> None:
    """Through a jump host it would run while the user types a password."""
    command = login_command(PEER, configuration, None)
    assert any(word.startswith("ConnectTimeout=") for word in command) is has_timeout


def test_a_forwarded_port_is_on_loopback_at_both_ends() -> None:
    """A forwarding that fails is an error, and no master connection keeps it."""
    command = login_command(PEER, {}, PortForward(1_111, 2_222))
    assert command[command.index("-L") + 1] == "127.0.0.1:1111:127.0.0.1:2222"
    assert {"ExitOnForwardFailure=yes", "ControlPath=none"} <= set(command)
    assert "ClearAllForwardings=yes" not in command


@pytest.mark.parametrize("is_prompted", [False, True])
async def test_ssh_does_not_get_keys_and_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_prompted: bool
) -> None:
    """A SendEnv in the user's configuration would send it to any host. All other variables are passed on."""
    program = tmp_path / "ssh"
    program.write_text('#!/bin/sh\nenv >> "$SEEN"\nexit 255\n', encoding="utf-8")
    program.chmod(0o700)
    for name, value in (
        (SSH_COMMAND_VARIABLE, str(program)),
        ("SEEN", str(tmp_path / "seen")),
        ("MINE", "of-mine"),
    ):
        monkeypatch.setenv(name, value)
    for name in ("LINKGAUGE_KEY", "IPERF3_PASSWORD"):
        monkeypatch.setenv(name, "a-secret-of-this-test")

    async def prompt(_question: str) -> None:
        raise AssertionError

    with pytest.raises(PeerUnreachable):
        async with asyncio.timeout(DEADLINE_S), open_ssh_far_end(PEER, prompt if is_prompted else None):
            pass
    seen = (tmp_path / "seen").read_text(encoding="utf-8")
    assert "a-secret-of-this-test" not in seen
    assert seen.count("MINE=of-mine") == 2
    assert ("SSH_ASKPASS_REQUIRE=force" in seen) is is_prompted


@pytest.mark.parametrize("key", ["proxyjump", "proxycommand"])
def test_a_host_behind_a_proxy_is_known_from_the_configuration(key: str) -> None:
    """The program prints `none` for no proxy."""
    assert is_proxied({key: "gate"})
    assert not is_proxied({key: "none"})
    assert not is_proxied({})


@pytest.mark.parametrize("loop", ["yes key value", "while :; do head -c 60000 /dev/zero; done", "sleep 60 & wait"])
async def test_a_configuration_without_an_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: str
) -> None:
    """A program in place of ssh may ignore -G, or leave a child that holds its output open."""
    monkeypatch.setattr("linkgauge.engine.ssh.login._ASK_DEADLINE_S", 0.5)
    program = tmp_path / "endless"
    program.write_text(f"#!/bin/sh\n{loop}\n")
    program.chmod(0o755)
    async with asyncio.timeout(20):
        assert await query_ssh_config(Peer("db-02", ssh=SshSettings(command=str(program)))) == {}


def test_a_person_gets_a_command_to_try_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the program that the environment names."""
    assert manual_login_command(PEER) == "ssh -p 2222 -l me db-02"
    monkeypatch.setenv(SSH_COMMAND_VARIABLE, "ssh -i 'my key'")
    assert manual_login_command(PEER) == "ssh -i 'my key' -p 2222 -l me db-02"


@pytest.mark.parametrize("text", ["'", "  "])
def test_a_program_that_cannot_be_split_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Before anything is started."""
    monkeypatch.setenv(SSH_COMMAND_VARIABLE, text)
    with pytest.raises(PlanError, match="ssh command"):
        manual_login_command(PEER)


@pytest.mark.loop("asyncio")  # the command line's tests of ssh run on uvloop
async def test_a_question_of_ssh_is_answered_by_the_callback() -> None:
    """An answer is printed, as ssh reads it; no answer is a failure."""
    questions: list[str] = []

    async def ask(question: str) -> str | None:
        questions.append(question)
        return "open sesame" if "passphrase" in question else None

    async with asyncio.timeout(DEADLINE_S), serve_askpass(ask) as environment:
        written_lines: list[tuple[bytes, int | None]] = []
        for question in ("Enter passphrase for 'key':", "Continue (yes/no)?\nReally?"):
            process = await asyncio.create_subprocess_exec(
                environment["SSH_ASKPASS"], question, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
            written_lines.append((out, process.returncode))
    assert written_lines == [(b"open sesame\n", 0), (b"", 1)]
    assert questions == ["Enter passphrase for 'key':", "Continue (yes/no)?\nReally?"]
    assert not Path(environment["SSH_ASKPASS"]).exists()  # noqa: ASYNC240 - a look is no work
