"""The far end's part in measuring a path's MTU: it reports arrivals, and sends datagrams of a requested length.

It serves the socket of a session that has no payload, in the endpoint's own process. It sends to the address that
has echoed its cookie, at a bounded rate and number.
"""

import contextlib
import logging
import socket
import time
from typing import Final

from ...model.counters.path_trace import MAX_HOPS
from ...model.limits import TokenBucket
from ...protocol.path_probe import (
    MAX_UDP_BYTES,
    PATH_HEADER_BYTES,
    PathDatagram,
    PathKind,
    decode_path_datagram,
    decode_quoted_path_datagram,
)
from ...workloads.datagram_handshake import accept_datagrams, answer_control_datagram
from ...workloads.session_handshake import SessionSpec
from ...workloads.udp.df_socket import DfSocket

_ANSWERS_S: Final = 200
_MAX_ANSWERS: Final = 4_000  # a search takes fewer than a hundred
_TURN_DATAGRAMS: Final = 32
_log = logging.getLogger(__name__)


class PathResponder:
    """Answers on a session's socket until `close`."""

    def __init__(self, sock: socket.socket, spec: SessionSpec) -> None:
        """Take over the socket and accept; raise OSError if this system cannot measure a path's MTU."""
        self._spec = spec
        self._secret = bytes.fromhex(spec.secret_hex)
        self._bucket = TokenBucket(_ANSWERS_S, time.monotonic_ns())
        self._left = _MAX_ANSWERS
        self._serial = 0  # of the newest request: a router's message is most likely about it
        self._sock = DfSocket(sock)
        self._sock.watch(self._read)
        accept_datagrams(sock, spec)

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def _read(self) -> None:
        self._report_errors()
        for _ in range(_TURN_DATAGRAMS):
            data = self._sock.receive()
            if data is None:
                return
            self._handle(data)

    def _handle(self, data: bytes) -> None:
        if answer_control_datagram(self._sock.raw, data, self._spec):
            return
        datagram = decode_path_datagram(data, self._secret)
        if datagram is None or self._left <= 0 or not self._bucket.take(time.monotonic_ns()):
            return
        self._left -= 1
        if datagram.kind is PathKind.PROBE:
            self._answer(PathDatagram(PathKind.REACHED, datagram.serial, len(data)))
        elif datagram.kind is PathKind.REQUEST and PATH_HEADER_BYTES <= datagram.size_bytes <= MAX_UDP_BYTES:
            self._serial = datagram.serial
            self._send_large(datagram)
        elif datagram.kind is PathKind.TRACE and PATH_HEADER_BYTES <= datagram.size_bytes <= MAX_UDP_BYTES:
            self._send_large(datagram, min(datagram.ttl, MAX_HOPS))

    def _send_large(self, request: PathDatagram, ttl: int | None = None) -> None:
        large = PathDatagram(PathKind.LARGE, request.serial, request.size_bytes)
        with contextlib.suppress(OSError):
            self._sock.send(large.pack(self._secret), ttl)
        self._report_errors()

    def _report_errors(self) -> None:
        for error in self._sock.take_errors():
            _log.debug("path MTU: %s", error)
            if 0 < error.mtu_bytes <= MAX_UDP_BYTES + PATH_HEADER_BYTES:
                self._answer(PathDatagram(PathKind.TOO_LONG, self._serial, error.mtu_bytes, error.router))

        for report in self._sock.take_expired():
            quoted = decode_quoted_path_datagram(report.quoted, self._secret)
            if quoted is not None and report.sender is not None:
                self._answer(PathDatagram(PathKind.EXPIRED, quoted.serial, 0, report.sender))

    def _answer(self, datagram: PathDatagram) -> None:
        self._sock.answer(datagram.pack(self._secret))
