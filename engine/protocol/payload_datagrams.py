"""The datagrams of a UDP session: the header of its payload, and the receiver's feedback to the sender.

Pure. Numbers are little endian, as most machines have them, so that a sender writes the headers of a whole group at
once. A payload datagram begins with its number; every other datagram begins with `CONTROL_MAGIC`, which cannot be
a number. datagram_handshake.py has the others.

Payload has a cookie of 64 bits, and feedback a code, both made from the session's secret: an attacker who does
not see the session's datagrams can forge neither.
"""

import hmac
import struct
from dataclasses import astuple, dataclass
from typing import Final

from ..model.errors import RemoteProtocolError
from ..model.shared_key import mac

CONTROL_MAGIC: Final = b"linkgau\xff"  # as a little-endian number, more than MAX_NUMBER
FEEDBACK_KIND: Final = b"F"
MAX_NUMBER: Final = 2**62 - 1
PAYLOAD_HEADER: Final = struct.Struct("<QQQ")  # number, send stamp, cookie
FEEDBACK_INTERVAL_S: Final = 0.05  # RFC 9097: 50 ms trials
# Earlier versions leave the bytes of the flag and of the buffer's size at 0, and do not read them.
_FEEDBACK: Final = struct.Struct("<8sc?2xI9Q")
_CODE_BYTES: Final = 16
FEEDBACK_BYTES: Final = _FEEDBACK.size + _CODE_BYTES


@dataclass(frozen=True, slots=True)
class Feedback:
    """A receiver's report to the sender of its session; times in nanoseconds of the receiver's monotonic clock.

    `echo_ns` is the send stamp of the newest payload datagram, which came `hold_ns` before `sent_ns`, the stamp of
    this feedback. `serial` rises by one. `advanced` to `socket_dropped` are the counters of the receiver so far.
    `delay_ns` is the mean delay since the last feedback above the shortest one. `buffer_bytes` is the receiver's
    buffer in whole KiB, for a sender that fills it and no more; 0 from one that reports every 50 ms only.
    With `has_unread` datagrams wait in it.
    """

    serial: int
    echo_ns: int
    hold_ns: int
    sent_ns: int
    advanced: int
    received: int
    received_bytes: int
    socket_dropped: int
    delay_ns: int
    buffer_bytes: int = 0
    has_unread: bool = False


class DatagramKeys:
    """The cookie and code of a session's datagrams, at both of its ends: derived from the session's secret."""

    __slots__ = ("_feedback_key", "cookie")

    def __init__(self, session_secret: bytes) -> None:
        self.cookie = int.from_bytes(mac(session_secret, b"payload datagrams")[:8], "little")
        self._feedback_key = mac(session_secret, b"feedback datagrams")

    def encode_feedback(self, feedback: Feedback) -> bytes:
        """Return the datagram of a feedback."""
        *values, buffer_bytes, has_unread = astuple(feedback)
        buffer_kib = min(buffer_bytes >> 10, 0xFFFFFFFF)
        body = _FEEDBACK.pack(CONTROL_MAGIC, FEEDBACK_KIND, has_unread, buffer_kib, *values)
        return body + hmac.digest(self._feedback_key, body, "sha256")[:_CODE_BYTES]

    def decode_feedback(self, data: bytes) -> Feedback:
        """Return the feedback of a datagram; raise RemoteProtocolError if it is not one of this session's."""
        body, code = data[: _FEEDBACK.size], data[_FEEDBACK.size :]
        if len(data) != FEEDBACK_BYTES or not hmac.compare_digest(
            hmac.digest(self._feedback_key, body, "sha256")[:_CODE_BYTES], code
        ):
            raise RemoteProtocolError("a datagram that is not feedback of this session")
        magic, kind, has_unread, buffer_kib, *values = _FEEDBACK.unpack(body)
        if (magic, kind) != (CONTROL_MAGIC, FEEDBACK_KIND) or max(values) > MAX_NUMBER:
            raise RemoteProtocolError("a feedback with impossible values")
        return Feedback(*values, buffer_bytes=buffer_kib << 10, has_unread=has_unread)


def is_control_datagram(data: bytes | bytearray | memoryview) -> bool:
    """Return whether a datagram is anything but payload."""
    return bytes(data[: len(CONTROL_MAGIC)]) == CONTROL_MAGIC
