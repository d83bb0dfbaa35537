"""The socket of a session of bursts, at either end: its options, its reader, and the thread that sends a burst."""

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Final

from ..model.plan import Mode, Settings, SocketOptions
from ..protocol.burst_datagrams import BurstRequest
from ..protocol.payload_datagrams import DatagramKeys
from ..workloads.socket_io import start_thread
from ..workloads.udp import socket_options
from ..workloads.udp.error_queue import read_error_queue
from .burst_receiver import ANCILLARY_BYTES, RECEIVE_BYTES, TURN_DATAGRAMS, BurstReceiver
from .burst_sender import SentBurst, send_burst

_NO_OPTIONS: Final = SocketOptions()
_BUFFER_RATE: Final = Settings(rate_bit_s=5_400_000_000)  # 32 MiB, a whole burst, if the system allows it
_SEND_BUFFER_RATE: Final = 1  # the smallest one: data that wait there are already stamped


class BurstSocket:
    """Sends and receives bursts, and passes all other datagrams on. `close` closes the socket.

    Args:
        sock: A connected, non-blocking UDP socket, which it takes over.
        secret: The session's secret.
        on_other: Called with every datagram that is not of a burst.
    """

    def __init__(self, sock: socket.socket, secret: bytes, on_other: Callable[[bytes], None]) -> None:
        self._sock = sock
        self._on_other = on_other
        self._cookie = DatagramKeys(secret).cookie
        self._loop = asyncio.get_running_loop()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        try:
            socket_options.set_up(sock, _NO_OPTIONS)
            socket_options.set_up_receiver(sock, Mode.QUALITY, _BUFFER_RATE)
            socket_options.set_up_sender(sock, _SEND_BUFFER_RATE)
            self.receiver = BurstReceiver(sock, self._cookie)
            self._loop.add_reader(sock, self._read)
        except BaseException:
            sock.close()
            raise

    @property
    def largest_datagram(self) -> int:
        """The UDP payload of the largest packet that the path carries whole."""
        return socket_options.largest_datagram(self._sock)

    @property
    def header_bytes(self) -> int:
        """The bytes of the headers of IP and UDP in each packet."""
        return socket_options.header_bytes(self._sock)

    @property
    def is_sending(self) -> bool:
        """Whether a burst is being sent."""
        return self._thread is not None

    def send(
        self,
        request: BurstRequest,
        on_sent: Callable[[SentBurst | None, OSError | None], None],
        most_bit_s: int | None = None,
    ) -> None:
        """Send a burst from a thread, then call `on_sent` on the event loop. Raises OSError without a thread."""

        def work() -> SentBurst:
            stopped = self._stopped
            return send_burst(self._sock, self._cookie, request, most_bit_s=most_bit_s, is_stopped=stopped)

        def done(burst: SentBurst | None, error: OSError | None) -> None:
            self._thread = None
            if self._is_closed:
                self._sock.close()
            else:
                on_sent(burst, error)

        self._thread = start_thread(work, done)

    def answer(self, data: bytes) -> None:
        """Send a small datagram; the other end asks again if it is lost."""
        try:
            self._sock.send(data)
        except OSError:
            self._drain_errors()

    @property
    def raw(self) -> socket.socket:
        """The socket itself."""
        return self._sock

    def close(self) -> None:
        """Send and receive no more; close the socket once no thread uses it."""
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.remove_reader(self._sock)
        if self._thread is None:
            self._sock.close()

    def _stopped(self) -> bool:
        return self._is_closed

    def _read(self) -> None:
        """Take in the datagrams that have arrived, as many as one turn allows."""
        for _ in range(TURN_DATAGRAMS):
            try:
                data, ancillary, _flags, _address = self._sock.recvmsg(RECEIVE_BYTES, ANCILLARY_BYTES)
            except (BlockingIOError, InterruptedError):
                self._drain_errors()
                return
            except OSError:  # of an earlier datagram
                self._drain_errors()
                return
            if not self.receiver.take(data, ancillary):
                self._on_other(data)
            if self._is_closed:
                return

    def _drain_errors(self) -> None:
        """Read the kernel's reports of sent packets: an unread one keeps waking the event loop."""
        read_error_queue(self._sock)
