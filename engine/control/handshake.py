"""The first bytes of a connection, refusals, and the handshake of both ends with proofs of the key."""

import asyncio
import contextlib
import logging
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from ..host.description import describe_host
from ..host.event_loop import read_exactly
from ..model.errors import PeerKeyRequired, PeerRefused, PeerUntrusted, PeerVersionMismatch, RemoteProtocolError
from ..model.host_info import HostInfo
from ..model.ip_address import ip_version_of
from ..model.peer import Peer
from ..model.shared_key import (
    FAR_ROLE,
    KEY_VARIABLE,
    NEAR_ROLE,
    NO_ACCESS,
    NONCE_BYTES,
    AuthContext,
    SharedKey,
    constant_time_equal,
)
from ..protocol.framing import encode_frame
from ..protocol.messages import Challenge, Hello, Introduction, Message, Proof, Refuse, Welcome
from ..protocol.peer_validation import replace_impossible_names
from ..protocol.preamble import (
    CONTROL_KIND,
    DATA_HELLO_BYTES,
    PREAMBLE_BYTES,
    PROTOCOL_VERSION,
    DataHello,
    decode_preamble,
    describe_other_protocol,
    describe_version_mismatch,
    encode_preamble,
)
from .connection import ControlConnection

_log = logging.getLogger(__name__)

_REFUSE_DEADLINE_S: Final = 0.3  # refusals are made one by one: others wait behind this one


async def refuse(sock: socket.socket, why: str) -> None:
    """Send a client the reason of its refusal; return once the client has read it, or after a deadline.

    Close the socket then. The endpoint takes its descriptor for another use in the same turn of the loop.
    """
    _log.debug("refused: %s", why)
    await _send_last(sock, encode_refusal(why))


def encode_refusal(why: str) -> bytes:
    """Return the bytes that tell a client the reason of its refusal, whatever it has sent so far."""
    return encode_preamble(CONTROL_KIND) + encode_frame(Refuse(why))


async def _send_last(sock: socket.socket, data: bytes) -> None:
    """Send the last bytes of a connection; return once the client has closed, or after a deadline."""
    loop = asyncio.get_running_loop()
    sock.setblocking(False)
    with contextlib.suppress(OSError):  # the deadline's error as well
        async with asyncio.timeout(_REFUSE_DEADLINE_S):
            await loop.sock_sendall(sock, data)
            sock.shutdown(socket.SHUT_WR)
            while await loop.sock_recv(sock, 4_096):  # a close with unread bytes would reset the connection
                pass


async def read_connection_header(sock: socket.socket) -> tuple[bytes, DataHello | None]:
    """Return a connection's preamble, and the header of a data connection.

    Not one byte more is read: what follows may be payload, and belongs to a worker. Raises RemoteProtocolError for
    a client that does not speak this protocol, and for one that closes before its header is whole, and
    PeerVersionMismatch for one of another version, which has then received the version of this end.
    """
    sock.setblocking(False)
    try:
        opening = await read_exactly(sock, PREAMBLE_BYTES)
        preamble = decode_preamble(opening)
        if preamble is None:
            raise RemoteProtocolError(f"not a linkgauge client: it sent {describe_other_protocol(opening)}")
        version, kind = preamble
        if version != PROTOCOL_VERSION:
            await _send_last(sock, encode_preamble(CONTROL_KIND))
            raise PeerVersionMismatch(describe_version_mismatch(version))
        if kind == CONTROL_KIND:
            return opening, None
        return opening, DataHello.unpack(await read_exactly(sock, DATA_HELLO_BYTES))
    except EOFError as error:
        raise RemoteProtocolError("the client closed before its greeting was whole") from error


M = TypeVar("M", bound=Message)
_GIVE_KEY: Final = f"set {KEY_VARIABLE} to the key that the endpoint printed, or give --key-file FILE"
_NO_DOWNGRADE: Final = (
    "it does not ask for your key, so it may not be your endpoint; start it with that key, or connect anyway "
    "with --open"
)


