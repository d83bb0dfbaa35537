"""Identification of an accepted connection: TLS, data, or control, whose client proves the key.

A connection of a flood gets no further than this. So it costs neither a task nor a transport, until it has proved
the key.
"""

import asyncio
import contextlib
import logging
import socket
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ..model.directions import End
from ..model.errors import ConnectionClosed, PeerVersionMismatch, RemoteProtocolError, RequestDeclined
from ..model.limits import Limits
from ..protocol.framing import encode_frame
from ..protocol.messages import Refuse, refusal_of
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
from ..protocol.state_machine import ControlStateMachine
from .connection import limit_messages
from .key_proof import GetKeys, KeyCheck

TLS_HANDSHAKE_RECORD: Final = b"\x16"  # the first byte of a TLS connection (RFC 8446, section 5.1)
_GREETING: Final = encode_preamble(CONTROL_KIND)
_GIVE_FINGERPRINT: Final = "it requires TLS: give the fingerprint that it prints, with --tls-fingerprint"
_READ_BYTES: Final = 4_096
_REFUSE_DEADLINE_S: Final = 0.3
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientHello:
    """A connection that begins with TLS. Nothing of it is read."""


@dataclass(frozen=True, slots=True)
class ProvedControl:
    """A control connection whose client has proved the key, or needs none."""

    machine: ControlStateMachine
    check: KeyCheck


Identity = ClientHello | ProvedControl | DataHello


class Identification:
    """The identification of one connection. Call `read` whenever there are bytes, until it returns an identity.

    `last_words` are for the client if `read` raises.
    """

    __slots__ = (
        "_accepts_control",
        "_get_keys",
        "_has_tls",
        "_limits",
        "_opening",
        "_proving",
        "_sock",
        "last_words",
    )

    def __init__(
        self, sock: socket.socket, get_keys: GetKeys, limits: Limits, *, has_tls: bool, accepts_control: bool
    ) -> None:
        self._sock = sock
        self._get_keys = get_keys
        self._limits = limits
        self._has_tls = has_tls
        self._accepts_control = accepts_control
        self._opening = b""
        self._proving: ProvedControl | None = None
        self.last_words = b""

    @property
    def has_greeted(self) -> bool:
        """Whether the client has greeted as a linkgauge does, for control."""
        return self._proving is not None

    def read(self) -> Identity | None:
        """Read the bytes that are there. Return the identity; None if it takes more bytes.

        Not one byte of a data connection is read beyond its header: it may be payload, and belongs to a worker.
        Raises PeerVersionMismatch for a client of another version, ConnectionClosed for one that leaves before it
        has proved anything, and LinkgaugeError for one that breaks the rules.
        """
        try:
            if self._proving is None:
                identity = self._read_header()
                if identity is not None:
                    return identity
            return self._read_proof()
        except BlockingIOError:
            return None

    def encode_refusal(self, why: RequestDeclined) -> bytes:
        """Return the bytes that tell the client why it is refused; none if they would have to be of TLS."""
        if self._has_tls:
            return b""
        words = encode_refusal(refusal_of(why))
        if self._proving is None:
            return words
        return self._proving.machine.data_to_send() + words.removeprefix(_GREETING)

    def _read_header(self) -> Identity | None:
        """Read up to the first frame, or up to the payload."""
        if self._has_tls and not self._opening and self._sock.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE_RECORD:
            return ClientHello()
        self._fill(PREAMBLE_BYTES)
        preamble = decode_preamble(self._opening[:PREAMBLE_BYTES])
        if preamble is None:
            raise RemoteProtocolError(f"not a linkgauge client: it sent {describe_other_protocol(self._opening)}")
        version, kind = preamble
        if version != PROTOCOL_VERSION:
            self.last_words = _GREETING
            raise PeerVersionMismatch(describe_version_mismatch(version))
        if kind != CONTROL_KIND:
            self._fill(PREAMBLE_BYTES + DATA_HELLO_BYTES)
            return DataHello.unpack(self._opening[PREAMBLE_BYTES:])
        if not self._accepts_control:
            # A near end that has control already tests whether data connections would get here.
            self.last_words = _GREETING
            raise ConnectionClosed("control is elsewhere")
        if self._has_tls:
            self.last_words = encode_refusal(Refuse(_GIVE_FINGERPRINT))
            raise RemoteProtocolError("a client without TLS (--tls-fingerprint)")
        machine = ControlStateMachine(End.FAR)
        limit_messages(machine, self._limits)
        machine.receive_data(self._opening)
        self._proving = ProvedControl(machine, KeyCheck(machine, self._get_keys))
        return None

    def _fill(self, count: int) -> None:
        """Read until there are `count` bytes; raise BlockingIOError if they have not arrived."""
        while len(self._opening) < count:
            part = self._sock.recv(count - len(self._opening))
            if not part:
                raise RemoteProtocolError("the client closed before its greeting was whole")
            self._opening += part

    def _read_proof(self) -> ProvedControl | None:
        """Read the messages up to the proof of the key, and answer them."""
        proving = self._proving
        if proving is None:
            return None
        machine, check = proving.machine, proving.check
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            self._send(machine.data_to_send())  # this end's greeting
            return None
        if not data:
            raise ConnectionClosed("it closed the connection")
        machine.receive_data(data)
        try:
            for message in machine.messages_received():
                check.take(message)
            if machine.error is not None:
                raise machine.error
        finally:
            self.last_words = machine.data_to_send()
        self._send(self.last_words)
        self.last_words = b""
        return None if check.welcome is None else proving

    def _send(self, data: bytes) -> None:
        if data:
            self._sock.send(data)  # the first bytes in an empty buffer: there is room


@lru_cache(8)
def encode_refusal(why: Refuse) -> bytes:
    """Return the bytes that tell a client the reason of its refusal, if this end has sent nothing so far."""
    return _GREETING + encode_frame(why)


async def refuse(sock: socket.socket, why: RequestDeclined) -> None:
    """Send a client the reason of its refusal; return once the client has closed, or after a deadline.

    Close the socket then. The endpoint takes its descriptor for another use in the same turn of the loop.
    """
    _log.debug("refused: %s", why)
    loop = asyncio.get_running_loop()
    sock.setblocking(False)
    with contextlib.suppress(OSError):  # the deadline's error as well
        async with asyncio.timeout(_REFUSE_DEADLINE_S):
            await loop.sock_sendall(sock, encode_refusal(refusal_of(why)))
            sock.shutdown(socket.SHUT_WR)
            while await loop.sock_recv(sock, 4_096):  # a close with unread bytes would reset the connection
                pass
