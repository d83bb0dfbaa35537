"""Who may use an endpoint: a shared key, proved by both ends, and tokens that are good for one connection each.

Pure: bytes in, bytes out; chance is an argument. Both ends hold the same key and never send it. Each gives the
other a nonce to prove it over, together with everything that both have said until then (the transcript), so that
a proof is good for one conversation, one role and one version of the protocol, and for nothing else:

    near  preamble, Hello{nonce}
    far   preamble, Challenge{nonce}
    near  Proof     HMAC(key, "near", transcript, binding)
    far   Welcome   HMAC(key, "far", transcript, binding)

`binding` is the fingerprint of the certificate where TLS carries the conversation: whoever stands between the
ends with a certificate of their own has another one. The near end proves first, so that a stranger who asks an
endpoint learns nothing to try keys on. The secret of a run comes out of the same key and transcript and never
crosses the wire; each connection of the run shows a token that is made of it.
"""

import hashlib
import hmac
import re
import struct
from typing import Final

from ..model.access import mac

NONCE_BYTES: Final = 32
TOKEN_BYTES: Final = 16
HEX_PATTERN: Final = re.compile(r"(?:[0-9a-f]{2})*")
_SERIAL: Final = struct.Struct(">Q")
_TOKEN: Final = struct.Struct(f"{TOKEN_BYTES}s")
TICKET_BYTES: Final = _SERIAL.size + TOKEN_BYTES
_BLOCK_TOKENS: Final = 64  # a block takes about 40 µs to make
NEAR_ROLE: Final = b"near"
FAR_ROLE: Final = b"far"


def constant_time_equal(expected: bytes, received: bytes) -> bool:
    """Compare what was told with what is expected; how long it takes says nothing about either."""
    return hmac.compare_digest(expected, received)


class RunSecret:
    """What the tokens of a run are made of: the ends' common secret, and what the far end told of this run.

    `name` says which run a connection belongs to, and is no secret.
    """

    __slots__ = ("_secret", "run_tag")

    def __init__(self, shared_secret: bytes, run_nonce: bytes) -> None:
        self._secret = mac(shared_secret, b"run", run_nonce)
        self.run_tag = mac(self._secret, b"name")[:TOKEN_BYTES]

    def session_secret(self, direction: str, session: int, generation: int) -> bytes:
        """Return the secret of one session under one generation of settings."""
        return mac(self._secret, b"session", direction.encode(), _SERIAL.pack(session), _SERIAL.pack(generation))


class Tickets:
    """The tokens of one session: that of its own connection, and one for each that comes after it.

    Serial 0 is the session's own connection. A ticket is a serial and its token. Tickets are made by the block,
    with SHAKE256 keyed by HMAC: where one and its check take 1.5 µs, they took 3.1 as tokens that were put together
    with their serials each time, and more with an HMAC for each.
    """

    __slots__ = ("_block", "_expected", "_last", "_secret", "_tickets")

    def __init__(self, session_secret: bytes) -> None:
        self._secret = session_secret
        self._block = -1
        self._tickets: list[bytes] = []
        self._last = 0
        self._expected = b""

    def token(self, serial: int) -> bytes:
        """Return the token of a serial."""
        return self._ticket(serial)[_SERIAL.size :]

    def _ticket(self, serial: int) -> bytes:
        block, place = divmod(serial, _BLOCK_TOKENS)
        if block != self._block:
            key = mac(self._secret, b"tokens", _SERIAL.pack(block))
            tokens = _TOKEN.iter_unpack(hashlib.shake_256(key).digest(_BLOCK_TOKENS * TOKEN_BYTES))
            first = block * _BLOCK_TOKENS
            self._tickets = [_SERIAL.pack(first + place) + token for place, (token,) in enumerate(tokens)]
            self._block = block
        return self._tickets[place]

    def issue(self) -> bytes:
        """Return the next ticket."""
        self._last += 1
        return self._ticket(self._last)

    def redeem(self, ticket: bytes) -> bool:
        """Return whether a ticket is good, which it is once; none is that is older than one that was.

        Nor is one from far ahead, for which a stranger could have a block of tokens made.
        """
        if constant_time_equal(self._expected, ticket):  # as a rule: it was made when the one before was redeemed
            self._last += 1
        else:
            (serial,) = _SERIAL.unpack_from(ticket)
            if not 0 < serial - self._last <= _BLOCK_TOKENS or not constant_time_equal(
                self._ticket(serial), ticket
            ):
                return False
            self._last = serial
        self._expected = self._ticket(self._last + 1)
        return True


class TicketCheck:
    """The far end's side of a run's tokens: each opens one connection."""

    __slots__ = ("_newest", "secret")

    def __init__(self, secret: RunSecret) -> None:
        self.secret = secret
        self._newest: dict[tuple[str, int], int] = {}

    def check(self, direction: str, session: int, generation: int, token: bytes) -> bytes | None:
        """Return the session's secret where the token is its own and has not been used; None where it is not.

        A session goes from one generation of settings to a newer one: an older one's token is as good as used.
        """
        session_secret = self.secret.session_secret(direction, session, generation)
        if not constant_time_equal(Tickets(session_secret).token(0), token):
            return None
        if generation <= self._newest.get((direction, session), -1):
            return None
        self._newest[direction, session] = generation
        return session_secret
