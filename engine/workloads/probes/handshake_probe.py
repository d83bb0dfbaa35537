"""The probe that opens connections: ten a second, each timed from connect(2) to the first answer on it.

A connection is begun every 100 ms, whether or not earlier ones have been answered: otherwise a slow time would be
measured less often than a fast one. One thread waits for all of them, without an event loop between the kernel and
the clock. The far end answers from its endpoint's process with one byte.
"""

import contextlib
import logging
import select
import socket
import threading
from dataclasses import dataclass, replace
from time import perf_counter_ns
from typing import Final

from ...metering.shared_counters import (
    ProbeCount,
    ProbeHistogram,
    SharedCounters,
    probe_count_word,
    probe_histogram_offset,
)
from ...model.counters.latency_histogram import bucket_of
from ...model.plan import SECOND_NS, SocketOptions
from ...protocol.preamble import DATA_ACCEPTED, DATA_KIND, encode_preamble
from ..session_handshake import ConnectTarget, SessionSpec, hello_of
from ..socket_io import begin_thread
from ..sockets import bind_source, prepare

HANDSHAKE_PACE_NS: Final = SECOND_NS // 10
HANDSHAKE_DEADLINE_NS: Final = 3 * SECOND_NS  # TCP repeats a lost SYN after 1 s, and once more after 3
_MAX_OPEN: Final = 32
_LAST_ANSWERS_NS: Final = SECOND_NS // 2
_MILLISECOND_NS: Final = 1_000_000
_JOIN_S: Final = 2.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Connection:
    """A connection that is being opened, or waits for its answer since `asked_ns`."""

    sock: socket.socket
    serial: int
    began_ns: int
    asked_ns: int | None = None


class HandshakeProbe:
    """Opens connections and counts their times, from `start` to `stop`.

    Args:
        spec: the probe's session, whose secret makes a token for each connection.
        target: the far end's address, and the run to name there.
        options: the source address, the device and the options of each connection.
        counters: the counters to count in.
    """

    def __init__(
        self, spec: SessionSpec, target: ConnectTarget, options: SocketOptions, counters: SharedCounters
    ) -> None:
        self._hello = hello_of(spec, target)
        self._target = target
        self._options = options
        self._words = counters.words
        self._connect_at = probe_histogram_offset(ProbeHistogram.CONNECT)
        self._answer_at = probe_histogram_offset(ProbeHistogram.ANSWER)
        self._failed_at = probe_count_word(ProbeCount.HANDSHAKES_FAILED)
        self._tickets = spec.make_tickets()
        self._poll = select.poll()
        self._open: dict[int, _Connection] = {}
        self._serial = 0
        self._stopped_ns: int | None = None
        self._patience_ns = _LAST_ANSWERS_NS
        self._thread = threading.Thread(target=self._run, name="handshake probe", daemon=True)

    def start(self) -> None:
        """Open the first connection; raise OSError if the system gives no further thread."""
        begin_thread(self._thread)

    def stop(self) -> None:
        """Begin no further connection, and wait for the open ones for half a second at the most."""
        self._stopped_ns = perf_counter_ns()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)

    def abandon(self) -> None:
        """Have `stop` not wait for answers."""
        self._patience_ns = 0

    def _run(self) -> None:
        due_ns = perf_counter_ns()
        while not self._is_over():
            now_ns = perf_counter_ns()
            if self._stopped_ns is None and now_ns >= due_ns:
                due_ns = max(due_ns + HANDSHAKE_PACE_NS, now_ns)
                if len(self._open) < _MAX_OPEN:
                    self._begin()
            wait_ns = max(0, due_ns - perf_counter_ns()) if self._stopped_ns is None else _MILLISECOND_NS
            for fd, _events in self._poll.poll(wait_ns / _MILLISECOND_NS):
                self._advance(self._open[fd])
            self._give_up()
        for connection in list(self._open.values()):
            self._close(connection)

    def _is_over(self) -> bool:
        stopped_ns = self._stopped_ns
        return stopped_ns is not None and (not self._open or perf_counter_ns() >= stopped_ns + self._patience_ns)

    def _begin(self) -> None:
        self._serial += 1
        try:
            sock = socket.socket(self._target.family, socket.SOCK_STREAM)
        except OSError as error:
            self._fail(error)
            return
        connection = _Connection(sock, self._serial, 0)
        self._open[sock.fileno()] = connection
        try:
            prepare(sock, None, self._options)
            bind_source(sock, self._options)
            connection.began_ns = perf_counter_ns()
            sock.connect(self._target.address)
        except BlockingIOError:
            self._poll.register(sock, select.POLLOUT)
        except OSError as error:
            self._close(connection)
            self._fail(error)
        else:
            self._ask(connection, perf_counter_ns())

    def _advance(self, connection: _Connection) -> None:
        """Take in that a connection is open, or answered, or lost."""
        now_ns = perf_counter_ns()
        if connection.asked_ns is None:
            number = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                self._close(connection)
                self._fail(OSError(number, "no connection"))
            else:
                self._ask(connection, now_ns)
            return
        try:
            answer = connection.sock.recv(len(DATA_ACCEPTED))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._close(connection)
            self._fail(error)
            return
        self._close(connection)
        if answer == DATA_ACCEPTED:
            self._words[self._answer_at + bucket_of(now_ns - connection.asked_ns)] += 1
        else:
            self._fail(OSError("closed without an answer"))

    def _ask(self, connection: _Connection, connected_ns: int) -> None:
        """Count a connection that is open, and ask on it."""
        self._words[self._connect_at + bucket_of(connected_ns - connection.began_ns)] += 1
        serial = connection.serial
        hello = replace(self._hello, token=self._tickets.token(serial), generation=serial)
        data = encode_preamble(DATA_KIND) + hello.pack()
        connection.asked_ns = perf_counter_ns()
        try:
            connection.sock.send(data)  # a new connection's buffer has room for it
        except OSError as error:
            self._close(connection)
            self._fail(error)
        else:
            self._poll.register(connection.sock, select.POLLIN)

    def _give_up(self) -> None:
        """End the connections whose deadline has passed."""
        before_ns = perf_counter_ns() - HANDSHAKE_DEADLINE_NS
        for connection in [each for each in self._open.values() if each.began_ns < before_ns]:
            self._close(connection)
            self._fail(TimeoutError("no answer in time"))

    def _fail(self, error: OSError) -> None:
        _log.debug("handshake probe %d failed: %r", self._serial, error)
        self._words[self._failed_at] += 1

    def _close(self, connection: _Connection) -> None:
        fd = connection.sock.fileno()
        self._open.pop(fd, None)
        with contextlib.suppress(KeyError):  # it failed before it waited for anything
            self._poll.unregister(fd)
        connection.sock.close()
