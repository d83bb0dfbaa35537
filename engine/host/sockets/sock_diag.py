"""Requests to the kernel for the sockets of this network namespace: sock_diag(7). Linux only.

Any user may ask, and gets the sockets of every user. Nothing is sent to a network.

One dump has all connections. The readings of those that matter are asked for by their ids in between: the kernel
finds each by a hash. A dump has no sockets that began and ended since the last one; the kernel broadcasts the last
counters of each that ends.
"""

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, Self

from ...model.errors import LinkgaugeError, explain_os_error
from ..nics.netlink import ATTRIBUTE, HEADER, NLM_F_DUMP
from .socket_message import (
    CONGESTION,
    ID_BYTES,
    INFO,
    MEMORY,
    VEGAS,
    ConnectionReading,
    SocketMessage,
    decode_connection,
    find_info,
)

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST, _NLM_F_DUMP_INTR = 1, 0x10
_REQUEST: Final = struct.Struct(f"=BBBxI{ID_BYTES}s")  # struct inet_diag_req_v2
_REQ_BYTECODE: Final = 1
_CONNECTED: Final = sum(1 << state for state in (1, 2, 4, 5, 8, 9, 11))  # neither listeners nor TIME-WAIT
_ALL_STATES: Final = 0xFFF
_RECEIVE_BYTES: Final = 1 << 20
_BUFFER_BYTES: Final = 8 << 20
_DEADLINE_S: Final = 5.0
_BATCH: Final = 64  # requests whose answers fit the smallest receive buffer
_SO_RCVBUFFORCE: Final = 33  # asm-generic/socket.h
_DESTROY_GROUPS: Final = 1 << 0 | 1 << 2  # SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY (linux/sock_diag.h)
_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)


def _extensions(*kinds: int) -> int:
    return sum(1 << (kind - 1) for kind in kinds)


