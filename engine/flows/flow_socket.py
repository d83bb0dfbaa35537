"""The socket of one flow at either end: its options, its reader, and its datagrams of a round."""

import asyncio
import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable
from typing import Final

from ..model.plan import SocketOptions
from ..protocol.flow_datagrams import flow_number
from ..protocol.payload_datagrams import PAYLOAD_HEADER, DatagramKeys
from ..workloads.sockets import NOT_SENT
from ..workloads.udp import socket_options
from ..workloads.udp.error_queue import read_error_queue
from ..workloads.udp.receive_stamps import request_stamps
from ..workloads.udp.session import OF_EARLIER_DATAGRAMS
from .flow_receiver import ArrivalClock, FlowReceiver

_RECEIVE_BYTES: Final = 9_216
_ANCILLARY_BYTES: Final = 128
_NO_OPTIONS: Final = SocketOptions()
_SEND_TRIES: Final = 3


class FlowSocket:
    """One flow. `close` closes its socket.

    Args:
        flow: The number of the flow, from 1.
        sock: A connected, non-blocking UDP socket, which it takes over.
        secret: The secret of the flow's session.
        clock: The clock of all flows.
        on_other: Called with the flow and every datagram that is not of a round.
    """

    def __init__(
        self,
        flow: int,
        sock: socket.socket,
        secret: bytes,
        clock: ArrivalClock,
        on_other: "Callable[[FlowSocket, bytes], None]",
    ) -> None:
        self.flow, self.raw, self.secret = flow, sock, secret
        self._on_other = on_other
        self._cookie = DatagramKeys(secret).cookie
        self._loop = asyncio.get_running_loop()
        self._payload = b""
        self._is_reading = False
        try:
            socket_options.set_up(sock, _NO_OPTIONS)
            request_stamps(sock)
            self.receiver = FlowReceiver(sock, self._cookie, clock)
            self.resume()
        except BaseException:
            sock.close()
            raise

    @property
    def local_port(self) -> int:
        """This end's port."""
        return int(self.raw.getsockname()[1])

    def send(self, round_: int, number: int, datagram_bytes: int) -> bool | None:
        """Send a datagram of a round; return False if this host dropped it, None if there is no room now.

        Raises OSError if the kernel refuses such datagrams.
        """
        if len(self._payload) + PAYLOAD_HEADER.size != datagram_bytes:
            self._payload = os.urandom(datagram_bytes - PAYLOAD_HEADER.size)
        whole = flow_number(round_, number)
        for _ in range(_SEND_TRIES):
            try:
                self.raw.send(PAYLOAD_HEADER.pack(whole, time.monotonic_ns(), self._cookie) + self._payload)
            except (BlockingIOError, InterruptedError):
                return None
            except OSError as error:
                if error.errno == errno.ENOBUFS or error.errno in NOT_SENT:
                    return False
                if error.errno not in OF_EARLIER_DATAGRAMS and not isinstance(error, ConnectionRefusedError):
                    raise
                self._drain_errors()
            else:
                return True
        return False

    def answer(self, data: bytes) -> None:
        """Send a small datagram; the other end asks again if it is lost."""
        with contextlib.suppress(OSError):
            self.raw.send(data)

    def pause(self) -> None:
        """Leave what comes to another reader of the socket."""
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self.raw)

    def resume(self) -> None:
        """Read again."""
        if not self._is_reading:
            self._loop.add_reader(self.raw, self._read)
            self._is_reading = True

    def close(self) -> None:
        """Send and receive no more."""
        self.pause()
        self.raw.close()

    def _read(self) -> None:
        """Take in one datagram: other flows have their turn before the next one."""
        try:
            data, ancillary, _flags, _address = self.raw.recvmsg(_RECEIVE_BYTES, _ANCILLARY_BYTES)
        except OSError:  # none is there, or an error of an earlier datagram
            self._drain_errors()
            return
        if not self.receiver.take(data, ancillary):
            self._on_other(self, data)

    def _drain_errors(self) -> None:
        """Read the kernel's reports of sent packets: an unread one keeps waking the event loop."""
        read_error_queue(self.raw)
