"""The two further probes of a responsiveness test, in the worker that has the request probe.

The handshake probe needs no opening. The probe of datagrams is opened like a UDP session, with a short deadline: if
UDP does not pass, the run goes on without it.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Final

from ...metering.shared_counters import SharedCounters
from ...model.counters.session_counters import SocketInfo
from ...model.directions import End
from ...model.plan import Mode, SocketOptions
from ..datagram_handshake import connect_datagrams
from ..session_handshake import ConnectTarget, SessionSpec
from ..sockets import read_socket_info, set_dscp
from .datagram_probe import DatagramProbe
from .handshake_probe import HandshakeProbe

OPEN_DEADLINE_S: Final = 1.0  # for each of the two steps of the handshake


class ProbeHost:
    """Has the probes from `open` to `stop` or `close`.

    Args:
        counters: The counters that the probes count in.
        options: The options of their sockets.
        on_lost: Called on the event loop, at most once, if the datagrams are not echoed any more.
    """

    def __init__(
        self, counters: SharedCounters, options: SocketOptions, on_lost: Callable[[SessionSpec, str], None]
    ) -> None:
        self._counters = counters
        self._options = options
        self._on_lost = on_lost
        self._handshakes: HandshakeProbe | None = None
        self._datagrams: DatagramProbe | None = None
        self._is_stopped = False

    def open_handshakes(self, spec: SessionSpec, target: ConnectTarget) -> None:
        """Begin to open connections; raise OSError if that is impossible."""
        probe = HandshakeProbe(spec, target, self._options, self._counters)
        probe.start()
        self._handshakes = probe

    async def open_datagrams(self, spec: SessionSpec, target: ConnectTarget) -> SocketInfo:
        """Begin to send datagrams once the far end has accepted; raise OSError if it does not."""
        sock = socket.socket(target.family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            if self._options.dscp is not None:
                set_dscp(sock, self._options.dscp)
            await connect_datagrams(sock, spec, target, self._options, OPEN_DEADLINE_S, OPEN_DEADLINE_S)
            loop = asyncio.get_running_loop()
            info = read_socket_info(sock, End.NEAR, spec.direction, spec.session, Mode.COPY)
            probe = DatagramProbe(
                sock,
                bytes.fromhex(spec.secret_hex),
                self._counters,
                lambda why: _call_on(loop, self._on_lost, spec, why),
            )
            if not self._is_stopped:  # otherwise the run has ended meanwhile
                probe.start()
        except BaseException:
            sock.close()
            raise
        self._datagrams = probe
        return info

    def stop(self) -> None:
        """End the probes; connections that are being opened get their answers, within half a second."""
        self._is_stopped = True
        if self._datagrams is not None:
            self._datagrams.stop()
        if self._handshakes is not None:
            self._handshakes.stop()

    def close(self) -> None:
        """End the probes at once."""
        if self._handshakes is not None:
            self._handshakes.abandon()
        self.stop()


def _call_on(
    loop: asyncio.AbstractEventLoop, call: Callable[[SessionSpec, str], None], spec: SessionSpec, why: str
) -> None:
    """Call on the loop's thread, unless the loop has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call, spec, why)
