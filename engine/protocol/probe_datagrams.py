"""The datagrams of the probe that the far end echoes, between two ends that have a session's secret. Pure.

    near  PROBE  serial, when it was sent
    far   ECHO   the same, when the probe came, when the echo was sent

Both have the same size, so an echo is never longer than its probe, and a code over all fields. They go over
the socket of a UDP session (datagram_handshake.py), so only to an address that has echoed its cookie. Each end's
times are of its own monotonic clock.
"""

import struct
from dataclasses import dataclass
from typing import Final, Self

from .coded_datagrams import CODED_BYTES, decode_coded, encode_coded

_NUMBERS: Final = struct.Struct(">QQQQ")
DATAGRAM_PROBE_BYTES: Final = CODED_BYTES + _NUMBERS.size
MAX_PROBE_NUMBER: Final = 2**62 - 1
_USE: Final = b"probe"
_PROBE_KIND: Final = b"P"
_ECHO_KIND: Final = b"E"


@dataclass(frozen=True, slots=True)
class ProbeDatagram:
    """A probe on its way out: its serial, from 1, and when it was sent, in nanoseconds of the near end's clock."""

    serial: int
    sent_ns: int

    def pack(self, session_secret: bytes) -> bytes:
        """Return its `DATAGRAM_PROBE_BYTES` bytes."""
        return encode_coded(session_secret, _USE, _PROBE_KIND, _NUMBERS.pack(self.serial, self.sent_ns, 0, 0))

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it is impossible."""
        numbers = _read_numbers(body)
        return None if numbers is None or any(numbers[2:]) else cls(*numbers[:2])

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
        body = _NUMBERS.pack(self.serial, self.sent_ns, self.arrived_ns, self.answered_ns)
        return encode_coded(session_secret, _USE, _ECHO_KIND, body)

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it is impossible."""
        numbers = _read_numbers(body)
        return None if numbers is None else cls(*numbers)


def decode_probe(data: bytes, session_secret: bytes) -> ProbeDatagram | None:
    """Return a datagram as a probe of the session; None for any other bytes, which never raise."""
    return decode_coded(data, session_secret, _USE, {_PROBE_KIND: ProbeDatagram.unpack})


def decode_echo(data: bytes, session_secret: bytes) -> EchoDatagram | None:
    """Return a datagram as an echo of the session; None for any other bytes, which never raise."""
    return decode_coded(data, session_secret, _USE, {_ECHO_KIND: EchoDatagram.unpack})


def _read_numbers(body: bytes) -> tuple[int, int, int, int] | None:
    """Return the serial and the times of a body; None if it has another length, or if they are out of range."""
    if len(body) != _NUMBERS.size:
        return None
    serial, sent_ns, arrived_ns, answered_ns = numbers = _NUMBERS.unpack(body)
    is_possible = serial > 0 and max(numbers) <= MAX_PROBE_NUMBER
    return (serial, sent_ns, arrived_ns, answered_ns) if is_possible else None
