"""The datagrams that open a UDP session: hello, challenge, acceptance. Pure.

    near  Hello{cookie 0, header}         as long as all others, or longer
    far   Challenge{cookie, token}        only if the header names a run of this endpoint
    near  Hello{cookie, header}           which shows that the near end receives at the address that it claims
    far   Accepted{code}                  from the session's own socket: the far end has the session's secret

The header is that of a data connection (`DataHello`), with a token that is valid once. The cookie is a code of the
endpoint's own secret over the address and the header, so that the endpoint remembers nothing before the second
hello. A challenge repeats the token, so only an attacker who has seen the hello can forge one.

Each begins with `CONTROL_MAGIC`, as no payload datagram does.
"""

import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

from ..model.errors import RemoteProtocolError
from ..model.shared_key import constant_time_equal
from .payload_datagrams import CONTROL_MAGIC
from .preamble import DATA_HELLO_BYTES, PROTOCOL_VERSION, DataHello
from .tokens import CODE_BYTES, TOKEN_BYTES

COOKIE_BYTES: Final = 16
NO_COOKIE: Final = bytes(COOKIE_BYTES)
_HEAD: Final = struct.Struct(f">{len(CONTROL_MAGIC)}sBc")
_HELLO_KIND: Final = b"H"
_CHALLENGE_KIND: Final = b"C"
_ACCEPTED_KIND: Final = b"A"
HELLO_BYTES: Final = _HEAD.size + COOKIE_BYTES + DATA_HELLO_BYTES
CHALLENGE_BYTES: Final = _HEAD.size + COOKIE_BYTES + TOKEN_BYTES
ACCEPTED_BYTES: Final = _HEAD.size + CODE_BYTES


def _encode(kind: bytes, *parts: bytes) -> bytes:
    return _HEAD.pack(CONTROL_MAGIC, PROTOCOL_VERSION, kind) + b"".join(parts)


@dataclass(frozen=True, slots=True)
class DatagramHello:
    """Near: the header of a session, with the cookie of a challenge once there was one."""

    header: DataHello
    cookie: bytes = NO_COOKIE

    def pack(self) -> bytes:
        """Return its `HELLO_BYTES` bytes."""
        return _encode(_HELLO_KIND, self.cookie, self.header.pack())

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        """Read what follows the head; raise RemoteProtocolError if the header is impossible."""
        return cls(DataHello.unpack(body[COOKIE_BYTES:]), body[:COOKIE_BYTES])


@dataclass(frozen=True, slots=True)
class DatagramChallenge:
    """Far: the cookie to repeat, with the token of the hello that it answers."""

    cookie: bytes
    token: bytes

    def pack(self) -> bytes:
        """Return its `CHALLENGE_BYTES` bytes."""
        return _encode(_CHALLENGE_KIND, self.cookie, self.token)

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        """Read what follows the head."""
        return cls(body[:COOKIE_BYTES], body[COOKIE_BYTES:])


@dataclass(frozen=True, slots=True)
class DatagramAccepted:
    """Far: the session has a socket. `code` proves the session's secret."""

    code: bytes

    @classmethod
    def of_session(cls, session_secret: bytes) -> Self:
        """Return the acceptance of a session."""
        return cls(hmac.digest(session_secret, b"datagrams accepted", "sha256")[:CODE_BYTES])

    def proves(self, session_secret: bytes) -> bool:
        """Return whether its sender has the session's secret."""
        return constant_time_equal(self.of_session(session_secret).code, self.code)

    def pack(self) -> bytes:
        """Return its `ACCEPTED_BYTES` bytes."""
        return _encode(_ACCEPTED_KIND, self.code)

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        """Read what follows the head."""
        return cls(body)


HandshakeDatagram = DatagramHello | DatagramChallenge | DatagramAccepted

_DECODERS: Final[dict[bytes, tuple[int, Callable[[bytes], HandshakeDatagram]]]] = {
    _HELLO_KIND: (HELLO_BYTES, DatagramHello.unpack),
    _CHALLENGE_KIND: (CHALLENGE_BYTES, DatagramChallenge.unpack),
    _ACCEPTED_KIND: (ACCEPTED_BYTES, DatagramAccepted.unpack),
}


def decode_handshake(data: bytes) -> HandshakeDatagram | None:
    """Return the handshake's datagram, None for any other bytes. It never raises because of them."""
    if len(data) < _HEAD.size:
        return None
    magic, version, kind = _HEAD.unpack_from(data)
    length, unpack = _DECODERS.get(kind, (0, None))
    if magic != CONTROL_MAGIC or version != PROTOCOL_VERSION or unpack is None or len(data) != length:
        return None
    try:
        return unpack(data[_HEAD.size :])
    except RemoteProtocolError:
        return None


class AddressCookies:
    """The cookies of an endpoint: each is valid for one source address and one session of a run."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        """Make them with a secret that no other end has."""
        self._secret = secret

    def make(self, source: tuple[Any, ...], header: DataHello) -> bytes:
        """Return the cookie for a hello from a socket address."""
        return hmac.digest(self._secret, repr(source).encode() + header.pack(), "sha256")[:COOKIE_BYTES]

    def check(self, source: tuple[Any, ...], hello: DatagramHello) -> bool:
        """Return whether a hello shows the cookie that was sent to its source."""
        return constant_time_equal(self.make(source, hello.header), hello.cookie)
