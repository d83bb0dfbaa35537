"""The options of a far end that ssh starts, as Typer wants them."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

import typer

from ...engine.errors import PlanError
from ...engine.plan import Peer, check_port
from . import parse

_PANEL: Final = "Where PEER is ssh://[USER@]HOST[:PORT]"


def _ssh_option(kind: Any, help_: str, name: str, metavar: str, *, default: Any = None) -> Any:
    option = typer.Option(name, metavar=metavar, show_default=False, help=help_, rich_help_panel=_PANEL)
    return field(default=default, metadata={"option": Annotated[kind, option]})


@dataclass(frozen=True, slots=True)
class SshOptions:
    """How a far end is started through ssh, as typed: each field is an option of the commands with a PEER."""

    ssh_command: str | None = _ssh_option(
        str | None, "The ssh to use: 'ssh -i key'; or LINKGAUGE_SSH_COMMAND.", "--ssh-command", "TEXT"
    )
    data_port: str | None = _ssh_option(
        str | None, "The TCP port for data there, where a firewall lets only some through.", "--data-port", "N"
    )
    via_ssh: bool = _ssh_option(
        bool,
        "Have ssh carry the data too: measures what ssh lets through.",
        "--via-ssh",
        "",
        default=False,
    )

    def of(self, peer: Peer) -> Peer:
        """Return the peer with these options; raise PlanError where they are not for it."""
        if peer.ssh is None:
            given = {"ssh command": self.ssh_command, "data port": self.data_port, "via ssh": self.via_ssh or None}
            for name, value in given.items():
                if value is not None:
                    raise PlanError(name, value, f"it is for a peer such as ssh://{peer.host}")
            return peer
        ssh = replace(
            peer.ssh,
            command=self.ssh_command,
            data_port=None if self.data_port is None else _port(self.data_port),
            is_through=self.via_ssh,
        )
        return replace(peer, ssh=ssh)


def _port(text: str) -> int:
    return check_port(parse.whole(text, "data port", "give a number from 1 to 65535"))
