"""One login to a host of a mesh by the user's own ssh, and the process of Dask that it carries.

Nobody can answer questions of hundreds of logins: ssh's questions are declined, and named in the error.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final

from ... import __version__
from ...engine.model.errors import PeerError, PeerUnreachable, make_printable
from ...engine.model.peer import Peer, SshSettings
from ...engine.ssh.bundle import MIN_PYTHON
from ...engine.ssh.declined_questions import DeclinedQuestions
from ...engine.ssh.login import login_command, query_ssh_config, serve_askpass
from ...engine.ssh.ssh_process import SshProcess
from ..plan import Host
from .dask_process import LOGGED_IN, MARK, PYTHON, READY, SERVES, UNREACHED, VERSION

LOGIN_DEADLINE_S: Final = 15.0
IMPORT_DEADLINE_S: Final = 60.0
"""For Python and Dask to be loaded: a busy host takes some seconds."""
_SERVE_DEADLINE_S: Final = 60.0
_END_S: Final = 6.0  # a second more than dask_process takes
# An empty password, the answer of nobody, would count as a failed login there.
_UNATTENDED: Final = ("-o", "PasswordAuthentication=no", "-o", "KbdInteractiveAuthentication=no")
_PYTHON_VERSION: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){2}", re.ASCII)
_CANNOT_IMPORT: Final = (
    "{python} there cannot import linkgauge with Dask: {reason}; install linkgauge[mesh] there, or give the path "
    "of a Python that has it with --remote-python"
)
_FAILED: Final = {
    PYTHON: "{python} there cannot start: {reason}; give the path of another Python with --remote-python",
    VERSION: _CANNOT_IMPORT,
    READY: _CANNOT_IMPORT,
    SERVES: "its Dask process did not start: {reason}",
}
_ADDRESS: Final = re.compile(r"tls://[0-9a-zA-Z.:%\[\]_-]{1,100}:[0-9]{1,5}", re.ASCII)


class HostLogin:
    """A login to a host: `open` it, have it `serve`, and `close` it in any case.

    Args:
        host: `[USER@]NAME`, as ssh knows it.
        python: the interpreter there, as a word for the shell there.
        logins: bounds the logins at the same time. A server or jump host drops them beyond ten (MaxStartups in
            sshd_config(5)).
    """

    def __init__(self, host: Host, python: str, logins: asyncio.Semaphore) -> None:
        user, _, name = host.name.rpartition("@")
        self.host = host
        self._peer = Peer(name, ssh=SshSettings(user=user or None))
        self._python, self._logins = python, logins
        self._declined = DeclinedQuestions()
        self._ssh = SshProcess(self._peer, MARK, self._declined)
        self._is_serving = False

    async def open(self) -> str | None:
        """Log in, and return the address of the sshd once Dask is loaded there; None if that is unknown.

        Raises PeerUnreachable if ssh does not get there, and PeerError if nothing can run there.
        """
        async with self._logins:
            await self._log_in()
        try:
            async with asyncio.timeout(IMPORT_DEADLINE_S):
                self._check_python(await self._next(PYTHON))
                version = await self._next(VERSION)
                if version != __version__:
                    there = make_printable(version[:50])
                    raise PeerError(f"it has linkgauge {there}; install {__version__} there too")
                return _read_address(await self._next(READY))
        except TimeoutError as error:
            raise PeerError(f"{self._python} there did not load Dask within {IMPORT_DEADLINE_S:g} s") from error

    def _check_python(self, version: str) -> None:
        """Raise PeerError for a Python that is too old: it could not even import what says so."""
        if not _PYTHON_VERSION.fullmatch(version):
            raise PeerError("its answer cannot be understood")
        if tuple(map(int, version.split("."))) < MIN_PYTHON:
            oldest = ".".join(map(str, MIN_PYTHON))
            raise PeerError(
                f"{self._python} there is Python {version}; install {oldest} or newer with linkgauge[mesh], "
                "and give its path with --remote-python"
            )

    async def _log_in(self) -> None:
        # A Python before 3.11 does not know -P: it tells its version without.
        say = f'import sys; print("{MARK} {PYTHON} %d.%d.%d" % sys.version_info[:3])'
        check = f'import linkgauge; print("{MARK} {VERSION}", linkgauge.__version__, flush=True)'
        begin = f"from {__package__}.dask_process import main; main()"
        run = f"{self._python} -S -c '{say}' && exec {self._python} -P -c '{check}; {begin}'"
        command = f"echo {MARK} {LOGGED_IN}; {run}"
        try:
            async with serve_askpass(self._declined.decline) as environment, asyncio.timeout(LOGIN_DEADLINE_S):
                configuration = await query_ssh_config(self._peer)
                words = login_command(self._peer, configuration, None, command, _UNATTENDED)
                await self._ssh.start(words, environment)
                if await self._ssh.next_line() is None:
                    raise await self._ssh.why_ended()
        except TimeoutError as error:
            raise self._ssh.why_late() from error

    async def _next(self, word: str) -> str:
        """Return what follows a word in the next line; raise PeerError if another comes, or none."""
        line = await self._ssh.next_line()
        if line is None:
            await self._ssh.why_ended()  # waits for the last messages
            reason = self._ssh.last_lines(1) or "it printed nothing"
            raise PeerError(_FAILED[word].format(python=self._python, reason=reason))
        found, _, rest = line.partition(" ")
        if found == UNREACHED and word == SERVES:
            raise PeerUnreachable(f"it does not reach Dask's scheduler: {make_printable(rest)}")
        if found != word:
            raise PeerError("its answer cannot be understood")
        return rest

    async def serve(self, options: Mapping[str, Any], config: Mapping[str, Any], scheduler: str | None) -> str:
        """Start a worker for a scheduler, or the scheduler, and return its address. Raises PeerError."""
        order = {"options": dict(options), "config": dict(config), "scheduler": scheduler}
        try:
            async with asyncio.timeout(_SERVE_DEADLINE_S):
                await self._ssh.send(json.dumps(order).encode() + b"\n")
                self._is_serving = True
                address = await self._next(SERVES)
        except TimeoutError as error:
            raise PeerError(f"its Dask process did not start within {_SERVE_DEADLINE_S:g} s") from error
        if not _ADDRESS.fullmatch(address):
            raise PeerError("the address of its Dask process cannot be understood")
        return address

    async def close(self) -> None:
        """End the process there, and ssh."""
        await self._ssh.close(_END_S if self._is_serving else 0)


def _read_address(text: str) -> str | None:
    """Return the address of the sshd; None if it is not an address."""
    try:
        return str(ip_address(text.partition("%")[0]))
    except ValueError:
        return None
