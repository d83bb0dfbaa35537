"""The way that data takes to a far end that ssh has started: from host to host, or through ssh."""

import asyncio
import random
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from ..host.blocking_calls import call_in_thread
from ..model.errors import PeerUnreachable
from ..model.peer import Peer
from ..protocol.preamble import CONTROL_KIND, PREAMBLE_BYTES, decode_preamble, encode_preamble
from .command import PortForward, is_proxied

DATA_PATH_DEADLINE_S: Final = 5.0
_LOOPBACK: Final = "127.0.0.1"
_DYNAMIC_PORTS: Final = (49_152, 65_535)  # RFC 6335: nobody is assigned these
_CHANCE: Final = random.SystemRandom()

AddressPort = tuple[Any, ...]

THROUGH_SSH_NOTE: Final = (
    "through ssh: ssh carries the payload in its own connection, encrypted; this is what ssh lets through and not "
    "what the link carries, and windows, RTT, segments and retransmits are those of connections within the hosts"
)


@dataclass(frozen=True, slots=True)
class DataPath:
    """Where data connections go, and the two ends of the path for whoever asks which interfaces carry it."""

    data_address: AddressPort
    near_address: AddressPort
    far_address: AddressPort
    is_through_ssh: bool = False

    @property
    def transport_extra(self) -> dict[str, Any]:
        """What a control connection's transport tells of it."""
        return {"sockname": self.near_address, "peername": self.far_address, "data_address": self.data_address}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know before the figures are believed."""
        return (THROUGH_SSH_NOTE,) if self.is_through_ssh else ()


async def choose_forward(peer: Peer) -> PortForward | None:
    """Return the ports that ssh is to forward, where it is to carry the data.

    The far one has to be known before the far end can be asked for a free one.
    """
    ssh = peer.ssh
    if ssh is None or not ssh.is_data_tunneled:
        return None
    with socket.socket() as free:
        free.bind((_LOOPBACK, 0))
        return PortForward(free.getsockname()[1], ssh.data_port or _CHANCE.randint(*_DYNAMIC_PORTS))


async def find_data_path(
    peer: Peer, configuration: dict[str, str], forward: PortForward | None, listen_address: tuple[str | None, int]
) -> DataPath:
    """Return a way that a connection has gone; raise PeerUnreachable within 5 s where there is none.

    The host is where ssh itself connects to; where this name means nothing here, it is the address that the
    far end was reached at.
    """
    name = configuration.get("hostname", peer.host)
    host, port = listen_address
    addresses = await _resolve(name, port)
    if forward is not None:
        data: AddressPort = (_LOOPBACK, forward.near_port)
        if await _goes(data, DATA_PATH_DEADLINE_S) is None:
            raise PeerUnreachable(
                f"{peer}: ssh carries no data there: no connection gets through its forwarding to the far end's "
                f"port {port}; the far host's sshd has to allow it (AllowTcpForwarding)"
            )
        far = addresses[0] if addresses else ()
        return DataPath(data, _source_for(far), far, is_through_ssh=True)
    if host is not None and (is_proxied(configuration) or not addresses):
        addresses += [each for each in await _resolve(host, port) if each not in addresses]
    for address in addresses:
        near = await _goes(address, DATA_PATH_DEADLINE_S / len(addresses))
        if near is not None:
            return DataPath(address, near, address)
    tried = ", ".join(dict.fromkeys(str(address[0]) for address in addresses)) or "no address that is known here"
    raise PeerUnreachable(
        f"{peer}: the far end is up, but no data connection gets to its TCP port {port} "
        f"in {DATA_PATH_DEADLINE_S:g} s "
        f"(tried {tried}); let that port through every firewall on the way (--data-port N chooses it), or have ssh "
        "carry the data with --via-ssh"
    )


async def _resolve(name: str, port: int) -> list[AddressPort]:
    def look_up() -> list[AddressPort]:
        return [info[4] for info in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)]

    try:
        return await call_in_thread(look_up, name="resolver", deadline_s=DATA_PATH_DEADLINE_S)
    except (OSError, UnicodeError):
        return []


async def _goes(address: AddressPort, within_s: float) -> AddressPort | None:
    """Return this end's address of a connection that gets to a linkgauge there; None where none does."""
    family = socket.AF_INET6 if len(address) > len((_LOOPBACK, 0)) else socket.AF_INET
    loop = asyncio.get_running_loop()
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        async with asyncio.timeout(within_s):
            await loop.sock_connect(sock, address)
            near = sock.getsockname()
            await loop.sock_sendall(sock, encode_preamble(CONTROL_KIND))
            answer = b""
            while len(answer) < PREAMBLE_BYTES:
                more = await loop.sock_recv(sock, PREAMBLE_BYTES - len(answer))
                if not more:
                    return None
                answer += more
            return near if decode_preamble(answer) is not None else None
    return None


def _source_for(far: AddressPort) -> AddressPort:
    """Return the address that this host would use on the way to another one; nothing is sent."""
    if not far:
        return ()
    family = socket.AF_INET6 if len(far) > len((_LOOPBACK, 0)) else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect(far)
        return sock.getsockname()
    return ()
