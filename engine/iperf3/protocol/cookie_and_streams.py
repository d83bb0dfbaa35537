"""How the connections of an iperf3 test are told apart: by the test's cookie, and the ids of its streams. Pure.

The client sends the cookie first on each TCP connection. A stream's id follows from the order of creation.
"""

import secrets
from typing import Final

from ...model.directions import Direction

Stream = tuple[int, Direction, int]
"""A stream's id, its single direction and its session."""

COOKIE_BYTES: Final = 37
_COOKIE_ALPHABET: Final = b"abcdefghijklmnopqrstuvwxyz234567"


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
