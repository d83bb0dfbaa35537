"""The base of both ends of a UDP session: its keys, its settings, its counters in shared memory."""

import errno
import socket
from typing import Final

from ...metering.shared_counters import UNKNOWN, CounterField, datagram_offset
from ...model.counters.session_counters import DATAGRAM_COUNTERS
from ...model.plan import Settings
from ...protocol.payload_datagrams import DatagramKeys
from ..session import Session, SessionContext, WorkerResources
from ..sockets import NOT_SENT
from .error_queue import read_error_queue
from .socket_options import explain_size, largest_datagram

RECEIVE_BYTES: Final = 65_536  # the largest group that the kernel hands over (UDP_GRO, udp(7))
OF_EARLIER_DATAGRAMS: Final = NOT_SENT | {errno.EMSGSIZE}  # a socket's reports of them do not end the session


class DatagramSession(Session):
    """One end of a UDP session. Subclasses are a thread that moves payload, and callbacks for everything else."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context)
        self._keys = DatagramKeys(context.secret)
        self._answer_control = context.answer_control
        self._settings = context.settings
        self._requested_mode = resources.mode
        self._is_stopping = False
        first = datagram_offset(context.slot)
        self._datagram_words = {counter.name: first + n for n, counter in enumerate(DATAGRAM_COUNTERS)}
        # A reopened session continues the counts of its last socket.
        self._earlier: dict[str, int] = {}
        for counter in DATAGRAM_COUNTERS:
            word = self._datagram_words[counter.name]
            if counter.end != self._role or counter.kind != "cumulative":
                self._words[word] = UNKNOWN
            else:
                self._earlier[counter.name] = 0 if self._words[word] == UNKNOWN else self._words[word]
        self._earlier_bytes = self._earlier_counts[CounterField.BYTES]
        self._store_tcp(None)

    def change_settings(self, settings: Settings) -> None:
        """Take over the rate and the datagram size of new settings."""
        self._settings = settings

    def stop_sending(self) -> None:
        """Send no further payload, and stay open for data on their way. A receiver goes on receiving."""

    def close(self) -> None:
        """Store the last counters, end the thread, and close the socket."""
        self._is_stopping = True
        super().close()

    def _rest(self) -> None:
        """Do nothing: the thread has ended, and so does the session."""

    @property
    def _rate_bit_s(self) -> int | None:
        """The session's share of its direction's rate."""
        rate = self._settings.rate_bit_s
        return None if rate is None else max(1, rate // self._settings.sessions)

    def _put(self, name: str, value: int | None) -> None:
        """Store a counter: a cumulative one as its count since this socket was opened."""
        word = self._datagram_words[name]
        self._words[word] = UNKNOWN if value is None else value + self._earlier.get(name, 0)

    def _drain_errors(self) -> OSError | None:
        """Read the kernel's reports of sent packets; return the pending error, if any.

        An unread report keeps waking the event loop (IP_RECVERR, ip(7)).
        """
        _reports, error = read_error_queue(self._sock)
        if error is not None:
            return error
        number = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(number, "") if number else None

    def _explain_size(self, datagram_bytes: int) -> str:
        """Return the error's text for a datagram that the path does not carry whole."""
        most = max(0, largest_datagram(self._sock))
        return f"{explain_size(self._sock, datagram_bytes)}; give --datagram auto, or at most {most} bytes"
