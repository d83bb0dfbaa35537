"""The handshake of both ends of a control connection: proofs of the key, then introductions."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from ..host.description import describe_host
from ..model.errors import PeerUntrusted, RemoteProtocolError
from ..model.host_info import HostInfo
from ..model.ip_address import ip_version_of
from ..model.peer import Peer
from ..model.shared_key import NO_ACCESS, NONCE_BYTES
from ..protocol.messages import Challenge, Hello, Introduction, Welcome
from ..protocol.peer_validation import replace_impossible_names
from .connection import ControlConnection
from .key_proof import KeyCheck, prove_key, require

_NO_DOWNGRADE: Final = (
    "it does not ask for your key, so it may not be your endpoint; start it with that key, or connect anyway "
    "with --open"
)


@dataclass(frozen=True, slots=True)
class HandshakeResult:
    """The two ends of a connection, each with the interface that carries it.

    `notes` tell the user about the path; `is_data_tunneled` means that ssh carries the data. `address` is the
    far end's IP address, empty if unknown.
    """

    near: HostInfo
    far: HostInfo
    notes: tuple[str, ...] = ()
    is_data_tunneled: bool = False
    address: str = ""

    @property
    def ip_version(self) -> Literal[4, 6] | None:
        """The version of the packets; None if unknown."""
        return ip_version_of(self.address) if self.address else None


async def handshake_as_near(link: ControlConnection, peer: Peer) -> HandshakeResult:
    """Near: exchange proofs of the key with the far end, if either has one, and then introductions.

    Raises PeerKeyRequired for a missing or wrong key, PeerUntrusted if the far end does not prove its own,
    PeerRefused if it declines, and any error of `link.receive`.
    """
    access = peer.access or NO_ACCESS
    near = await describe_host(link.local_address, link.peer_address)
    key = access.key
    # If the conversation has failed already, `receive` raises.
    link.try_send(Hello("" if key is None else secrets.token_hex(NONCE_BYTES)))
    message = await link.receive()
    if isinstance(message, Challenge):
        await prove_key(link, peer, key)
    else:
        require(Welcome, message, peer)
        if key is not None and not access.may_be_open:
            raise PeerUntrusted(f"{peer} cannot be trusted: {_NO_DOWNGRADE}")
    far = require(Introduction, await link.receive(), peer).facts
    link.try_send(Introduction(near))
    return HandshakeResult(near, replace_impossible_names(far), address=link.remote_address)


async def handshake_as_far(
    link: ControlConnection, check: KeyCheck, on_authenticated: Callable[[], None]
) -> HandshakeResult:
    """Far: check the near end's key, unless `check` has done so already, then exchange introductions with it.

    Calls `on_authenticated` before the introductions. Raises RemoteProtocolError for a wrong key, after a refusal
    was sent, and any error of `link.receive` and `on_authenticated`.
    """
    while check.welcome is None:
        message = await link.receive()
        try:
            check.take(message)
        finally:
            link.flush()
    on_authenticated()
    far = await describe_host(link.local_address, link.peer_address)
    link.try_send(check.welcome)  # a client that broke a rule meanwhile hears of it later
    link.try_send(Introduction(far))
    message = await link.receive()
    if not isinstance(message, Introduction):
        raise RemoteProtocolError(f"the client sent {type(message).__name__} in place of Introduction")
    return HandshakeResult(replace_impossible_names(message.facts), far)
