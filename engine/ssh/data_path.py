"""The way that data takes to a far end that ssh has started: from host to host, or through ssh."""

import asyncio
import random
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from ..host.blocking_calls import call_aside
from ..model.errors import PeerUnreachable
from ..model.peer import Peer
from ..protocol.preamble import CONTROL_KIND, PREAMBLE_BYTES, preamble, read_preamble
from .command import Forward, is_proxied

WAY_DEADLINE_S: Final = 5.0
_LOOPBACK: Final = "127.0.0.1"
_DYNAMIC_PORTS: Final = (49_152, 65_535)  # RFC 6335: nobody is assigned these
_CHANCE: Final = random.SystemRandom()

Address = tuple[Any, ...]

THROUGH_SSH: Final = (
    "through ssh: ssh carries the payload in its own connection, encrypted; this is what ssh lets through and not "
    "what the link carries, and windows, RTT, segments and retransmits are those of connections within the hosts"
)


@dataclass(frozen=True, slots=True)
class Way:
    """Where data connections go, and the two ends of the path for whoever asks which interfaces carry it."""

    data: Address
    near: Address
    far: Address
    is_through: bool = False

    @property
    def extra(self) -> dict[str, Any]:
        """What a control connection's transport tells of it."""
        return {"sockname": self.near, "peername": self.far, "data_address": self.data}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know before the figures are believed."""
        return (THROUGH_SSH,) if self.is_through else ()


async def forward_for(peer: Peer) -> Forward | None:
    """Return the ports that ssh is to forward, where it is to carry the data.

    The far one has to be known before the far end can be asked for a free one.
    """
    ssh = peer.ssh
    if ssh is None or not ssh.is_through:
        return None
    with socket.socket() as free:
        free.bind((_LOOPBACK, 0))
        return Forward(free.getsockname()[1], ssh.data_port or _CHANCE.randint(*_DYNAMIC_PORTS))


async def find_way(
    peer: Peer, configuration: dict[str, str], forward: Forward | None, told: tuple[str | None, int]
) -> Way:
    """Return a way that a connection has gone; raise PeerUnreachable within 5 s where there is none.

    The host is where ssh itself connects to; where this name means nothing here, it is the address that the
    far end was reached at.
    """
    name = configuration.get("hostname", peer.host)
    host, port = told
    addresses = await _resolve(name, port)
    if forward is not None:
        data: Address = (_LOOPBACK, forward.near_port)
        if await _goes(data, WAY_DEADLINE_S) is None:
            raise PeerUnreachable(
                f"{peer}: ssh carries no data there: no connection gets through its forwarding to the far end's "
                f"port {port}; the far host's sshd has to allow it (AllowTcpForwarding)"
            )
        far = addresses[0] if addresses else ()
        return Way(data, _source_for(far), far, is_through=True)
    if host is not None and (is_proxied(configuration) or not addresses):
        addresses += [each for each in await _resolve(host, port) if each not in addresses]
    for address in addresses:
        near = await _goes(address, WAY_DEADLINE_S / len(addresses))
        if near is not None:
            return Way(address, near, address)
    tried = ", ".join(dict.fromkeys(str(address[0]) for address in addresses)) or "no address that is known here"
    raise PeerUnreachable(
        f"{peer}: the far end is up, but no data connection gets to its TCP port {port} in {WAY_DEADLINE_S:g} s "
        f"(tried {tried}); let that port through every firewall on the way (--data-port N chooses it), or have ssh "
        "carry the data with --via-ssh"
    )


async def _resolve(name: str, port: int) -> list[Address]:
    def look_up() -> list[Address]:
        return [info[4] for info in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)]

    try:
        return await call_aside(look_up, name="resolver", deadline_s=WAY_DEADLINE_S)
    except (OSError, UnicodeError):
        return []


async def _goes(address: Address, within_s: float) -> Address | None:
    """Return this end's address of a connection that gets to a linkgauge there; None where none does."""
    family = socket.AF_INET6 if len(address) > len((_LOOPBACK, 0)) else socket.AF_INET
    loop = asyncio.get_running_loop()
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        async with asyncio.timeout(within_s):
            await loop.sock_connect(sock, address)
            near = sock.getsockname()
            await loop.sock_sendall(sock, preamble(CONTROL_KIND))
            answer = b""
            while len(answer) < PREAMBLE_BYTES:
                more = await loop.sock_recv(sock, PREAMBLE_BYTES - len(answer))
                if not more:
                    return None
                answer += more
            return near if read_preamble(answer) is not None else None
    return None


def _source_for(far: Address) -> Address:
    """Return the address that this host would use on the way to another one; nothing is sent."""
    if not far:
        return ()
    family = socket.AF_INET6 if len(far) > len((_LOOPBACK, 0)) else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect(far)
        return sock.getsockname()
    return ()
