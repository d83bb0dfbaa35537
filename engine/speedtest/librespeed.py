"""The conversation with a LibreSpeed server: `garbage.php` for downloads, `empty.php` for uploads and pings.

Its answers are requested ahead, one after the other on each connection (RFC 9112, 9.3.2), so that no round trip
separates them. An upload is a sequence of requests of the same size, whose answers are read meanwhile.
"""

import asyncio
import secrets
import socket
import time
from collections.abc import Callable
from typing import Final

from ..model.directions import Direction
from ..model.errors import ConnectionSpent, PeerNotLinkgauge, RemoteProtocolError, ServerEnded
from ..model.plan import MIB
from ..model.speed_server import SpeedServer
from .http_connection import Answer, HttpConnection
from .speed_client import Connector, SpeedClient

ANSWER_MIB: Final = 1_024  # the most that servers send at once
UPLOAD_BYTES: Final = 8 * MIB  # PHP takes no more in a request unless it is told to; some servers want whole KiB
_FIRST_UPLOAD: Final = bytes(1_024)
_LOOK_S: Final = 0.1
_OK: Final = 200
_FIRST_ERROR: Final = 400
_PLACES: Final = (("", ".php"), ("backend/", ".php"), ("", ""), ("backend/", ""))
"""The folder and the ending of the files: those of the PHP server first; others have them without an ending."""
_OCTETS: Final = ("Content-Type", "application/octet-stream")


class LibreSpeedClient(SpeedClient):
    """The conversation with a LibreSpeed server."""

    ends_tests = False

    def __init__(self, connector: Connector, server: SpeedServer) -> None:
        super().__init__(connector, server)
        self._place = _PLACES[0]
        self._pings: HttpConnection | None = None

    @property
    def ping_socket(self) -> socket.socket | None:
        """The socket of the pings."""
        return None if self._pings is None else self._pings.wire.sock

    async def greet(self, sock: socket.socket) -> None:
        """Find the server's files: an `empty.php` that answers without a body."""
        self._pings = await self._connector.wrap(sock)
        last: Answer | None = None
        with self.explained("before it answered"):
            for self._place in _PLACES:
                last = await self._pings.request("GET", self._target("empty"))
                self.refuse_redirect(last)
                if last.status == _OK and not last.body:
                    self._check_kept(last)
                    return
                if not last.keeps_connection:
                    self._pings.close()
                    self._pings = await self._connector.open()
        status = "" if last is None else f" (it answers {last.status})"
        raise PeerNotLinkgauge(
            f"{self._peer} is not a LibreSpeed server: it has no {self._server.path}empty.php{status}; "
            f"check the port, and give the folder of the page as {self._server.scheme}HOST/PATH"
        )

    async def open_session(self, flow: Direction, number: int | None) -> HttpConnection:
        """Return a connection on which the payload begins to arrive, or one that takes it."""
        connection = await self._connector.open(number)
        try:
            with self.explained("as the test began"):
                if flow is Direction.IN:
                    answer = await connection.begin("GET", self._download_target())
                else:
                    head = self.upload_head(len(_FIRST_UPLOAD))
                    await connection.send(head + _FIRST_UPLOAD)
                    answer = await connection.read_answer("POST")
                self.refuse_redirect(answer)
                self._check(answer, "a download" if flow is Direction.IN else "an upload")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, answer: Answer, what: str) -> None:
        is_page = answer.header("content-type").lower().startswith("text/html")
        if answer.status != _OK or (is_page and what == "a download"):
            raise RemoteProtocolError(
                f"it answers {what} with {'a page' if is_page else f'status {answer.status}'}"
            )
        self._check_kept(answer)

    def _check_kept(self, answer: Answer) -> None:
        if not answer.keeps_connection:
            raise ServerEnded("closes the connection after each answer: allow it to keep connections (keep-alive)")

    async def follow(self, connection: HttpConnection, flow: Direction, carried: Callable[[], int], /) -> None:
        """Ask for the next answer while one is arriving, or read the answers to the parts of an upload."""
        if flow is Direction.OUT:
            while True:
                answer = await connection.read_answer("POST", deadline_s=None)
                if answer.status >= _FIRST_ERROR:
                    raise ServerEnded(f"refuses the upload with status {answer.status}")
                if not answer.keeps_connection:
                    raise ConnectionSpent("it closes the connection")
        asked = 1
        while True:
            if carried() >= (asked - 1) * ANSWER_MIB * MIB:
                asked += connection.wire.send_now(self._connector.request_head("GET", self._download_target()))
            await asyncio.sleep(_LOOK_S)

    def upload_head(self, body_bytes: int) -> bytes:
        """Return the head of a part of an upload."""
        headers = (_OCTETS, ("Content-Length", str(body_bytes)))
        return self._connector.request_head("POST", self._target("empty"), headers)

    def message(self) -> tuple[bytes, int]:
        """Return the head of each part of an upload, and the size of its body."""
        return self.upload_head(UPLOAD_BYTES), UPLOAD_BYTES

    async def ping(self) -> int:
        """Return the time of the empty answer, without that of the connection if it has to be opened again."""
        if self._pings is None:
            self._pings = await self._connector.open()
        asked_ns = time.monotonic_ns()
        answer = await self._pings.request("GET", self._target("empty"))
        took_ns = time.monotonic_ns() - asked_ns
        if not answer.keeps_connection:  # servers allow a number of requests on each
            self._pings.close()
            self._pings = None
        return took_ns

    def close(self) -> None:
        """Close the connection of the pings."""
        if self._pings is not None:
            self._pings.close()

    def _download_target(self) -> str:
        return f"{self._target('garbage')}&ckSize={ANSWER_MIB}"

    def _target(self, name: str) -> str:
        """Return the path of a file, with a number that keeps caches out of the way."""
        folder, ending = self._place
        return f"{self._server.path}{folder}{name}{ending}?r={secrets.token_hex(4)}"
