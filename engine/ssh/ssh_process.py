"""A process of ssh: one stream for both ways, its messages within bounds, and the reason of its end.

Far ends and the hosts of a mesh are started by it. The program there begins each of its lines with a mark; other
lines are the login's own.
"""

import asyncio
import contextlib
import logging
import re
import shlex
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import Final

from ..host.child_process import end_process, foreign_environment
from ..host.end_signals import keep_ignored
from ..host.process_identity import is_process_stopped
from ..model.errors import PeerError, PeerUnreachable, explain_os_error
from ..model.peer import Peer
from ..model.serialization import make_printable
from .declined_questions import DeclinedQuestions
from .login import manual_login_command

_KILL_DEADLINE_S: Final = 1.0
_READ_BYTES: Final = 65_536
_MAX_NOISE_BYTES: Final = 1 << 16  # output of the login itself
_MAX_STDERR_BYTES: Final = 4_096
_SHOWN_LINES: Final = 3
MAX_SHOWN: Final = 300  # characters of a line; a message of sshd's has fewer
_SSH_FAILED: Final = 255
_CHANGED_KEY: Final = re.compile(r"^Host key for ([\w.:%\[\]-]{1,253}) has changed", re.ASCII | re.MULTILINE)
_OFFENDING: Final = re.compile(r"^Offending \S+ key in (/\S+):\d+$", re.MULTILINE)
_NO_KEY_TAKEN: Final = re.compile(r"^\S+: Permission denied \([\w,-]*publickey", re.MULTILINE)
_log = logging.getLogger(__name__)


