"""The first bytes of a connection, refusals, and the handshake of both ends with proofs of the key."""

import asyncio
import contextlib
import logging
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ..host.description import describe_host
from ..host.event_loop import read_exactly
from ..model.errors import PeerKeyRequired, PeerRefused, PeerUntrusted, RemoteProtocolError
from ..model.host_info import HostInfo
from ..model.peer import NO_ACCESS, AuthContext, Peer, SharedKey, is_loopback_address
from ..protocol.auth import FAR_ROLE, NEAR_ROLE, NONCE_BYTES, constant_time_equal
from ..protocol.framing import encode_frame
from ..protocol.messages import Challenge, Hello, Message, Proof, Refuse, Welcome
from ..protocol.peer_validation import replace_impossible_names
from ..protocol.preamble import (
    CONTROL_KIND,
    DATA_HELLO_BYTES,
    PREAMBLE_BYTES,
    PROTOCOL_VERSION,
    DataHello,
    decode_preamble,
    encode_preamble,
)
from .connection import ControlConnection

_log = logging.getLogger(__name__)

_REFUSE_DEADLINE_S: Final = 0.3  # refusals are made one by one: others wait behind this one


async def refuse(sock: socket.socket, why: str) -> None:
    """Send a client the reason of its refusal; close once the client has read it, or after a deadline."""
    _log.debug("refused: %s", why)
    loop = asyncio.get_running_loop()
    with sock, contextlib.suppress(OSError):
        sock.setblocking(False)
        async with asyncio.timeout(_REFUSE_DEADLINE_S):
            await loop.sock_sendall(sock, encode_preamble(CONTROL_KIND) + encode_frame(Refuse(why)))
            sock.shutdown(socket.SHUT_WR)
            while await loop.sock_recv(sock, 4_096):  # a close with unread bytes would reset the connection
                pass


async def read_connection_header(sock: socket.socket) -> tuple[bytes, DataHello | None]:
    """Return a connection's preamble, and the header of a data connection.

    Not one byte more is read: what follows may be payload, and belongs to a worker. Raises RemoteProtocolError for
    a client that does not speak this protocol, and for one that closes before its header is whole.
    """
    sock.setblocking(False)
    try:
        opening = await read_exactly(sock, PREAMBLE_BYTES)
        preamble = decode_preamble(opening)
        if preamble is None:
            raise RemoteProtocolError("not a linkgauge client")
        version, kind = preamble
        if version != PROTOCOL_VERSION:
            await asyncio.get_running_loop().sock_sendall(sock, encode_preamble(CONTROL_KIND))
            raise RemoteProtocolError(f"the client has protocol {version}, this endpoint {PROTOCOL_VERSION}")
        if kind == CONTROL_KIND:
            return opening, None
        return opening, DataHello.unpack(await read_exactly(sock, DATA_HELLO_BYTES))
    except EOFError as error:
        raise RemoteProtocolError("the client closed before it sent anything") from error


_log = logging.getLogger(__name__)

KEY_VARIABLE: Final = "LINKGAUGE_KEY"
_GIVE_KEY: Final = f"set {KEY_VARIABLE} to the key that the endpoint printed, or give --key-file FILE"
_NO_DOWNGRADE: Final = (
    "it does not ask for your key, so it may not be your endpoint; start it with that key, or connect anyway "
    "with --open"
)


@dataclass(frozen=True, slots=True)
class HandshakeResult:
    """The two ends of a connection, each with the interface that carries it.

    `notes` are for the person, about the path; `is_data_tunneled` means that ssh carries the data.
    """

    near: HostInfo
    far: HostInfo
    notes: tuple[str, ...] = ()
    is_data_tunneled: bool = False


