"""The path of data connections to a far end that ssh has started: directly to the host, or through ssh."""

import asyncio
import random
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from ..host.event_loop import call_in_thread, connect_socket, read_exactly
from ..host.happy_eyeballs import Address, first_success, of_ip_version, resolve_addresses
from ..model.errors import PeerUnreachable
from ..model.peer import Peer
from ..model.texts.warning_text import WarningText
from ..protocol.preamble import CONTROL_KIND, PREAMBLE_BYTES, decode_preamble, encode_preamble
from .login import PortForward, is_proxied

DATA_PATH_DEADLINE_S: Final = 5.0
_LOOPBACK: Final = "127.0.0.1"
# Not assigned (RFC 6335), and above those that Linux gives to connections (net.ipv4.ip_local_port_range).
_FREE_PORTS: Final = (61_000, 65_535)
_CHANCE: Final = random.SystemRandom()

AddressPort = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class DataPath:
    """The address for data connections, and the addresses of both ends, which identify the interfaces."""

    data_address: AddressPort
    near_address: AddressPort
    far_address: AddressPort
    is_through_ssh: bool = False

    @property
    def transport_extra(self) -> dict[str, Any]:
        """The extra information for the transport of a control connection."""
        return {"sockname": self.near_address, "peername": self.far_address, "data_address": self.data_address}

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about the figures of runs over this path."""
        return (WarningText.DATA_THROUGH_SSH.value,) if self.is_through_ssh else ()


async def choose_forward(peer: Peer) -> PortForward | None:
    """Return the ports for ssh to forward; None if data goes directly.

    The far port is chosen here, because ssh needs it before the far end runs and could name a free one.
    """
    ssh = peer.ssh
    if ssh is None or not ssh.is_data_tunneled:
        return None
    with socket.socket() as free:
        free.bind((_LOOPBACK, 0))
        return PortForward(free.getsockname()[1], ssh.data_port or _CHANCE.randint(*_FREE_PORTS))


async def find_data_path(
    peer: Peer, configuration: dict[str, str], forward: PortForward | None, listen_address: tuple[str | None, int]
) -> DataPath:
    """Return a path that has carried a connection; raise PeerUnreachable within 5 s if there is none.

    Args:
        peer: the far end.
        configuration: ssh's configuration for it, whose `hostname` is tried first.
        forward: the ports that ssh forwards, if ssh carries the data.
        listen_address: the far end's listener. Its host is tried behind a proxy, or if the name has no address.
    """
    name = configuration.get("hostname", peer.host)
    host, port = listen_address
    addresses = of_ip_version(await _resolve(name, port), peer.only_ip)
    if forward is not None:
        data: AddressPort = (_LOOPBACK, forward.near_port)
        if await _try_connection(data, DATA_PATH_DEADLINE_S) is None:
            raise PeerUnreachable(
                f"{peer}: --via-ssh: no connection gets through ssh to port {port} of the remote host; "
                "its sshd must allow it (AllowTcpForwarding)"
            )
        far = addresses[0][1] if addresses else ()
        return DataPath(data, _source_for(far), far, is_through_ssh=True)
    # The interface of a link-local address has that name on the remote host only.
    if host is not None and "%" not in host and (is_proxied(configuration) or not addresses):
        further = of_ip_version(await _resolve(host, port), peer.only_ip)
        addresses += [each for each in further if each not in addresses]
    way = await _find_first(addresses)
    if way is not None:
        return way
    tried = ", ".join(dict.fromkeys(str(address[0]) for _, address in addresses)) or "no known address"
    raise PeerUnreachable(
        f"{peer}: the remote endpoint is up, but no data connection reaches its TCP port {port} "
        f"in {DATA_PATH_DEADLINE_S:g} s (tried {tried}); allow that port in every firewall on the way "
        "(--data-port N chooses it), or carry the data over ssh with --via-ssh"
    )


async def _resolve(name: str, port: int) -> list[Address]:
    try:
        return await call_in_thread(
            lambda: resolve_addresses(name, port), name="resolver", deadline_s=DATA_PATH_DEADLINE_S
        )
    except (OSError, UnicodeError):
        return []


async def _find_first(addresses: list[Address]) -> DataPath | None:
    """Return the direct path to the address if an endpoint answers first; None without one in time."""

    async def try_address(target: Address) -> DataPath:
        near = await _try_connection(target[1], DATA_PATH_DEADLINE_S)
        if near is None:
            raise ConnectionError("no endpoint answers there")
        return DataPath(target[1], near, target[1])

    with suppress(TimeoutError):
        async with asyncio.timeout(DATA_PATH_DEADLINE_S):
            return await first_success(addresses, try_address, lambda _path: None, {})
    return None


async def _try_connection(address: AddressPort, within_s: float) -> AddressPort | None:
    """Return the local address of a connection that a linkgauge endpoint has answered; None if it fails."""
    family = socket.AF_INET6 if len(address) > len((_LOOPBACK, 0)) else socket.AF_INET
    loop = asyncio.get_running_loop()
    with suppress(OSError, EOFError), socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        async with asyncio.timeout(within_s):
            await connect_socket(sock, address)
            near = sock.getsockname()
            await loop.sock_sendall(sock, encode_preamble(CONTROL_KIND))
            return near if decode_preamble(await read_exactly(sock, PREAMBLE_BYTES)) is not None else None
    return None


def _source_for(far: AddressPort) -> AddressPort:
    """Return this host's source address for packets to another host; nothing is sent."""
    if not far:
        return ()
    family = socket.AF_INET6 if len(far) > len((_LOOPBACK, 0)) else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect(far)
        return sock.getsockname()
    return ()
