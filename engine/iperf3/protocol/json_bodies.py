"""JSON documents of an iperf3 control connection: their form, and values of them.

Pure. A document follows a length of four bytes, big-endian. A document of the other end is bounded by its reader
and may have any shape; a value of it has the expected type or is None.
"""

import json
import struct
from math import isfinite
from typing import Any, Final, cast

from ...model.errors import RemoteProtocolError, make_printable

LENGTH: Final = struct.Struct(">I")
MAX_PARAMETERS_BYTES: Final = 8_192  # as a stock server since 3.18
MAX_CLIENT_RESULTS_BYTES: Final = 256 * 1_024  # 256 streams are about 50 kB
MAX_SERVER_RESULTS_BYTES: Final = 4 << 20  # with the output of the server
_UNKNOWN_FROM: Final = 2**63  # until 3.13 -1 was written as a number without sign


def encode_body(document: dict[str, Any]) -> bytes:
    """Return a document with its length, as it goes over the control connection."""
    body = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    return LENGTH.pack(len(body)) + body


def decode_body(body: bytes) -> object:
    """Return the value of a JSON text; raise RemoteProtocolError if it is not valid."""
    try:
        # Old versions leave control characters in strings, and titles may be in any encoding.
        return json.loads(body.decode("utf-8", "replace"), strict=False, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise RemoteProtocolError("iperf3 sent what is not valid JSON") from error


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def as_object(value: object) -> dict[str, object] | None:
    """Return a JSON object; None for any other value."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def read_number(members: dict[str, object], key: str) -> float | int | None:
    """Return a finite number; None if it is missing, of another type, or stands for unknown.

    A value of 2**63 and more stands for unknown, and so does -1: older versions write -1 without its sign.
    """
    value = members.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite_number(value):
        return None
    return None if value >= _UNKNOWN_FROM or value == -1 else value


def isfinite_number(value: float) -> bool:
    """Return whether a number is finite; whole numbers of any size are."""
    return isinstance(value, int) or isfinite(value)


def read_whole(members: dict[str, object], key: str) -> int | None:
    """Return a whole number as `read_number`, cut off at the point as iperf3 does it."""
    value = read_number(members, key)
    return None if value is None else int(value)


def read_true(members: dict[str, object], key: str) -> bool:
    """Return whether the value is true: no number is."""
    return members.get(key) is True


def read_text(members: dict[str, object], key: str, max_characters: int) -> str | None:
    """Return a text without control characters, cut at this many characters; None if there is none."""
    value = members.get(key)
    return make_printable(value[:max_characters]) if isinstance(value, str) else None
