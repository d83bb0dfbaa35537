"""Every decoder of what a LibreSpeed or NDT7 server sends, with valid inputs."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import json
import os
import socket
from typing import Final

from decoders import BrokenPromise, Decoder, own_loop
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import make_printable
from linkgauge.engine.protocol.foreign.websocket_frames import MAX_TEXT_BYTES, FrameWalker, binary_head
from linkgauge.engine.speedtest.http_connection import MAX_BODY_BYTES, HttpConnection
from linkgauge.engine.speedtest.http_wire import PlainWire
from linkgauge.engine.speedtest.server_reports import ServerReports

_REPORT: Final = json.dumps(
    {"Origin": "server", "TCPInfo": {"BytesAcked": 10**9, "RTT": 20_000, "SndMSS": 1_448, "SndCwnd": 10}}
).encode()
_FRAMES: Final = (
    binary_head(200) + bytes(200) + b"\x81" + bytes([len(_REPORT)]) + _REPORT + b"\x89\x00\x88\x02\x03\xe8"
)
_ANSWERS: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n",
)


def _frames(data: bytes) -> str:
    whole, pieces = FrameWalker(), FrameWalker()
    found = whole.walk(data)
    if found != [message for at in range(len(data)) for message in pieces.walk(data[at : at + 1])]:
        raise BrokenPromise("the frames depend on how they come")
    if any(len(message.data) > MAX_TEXT_BYTES for message in found):
        raise BrokenPromise("a message is longer than the limit")
    return f"{len(found)} messages"


def _reports(data: bytes) -> str:
    reports = ServerReports()
    reports.take(data)
    sample = reports.sender_sample(Direction.IN, 1)
    return "no report" if sample is None else "a report"


def _answer(data: bytes) -> str:
    return own_loop(os.getpid()).run_until_complete(_read_answer(data))


async def _read_answer(data: bytes) -> str:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.sendall(data[:65_536])
        far.shutdown(socket.SHUT_WR)
        answer = await HttpConnection(PlainWire(near), "h").read_answer("GET", deadline_s=1.0)
        if len(answer.body) > 2 * MAX_BODY_BYTES:
            raise BrokenPromise("an answer of any size")
        if any(make_printable(value) != value for value in answer.headers.values()):
            raise BrokenPromise("a header of any characters")
        return str(answer.status)


SPEED_SERVER_DECODERS: Final = (
    Decoder("frames of a WebSocket", _frames, (_FRAMES,)),
    Decoder("reports of ndt7", _reports, (_REPORT,), is_text=True),
    Decoder("answers of http", _answer, _ANSWERS),
)
