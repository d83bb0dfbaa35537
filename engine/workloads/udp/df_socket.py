"""A connected UDP socket that never fragments packets, and the kernel's and routers' reports of their size.

With IP_PMTUDISC_PROBE (ip(7)) the kernel sets DF and ignores the path's known MTU: only the interface's MTU bounds
a packet. With IP_RECVERR the errors of routers (ICMP, RFC 1191 and RFC 8201) wait in the socket's error queue, with
the MTU that they report.
"""

import asyncio
import contextlib
import errno
import select
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from . import socket_options
from .error_queue import ErrorReport, read_error_queue

_MAX_DATAGRAM_BYTES: Final = 65_535
_SEND_TRIES: Final = 3
_MAX_EXPIRED: Final = 256


@dataclass(frozen=True, slots=True)
class SizeError:
    """A packet that was too long: for this host's interface, or for the link behind a router."""

    mtu_bytes: int
    router: str | None = None


class DfSocket:
    """Sends and receives datagrams that are never fragmented. `close` closes the socket."""

    def __init__(self, sock: socket.socket) -> None:
        """Take over a connected, non-blocking UDP socket; raise OSError if the system cannot do this."""
        if sys.platform != "linux":
            sock.close()
            raise OSError("the path MTU can be measured on Linux only")
        self._sock = sock
        self._epoll = select.epoll()
        self._errors: list[SizeError] = []
        self._expired: list[ErrorReport] = []
        self.header_bytes = socket_options.header_bytes(sock)
        try:
            socket_options.forbid_fragments(sock, ignores_path=True)
            socket_options.report_errors(sock)
            self._epoll.register(sock.fileno(), select.EPOLLIN)
        except BaseException:
            self._epoll.close()
            sock.close()
            raise

    def watch(self, on_ready: Callable[[], None]) -> None:
        """Call `on_ready` while a datagram or an error waits. uvloop alone would report one error only."""
        asyncio.get_running_loop().add_reader(self._epoll.fileno(), on_ready)

    def close(self) -> None:
        """Stop watching, and close."""
        if self._epoll.closed:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed
            asyncio.get_running_loop().remove_reader(self._epoll.fileno())
        self._epoll.close()
        self._sock.close()

    def send(self, data: bytes, ttl: int | None = None) -> bool:
        """Send a datagram; return False if it is longer than the interface allows (see `take_errors`).

        With a `ttl` that ends on the way a router reports it (see `take_expired`). If a queue is full, the datagram
        is lost. Raises OSError for all else, such as a refusal.
        """
        failure: OSError | None = None
        control = [] if ttl is None else [socket_options.ttl_control(self._sock, ttl)]
        for _ in range(_SEND_TRIES):
            try:
                self._sock.sendmsg([data], control)
            except (BlockingIOError, InterruptedError):
                return True
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    return True
                errors = self._read_errors()
                self._errors += errors
                if any(each.router is None for each in errors):
                    return False
                failure = error  # of an earlier datagram, perhaps: this one was not sent
            else:
                return True
        if failure is not None and failure.errno != errno.EMSGSIZE:
            raise failure
        return False

    def receive(self) -> bytes | None:
        """Return the next datagram; None if there is none. Errors are in the queue of errors."""
        for _ in range(2):
            try:
                return self._sock.recv(_MAX_DATAGRAM_BYTES)
            except (BlockingIOError, InterruptedError):
                return None
            except OSError:
                continue
        return None

    def take_errors(self) -> list[SizeError]:
        """Return the kernel's and routers' reports of the size since the last call."""
        errors = self._errors + self._read_errors()
        self._errors = []
        return errors

    def take_expired(self) -> list[ErrorReport]:
        """Return the reports about a used up TTL that `take_errors` and `send` have read since the last call."""
        expired, self._expired = self._expired, []
        return expired

    def _read_errors(self) -> list[SizeError]:
        reports, _error = read_error_queue(self._sock)
        self._expired = [*self._expired, *(each for each in reports if each.is_time_exceeded)][-_MAX_EXPIRED:]
        return [SizeError(report.info, report.sender) for report in reports if report.is_too_long]

    def answer(self, data: bytes) -> None:
        """Send a small datagram; the other end asks again if it is lost."""
        with contextlib.suppress(OSError):
            self._sock.send(data)

    @property
    def raw(self) -> socket.socket:
        """The socket itself."""
        return self._sock
