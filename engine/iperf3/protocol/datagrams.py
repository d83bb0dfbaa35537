"""Datagrams of an iperf3 test: the hello that opens a session, its reply, and the header of payload.

Pure. A header has the sender's monotonic clock and a number from 1 in each session. It has 12 bytes, or 16 if
the test asks for numbers of 64 bits.
"""

import struct
from typing import Final

HELLO: Final = b"9876"
REPLY: Final = b"6789"
OLD_HELLO: Final = struct.pack("<i", 123456789)  # until 3.11
OLD_REPLY: Final = struct.pack("<i", 987654321)

HEADER_32: Final = struct.Struct(">III")  # seconds, microseconds, number
HEADER_64: Final = struct.Struct(">IIQ")


def reply_to(hello: bytes) -> bytes:
    """Return the reply to a hello: the old one unless it is the hello of version 3.12 and later."""
    return REPLY if hello == HELLO else OLD_REPLY


def is_reply(data: bytes) -> bool:
    """Return whether a datagram is a server's reply, on hosts of either byte order."""
    return data in {REPLY, REPLY[::-1], OLD_REPLY, OLD_REPLY[::-1]}


def header_of(*, has_64bit_counters: bool) -> struct.Struct:
    """Return the layout of the header of payload."""
    return HEADER_64 if has_64bit_counters else HEADER_32
