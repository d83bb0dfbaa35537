"""Requests to the kernel by netlink(7), and the attributes of its answers.

A request is a header, a structure and attributes; so is each part of its answer.
"""

import socket
import struct
import sys
from collections.abc import Iterator
from typing import Final

_NETLINK_DEADLINE_S: Final = 1.0
_READ_BYTES: Final = 65_536
HEADER: Final = struct.Struct("=IHHII")  # struct nlmsghdr
ATTRIBUTE: Final = struct.Struct("=HH")  # struct rtattr
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
_NLA_TYPE_MASK: Final = 0x3FFF  # the other two bits mark nested attributes and network byte order

Attributes = dict[int, bytes]


def open_netlink() -> socket.socket:
    """Return a socket for `request_netlink`, with a deadline for each answer."""
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    netlink.settimeout(_NETLINK_DEADLINE_S)
    return netlink


def request_netlink(
    netlink: socket.socket, request: int, answer: int, body: bytes, flags: int = 0
) -> Iterator[bytes]:
    """Yield the body of each part of an answer; none if the kernel answers with an error.

    Args:
        netlink: a NETLINK_ROUTE socket on which no answer is outstanding.
        request: the type of the message to send (RTM_GET...).
        answer: the type of the parts to yield (RTM_NEW...).
        body: the request's structure and attributes.
        flags: NLM_F_DUMP asks for all objects, in several parts.
    """
    netlink.send(HEADER.pack(HEADER.size + len(body), request, _NLM_F_REQUEST | flags, 1, 0) + body)
    while True:
        data = netlink.recv(_READ_BYTES)
        while len(data) >= HEADER.size:
            length, kind, *_ = HEADER.unpack_from(data)
            if kind in {_NLMSG_ERROR, _NLMSG_DONE}:
                return
            if kind == answer:
                yield data[HEADER.size : length]
            data = data[max(_align(length), HEADER.size) :]
        if not flags & NLM_F_DUMP:
            return


def parse_attributes(data: bytes) -> Attributes:
    """Return the attributes that follow a structure, by their kind; the kernel has checked their sizes."""
    attributes: Attributes = {}
    offset = 0
    while offset + ATTRIBUTE.size <= len(data):
        size, kind = ATTRIBUTE.unpack_from(data, offset)
        attributes[kind & _NLA_TYPE_MASK] = data[offset + ATTRIBUTE.size : offset + size]
        offset += max(_align(size), ATTRIBUTE.size)
    return attributes


def _align(size: int) -> int:
    return (size + 3) & ~3


def number_of(value: bytes | None) -> int | None:
    """Return the number in an attribute; None if the attribute is absent."""
    return None if value is None else int.from_bytes(value, sys.byteorder)


def text_of(value: bytes | None) -> str | None:
    """Return the text in an attribute; None if it is absent or empty."""
    return None if value is None else value.split(b"\0")[0].decode(errors="replace") or None
