"""A far end that ssh starts, for as long as a block lasts.

One login carries any number of control connections, one after another or at once. Nothing is installed: if the
host has no linkgauge of this protocol, the engine is sent along and stays in memory. Data goes through ssh only on
request. Otherwise it goes from host to host, to a port that the far end chooses.
"""

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from ..control.connection import ControlConnection
from ..control.keepalive import DEAD_PEER_TIMEOUT_NS, KEEPALIVE_INTERVAL_S
from ..control.multiplexer import Mux
from ..host.event_loop import await_shielded
from ..model.directions import End
from ..model.errors import DecodeError, PeerError, PeerUnreachable
from ..model.peer import Peer
from ..model.plan import MAX_PORT
from ..model.serialization import decode, encode, make_printable
from .bundle import BOOTSTRAP_MARK, MIN_PYTHON, bootstrap_script
from .data_path import DataPath, choose_forward, find_data_path
from .declined_questions import DeclinedQuestions
from .login import PortForward, login_command, query_ssh_config, serve_askpass
from .remote_main import ListenReply, ListenRequest
from .ssh_process import MAX_SHOWN, SshProcess

PromptCallback = Callable[[str], Awaitable[str | None]]
"""Asks the user ssh's question; returns None if the user does not answer."""

LOGIN_DEADLINE_S: Final = 120.0  # for a user who types a password; sshd's own LoginGraceTime is as long
UNATTENDED_DEADLINE_S: Final = 30.0
STARTUP_DEADLINE_S: Final = 60.0  # of a busy host behind a slow line: the engine is 0.2 MB
_END_DEADLINE_S: Final = 3.0
_log = logging.getLogger(__name__)


class SshFarEnd:
    """A far end that is up. `open_control` opens a control connection to it, any number of times."""

    def __init__(self, peer: Peer, mux: Mux, data_path: DataPath) -> None:
        self.peer = peer
        self.data_path = data_path
        self._mux = mux

    def __str__(self) -> str:
        return str(self.peer)

    @property
    def is_up(self) -> bool:
        """Whether the connection of ssh still exists."""
        return not self._mux.is_lost

    def open_control(self) -> ControlConnection:
        """Open a control connection; raise PeerUnreachable if the far end has gone."""
        if self._mux.is_lost:
            raise PeerUnreachable(f"{self.peer}: the ssh connection has ended")
        link = ControlConnection(End.NEAR)
        self._mux.open(link)
        return link


@asynccontextmanager
async def open_ssh_far_end(peer: Peer, prompt: PromptCallback | None = None) -> AsyncGenerator[SshFarEnd]:
    """Log in, start a far end and yield it; raise PeerError if that fails.

    ssh asks for passwords and the like through `prompt`, or on the terminal without it.
    """
    declined = None if prompt is not None or _can_ask() else DeclinedQuestions()
    async with AsyncExitStack() as stack:
        environment = None
        if prompt is not None:
            environment = await stack.enter_async_context(serve_askpass(prompt))
        elif declined is not None:
            environment = await stack.enter_async_context(serve_askpass(declined.decline, is_forced=False))
        configuration = await query_ssh_config(peer)
        forward = await choose_forward(peer)
        login = _Login(peer, forward, declined)
        stack.push_async_callback(login.close)
        await login.start(login_command(peer, configuration, forward), environment)
        up = await login.until_up(is_attended=prompt is not None or sys.stdin.isatty())
        way = await find_data_path(peer, configuration, forward, (up.host, up.port))
        _log.debug("%s: data goes to %s", peer, way.data_address)
        mux = await login.join(way)
        living = asyncio.create_task(login.live(mux))
        stack.callback(living.cancel)
        yield SshFarEnd(peer, mux, way)


def _can_ask() -> bool:
    """Return whether ssh can ask the user: on this process's terminal, or by a program that the user has named."""
    if sys.stdin.isatty() or "SSH_ASKPASS" in os.environ:
        return True
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


