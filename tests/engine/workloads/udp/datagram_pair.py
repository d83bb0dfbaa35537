"""Both ends of a UDP session, over loopback in this process, and raw sockets in place of one of them."""

import asyncio
import socket

from linkgauge.engine.metering.shared_counters import SharedCounters
from linkgauge.engine.model.counters.session_counters import DATAGRAM_COUNTER_NAMES
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Dialect, Mode, Settings, SocketOptions
from linkgauge.engine.protocol.payload_datagrams import DatagramKeys
from linkgauge.engine.workloads.iperf3.datagram_sessions import Iperf3Receiver, Iperf3Sender
from linkgauge.engine.workloads.session import Payload, SessionContext, WorkerResources
from linkgauge.engine.workloads.socket_io import create_poller
from linkgauge.engine.workloads.udp import socket_options
from linkgauge.engine.workloads.udp.receiver import DatagramReceiver
from linkgauge.engine.workloads.udp.sender import DatagramSender

DEADLINE_S = 20.0
SECRET = b"secret of a session in a test..."
KEYS = DatagramKeys(SECRET)
LOOPBACKS = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


def connected_sockets(
    family: socket.AddressFamily = socket.AF_INET, *, allows_fragments: bool = False, far: str | None = None
) -> tuple[socket.socket, socket.socket]:
    """Return two UDP sockets, each connected to the other, as a handshake leaves them; `far` binds the second."""
    first, second = socket.socket(family, socket.SOCK_DGRAM), socket.socket(family, socket.SOCK_DGRAM)
    for sock, address in ((first, LOOPBACKS[family]), (second, far or LOOPBACKS[family])):
        sock.bind((address, 0))
        socket_options.set_up(sock, SocketOptions(), allows_fragments=allows_fragments)
    first.connect(second.getsockname())
    second.connect(first.getsockname())
    return first, second


class DatagramPair:
    """A sender in one slot and a receiver in another; without one of them its socket is the test's."""

    def __init__(
        self,
        settings: Settings,
        mode: Mode = Mode.COPY,
        *,
        family: socket.AddressFamily = socket.AF_INET,
        has_sender: bool = True,
        has_receiver: bool = True,
        dialect: Dialect = Dialect.LINKGAUGE,
        has_64bit_counters: bool = False,
        sockets: tuple[socket.socket, socket.socket] | None = None,
    ) -> None:
        self._has_64bit_counters = has_64bit_counters
        is_iperf3 = dialect is Dialect.IPERF3
        sender_type = Iperf3Sender if is_iperf3 else DatagramSender
        receiver_type = Iperf3Receiver if is_iperf3 else DatagramReceiver
        self.counters = SharedCounters.create()
        self.lost: list[str] = []
        self._poller = create_poller()
        payload = Payload(64)
        self._resources = WorkerResources(payload, memoryview(bytearray(64)), mode, payload, self._poller)
        self.sending_socket, self.receiving_socket = sockets or connected_sockets(family)
        self.sender = self.receiver = None
        if has_sender:
            self.sender = sender_type(self.sending_socket, self._context(0, settings), self._resources)
        if has_receiver:
            self.receiver = receiver_type(self.receiving_socket, self._context(1, settings), self._resources)
        self._sessions = [session for session in (self.receiver, self.sender) if session is not None]

    def _context(self, slot: int, settings: Settings) -> SessionContext:
        return SessionContext(
            self.counters,
            slot,
            0,
            self.lost.append,
            secret=SECRET,
            settings=settings,
            has_64bit_counters=self._has_64bit_counters,
        )

    def start(self) -> None:
        """Let payload flow."""
        for session in self._sessions:
            session.start()

    def apply(self, settings: Settings) -> None:
        """Change the settings of both ends."""
        for session in self._sessions:
            session.change_settings(settings)

    def count(self, end: str, name: str) -> int | None:
        """Return a counter of the `sender` or the `receiver`, of this moment."""
        for session in self._sessions:
            session.refresh()
        values = self.counters.read_datagrams(Direction.OUT if end == "sender" else Direction.IN, 1)
        return dict(zip(DATAGRAM_COUNTER_NAMES, values, strict=True))[name]

    def known(self, end: str, name: str) -> int:
        """Return a counter that is known by now."""
        value = self.count(end, name)
        assert value is not None
        return value

    async def stop(self) -> None:
        """Stop the sender, and wait until everything has arrived."""
        assert self.sender is not None
        self.sender.stop_sending()
        await asyncio.sleep(0.2)

    def close(self) -> None:
        """Close both ends."""
        for session in self._sessions:
            session.close()
        self.sending_socket.close()
        self.receiving_socket.close()
        self._poller.close()
        self.counters.close()
