"""A client of networkQuality: what such a program asks for, over real connections, and what an attacker sends."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes, Settings
from hyperframe.frame import Frame

DEADLINE_S = 20.0


class Http2Client:
    """A connection. What came is in `statuses`, `headers`, `bodies` (their sizes) and `ended`, by stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, authority: str) -> None:
        self.reader, self.writer, self.authority = reader, writer, authority
        self.protocol = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.headers: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytearray] = {}
        self.ended: set[int] = set()
        self.is_terminated = False
        self.acknowledges = True

    def begin(self, **settings: int) -> None:
        """Greet the endpoint, with settings by their names."""
        values = {SettingCodes[name]: value for name, value in settings.items()}
        self.protocol.local_settings = Settings(client=True, initial_values=values)
        self.protocol.initiate_connection()
        self.flush()

    def flush(self) -> None:
        """Send what the protocol has to say."""
        self.writer.write(self.protocol.data_to_send())

    def send_frames(self, *frames: Frame) -> None:
        """Send frames that no library would."""
        self.writer.write(b"".join(frame.serialize() for frame in frames))

    def request(self, path: str, method: str = "GET", *, ends: bool = True, **headers: str) -> int:
        """Send a request; return its stream."""
        stream = self.protocol.get_next_available_stream_id()
        pairs = {":method": method, ":path": path, ":scheme": "https", ":authority": self.authority, **headers}
        self.protocol.send_headers(stream, list(pairs.items()), end_stream=ends)
        self.flush()
        return stream

    async def upload(self, stream: int, size: int) -> None:
        """Send a body of a size, as the windows allow, and end it."""
        while size:
            piece = min(
                self.protocol.local_flow_control_window(stream), self.protocol.max_outbound_frame_size, size
            )
            if not piece:
                await self.read()
                continue
            size -= piece
            self.protocol.send_data(stream, bytes(piece), end_stream=not size)
            self.flush()
            await self.writer.drain()

    async def read(self) -> None:
        """Take in what comes next; raise ConnectionError if the endpoint has closed."""
        async with asyncio.timeout(DEADLINE_S):
            data = await self.reader.read(1 << 16)
        if not data:
            raise ConnectionResetError("the endpoint has closed")
        for event in self.protocol.receive_data(data):
            match event:
                case ResponseReceived():
                    self.headers[event.stream_id] = dict(event.headers)
                case DataReceived():
                    self.bodies.setdefault(event.stream_id, bytearray()).extend(event.data)
                    if self.acknowledges:
                        self.protocol.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                case StreamEnded() | StreamReset():
                    self.ended.add(event.stream_id)
                case ConnectionTerminated():
                    self.is_terminated = True
                case _:
                    pass
        self.flush()

    async def finish(self, stream: int) -> tuple[int, bytes]:
        """Read until an answer is whole; return its status and body."""
        while stream not in self.ended:
            await self.read()
        return int(self.headers[stream][":status"]), bytes(self.bodies.get(stream, b""))

    async def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        return await self.finish(self.request(path, method, **headers))

    async def configure(self, path: str = "/") -> dict[str, str]:
        """Fetch the configuration; return the paths of its objects by their names."""
        status, body = await self.get(f"{path}.well-known/nq", **{"user-agent": "networkQuality/194.80.3"})
        assert status == 200, (status, body)
        return paths_of(body)

    async def read_to_end(self) -> None:
        """Read until the endpoint closes."""
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while True:
                await self.read()


def paths_of(configuration: bytes) -> dict[str, str]:
    """Return the paths of the objects by their names."""
    urls: dict[str, str] = json.loads(configuration)["urls"]
    return {url.rpartition("/")[2]: "/" + url.split("/", 3)[3] for url in urls.values()}


@asynccontextmanager
async def connected(base: str, source: str | None = None, **settings: int) -> AsyncGenerator[Http2Client]:
    """Open a connection to an endpoint by the address of its page; the block closes it."""
    authority = base.split("/")[2]
    host, _, port = authority.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    reader, writer = await asyncio.open_connection(
        host, int(port), ssl=context, local_addr=None if source is None else (source, 0)
    )
    tls: Any = writer.get_extra_info("ssl_object")
    assert tls.selected_alpn_protocol() == "h2"
    client = Http2Client(reader, writer, authority)
    client.begin(**settings)
    try:
        yield client
    finally:
        writer.transport.abort()