class SockDiag:
    """Asks the kernel for sockets. Use it as a context manager, by one thread at a time.

    `bytecode` is a filter that the kernel applies to dumps (socket_filter.py). `was_interrupted` tells whether the
    last answer may lack sockets: the kernel's tables changed during the dump, or the receive buffer was full.
    Raises LinkgaugeError if the kernel has no sock_diag, or does not answer.
    """

    def __init__(self, bytecode: bytes = b"") -> None:
        self._bytecode = bytecode
        self.was_interrupted = False
        self._sequence = 0
        self._is_dumping = False
        self._socket = _open_socket()
        self._socket.settimeout(_DEADLINE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def dump_connections(self) -> Iterator[SocketMessage]:
        """Yield every TCP connection with its TCP_INFO; neither listeners nor TIME-WAIT."""
        return self._dump(socket.IPPROTO_TCP, _extensions(INFO), _CONNECTED)

    def dump_datagram_sockets(self) -> Iterator[SocketMessage]:
        """Yield every UDP socket, with the memory of its queues."""
        return self._dump(socket.IPPROTO_UDP, _extensions(MEMORY), _ALL_STATES)

    def read_connections(self, ids: Sequence[tuple[int, bytes]]) -> Iterator[ConnectionReading]:
        """Yield those of the connections with these families and ids that still exist."""
        for start in range(0, len(ids), _BATCH):
            yield from self._read_batch(ids[start : start + _BATCH])

    def _read_batch(self, ids: Sequence[tuple[int, bytes]]) -> Iterator[ConnectionReading]:
        self._begin()
        extensions = _extensions(INFO, VEGAS, CONGESTION, MEMORY)
        requests = (
            self._request(_REQUEST.pack(family, socket.IPPROTO_TCP, extensions, _ALL_STATES, id_), 0)
            for family, id_ in ids
        )
        self._socket.send(b"".join(requests))
        missing = len(ids)
        while missing > 0:
            data = self._receive()
            if not data:
                return  # the rest of this batch is read at the next tick
            length, kind, _, number, _ = HEADER.unpack_from(data)
            if number != self._sequence:
                continue
            missing -= 1
            # An error otherwise: the connection has gone, or another one has its ports.
            if kind == _SOCK_DIAG_BY_FAMILY:
                reading = decode_connection(SocketMessage(data[HEADER.size : length]))
                if reading is not None:
                    yield reading

    def _dump(self, protocol: int, extensions: int, states: int) -> Iterator[SocketMessage]:
        self.was_interrupted = False
        for family in _FAMILIES:
            self._begin()
            body = _REQUEST.pack(family, protocol, extensions, states, bytes(ID_BYTES))
            if self._bytecode:
                body += ATTRIBUTE.pack(ATTRIBUTE.size + len(self._bytecode), _REQ_BYTECODE) + self._bytecode
            self._socket.send(self._request(body, NLM_F_DUMP))
            self._is_dumping = True
            yield from self._dumped(protocol)

    def _dumped(self, protocol: int) -> Iterator[SocketMessage]:
        """Yield the messages of a dump. With thousands of sockets, this loop is most of the cost of observing."""
        unpack, header, sequence = HEADER.unpack_from, HEADER.size, self._sequence
        at, mark = 0, b""
        while True:
            data = self._receive()
            offset, end = 0, len(data)
            while offset < end:
                length, kind, flags, number, _ = unpack(data, offset)
                body = data[offset + header : offset + length]
                offset += (length + 3) & ~3
                if number != sequence:
                    continue  # the rest of an earlier answer
                if kind != _SOCK_DIAG_BY_FAMILY:
                    self._is_dumping = False
                    _raise_error(body, protocol)
                    return
                if flags & _NLM_F_DUMP_INTR:
                    self.was_interrupted = True
                if not at or body[at - 4 : at] != mark:  # the kernel puts TCP_INFO at the same place in each
                    at = find_info(body)
                    mark = body[at - 4 : at]
                yield SocketMessage(body, at)

    def _begin(self) -> None:
        """Begin a request: the kernel refuses one while a dump is not read to its end."""
        if self._is_dumping:
            for _ in self._dumped(socket.IPPROTO_UDP):
                pass
        self._sequence += 1

    def _request(self, body: bytes, flags: int) -> bytes:
        length = HEADER.size + len(body)
        return HEADER.pack(length, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST | flags, self._sequence, 0) + body

    def _receive(self) -> bytes:
        """Return the next part of an answer; empty if the kernel had to leave some out."""
        try:
            return self._socket.recv(_RECEIVE_BYTES)
        except TimeoutError as error:
            raise LinkgaugeError("the kernel did not answer a request for its sockets") from error
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            self.was_interrupted = True
            return b""


class EndedConnections:
    """The last counters of TCP connections that end, as the kernel broadcasts them (Linux 4.10).

    `are_missed` tells whether more ended than the socket's buffer takes. If the kernel has no such broadcast,
    there are none.
    """

    def __init__(self) -> None:
        self.are_missed = False
        self._socket = _open_socket()
        self._socket.setblocking(False)
        with suppress(OSError):
            self._socket.bind((0, _DESTROY_GROUPS))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def take(self) -> Iterator[SocketMessage]:
        """Yield those that ended since the last call."""
        self.are_missed = False
        while True:
            try:
                data = self._socket.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self.are_missed = True
                continue
            length, kind, *_ = HEADER.unpack_from(data)
            body = data[HEADER.size : length]
            if kind == _SOCK_DIAG_BY_FAMILY and (at := find_info(body)):
                yield SocketMessage(body, at)


def _open_socket() -> socket.socket:
    """Return a socket with as large a receive buffer as this user may have."""
    try:
        opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)
    except (AttributeError, OSError) as error:
        reason = explain_os_error(error) if isinstance(error, OSError) else "it is not Linux"
        raise LinkgaugeError(f"this system does not report its sockets (sock_diag): {reason}") from error
    for option in (_SO_RCVBUFFORCE, socket.SO_RCVBUF):
        with suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
            break
    return opened


def _raise_error(body: bytes, protocol: int) -> None:
    """Raise the error of a dump; a kernel without UDP's module has no such sockets to report."""
    number = -int.from_bytes(body[:4], sys.byteorder, signed=True) if body else 0
    if number == 0 or (number == errno.ENOENT and protocol == socket.IPPROTO_UDP):
        return
    reason = explain_os_error(OSError(number, os.strerror(number)))
    raise LinkgaugeError(f"the kernel does not report its sockets: {reason}")