async def handshake_as_near(link: ControlConnection, peer: Peer) -> HandshakeResult:
    """Near: exchange introductions with the far end, and proofs of the key where either has one.

    Raises PeerKeyRequired for a missing or wrong key, PeerUntrusted where the far end does not prove its own,
    PeerRefused where it declines, and any error of `link.receive`.
    """
    access = peer.access or NO_ACCESS
    near = await describe_host(link.local_address, link.peer_address)
    key = access.key
    # An end with a key introduces itself only to an end that has proved it.
    hello = Hello(near) if key is None else Hello(None, secrets.token_hex(NONCE_BYTES))
    link.try_send(hello)  # where the conversation has failed already, `receive` raises
    message = await link.receive()
    if isinstance(message, Challenge):
        return HandshakeResult(near, (await _prove(link, peer, key, near)).facts)
    welcome = _require_welcome(message, peer)
    if key is not None and not access.may_be_open and not _is_this_host(link):
        raise PeerUntrusted(f"{peer} cannot be trusted: {_NO_DOWNGRADE}")
    return HandshakeResult(near, welcome.facts)


async def _prove(link: ControlConnection, peer: Peer, key: SharedKey | None, near: HostInfo) -> Welcome:
    if key is None:
        raise PeerKeyRequired(f"{peer} asks for a key: {_GIVE_KEY}")
    conversation = AuthContext(link.transcript, link.channel_binding)
    link.try_send(Proof(key.prove(NEAR_ROLE, conversation).hex(), near))
    welcome = _require_welcome(await link.receive(), peer)
    if not constant_time_equal(key.prove(FAR_ROLE, conversation), bytes.fromhex(welcome.proof)):
        raise PeerUntrusted(
            f"{peer} cannot be trusted: it accepted your key but does not have it; check which host answers there"
        )
    link.shared_secret = key.derive_shared_secret(conversation)
    return welcome


def _require_welcome(message: Message, peer: Peer) -> Welcome:
    if isinstance(message, Refuse):
        if message.about == "key":
            raise PeerKeyRequired(f"{peer} rejected your key: {_GIVE_KEY}")
        raise PeerRefused(f"{peer} declines: {message.text}")
    assert isinstance(message, Welcome)  # noqa: S101 - the table allows nothing else
    return replace(message, facts=replace_impossible_names(message.facts))


def _is_this_host(link: ControlConnection) -> bool:
    """Return whether the far end is on this host: an endpoint on loopback needs no key."""
    return is_loopback_address(str(link.peer_address[0])) if link.peer_address else False


async def handshake_as_far(
    link: ControlConnection, key: SharedKey | None, on_authenticated: Callable[[], None]
) -> HostInfo:
    """Far: check the near end's key, introduce this host to it, and return that introduction.

    Calls `on_authenticated` before the introduction. Raises RemoteProtocolError for a wrong key, after a refusal
    was sent, and any error of `link.receive` and `on_authenticated`.
    """
    hello = await link.receive()
    assert isinstance(hello, Hello)  # noqa: S101 - the table allows nothing else
    if key is None:
        on_authenticated()
        facts = await describe_host(link.local_address, link.peer_address)
        link.try_send(Welcome(facts))  # a client that broke a rule meanwhile hears of it later
        return facts
    link.try_send(Challenge(secrets.token_hex(NONCE_BYTES)))
    conversation = AuthContext(link.transcript, link.channel_binding)
    proof = await link.receive()
    assert isinstance(proof, Proof)  # noqa: S101 - the table allows nothing else
    if not hello.nonce or not constant_time_equal(key.prove(NEAR_ROLE, conversation), bytes.fromhex(proof.proof)):
        _log.debug("refused %s: wrong key", link.peer_address)
        link.try_send(Refuse("this endpoint has another key", "key"))
        raise RemoteProtocolError("wrong key")
    link.shared_secret = key.derive_shared_secret(conversation)
    on_authenticated()
    facts = await describe_host(link.local_address, link.peer_address)
    link.try_send(Welcome(facts, key.prove(FAR_ROLE, conversation).hex()))
    return facts