@dataclass(frozen=True, slots=True)
class HandshakeResult:
    """The two ends of a connection, each with the interface that carries it.

    `notes` are for the person, about the path; `is_data_tunneled` means that ssh carries the data. `address` is the
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
    """Near: exchange proofs of the key with the far end, where either has one, and then introductions.

    Raises PeerKeyRequired for a missing or wrong key, PeerUntrusted where the far end does not prove its own,
    PeerRefused where it declines, and any error of `link.receive`.
    """
    access = peer.access or NO_ACCESS
    near = await describe_host(link.local_address, link.peer_address)
    key = access.key
    # Where the conversation has failed already, `receive` raises.
    link.try_send(Hello("" if key is None else secrets.token_hex(NONCE_BYTES)))
    message = await link.receive()
    if isinstance(message, Challenge):
        await _prove(link, peer, key)
    else:
        _require(Welcome, message, peer)
        if key is not None and not access.may_be_open:
            raise PeerUntrusted(f"{peer} cannot be trusted: {_NO_DOWNGRADE}")
    far = _require(Introduction, await link.receive(), peer).facts
    link.try_send(Introduction(near))
    return HandshakeResult(near, replace_impossible_names(far), address=link.remote_address)


async def _prove(link: ControlConnection, peer: Peer, key: SharedKey | None) -> None:
    if key is None:
        raise PeerKeyRequired(f"{peer} asks for a key: {_GIVE_KEY}")
    conversation = AuthContext(link.transcript, link.channel_binding)
    link.authenticate_messages(key.derive_shared_secret(conversation))
    link.try_send(Proof(key.prove(NEAR_ROLE, conversation).hex()))
    welcome = _require(Welcome, await link.receive(), peer)
    if not constant_time_equal(key.prove(FAR_ROLE, conversation), bytes.fromhex(welcome.proof)):
        raise PeerUntrusted(
            f"{peer} cannot be trusted: it accepted your key but does not have it; check which host answers there"
        )


def _require(kind: type[M], message: Message, peer: Peer) -> M:
    """Return the message if it is of this kind; raise PeerRefused or PeerKeyRequired for a refusal."""
    if isinstance(message, Refuse):
        if message.about == "key":
            raise PeerKeyRequired(f"{peer} rejected your key: {_GIVE_KEY}")
        raise PeerRefused(f"{peer} declines: {message.text}")
    if not isinstance(message, kind):
        raise RemoteProtocolError(f"it sent {type(message).__name__} in place of {kind.__name__}")
    return message


async def handshake_as_far(
    link: ControlConnection, get_key: Callable[[], SharedKey | None], on_authenticated: Callable[[], None]
) -> HandshakeResult:
    """Far: check the near end's key, then exchange introductions with it.

    `get_key` returns the key at the moment of the call: a client that takes its time needs the one in force then.
    Calls `on_authenticated` before the introductions. Raises RemoteProtocolError for a wrong key, after a refusal
    was sent, and any error of `link.receive` and `on_authenticated`.
    """
    hello = await _receive(link, Hello)
    welcome = Welcome() if get_key() is None else await _check_proof(link, get_key, hello)
    on_authenticated()
    far = await describe_host(link.local_address, link.peer_address)
    link.try_send(welcome)  # a client that broke a rule meanwhile hears of it later
    link.try_send(Introduction(far))
    near = (await _receive(link, Introduction)).facts
    return HandshakeResult(replace_impossible_names(near), far)


async def _check_proof(link: ControlConnection, get_key: Callable[[], SharedKey | None], hello: Hello) -> Welcome:
    """Challenge the near end and check its proof; return the answer with this end's own proof."""
    link.try_send(Challenge(secrets.token_hex(NONCE_BYTES)))
    conversation = AuthContext(link.transcript, link.channel_binding)
    proof = bytes.fromhex((await _receive(link, Proof)).proof)
    key = get_key()
    if not hello.nonce or key is None or not constant_time_equal(key.prove(NEAR_ROLE, conversation), proof):
        _log.debug("refused %s: wrong key", link.peer_address)
        link.try_send(Refuse("this endpoint has another key", "key"))
        raise RemoteProtocolError("wrong key")
    link.authenticate_messages(key.derive_shared_secret(conversation))
    return Welcome(key.prove(FAR_ROLE, conversation).hex())


async def _receive(link: ControlConnection, kind: type[M]) -> M:
    message = await link.receive()
    if not isinstance(message, kind):
        raise RemoteProtocolError(f"the client sent {type(message).__name__} in place of {kind.__name__}")
    return message
