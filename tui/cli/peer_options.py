"""A peer on the command line: its name, the credentials for it, and how ssh starts it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import typer

from ...engine.model.errors import UsageError
from ...engine.model.peer import Peer
from ..text import parsing
from .typer_extension import option

# Sections of the help.
_ACCESS: Final = "Access to the remote host"
_SSH: Final = "Peers by ssh"

PEER_HELP: Final = "HOST[:PORT], ssh://[USER@]HOST[:PORT], or loopback."

PeerArgument = Annotated[str, typer.Argument(metavar="PEER", show_default=False, help=PEER_HELP)]


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """The credentials for a far end, and the demands on it."""

    key_file: Path | None = option(
        _ACCESS,
        Path | None,
        "File with the key of the remote host; only you may read it. Without it: LINKGAUGE_KEY, or your keys file.",
        "--key-file",
        metavar="FILE",
    )
    open_: bool = option(
        _ACCESS,
        bool,
        "Connect even if the remote end does not ask for your key.",
        "--open",
        default=False,
        metavar="",
    )
    tls_fingerprint: str | None = option(
        _ACCESS,
        str | None,
        "Use TLS, and accept only the certificate with this fingerprint, as the endpoint prints it.",
        "--tls-fingerprint",
        metavar="SHA256",
    )

    def parse_peer(self, text: str) -> Peer:
        """Return the peer of this text, with the credentials for it."""
        from ..services.credentials import read_fingerprint, with_access

        fingerprint = None if self.tls_fingerprint is None else read_fingerprint(self.tls_fingerprint)
        return with_access(
            parsing.peer(text), key_file=self.key_file, may_be_open=self.open_, fingerprint=fingerprint
        )


@dataclass(frozen=True, slots=True)
class SshOptions:
    """The way ssh starts a far end."""

    ssh_command: str | None = option(
        _SSH,
        str | None,
        "Command instead of ssh, such as 'ssh -i key'; also LINKGAUGE_SSH_COMMAND.",
        "--ssh-command",
        metavar="TEXT",
    )
    data_port: str | None = option(
        _SSH,
        str | None,
        "Remote TCP port for data, where a firewall blocks others.",
        "--data-port",
        metavar="N",
    )
    via_ssh: bool = option(
        _SSH,
        bool,
        "Send the data through ssh too: measures ssh, not the link alone.",
        "--via-ssh",
        default=False,
        metavar="",
    )

    def apply_to(self, peer: Peer) -> Peer:
        """Return the peer with these options; raise UsageError for options that it has no use for."""
        if peer.ssh is None:
            options = {
                "--ssh-command": self.ssh_command is not None,
                "--data-port": self.data_port is not None,
                "--via-ssh": self.via_ssh,
            }
            for name, is_given in options.items():
                if is_given:
                    raise UsageError(f"{name} needs a peer by ssh, such as ssh://{peer.host}")
            return peer
        ssh = replace(
            peer.ssh,
            command=self.ssh_command,
            data_port=None if self.data_port is None else parsing.data_port(self.data_port),
            is_data_tunneled=self.via_ssh,
        )
        return replace(peer, ssh=ssh)