class SshProcess:
    """A process of ssh. After `start`, the caller must call `close`.

    Args:
        peer: the host, for messages.
        mark: the first word of each line that the program there prints.
        declined: the questions that nobody answers; None if the user can.
    """

    def __init__(self, peer: Peer, mark: str, declined: DeclinedQuestions | None = None) -> None:
        self._peer, self._mark, self._declined = peer, mark, declined
        self._process: asyncio.subprocess.Process | None = None
        self._stream: socket.socket | None = None
        self._errors: socket.socket | None = None
        self._buffer = b""
        self._taken = 0
        self._stderr = bytearray()
        self._listening: asyncio.Task[None] | None = None

    async def start(self, command: Sequence[str], environment: Mapping[str, str] | None) -> None:
        """Start ssh. With its own environment it has no terminal: it asks questions through that environment.

        Raises PeerUnreachable if the program cannot be run.
        """
        self._stream, theirs = socket.socketpair()
        # A child of ssh may hold its standard error open after ssh has ended: do not wait for that.
        self._errors, their_errors = socket.socketpair()
        for each in (self._stream, self._errors):
            each.setblocking(False)
        with theirs, their_errors:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *keep_ignored(command),
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=their_errors.fileno(),
                    env=foreign_environment(environment),
                    start_new_session=environment is not None,
                )
            except OSError as error:
                raise PeerUnreachable(f"{self._peer}: ssh cannot be started: {explain_os_error(error)}") from error
        _log.debug("%s: ssh runs as process %d", self._peer, self._process.pid)
        self._listening = asyncio.create_task(self._listen(self._errors))

    async def next_line(self) -> str | None:
        """Return the next line without its mark, None at the end. Raises PeerError if the login prints too much."""
        assert self._stream is not None  # noqa: S101 - it was started
        loop = asyncio.get_running_loop()
        while True:
            while b"\n" in self._buffer:
                line, _, self._buffer = self._buffer.partition(b"\n")
                mark, _, rest = line.decode(errors="replace").strip().partition(" ")
                if mark == self._mark:
                    return rest
            try:
                more = await loop.sock_recv(self._stream, _READ_BYTES)
            except ConnectionError:
                return None
            if not more:
                return None
            self._buffer += more
            self._taken += len(more)
            if self._taken > _MAX_NOISE_BYTES:
                raise PeerError(
                    f"{self._peer}: the start-up files of its shell print too much; "
                    "let them print only on a terminal"
                )

    async def send(self, data: bytes) -> None:
        """Send bytes to the standard input of the program there."""
        assert self._stream is not None  # noqa: S101 - it was started
        with contextlib.suppress(ConnectionError):  # reading shows its end
            await asyncio.get_running_loop().sock_sendall(self._stream, data)

    async def attach(self, protocol: asyncio.Protocol) -> None:
        """Give the stream to a protocol, which closes it from now on, and first what has come already."""
        assert self._stream is not None  # noqa: S101 - it was started
        protocol.data_received(self._buffer)
        await asyncio.get_running_loop().create_unix_connection(lambda: protocol, sock=self._stream)
        self._stream = None

    def forget_messages(self) -> None:
        """Drop the messages so far."""
        self._stderr.clear()

    @property
    def is_stopped(self) -> bool:
        """Whether a signal has stopped the process."""
        return self._process is not None and is_process_stopped(self._process.pid)

    def kill(self) -> None:
        """Kill the process."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def last_lines(self, count: int = _SHOWN_LINES) -> str:
        """Return the last messages of ssh and of the program there, as printable text."""
        lines = [
            make_printable(line.strip()[:MAX_SHOWN]) for line in self._stderr.decode(errors="replace").splitlines()
        ]
        return " ".join([line for line in lines if line][-count:]).rstrip(".")

    def quoted(self) -> str:
        """Return the last messages behind a colon; "" without any."""
        last = self.last_lines()
        return f": {last}" if last else ""

    def why_late(self) -> PeerUnreachable:
        """Return the error of a program there that did not come up in time."""
        return PeerUnreachable(f"{self._peer} did not come up in time{self.quoted()}; {self._by_hand()}")

    async def why_ended(self) -> PeerError:
        """Return the error of an ssh that ended before the program there was up."""
        assert self._process is not None  # noqa: S101 - it was started
        status = await self._process.wait()
        if self._listening is not None:
            await asyncio.wait([self._listening], timeout=_KILL_DEADLINE_S)
        if status == _SSH_FAILED:
            return PeerUnreachable(f"ssh cannot log in to {self._peer}{self._why_refused()}")
        return PeerError(f"{self._peer}: the remote endpoint could not be started (status {status}){self.quoted()}")

    def _why_refused(self) -> str:
        """Return why there is no login, and what to do."""
        key = None if self._declined is None else self._declined.locked_key
        if key is not None:
            return f": the key {key} needs its passphrase; give it to an agent: {shlex.join(('ssh-add', key))}"
        messages = self._stderr.decode(errors="replace").replace("\r", "")
        if changed := _CHANGED_KEY.search(messages):
            file = ["-f", found[1]] if (found := _OFFENDING.search(messages)) else []
            forget = make_printable(shlex.join(["ssh-keygen", *file, "-R", changed[1]]))
            last = self.last_lines(1)
            return f": {last}: its key has changed; if it was set up anew, forget the old key: {forget}"
        if _NO_KEY_TAKEN.search(messages):
            return f"{self.quoted()}; allow a key of yours there, or name the right one; {self._by_hand()}"
        return f"{self.quoted()}; {self._by_hand()}"

    def _by_hand(self) -> str:
        return f"try it by hand: {manual_login_command(self._peer)}"

    async def _listen(self, errors: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while more := await loop.sock_recv(errors, _MAX_STDERR_BYTES):
            self._stderr += more
            del self._stderr[:-_MAX_STDERR_BYTES]

    async def close(self, wait_s: float = 0) -> None:
        """End ssh: by the end of its standard input, after `wait_s` by signals."""
        if self._stream is not None:
            self._stream.close()
        if self._process is not None:
            # Its streams have ended; if nothing is there it may wait for ever.
            kills = ((signal.SIGTERM, _KILL_DEADLINE_S), (signal.SIGKILL, _KILL_DEADLINE_S))
            await end_process(self._process, ((None, wait_s), *kills))
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        if self._errors is not None:
            self._errors.close()
