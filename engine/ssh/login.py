"""The login with the user's own ssh: its configuration, its command line, and answers to its questions.

Configuration, agent, jump hosts and known hosts are the user's. Only options that would break the login, or let
a dead connection last, are set here.

While the app uses the terminal, ssh runs the program in SSH_ASKPASS with each question (password, passphrase,
unknown host key) and reads the answer from its standard output. That program is a short script, which passes both
on over a socket in a directory that only this user can enter.
"""

import asyncio
import contextlib
import os
import shlex
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..host.child_process import end_process, foreign_environment
from ..model.errors import PeerUnreachable, PlanError, explain_os_error
from ..model.peer import Peer, SshSettings
from .bundle import REMOTE_COMMAND

SSH_COMMAND_VARIABLE: Final = "LINKGAUGE_SSH_COMMAND"
_ASK_DEADLINE_S: Final = 5.0
_CONNECT_S: Final = 5
_ALIVE_S: Final = 10
_LOOPBACK: Final = "127.0.0.1"
# No terminal, no X11, and no command from the configuration. An existing master connection is used; a new one would
# outlive this login and hold its standard error open.
_ALWAYS: Final = ("-T", "-x", "-o", "RemoteCommand=none", "-o", "ControlMaster=no")
# Ctrl-C in the terminal is for the near end, which ends the run in order; ssh then ends with its standard input.
_SHIELD: Final = ("/bin/sh", "-c", 'trap "" INT HUP QUIT; exec "$@"', "sh")
_MAX_QUESTION_BYTES: Final = 16_384
_MAX_CONFIGURATION_BYTES: Final = 1 << 18
_READ_BYTES: Final = 16_384
_KILL_DEADLINE_S: Final = 1.0
_HELPER: Final = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as door:
    door.connect(sys.argv[1])
    door.sendall(" ".join(sys.argv[2:]).encode(errors="replace"))
    door.shutdown(socket.SHUT_WR)
    answer = b""
    while more := door.recv(4096):
        answer += more
if not answer:
    sys.exit(1)
