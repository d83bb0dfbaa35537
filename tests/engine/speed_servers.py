"""Servers of LibreSpeed and NDT7 for tests: small ones that follow the documents, and hostile ones.

They are threads over blocking sockets, so that commands in processes of their own can use them, too. A real server
is used as well if its program is on the PATH: tests/end_to_end/test_speed_servers.py.
"""

import base64
import contextlib
import hashlib
import json
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

from linkgauge.engine.host.tcp_info import read_tcp_info
from linkgauge.engine.model.counters.session_counters import TCP_COUNTER_NAMES

RATE_BIT_S: Final = 200_000_000
CHUNK_BYTES: Final = 64 * 1024
NDT7: Final = "net.measurementlab.ndt.v7"
_DEADLINE_S: Final = 20.0
_REPORT_S: Final = 0.1
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Answer = Callable[["Connection"], None]
"""What a hostile server does with a connection whose request it has read."""


class Connection:
    """One connection of a server, and the request that it has read last."""

    def __init__(self, sock: socket.socket, server: "SpeedStandIn") -> None:
        self.sock, self.server = sock, server
        self.method = self.target = ""
        self.headers: dict[str, str] = {}
        self._buffer = b""
        self.number = 0

    def read_request(self) -> bool:
        """Read the head of the next request; return whether there is one."""
        while b"\r\n\r\n" not in self._buffer:
            data = self.sock.recv(65_536)
            if not data:
                return False
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("ascii").split("\r\n")
        self.method, self.target, version = first.split(" ")
        assert version == "HTTP/1.1"
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        assert self.headers["host"]
        return True

    def read_exactly(self, count: int) -> bytes:
        """Return bytes that follow; raise ConnectionError at the end."""
        while len(self._buffer) < count:
            data = self.sock.recv(min(1 << 18, count - len(self._buffer)))
            if not data:
                raise ConnectionError
            self._buffer += data
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data

    def drop(self, count: int) -> None:
        """Read a body, at the server's rate."""
        wait = self.pace()
        while count:
            data = self.read_exactly(min(count, CHUNK_BYTES))
            count -= len(data)
            wait(len(data))

    def answer(self, status: str, *headers: str, body: bytes = b"") -> None:
        """Answer with a body of known size."""
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        self.sock.sendall("\r\n".join(lines).encode() + body)

    def upgrade(self, *more: str) -> None:
        """Answer the request for a WebSocket."""
        assert self.headers["sec-websocket-protocol"] == NDT7
        key = self.headers["sec-websocket-key"].encode()
        accept = base64.b64encode(hashlib.sha1(key + _GUID).digest()).decode()  # noqa: S324 - RFC 6455
        lines = (
            *("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"),
            *(f"Sec-WebSocket-Accept: {accept}", f"Sec-WebSocket-Protocol: {NDT7}", *more, "", ""),
        )
        self.sock.sendall("\r\n".join(lines).encode())

    def send_frame(self, opcode: int, data: bytes) -> None:
        """Send a whole message."""
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 0x80 | opcode, size)
        elif size < 1 << 16:
            head = struct.pack(">BBH", 0x80 | opcode, 126, size)
        else:
            head = struct.pack(">BBQ", 0x80 | opcode, 127, size)
        self.sock.sendall(head + data)

    def report(self, **more: Any) -> None:
        """Send what this kernel knows of the connection, with the names of ndt-server."""
        info = read_tcp_info(self.server.plain_of(self.sock))
        assert info is not None
        counters = dict(zip(TCP_COUNTER_NAMES, info.counters, strict=True))
        tcp = {
            "BytesAcked": info.bytes_acked, "BytesReceived": info.bytes_received, "RTT": counters["rtt_us"],
            "MinRTT": counters["min_rtt_us"], "TotalRetrans": counters["retransmits"], "SndMSS": info.mss_bytes,
            "BusyTime": counters["busy_us"], "SndCwnd": 10,
        }  # fmt: skip
        self.send_frame(1, json.dumps({"Origin": "server", "TCPInfo": {**tcp, **more}}).encode())

    def pace(self) -> Callable[[int], None]:
        """Return a function that waits for as long as so many more bytes take at the server's rate.

        A server that had no core does not make up for that time: it never has a higher rate.
        """
        due_s = time.monotonic()

        def wait(count: int) -> None:
            nonlocal due_s
            now_s = time.monotonic()
            due_s = max(due_s, now_s) + count * 8 / RATE_BIT_S
            time.sleep(due_s - now_s)

        return wait


