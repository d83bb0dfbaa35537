"""The proofs of the key by both ends of a control connection (the conversation is drawn in model/shared_key.py)."""

import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ..model.errors import PeerBusy, PeerKeyRequired, PeerRefused, PeerUntrusted, RemoteProtocolError
from ..model.peer import Peer
from ..model.shared_key import (
    FAR_ROLE,
    KEY_VARIABLE,
    NEAR_ROLE,
    NONCE_BYTES,
    AuthContext,
    SharedKey,
    constant_time_equal,
    find_proved,
)
from ..protocol.messages import Challenge, Hello, Message, Proof, Refuse, Welcome
from ..protocol.state_machine import ControlStateMachine
from .connection import ControlConnection

M = TypeVar("M", bound=Message)
GetKeys = Callable[[], Sequence[SharedKey] | None]
"""Returns the keys in force at the moment of the call; None if everybody is served."""

_GIVE_KEY: Final = f"set {KEY_VARIABLE} to the key that the endpoint printed, or give --key-file FILE"
_log = logging.getLogger(__name__)


async def prove_key(link: ControlConnection, peer: Peer, key: SharedKey | None) -> None:
    """Near: answer the far end's challenge, and check that it has the key, too.

    Raises PeerKeyRequired if the key is missing or wrong, and PeerUntrusted if the far end does not prove its own.
    """
    if key is None:
        raise PeerKeyRequired(f"{peer} asks for a key: {_GIVE_KEY}")
    conversation = AuthContext(link.machine.transcript, link.channel_binding)
    link.machine.authenticate_frames(key.derive_shared_secret(conversation))
    link.try_send(Proof(key.prove(NEAR_ROLE, conversation).hex()))
    welcome = require(Welcome, await link.receive(), peer)
    if not constant_time_equal(key.prove(FAR_ROLE, conversation), bytes.fromhex(welcome.proof)):
        raise PeerUntrusted(
            f"{peer} cannot be trusted: it accepted your key but does not have it; check which host answers there"
        )


def require(kind: type[M], message: Message, peer: Peer) -> M:
    """Return the message if it is of this kind; raise PeerRefused or PeerKeyRequired for a refusal."""
    if isinstance(message, Refuse):
        raise refusal_error(peer, message)
    if not isinstance(message, kind):
        raise RemoteProtocolError(f"it sent {type(message).__name__} in place of {kind.__name__}")
    return message


def refusal_error(peer: object, refusal: Refuse) -> PeerRefused:
    """Return the error of a refusal by a peer."""
    match refusal.about:
        case "key":
            return PeerKeyRequired(f"{peer} rejected your key: {_GIVE_KEY}")
        case "busy":
            return PeerBusy(f"{peer} declines: {refusal.text}", refusal.free_in_s)
        case _:
            return PeerRefused(f"{peer} declines: {refusal.text}")


class KeyCheck:
    """The far end's check of a near end's key, without I/O: give `take` the near end's first messages.

    The answers are queued in the state machine. `welcome` is set once the near end may go on: send it then. `key`
    is the one of the endpoint's keys that it proved, None if it needed none.
    """

    __slots__ = ("_binding", "_hello", "_machine", "get_keys", "key", "welcome")

    def __init__(self, machine: ControlStateMachine, get_keys: GetKeys, channel_binding: bytes = b"") -> None:
        self.get_keys = get_keys
        self.key: SharedKey | None = None
        self.welcome: Welcome | None = None
        self._machine = machine
        self._binding = channel_binding
        self._hello = Hello()

    def take(self, message: Message) -> None:
        """Take the near end's next message; raise RemoteProtocolError if its key is wrong, behind a refusal."""
        if isinstance(message, Hello):
            self._hello = message
            if self.get_keys() is None:
                self.welcome = Welcome()
            else:
                self._answer(Challenge(secrets.token_hex(NONCE_BYTES)))
        elif isinstance(message, Proof):
            self.welcome = self._check(bytes.fromhex(message.proof))
        else:
            raise RemoteProtocolError(f"the client sent {type(message).__name__} in place of a proof of its key")

    def _check(self, proof: bytes) -> Welcome:
        """Return the answer to a valid proof, which has this end's own proof."""
        conversation = AuthContext(self._machine.transcript, self._binding)
        keys = self.get_keys() or ()  # those in force now: a client may take its time
        key = find_proved(keys, NEAR_ROLE, conversation, proof)
        if key is None or not self._hello.nonce:
            _log.debug("a client has another key")
            self._answer(Refuse("this endpoint has another key", "key"))
            raise RemoteProtocolError("wrong key")
        self.key = key
        self._machine.authenticate_frames(key.derive_shared_secret(conversation))
        return Welcome(key.prove(FAR_ROLE, conversation).hex())

    def _answer(self, message: Message) -> None:
        if self._machine.may_send(type(message)):
            self._machine.send(message)