os.write(1, answer)
"""


@dataclass(frozen=True, slots=True)
class PortForward:
    """A port on this host's loopback that ssh forwards to a port on the far host's loopback."""

    near_port: int
    far_port: int


async def query_ssh_config(peer: Peer) -> dict[str, str]:
    """Return ssh's configuration for a host (`ssh -G`); empty if this ssh does not answer in time and in bounds.

    A program in place of ssh may ignore -G and carry a far end's text. Its children may hold its output open.
    """
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *_program(peer),
                    "-G",
                    *_destination(peer),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=theirs.fileno(),
                    stderr=asyncio.subprocess.DEVNULL,
                    env=foreign_environment(),
                )
            except OSError as error:
                why = explain_os_error(error)
                raise PeerUnreachable(f"{peer}: {_program(peer)[0]} cannot be run: {why}") from error
        try:
            async with asyncio.timeout(_ASK_DEADLINE_S):
                out = await _read_to_end(ours)
        except TimeoutError:
            out = b""
        finally:
            await end_process(process, [(signal.SIGKILL, _KILL_DEADLINE_S)])
    lines = out.decode(errors="replace").splitlines()
    return {key: value for key, _, value in (line.partition(" ") for line in lines)}


async def _read_to_end(sock: socket.socket) -> bytes:
    """Return all that comes; nothing if it is too much."""
    out = bytearray()
    while more := await asyncio.get_running_loop().sock_recv(sock, _READ_BYTES):
        out += more
        if len(out) > _MAX_CONFIGURATION_BYTES:
            return b""
    return bytes(out)


def is_proxied(configuration: dict[str, str]) -> bool:
    """Return whether ssh reaches the host through a jump host or a proxy command."""
    return any(configuration.get(key, "none") != "none" for key in ("proxyjump", "proxycommand"))


def login_command(
    peer: Peer,
    configuration: dict[str, str],
    forward: PortForward | None,
    command: str = REMOTE_COMMAND,
    further: Sequence[str] = (),
) -> list[str]:
    """Return the command that logs in and starts the far end, or another command there, with further options."""
    options = [*_ALWAYS, *further]
    # Through a jump host the time would run while the user types the password for that host.
    if configuration.get("connecttimeout") == "none" and not is_proxied(configuration):
        options += ["-o", f"ConnectTimeout={_CONNECT_S}"]
    if configuration.get("serveraliveinterval") == "0":
        options += ["-o", f"ServerAliveInterval={_ALIVE_S}"]
    if forward is None:
        options += ["-o", "ClearAllForwardings=yes"]
    else:
        # A master connection would keep the forwarding when this one ends.
        where = f"{_LOOPBACK}:{forward.near_port}:{_LOOPBACK}:{forward.far_port}"
        options += ["-o", "ControlPath=none", "-o", "ExitOnForwardFailure=yes", "-L", where]
    return [*_SHIELD, *_program(peer), *options, *_destination(peer), command]


def manual_login_command(peer: Peer) -> str:
    """Return the command with which the user can try the same login."""
    return shlex.join([*_program(peer), *(each for each in _destination(peer) if each != "--")])


def _program(peer: Peer) -> list[str]:
    text = _ssh(peer).command or os.environ.get(SSH_COMMAND_VARIABLE) or "ssh"
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise PlanError("ssh command", repr(text), "its quotes do not match") from error
    if not words:
        raise PlanError("ssh command", repr(text), "give a program and its options, such as 'ssh -i key'")
    return words


def _destination(peer: Peer) -> list[str]:
    ssh = _ssh(peer)
    port = [] if ssh.port is None else ["-p", str(ssh.port)]
    user = [] if ssh.user is None else ["-l", ssh.user]
    only_ip = [] if peer.only_ip is None else [f"-{peer.only_ip}"]
    return [*only_ip, *port, *user, "--", peer.host]


def _ssh(peer: Peer) -> SshSettings:
    assert peer.ssh is not None  # noqa: S101 - the caller has checked it
    return peer.ssh


@asynccontextmanager
async def serve_askpass(
    prompt: Callable[[str], Awaitable[str | None]], *, is_forced: bool = True
) -> AsyncGenerator[dict[str, str]]:
    """Yield an environment in which ssh asks its questions through `prompt`, one at a time.

    Unless `is_forced`, it asks on its own terminal if it has one, such as the terminal of sshpass.
    """
    order = asyncio.Lock()
    meeting: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(meet(reader, writer))
        meeting.add(task)
        task.add_done_callback(meeting.discard)

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            try:
                question = (await reader.read())[:_MAX_QUESTION_BYTES]
                async with order:
                    answer = await prompt(question.decode(errors="replace"))
                if answer is not None:
                    writer.write(answer.encode() + b"\n")
                    await writer.drain()
            finally:
                writer.close()

    with tempfile.TemporaryDirectory(prefix="linkgauge-") as folder:
        program, door = _furnish(Path(folder))
        server = await asyncio.start_unix_server(begin, door)
        try:
            # DISPLAY is for an ssh that is older than the other variable, and requires it.
            force = {"SSH_ASKPASS_REQUIRE": "force"} if is_forced else {}
            yield {"SSH_ASKPASS": str(program), "DISPLAY": ":0", **force}
        finally:
            server.close()
            for task in meeting:  # no ssh waits for an answer any more
                task.cancel()


def _furnish(folder: Path) -> tuple[Path, Path]:
    """Write the program into a folder; return its path and the path of its socket."""
    program, helper, door = folder / "ask", folder / "ask.py", folder / "door"
    helper.write_text(_HELPER, encoding="utf-8")
    command = shlex.join([sys.executable, "-I", "-S", str(helper), str(door)])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return program, door
