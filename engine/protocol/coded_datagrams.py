"""Datagrams of two ends that have a session's secret: a head, a body, and a code over all of it. Pure."""

import hmac
import struct
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from ..model.shared_key import constant_time_equal
from .payload_datagrams import CONTROL_MAGIC
from .preamble import PROTOCOL_VERSION
from .tokens import CODE_BYTES

_HEAD: Final = struct.Struct(f">{len(CONTROL_MAGIC)}sBc")
T = TypeVar("T")
CODED_BYTES: Final = _HEAD.size + CODE_BYTES
"""The bytes of a datagram beside its body."""


def encode_coded(secret: bytes, use: bytes, kind: bytes, body: bytes) -> bytes:
    """Return a datagram. `use` tells its code from those of another exchange with the same secret."""
    fields = _HEAD.pack(CONTROL_MAGIC, PROTOCOL_VERSION, kind) + body
    return fields + _code(secret, use, fields)


def decode_coded(
    data: bytes, secret: bytes, use: bytes, decoders: Mapping[bytes, Callable[[bytes], T | None]]
) -> T | None:
    """Return what the decoder of its kind makes of the body; None for any other bytes, which never raise."""
    if len(data) < CODED_BYTES:
        return None
    fields, code = data[:-CODE_BYTES], data[-CODE_BYTES:]
    magic, version, kind = _HEAD.unpack_from(fields)
    unpack = decoders.get(kind)
    if magic != CONTROL_MAGIC or version != PROTOCOL_VERSION or unpack is None:
        return None
    return unpack(fields[_HEAD.size :]) if constant_time_equal(_code(secret, use, fields), code) else None


def _code(secret: bytes, use: bytes, fields: bytes) -> bytes:
    return hmac.digest(secret, use + fields, "sha256")[:CODE_BYTES]
