"""The conversation with an NDT7 server (m-lab/ndt-server, spec/ndt7-protocol.md): one WebSocket for one direction.

Between binary messages of payload the server sends reports of its kernel's TCP_INFO.
"""

import base64
import hashlib
import secrets
import socket
from collections.abc import Callable
from typing import Final

from ... import __version__
from ..model.counters.samples import Sample
from ..model.directions import Direction, End
from ..model.errors import ConnectionClosed, RemoteProtocolError, ServerEnded
from ..model.speed_server import SpeedServer
from ..protocol.foreign.websocket_frames import FrameWalker, Message, Opcode, binary_head, close_frame
from .http_connection import Answer, HttpConnection
from .server_reports import ServerReports
from .speed_client import Connector, SpeedClient

MESSAGE_BYTES: Final = 64 * 1024  # servers take 128 KiB at least
_SUBPROTOCOL: Final = "net.measurementlab.ndt.v7"
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_SWITCHING: Final = 101
_NORMAL: Final = {None, 1000, 1001, 1005}
ENDED: Final = "has ended the test"


class Ndt7Client(SpeedClient):
    """The conversation with an NDT7 server."""

    ends_tests = True

    def __init__(self, connector: Connector, server: SpeedServer) -> None:
        super().__init__(connector, server)
        self._walker = FrameWalker()
        self._reports = ServerReports()

    async def greet(self, sock: socket.socket) -> None:
        """Leave the questions to the one connection of the test."""
        sock.close()

    async def open_session(self, flow: Direction, number: int | None) -> HttpConnection:
        """Return a WebSocket after its upgrade."""
        connection = await self._connector.open(number)
        key = base64.b64encode(secrets.token_bytes(16)).decode("ascii")
        headers = (
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Key", key),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Protocol", _SUBPROTOCOL),
        )
        target = f"/ndt/v7/{'download' if flow is Direction.IN else 'upload'}"
        try:
            with self.explained("instead of an upgrade to a WebSocket"):
                query = f"client_name=linkgauge&client_version={__version__}"
                answer = await connection.begin("GET", f"{target}?{query}", headers)
                self.refuse_redirect(answer)
                _check_upgrade(answer, key)
        except BaseException:
            connection.close()
            raise
        return connection

    async def follow(self, connection: HttpConnection, flow: Direction, _carried: Callable[[], int], /) -> None:
        """Read the server's reports during an upload; a download has them between its payload."""
        while flow is Direction.OUT:
            data = await connection.wire.peek()
            if not data:
                raise ConnectionClosed("it closed the connection")
            await connection.wire.take(len(data))
            self.take_payload(data)

    def take_payload(self, data: bytes) -> None:
        """Walk through what the server has sent."""
        for message in self._walker.walk(data):
            self.take_message(message)

    def take_message(self, message: Message) -> None:
        """Take a report, or the end of the test."""
        if message.opcode is Opcode.CLOSE:
            if message.close_code in _NORMAL:
                raise ServerEnded(ENDED)
            raise RemoteProtocolError(f"it closed the WebSocket with code {message.close_code}")
        if message.opcode is Opcode.TEXT:
            self._reports.take(message.data)

    def far_sample(self, sample: Sample) -> Sample | None:
        """Return the server's report of its kernel as the sample of the sender, if it is the sender."""
        if not any(part.direction is Direction.IN for part in sample.sessions):
            return None
        part = self._reports.sender_sample(Direction.IN, 1)
        return (
            None if part is None else Sample(End.FAR, sample.index, sample.elapsed_ns, sample.interval_ns, (part,))
        )

    def find_discrepancies(self, acknowledged_bytes: int) -> list[str]:
        """Return a warning if the server claims to have received far more than its kernel acknowledged."""
        return self._reports.find_discrepancies(acknowledged_bytes)

    def message(self) -> tuple[bytes, int]:
        """Return the head of each message of an upload, and the size of its payload."""
        return binary_head(MESSAGE_BYTES, is_client=True), MESSAGE_BYTES

    def say_goodbye(self, connection: HttpConnection) -> None:
        """Close the WebSocket."""
        connection.wire.send_now(close_frame())

    def close(self) -> None:
        """Have nothing to close: the session is the only connection."""


def _check_upgrade(answer: Answer, key: str) -> None:
    if answer.status != _SWITCHING:
        raise RemoteProtocolError(f"it answers the request for a WebSocket with status {answer.status}")
    accept = base64.b64encode(hashlib.sha1(key.encode("ascii") + _GUID, usedforsecurity=False).digest())
    if answer.header("sec-websocket-accept") != accept.decode("ascii"):
        raise RemoteProtocolError("its upgrade to a WebSocket does not answer this request")
    if answer.header("sec-websocket-protocol") != _SUBPROTOCOL:
        raise RemoteProtocolError(f"its WebSocket does not speak {_SUBPROTOCOL}")
    if answer.header("sec-websocket-extensions"):
        raise RemoteProtocolError("its WebSocket has extensions that were not asked for")