def linger(sock: socket.socket) -> None:
    """Close one way, and read what is on its way: otherwise a reset would overtake the answer."""
    sock.shutdown(socket.SHUT_WR)
    sock.settimeout(0.5)
    with contextlib.suppress(OSError):
        while sock.recv(1 << 18):
            pass


class SpeedStandIn:
    """A server on loopback; `answer` replaces what it does with a request. `requests` are those that came."""

    def __init__(
        self, answer: Answer | None = None, *, context: ssl.SSLContext | None = None, seconds: float = 10.0,
        requests_each: int = 1_000,
    ) -> None:  # fmt: skip
        self._answer = answer or self.serve
        self._context, self.seconds, self._requests_each = context, seconds, requests_each
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[str] = []
        self._sockets: set[socket.socket] = set()
        self._plain: dict[int, socket.socket] = {}
        self.failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def plain_of(self, sock: socket.socket) -> socket.socket:
        """Return a socket for TCP_INFO."""
        return self._plain.get(id(sock), sock)

    def close(self) -> None:
        """End all threads; raise what went wrong in one."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in list(self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_DEADLINE_S)
        assert not self.failures, self.failures

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                sock.settimeout(_DEADLINE_S)
                self._sockets.add(sock)
                thread = threading.Thread(target=self._serve_connection, args=(sock,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve_connection(self, sock: socket.socket) -> None:
        served = sock
        try:
            if self._context is not None:
                served = self._context.wrap_socket(sock.dup(), server_side=True)
                self._plain[id(served)] = sock
            connection = Connection(served, self)
            while connection.read_request():
                connection.number += 1
                self.requests.append(f"{connection.method} {connection.target}")
                self._answer(connection)
                if connection.number == self._requests_each:
                    linger(served)
                    return
        except (OSError, ConnectionError):  # the client is gone
            pass
        except BaseException as error:  # noqa: BLE001 - told by close
            self.failures.append(error)
        finally:
            self._sockets.discard(sock)
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            served.close()
            sock.close()

    def serve(self, connection: Connection) -> None:
        """Do what the documents say."""
        path, _, query = connection.target.partition("?")
        if path.startswith("/ndt/v7/"):
            self.serve_ndt7(connection, path.removeprefix("/ndt/v7/"))
        elif path == "/speed/backend/empty":
            connection.drop(int(connection.headers.get("content-length", "0")))
            is_last = connection.number == self._requests_each
            connection.answer("200 OK", "Connection: close" if is_last else "Connection: keep-alive")
        elif path == "/speed/backend/garbage":
            found = re.search(r"ckSize=(\d+)", query)
            assert found is not None
            self.send_garbage(connection, int(found[1]))
        else:
            connection.answer("404 Not Found", body=b"no such page")

    def send_garbage(self, connection: Connection, mebibytes: int) -> None:
        """Send a download, in chunks."""
        kind = "Content-Type: application/octet-stream"
        connection.sock.sendall(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{kind}\r\n\r\n".encode())
        chunk, wait = bytes(CHUNK_BYTES), connection.pace()
        for _ in range(mebibytes * (1 << 20) // CHUNK_BYTES):
            connection.sock.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            wait(len(chunk))
        connection.sock.sendall(b"0\r\n\r\n")

    def serve_ndt7(self, connection: Connection, subtest: str) -> None:
        """Carry out a subtest, and close the WebSocket after its time."""
        connection.upgrade()
        end_s, wait, report_s = time.monotonic() + self.seconds, connection.pace(), 0.0
        while (now_s := time.monotonic()) < end_s:
            if now_s >= report_s:
                connection.report()
                report_s = now_s + _REPORT_S
            if subtest == "download":
                connection.send_frame(2, bytes(CHUNK_BYTES))
                wait(CHUNK_BYTES)
            else:
                wait(self.read_frame(connection))
        connection.send_frame(8, struct.pack(">H", 1_000))
        time.sleep(0.2)

    def read_frame(self, connection: Connection) -> int:
        """Read a client's frame, which has a mask; return the size of its payload."""
        first, second = connection.read_exactly(2)
        assert first in {0x82, 0x88}, first
        assert second & 0x80, "a client's frame without a mask"
        size = second & 0x7F
        if size > 125:
            wide = connection.read_exactly(2 if size == 126 else 8)
            size = int.from_bytes(wide)
        assert size <= 1 << 17, "a longer message than a server has to take"
        connection.read_exactly(4)
        connection.drop(size)
        return size


@contextmanager
def served(answer: Answer | None = None, **options: Any) -> Generator[SpeedStandIn]:
    """Run a server while the block lasts."""
    server = SpeedStandIn(answer, **options)
    try:
        yield server
    finally:
        server.close()