class _Login:
    """A login. Call `start`, `until_up`, `join` and `close`, in this order; `live` runs after `join`."""

    def __init__(self, peer: Peer, forward: PortForward | None, declined: DeclinedQuestions | None = None) -> None:
        self._peer = peer
        self._forward = forward
        self._ssh = SshProcess(peer, BOOTSTRAP_MARK, declined)
        self._mux: Mux | None = None
        self._was_stopped = False

    async def start(self, command: list[str], environment: Mapping[str, str] | None) -> None:
        """Start ssh; see SshProcess."""
        await self._ssh.start(command, environment)

    async def until_up(self, *, is_attended: bool) -> ListenReply:
        """Answer the far end's requests until it listens; raise PeerError if it never does."""
        deadline_s = LOGIN_DEADLINE_S if is_attended else UNATTENDED_DEADLINE_S
        try:
            async with asyncio.timeout(deadline_s) as limit:
                has_begun = False
                while (line := await self._ssh.next_line()) is not None:
                    if not has_begun:  # from here on the user types nothing; further lines gain no time
                        has_begun = True
                        limit.reschedule(asyncio.get_running_loop().time() + STARTUP_DEADLINE_S)
                    word, _, rest = line.partition(" ")
                    _log.debug("%s: bootstrap step %r", self._peer, word)
                    if word == "up":
                        return self._checked(rest)
                    await self._answer(word, rest)
                raise await self._ssh.why_ended()
        except TimeoutError as error:
            raise self._ssh.why_late() from error

    async def join(self, way: DataPath) -> Mux:
        """Make the streams of ssh carry control connections; return their multiplexer."""
        mux = Mux(None, lambda: None, extra=way.transport_extra, why_lost=self._why_lost)
        await self._ssh.attach(mux)
        self._mux = mux
        return mux

    async def live(self, mux: Mux) -> None:
        """Send keepalives to the far end until the connection is lost.

        An ssh process that a signal has stopped would hold the far end up, and is killed. It must be stopped at two
        checks in a row, because one that was suspended together with this process continues with it.
        """
        looks = 0
        while not mux.is_lost:
            await asyncio.sleep(KEEPALIVE_INTERVAL_S)
            mux.send_keepalive()
            looks = looks + 1 if self._ssh.is_stopped else 0
            if looks > 1:
                self._was_stopped = True
                self._ssh.kill()
                mux.connection_lost(None)

    async def close(self) -> None:
        """End the far end and ssh."""
        await await_shielded(self._end())

    async def _answer(self, word: str, rest: str) -> None:
        oldest = ".".join(map(str, MIN_PYTHON))
        rest = rest[:MAX_SHOWN]
        if word == "engine":
            self._ssh.forget_messages()  # the output of another version of linkgauge there
            await self._ssh.send(bootstrap_script())
        elif word == "ready":
            ssh, forward = self._peer.ssh, self._forward
            assert ssh is not None  # noqa: S101 - it is such a peer
            port = (ssh.data_port or 0) if forward is None else forward.far_port
            request = json.dumps(encode(ListenRequest(port, forward is not None)))
            await self._ssh.send(request.encode() + b"\n")
        elif word == "python":
            python = f"its python3 is {make_printable(rest)}" if rest else "it has no python3 on its PATH"
            raise PeerError(
                f"{self._peer} cannot run the remote endpoint: {python}; "
                f"install Python {oldest} or newer there, or linkgauge"
            )
        elif word == "broken":
            raise PeerError(
                f"{self._peer} cannot run the remote endpoint: its python3 cannot start: "
                f"{make_printable(rest) or 'it prints nothing'}; mend it, or install linkgauge there"
            )

    def _checked(self, text: str) -> ListenReply:
        try:
            up = decode(ListenReply, json.loads(text))
        except (DecodeError, ValueError, RecursionError) as error:
            raise PeerError(f"{self._peer} cannot be understood: {error}") from error
        if up.problem is not None:
            raise PeerError(f"{self._peer}: {make_printable(up.problem[:MAX_SHOWN])}")
        if not 1 <= up.port <= MAX_PORT:
            raise PeerError(f"{self._peer} cannot be understood: it listens on TCP port {up.port}")
        return up

    def _why_lost(self) -> str:
        return "ssh was stopped by a signal" if self._was_stopped else f"ssh ended{self._ssh.quoted()}"

    async def _end(self) -> None:
        is_there = self._mux is not None and time.monotonic_ns() - self._mux.last_received_ns < DEAD_PEER_TIMEOUT_NS
        if self._mux is not None:
            self._mux.close()
        await self._ssh.close(_END_DEADLINE_S if is_there else 0)
