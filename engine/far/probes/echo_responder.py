"""The far end's part of the datagram probe: it echoes each datagram once, with the times of its own clock.

It serves the socket of the probe's session in the endpoint's own process, at a bounded rate.
"""

import asyncio
import socket
import time
from typing import Final

from ...workloads.datagram_handshake import accept_datagrams, answer_control_datagram
from ...workloads.probes.probe_echo import ProbeEcho
from ...workloads.session_handshake import SessionSpec
from ...workloads.udp.receive_stamps import ReceiveStamps, request_stamps

ECHOES_S: Final = 150  # the near end sends a hundred
_TURN_DATAGRAMS: Final = 32
_PAUSE_S: Final = 0.005  # after a full turn: meanwhile the kernel drops a flood's datagrams
_RECEIVE_BYTES: Final = 256
_ANCILLARY_BYTES: Final = 128


class EchoResponder:
    """Echoes on a session's socket until `close`.

    Args:
        sock: The session's connected socket, which the responder closes.
        spec: The session.
        echoes_s: The maximum of echoes a second.
    """

    def __init__(self, sock: socket.socket, spec: SessionSpec, echoes_s: int = ECHOES_S) -> None:
        self._sock = sock
        self._spec = spec
        self._echo = ProbeEcho(sock, bytes.fromhex(spec.secret_hex), echoes_s, ReceiveStamps())
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        request_stamps(sock)
        sock.setblocking(False)
        self._loop.add_reader(sock, self._read)
        accept_datagrams(sock, spec)

    def close(self) -> None:
        """Close the socket."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock)
            self._sock.close()

    def _read(self) -> None:
        """Take in the datagrams that have arrived; after a full turn, leave others their time."""
        for _ in range(_TURN_DATAGRAMS):
            try:
                data, ancillary, _flags, _address = self._sock.recvmsg(_RECEIVE_BYTES, _ANCILLARY_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # an answer was refused: the near end has gone, which the control connection tells
                continue
            self._handle(data, ancillary)
        self._loop.remove_reader(self._sock)
        self._timer = self._loop.call_later(_PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._timer = None
        self._loop.add_reader(self._sock, self._read)

    def _handle(self, data: bytes, ancillary: list[tuple[int, int, bytes]]) -> None:
        now_ns = time.monotonic_ns()
        if self._echo.allows(now_ns) and not self._echo.answer(data, ancillary, now_ns):
            answer_control_datagram(self._sock, data, self._spec)
