"""The states of an iperf3 test as its control connection names them, its cookie, and the ids of its streams.

Pure. Either end sends a state as one signed byte. The cookie names the test on each of its TCP connections.
"""

import secrets
from enum import IntEnum
from typing import Final

from ...model.errors import RemoteProtocolError
from ...model.plan import Direction

Stream = tuple[int, Direction, int]
"""A stream's id, its single direction and its session."""

COOKIE_BYTES: Final = 37
_COOKIE_ALPHABET: Final = b"abcdefghijklmnopqrstuvwxyz234567"
_BYTE_VALUES: Final = 256
_SIGN_BIT: Final = 128


class State(IntEnum):
    """A state of a test. The server sends most of them; the client sends those that end it."""

    TEST_START = 1
    TEST_RUNNING = 2
    TEST_END = 4
    PARAM_EXCHANGE = 9
    CREATE_STREAMS = 10
    SERVER_TERMINATE = 11
    CLIENT_TERMINATE = 12
    EXCHANGE_RESULTS = 13
    DISPLAY_RESULTS = 14
    IPERF_DONE = 16
    ACCESS_DENIED = -1
    SERVER_ERROR = -2

    @property
    def wire_byte(self) -> bytes:
        """The byte that names this state on the control connection."""
        return bytes([self % _BYTE_VALUES])

    @classmethod
    def from_byte(cls, value: int) -> "State":
        """Return the state of a byte, 0 to 255; raise RemoteProtocolError if there is none."""
        try:
            return cls(value - _BYTE_VALUES if value >= _SIGN_BIT else value)
        except ValueError:
            raise RemoteProtocolError(f"iperf3 has no state {value}") from None


def make_cookie() -> bytes:
    """Return a new random cookie, with the NUL at its end."""
    return bytes(secrets.choice(_COOKIE_ALPHABET) for _ in range(COOKIE_BYTES - 1)) + b"\0"


def stream_ids(count: int) -> list[int]:
    """Return the ids of this many streams in the order of their creation: 1, 3, 4, 5 and so on, without 2."""
    return [1, *range(3, count + 2)][:count]


def list_streams(direction: Direction, parallel: int) -> list[Stream]:
    """Return the streams of a test, in the order of creation."""
    sessions = [(flow, session) for flow in direction.flows for session in range(1, parallel + 1)]
    return [(number, *stream) for number, stream in zip(stream_ids(len(sessions)), sessions, strict=True)]
