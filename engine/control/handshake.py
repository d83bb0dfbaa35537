"""The first words on a control connection, at both ends: who is there, and whether each has the key."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from ..host.description import describe_self
from ..model.access import NO_ACCESS, Conversation, Key
from ..model.errors import PeerRefused, PeerUntrusted, PeerWantsKey, RemoteProtocolError
from ..model.host_info import HostFacts
from ..model.peer import Peer
from ..protocol.auth import FAR, NEAR, NONCE_BYTES, is_same
from ..protocol.messages import Challenge, Hello, Message, Proof, Refuse, Welcome
from .connection import ControlLink

KEY_VARIABLE: Final = "LINKGAUGE_KEY"
_GIVE_KEY: Final = f"set {KEY_VARIABLE} to what the endpoint there printed, or give --key-file FILE"
_NO_DOWNGRADE: Final = (
    "it does not ask for the key that is set for it: it may be another one in its place; "
    "start it with the key, or test it all the same with --open"
)


@dataclass(frozen=True, slots=True)
class Ends:
    """Who is at the two ends of a connection, each with the interface that carries it.

    `notes` are what a person should know of the way there; `is_through_ssh` says that ssh carries the data.
    """

    near: HostFacts
    far: HostFacts
    notes: tuple[str, ...] = ()
    is_through_ssh: bool = False


async def greet_far_end(link: ControlLink, peer: Peer) -> Ends:
    """Near: say who is here and hear who is there, each with the key where there is one.

    Raises PeerWantsKey for a key that is missing or another one, PeerUntrusted where the far end has not
    proved what it has to, PeerRefused where it declines, and what `link.receive` does.
    """
    access = peer.access or NO_ACCESS
    near = await describe_self(link.local_address, link.peer_address)
    key = access.key
    # Who is here is told to a stranger only by who has nothing to tell him from a friend.
    hello = Hello(near) if key is None else Hello(None, secrets.token_hex(NONCE_BYTES))
    link.try_send(hello)  # where the far end is foreign, and said so meanwhile, `receive` tells
    message = await link.receive()
    if isinstance(message, Challenge):
        return Ends(near, (await _prove(link, peer, key, near)).facts)
    welcome = _welcomed(message, peer)
    if key is not None and not access.may_be_open and not _is_this_host(link):
        raise PeerUntrusted(f"{peer} cannot be trusted: {_NO_DOWNGRADE}")
    return Ends(near, welcome.facts)


async def _prove(link: ControlLink, peer: Peer, key: Key | None, near: HostFacts) -> Welcome:
    if key is None:
        raise PeerWantsKey(f"{peer} asks for a key: {_GIVE_KEY}")
    conversation = Conversation(link.transcript, link.binding)
    link.try_send(Proof(key.prove(NEAR, conversation).hex(), near))
    welcome = _welcomed(await link.receive(), peer)
    if not is_same(key.prove(FAR, conversation), bytes.fromhex(welcome.proof)):
        raise PeerUntrusted(
            f"{peer} cannot be trusted: it took this end's key without having it itself; check who answers there"
        )
    link.agreed = key.agree(conversation)
    return welcome


def _welcomed(message: Message, peer: Peer) -> Welcome:
    if isinstance(message, Refuse):
        if message.about == "key":
            raise PeerWantsKey(f"{peer} has another key than this end: {_GIVE_KEY}")
        raise PeerRefused(f"{peer} declines: {message.text}")
    assert isinstance(message, Welcome)  # noqa: S101 - the table allows nothing else
    return message


def _is_this_host(link: ControlLink) -> bool:
    """Return whether nobody stands between the ends: an endpoint on loopback needs no key."""
    return is_loopback(str(link.peer_address[0])) if link.peer_address else False


def is_loopback(address: str) -> bool:
    """Return whether an address is one of this host's own loopback interface."""
    found = ip_address(address.partition("%")[0])
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


async def greet_near_end(link: ControlLink, key: Key | None, admit: Callable[[], None]) -> HostFacts:
    """Far: hear who is there, with the key where there is one, and say who is here, which is returned.

    `admit` is called once the near end has proved what it has to. Raises RemoteProtocolError, once the near end
    has been told, where it has not the key; and what `admit` does.
    """
    hello = await link.receive()
    assert isinstance(hello, Hello)  # noqa: S101 - the table allows nothing else
    if key is None:
        admit()
        facts = await describe_self(link.local_address, link.peer_address)
        link.try_send(Welcome(facts))  # a client that broke a rule meanwhile is told later
        return facts
    link.try_send(Challenge(secrets.token_hex(NONCE_BYTES)))
    conversation = Conversation(link.transcript, link.binding)
    proof = await link.receive()
    assert isinstance(proof, Proof)  # noqa: S101 - the table allows nothing else
    if not hello.nonce or not is_same(key.prove(NEAR, conversation), bytes.fromhex(proof.proof)):
        link.try_send(Refuse("this endpoint has another key", "key"))
        raise RemoteProtocolError("it has not the key")
    link.agreed = key.agree(conversation)
    admit()
    facts = await describe_self(link.local_address, link.peer_address)
    link.try_send(Welcome(facts, key.prove(FAR, conversation).hex()))
    return facts
