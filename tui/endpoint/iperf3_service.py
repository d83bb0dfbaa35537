"""The part of an endpoint that serves clients of iperf3: its configuration, its setup, and what it prints."""

import socket
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...engine.far.endpoint import Endpoint
from ...engine.far.listener import listen, spell_for_client
from ...engine.far.status import LogEntry, LogSink
from ...engine.iperf3.protocol.users import UserList
from ...engine.model.errors import LinkgaugeError, UsageError
from ...engine.model.ip_address import is_loopback_address
from ...engine.model.peer import IPERF3_PORT
from ...engine.model.texts.shell_commands import shell_command
from ..session.credentials import read_iperf3_users


@dataclass(frozen=True, slots=True)
class Iperf3Config:
    """The configuration of the service, as the command line gives it. `user_files` are users and private key."""

    port: int
    user_files: tuple[str, str] | None = None
    accepts_pkcs1: bool = False

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> "Iperf3Config":
        """Return the configuration from values of JSON."""
        files: list[str] | None = values.pop("user_files")
        return cls(**values, user_files=None if files is None else (files[0], files[1]))

    def read_users(self) -> UserList | None:
        """Read the users and their key; raise InvalidKeyError if one of the files cannot be used."""
        if self.user_files is None:
            return None
        users, key = map(Path, self.user_files)
        return read_iperf3_users(users, key, accepts_pkcs1=self.accepts_pkcs1)


@dataclass(frozen=True, slots=True)
class Iperf3Setup:
    """The resources of the service: its listening socket, and its users if it has any."""

    listener: socket.socket
    users: UserList | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this host can connect."""
        return is_loopback_address(self.listener.getsockname()[0])

    @property
    def port(self) -> int:
        """The port of the listening socket."""
        return self.listener.getsockname()[1]

    def client_command(self, host: str) -> str:
        """Return the command to paste at a client that reaches this host by an address or name."""
        port = [] if self.port == IPERF3_PORT else ["-p", str(self.port)]
        login = [] if self.users is None else ["--username", "NAME", "--rsa-public-key-path", "FILE"]
        return shell_command("iperf3", "-c", spell_for_client(host), *port, *login)

    @property
    def access(self) -> str:
        """The clients that are served, in a few words."""
        if self.users is not None:
            return "with a user name"
        return "of this host only" if self.is_loopback else "without any key"

    def facts(self) -> dict[str, Any]:
        """Return the address for programs."""
        return {"port": self.port, "asks_for_user": self.users is not None}


def prepare_iperf3(config: Iperf3Config, bind: str | None, *, is_open: bool) -> Iperf3Setup:
    """Read the users, and listen.

    Args:
        config: The configuration of the service.
        bind: The endpoint's address to listen on; None for every address.
        is_open: Whether the endpoint serves everybody.

    Raises:
        EndpointError: The address cannot be listened on.
        InvalidKeyError: The files of the users cannot be used.
        UsageError: Other hosts could start tests with this host, although no option allows it.
    """
    users = config.read_users()
    setup = Iperf3Setup(listen(bind, config.port, option="--iperf3"), users)
    if not (is_open or users is not None or setup.is_loopback):
        setup.listener.close()
        raise UsageError(
            "clients of iperf3 prove no key: give --open to serve everybody, --iperf3-users with --iperf3-key, or "
            "--bind 127.0.0.1 for this host alone"
        )
    return setup


def serve_iperf3(
    setup: Iperf3Setup | None, endpoint: Endpoint, *, gives_json: bool
) -> AbstractAsyncContextManager[object]:
    """Serve clients of iperf3 while the block lasts, unless `setup` is None.

    `gives_json` chooses JSON for `--get-server-output`.
    """
    if setup is None:
        return nullcontext()
    # Here: endpoints without iperf3 do not need these modules. Later the first client would wait for them.
    from ...engine.iperf3.far.server_output import Iperf3Options
    from ...engine.iperf3.far.service import Iperf3Service
    from .iperf3_output import Iperf3Output

    options = Iperf3Options(setup.listener, setup.users, lambda: Iperf3Output(as_json=gives_json).take)
    return Iperf3Service(options, endpoint)


def reload_users(config: Iperf3Config, users: UserList | None, log: LogSink) -> None:
    """Read the users and their key again. Bad ones are logged, and the earlier ones stay in force."""
    if users is None:
        return
    try:
        new = config.read_users()
    except LinkgaugeError as error:
        log(LogEntry("not_reloaded", f"users of iperf3 not changed: {error}"))
        return
    if new is not None:
        users.take_over(new)
        log(LogEntry("reloaded", "users of iperf3 read again: they apply to new tests"))
