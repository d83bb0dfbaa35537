"""A relay between an iperf3 client and its server, which stops the control connection at a chosen item.

It passes TCP and UDP on, follows the conversation on the control connection, and withholds one item of it, such as
the server's TEST_START, with all that follows in that direction. Whatever happens to a process is thus done in a
known state. The end of a connection is passed on even then, as a kernel does it for a process that was killed.
"""

import contextlib
import ctypes
import os
import socket
import struct
import threading
from collections.abc import Callable, Generator
from typing import Final

from linkgauge.engine.iperf3.protocol.cookie_and_streams import COOKIE_BYTES
from linkgauge.engine.iperf3.protocol.states import State

DEADLINE_S: Final = 20.0
_READ_BYTES: Final = 65_536
_CLONE_NEWNET: Final = 0x4000_0000
_LENGTH: Final = struct.Struct(">I")
_ERROR_WORDS_BYTES: Final = 8
_STATE: Final = ("state", 1)
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset

SERVER_ITEMS: Final = (
    *("PARAM_EXCHANGE", "CREATE_STREAMS", "TEST_START", "TEST_RUNNING"),
    *("EXCHANGE_RESULTS", "results", "DISPLAY_RESULTS"),
)
CLIENT_ITEMS: Final = ("cookie", "parameters", "TEST_END", "results", "IPERF_DONE")


class Conversation:
    """What one end says on the control connection, as (name, offset) of each item in the whole of its bytes."""

    def __init__(self, *, is_client: bool) -> None:
        """Begin with the connection."""
        self._data = b""
        self._offset = 0
        self._items = _client_items() if is_client else _server_items()
        self._wanted = next(self._items)

    def feed(self, data: bytes) -> list[tuple[str, int]]:
        """Take in bytes; return the items that begin in them. A state is known by its byte."""
        self._data += data
        found: list[tuple[str, int]] = []
        while len(self._data) >= self._wanted[1]:
            name, size = self._wanted
            part, self._data = self._data[:size], self._data[size:]
            self._wanted = self._items.send(part)
            if name:
                found.append((State.from_byte(part[0]).name if name == "state" else name, self._offset))
            self._offset += size
        return found


def _client_items() -> Generator[tuple[str, int], bytes, None]:
    yield "cookie", COOKIE_BYTES
    yield "", _LENGTH.unpack((yield "parameters", _LENGTH.size))[0]
    while True:
        if State.from_byte((yield _STATE)[0]) is State.TEST_END:
            yield "", _LENGTH.unpack((yield "results", _LENGTH.size))[0]


def _server_items() -> Generator[tuple[str, int], bytes, None]:
    while True:
        state = State.from_byte((yield _STATE)[0])
        if state is State.EXCHANGE_RESULTS:
            yield "", _LENGTH.unpack((yield "results", _LENGTH.size))[0]
        elif state is State.SERVER_ERROR:
            yield "", _ERROR_WORDS_BYTES


class Relay:
    """Listens on a port of its own and passes everything on to a server. `reached` is set at the item."""

    def __init__(
        self, host: str, port: int, *, stop_at: tuple[str, str] | None = None, within_pid: int | str | None = None
    ) -> None:
        """Listen; `stop_at` is `client` or `server` and an item; `within_pid` has the namespace to be in."""
        self.reached = threading.Event()
        self.items: list[tuple[str, str]] = []
        self._target = (host, port)
        self._stop_at = stop_at
        self._cookie: bytes | None = None
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._within_pid = within_pid
        self._listener = self._datagrams = socket.socket()
        opening = threading.Thread(target=self._open, daemon=True)  # all of its threads are in its namespace
        opening.start()
        opening.join(DEADLINE_S)
        self.port = int(self._listener.getsockname()[1])
        assert self.port, "the relay did not open"

    def close(self) -> None:
        """Close every connection and end the threads."""
        with self._lock:
            self._is_closed = True
            sockets = list(self._sockets)
        for sock in sockets:
            _close(sock)
        for thread in self._threads:
            thread.join(DEADLINE_S)

    def _open(self) -> None:
        if self._within_pid is not None:
            _enter(self._within_pid)
        host = "" if self._within_pid is not None else "127.0.0.1"
        self._listener.close()
        self._listener = self._keep(socket.create_server((host, 0)))
        self._datagrams = self._keep(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._datagrams.bind((host, self._listener.getsockname()[1]))
        self._start(self._accept)
        self._start(self._relay_datagrams)

    def _keep(self, sock: socket.socket) -> socket.socket:
        with self._lock:
            self._sockets.append(sock)
            if self._is_closed:
                _close(sock)
        return sock

    def _start(self, function: Callable[..., None], *arguments: object) -> None:
        def run() -> None:
            with contextlib.suppress(OSError):  # a socket was closed
                function(*arguments)

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            client = self._keep(self._listener.accept()[0])
            server = self._keep(socket.socket())
            try:
                server.connect(self._target)
            except OSError:
                _close(client)
                continue
            cookie = client.recv(COOKIE_BYTES, socket.MSG_PEEK | socket.MSG_WAITALL)
            is_control = self._cookie is None
            self._cookie = cookie if is_control else self._cookie
            for source, sink, side in ((client, server, "client"), (server, client, "server")):
                self._start(self._pass_on, source, sink, side if is_control else None)

    def _pass_on(self, source: socket.socket, sink: socket.socket, side: str | None) -> None:
        """Pass one direction on until its end, and that end as well."""
        items = None if side is None else Conversation(is_client=side == "client")
        passed, stopped = 0, False
        try:
            while data := source.recv(_READ_BYTES):
                if items is not None and side is not None:
                    for name, offset in items.feed(data):
                        self.items.append((side, name))
                        if not stopped and (side, name) == self._stop_at:
                            sink.sendall(data[: offset - passed])
                            stopped = True
                            self.reached.set()
                    passed += len(data)
                if not stopped:
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            sink.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            _close(sink)
            _close(source)

    def _relay_datagrams(self) -> None:
        servers: dict[object, socket.socket] = {}
        while True:
            data, source = self._datagrams.recvfrom(_READ_BYTES)
            if source not in servers:
                servers[source] = self._keep(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                servers[source].connect(self._target)
                self._start(self._answer_datagrams, servers[source], source)
            with contextlib.suppress(ConnectionRefusedError):
                servers[source].send(data)

    def _answer_datagrams(self, server: socket.socket, source: object) -> None:
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                self._datagrams.sendto(server.recv(_READ_BYTES), source)  # type: ignore[arg-type]


def _close(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits
    sock.close()


def _enter(pid: int | str) -> None:
    """Have this thread, and those that it starts, use the network of a process."""
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(namespace, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(namespace)
