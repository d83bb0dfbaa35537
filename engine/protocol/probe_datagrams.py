"""The datagrams of the probe that the far end echoes, between two ends that have a session's secret. Pure.

    near  PROBE  serial, when it was sent
    far   ECHO   the same, when the probe came, when the echo was sent

Both have the same size, so an echo is never longer than its probe, and a code over all fields. They go over
the socket of a UDP session (datagram_handshake.py), so only to an address that has echoed its cookie. Each end's
times are of its own monotonic clock.
"""

import hmac
import struct
from dataclasses import dataclass
from typing import Final

from ..model.shared_key import constant_time_equal
from .payload_datagrams import CONTROL_MAGIC
from .preamble import PROTOCOL_VERSION
from .tokens import CODE_BYTES

_FIELDS: Final = struct.Struct(f">{len(CONTROL_MAGIC)}sBcQQQQ")
DATAGRAM_PROBE_BYTES: Final = _FIELDS.size + CODE_BYTES
MAX_PROBE_NUMBER: Final = 2**62 - 1
_PROBE_KIND: Final = b"P"
_ECHO_KIND: Final = b"E"


@dataclass(frozen=True, slots=True)
class ProbeDatagram:
    """A probe on its way out: its serial, from 1, and when it was sent, in nanoseconds of the near end's clock."""

    serial: int
    sent_ns: int

    def pack(self, session_secret: bytes) -> bytes:
        """Return its `DATAGRAM_PROBE_BYTES` bytes."""
        return _pack(session_secret, _PROBE_KIND, self.serial, self.sent_ns, 0, 0)

    def echo(self, arrived_ns: int, answered_ns: int) -> "EchoDatagram":
        """Return its echo, with the far end's times of its arrival and of the answer."""
        return EchoDatagram(self.serial, self.sent_ns, arrived_ns, answered_ns)


@dataclass(frozen=True, slots=True)
class EchoDatagram:
    """A probe on its way back: `arrived_ns` and `answered_ns` are of the far end's clock."""

    serial: int
    sent_ns: int
    arrived_ns: int
    answered_ns: int

    def pack(self, session_secret: bytes) -> bytes:
        """Return its `DATAGRAM_PROBE_BYTES` bytes."""
        return _pack(session_secret, _ECHO_KIND, self.serial, self.sent_ns, self.arrived_ns, self.answered_ns)


def decode_probe(data: bytes, session_secret: bytes) -> ProbeDatagram | None:
    """Return a datagram as a probe of the session; None for any other bytes, which never raise."""
    fields = _unpack(data, session_secret, _PROBE_KIND)
    return None if fields is None or any(fields[2:]) else ProbeDatagram(*fields[:2])


def decode_echo(data: bytes, session_secret: bytes) -> EchoDatagram | None:
    """Return a datagram as an echo of the session; None for any other bytes, which never raise."""
    fields = _unpack(data, session_secret, _ECHO_KIND)
    return None if fields is None else EchoDatagram(*fields)


def _pack(secret: bytes, kind: bytes, *numbers: int) -> bytes:
    fields = _FIELDS.pack(CONTROL_MAGIC, PROTOCOL_VERSION, kind, *numbers)
    return fields + _code(secret, fields)


def _unpack(data: bytes, secret: bytes, expected_kind: bytes) -> tuple[int, int, int, int] | None:
    """Return the serial and times of a datagram of the session; None for any other bytes, or out of range."""
    if len(data) != DATAGRAM_PROBE_BYTES:
        return None
    fields, code = data[: _FIELDS.size], data[_FIELDS.size :]
    magic, version, kind, *numbers = _FIELDS.unpack(fields)
    if (magic, version, kind) != (CONTROL_MAGIC, PROTOCOL_VERSION, expected_kind):
        return None
    serial, sent_ns, arrived_ns, answered_ns = numbers
    is_possible = serial > 0 and max(numbers) <= MAX_PROBE_NUMBER
    if not is_possible or not constant_time_equal(_code(secret, fields), code):
        return None
    return serial, sent_ns, arrived_ns, answered_ns


def _code(secret: bytes, fields: bytes) -> bytes:
    return hmac.digest(secret, b"probe" + fields, "sha256")[:CODE_BYTES]
