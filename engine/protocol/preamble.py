"""The first bytes of every connection: a preamble of fixed size, and the header of a data connection.

Pure. One TCP port therefore serves control and data, and an accepted socket can be passed to a worker with no byte
of payload read from it. Of the protocol, workers need only this module.
"""

import re
import struct
from dataclasses import dataclass
from typing import Final

from ..model.directions import Direction
from ..model.errors import RemoteProtocolError
from ..model.plan import MAX_SESSIONS, MAX_WINDOW_BYTES, MIN_WINDOW_BYTES, PROBE_SESSIONS
from .tokens import TOKEN_BYTES

PROTOCOL_VERSION: Final = 2
MAGIC: Final = b"linkgauge"
CONTROL_KIND: Final = b"C"
DATA_KIND: Final = b"D"
DATA_ACCEPTED: Final = b"\x06"  # the far end's one byte before a session's payload: sockets are set up

_PREAMBLE: Final = struct.Struct(">9sBcc")
PREAMBLE_BYTES: Final = _PREAMBLE.size
_DATA_HELLO: Final = struct.Struct(f">{TOKEN_BYTES}s{TOKEN_BYTES}scBII")
DATA_HELLO_BYTES: Final = _DATA_HELLO.size
_FLOW_CODES: Final = {Direction.OUT: b"o", Direction.IN: b"i"}
_TLS_RECORDS: Final = range(0x14, 0x18)  # RFC 8446, section 5.1; a version of two bytes follows, the first one 3
_TLS_MAJOR: Final = 3
# The first words of other protocols' servers and clients. FTP and SMTP share their codes.
_FIRST_WORDS: Final = {
    b"SSH-": "SSH",
    **dict.fromkeys((b"HTTP/", b"GET ", b"HEAD ", b"POST ", b"PUT ", b"OPTIONS ", b"CONNECT ", b"PRI "), "HTTP"),
    **dict.fromkeys((b"220 ", b"220-", b"421 ", b"554 "), "SMTP or FTP"),
    **dict.fromkeys((b"EHLO ", b"HELO "), "SMTP"),
}
_MAX_QUOTED: Final = 40
_MAX_UNKNOWN: Final = 16


def encode_preamble(kind: bytes) -> bytes:
    """Return the first bytes of a connection, `CONTROL_KIND` or `DATA_KIND`."""
    return _PREAMBLE.pack(MAGIC, PROTOCOL_VERSION, kind, b"\n")


def decode_preamble(data: bytes) -> tuple[int, bytes] | None:
    """Return (protocol version, kind) of `PREAMBLE_BYTES` bytes, None if they are not a preamble."""
    magic, version, kind, end = _PREAMBLE.unpack(data)
    if magic != MAGIC or end != b"\n" or kind not in {CONTROL_KIND, DATA_KIND}:
        return None
    return version, kind


def describe_other_protocol(data: bytes) -> str:
    """Return what the first bytes of another program look like: a protocol, and its first readable words."""
    if len(data) > 1 and data[0] in _TLS_RECORDS and data[1] == _TLS_MAJOR:
        return "TLS"
    name = next((name for words, name in _FIRST_WORDS.items() if data.startswith(words)), "")
    # Only ASCII that can be printed: the rest may be in another language, or drive a terminal.
    words = re.match(rb"[ -~]*", data[: _MAX_QUOTED if name else _MAX_UNKNOWN])
    quoted = "" if words is None else words.group().decode("ascii").strip()
    return (name or "something other than linkgauge") + (f" ('{quoted}')" if quoted else "")


def describe_version_mismatch(version: int) -> str:
    """Return the error's text for another end of this version: both versions, and the remedy."""
    return (
        f"it speaks protocol {version}, this linkgauge speaks {PROTOCOL_VERSION}; "
        "install the same version on both hosts"
    )


@dataclass(frozen=True, slots=True)
class DataHello:
    """The header of a data connection, after its preamble: its run and session, and its window.

    `run_tag` names the run, and `token` is valid for this one connection of it. For the probe that opens
    connections, `generation` is the connection's serial.
    """

    run_tag: bytes
    token: bytes
    direction: Direction
    session: int
    generation: int
    window_bytes: int | None

    def pack(self) -> bytes:
        """Return the `DATA_HELLO_BYTES` bytes of the header."""
        flow = _FLOW_CODES[self.direction]
        rest = (flow, self.session, self.generation, self.window_bytes or 0)
        return _DATA_HELLO.pack(self.run_tag, self.token, *rest)

    @classmethod
    def unpack(cls, data: bytes) -> "DataHello":
        """Read `DATA_HELLO_BYTES` bytes; raise RemoteProtocolError if a field is out of range."""
        run, token, flow, session, generation, window = _DATA_HELLO.unpack(data)
        direction = next((d for d, code in _FLOW_CODES.items() if code == flow), None)
        window_bytes: int | None = window or None
        is_probe = session in PROBE_SESSIONS and direction is Direction.OUT
        if direction is None or not (is_probe or 1 <= session <= MAX_SESSIONS):
            raise RemoteProtocolError("a data connection names no possible session")
        if window_bytes is not None and not MIN_WINDOW_BYTES <= window_bytes <= MAX_WINDOW_BYTES:
            raise RemoteProtocolError("a data connection asks for an impossible window")
        return cls(run, token, direction, session, generation, window_bytes)
