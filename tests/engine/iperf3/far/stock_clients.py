"""iperf3's own clients against an endpoint in this process, and clients that speak its protocol by hand."""

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.far.status import LogEntry
from linkgauge.engine.iperf3.far.server_output import Iperf3Options
from linkgauge.engine.iperf3.far.service import Iperf3Service
from linkgauge.engine.iperf3.protocol.cookie_and_streams import make_cookie
from linkgauge.engine.iperf3.protocol.states import State
from linkgauge.engine.model.limits import Limits
from linkgauge.tui.endpoint.iperf3_output import Iperf3Output

from ...iperf3_peer import IPERF3
from ...waiting import DEADLINE_S, until

TCP_PARAMETERS: dict[str, Any] = {"tcp": True, "omit": 0, "time": 0, "num": 0, "parallel": 1, "len": 131072}


@dataclass
class Scene:
    """An endpoint with a port for iperf3, and the entries of its log."""

    endpoint: Endpoint
    service: Iperf3Service
    entries: list[LogEntry] = field(default_factory=list[LogEntry])

    @property
    def port(self) -> int:
        """The port for iperf3."""
        return self.service.address[1]

    def texts(self, event: str) -> list[str]:
        """Return the texts of the entries of an event."""
        return [str(entry.fields["text"]) for entry in self.entries if entry.event == event]

    def ends(self) -> list[dict[str, Any]]:
        """Return the fields of the ends of tests."""
        return [entry.fields for entry in self.entries if entry.event == "run_ended"]

    async def has_no_clients(self) -> None:
        """Return once no client is left."""
        await until(lambda: not (self.endpoint.get_status().clients or self.endpoint.get_status().pending))


@asynccontextmanager
async def serve(
    host: str | None = "127.0.0.1", limits: Limits | None = None, **options: Any
) -> AsyncIterator[Scene]:
    """Give an endpoint that serves iperf3."""
    entries: list[LogEntry] = []

    def log(entry: str) -> None:
        assert isinstance(entry, LogEntry)
        entries.append(entry)

    iperf3 = Iperf3Options(listen(host, 0), observe=lambda: Iperf3Output(as_json=False).take, **options)
    async with (
        Endpoint(listen("127.0.0.1", 0), log, limits=limits) as endpoint,
        Iperf3Service(iperf3, endpoint) as service,
    ):
        scene = Scene(endpoint, service, entries)
        yield scene
        await scene.has_no_clients()


@dataclass
class Outcome:
    """A client's output and exit status."""

    status: int
    document: dict[str, Any]

    @property
    def error(self) -> str:
        """The client's error; empty without one."""
        return str(self.document.get("error", ""))


async def start_client(
    port: int, *options: str, host: str = "127.0.0.1", environment: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    """Start a stock client."""
    assert IPERF3 is not None
    command = (IPERF3, "-c", host, "-p", str(port), "--json", *options)
    pipe = asyncio.subprocess.PIPE
    env = {**os.environ, **(environment or {})}
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=env)


async def finish(process: asyncio.subprocess.Process) -> Outcome:
    """Wait for the end of a client."""
    async with asyncio.timeout(DEADLINE_S):
        out, error = await process.communicate()
    text = out.decode()
    start = text.find("{")
    assert start >= 0, (text, error.decode())
    document, _ = json.JSONDecoder().raw_decode(text[start:])
    return Outcome(process.returncode or 0, document)


async def run_client(port: int, *options: str, host: str = "127.0.0.1") -> Outcome:
    """Run a stock client to its end."""
    return await finish(await start_client(port, *options, host=host))


class RawClient:
    """A client that sends the bytes of a test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cookie: bytes) -> None:
        self.reader, self.writer, self.cookie = reader, writer, cookie
        self.streams: list[socket.socket] = []

    @classmethod
    async def connect(cls, port: int, host: str = "127.0.0.1") -> "RawClient":
        """Connect and send a cookie."""
        reader, writer = await asyncio.open_connection(host, port)
        client = cls(reader, writer, make_cookie())
        writer.write(client.cookie)
        return client

    async def state(self) -> State:
        """Return the next state."""
        async with asyncio.timeout(DEADLINE_S):
            return State.from_byte((await self.reader.readexactly(1))[0])

    async def error(self) -> int:
        """Return the number of an error, up to the end of the connection."""
        assert await self.state() is State.SERVER_ERROR
        async with asyncio.timeout(DEADLINE_S):
            number, _ = struct.unpack(">ii", await self.reader.read())
        return number

    def send_json(self, document: object) -> None:
        """Send a document behind its length."""
        body = json.dumps(document).encode()
        self.writer.write(struct.pack(">I", len(body)) + body)

    async def send_parameters(self, **changes: Any) -> None:
        """Wait to be asked for parameters, and send them."""
        assert await self.state() is State.PARAM_EXCHANGE
        self.send_json(TCP_PARAMETERS | changes)

    async def open_stream(self) -> socket.socket:
        """Open a stream."""
        loop = asyncio.get_running_loop()
        sock = socket.socket(self.writer.get_extra_info("socket").family)
        sock.setblocking(False)
        await loop.sock_connect(sock, self.writer.get_extra_info("peername"))
        await loop.sock_sendall(sock, self.cookie)
        self.streams.append(sock)
        return sock

    async def start(self, streams: int = 1, **changes: Any) -> None:
        """Go through all states until the test runs."""
        await self.send_parameters(**changes)
        assert await self.state() is State.CREATE_STREAMS
        for _ in range(streams):
            await self.open_stream()
        assert await self.state() is State.TEST_START
        assert await self.state() is State.TEST_RUNNING

    async def exchange(self, **changes: Any) -> dict[str, Any]:
        """End the test, send results, and return those of the server."""
        self.writer.write(State.TEST_END.wire_byte)
        assert await self.state() is State.EXCHANGE_RESULTS
        stream = {"id": 1, "bytes": 0, "retransmits": -1, "jitter": 0, "errors": 0, "packets": 0}
        results = {"cpu_util_total": 0, "cpu_util_user": 0, "cpu_util_system": 0, "sender_has_retransmits": 0}
        self.send_json(results | {"streams": [stream]} | changes)
        return await self.read_json()

    async def read_json(self) -> dict[str, Any]:
        """Read a document."""
        async with asyncio.timeout(DEADLINE_S):
            (length,) = struct.unpack(">I", await self.reader.readexactly(4))
            return json.loads(await self.reader.readexactly(length))

    async def close(self) -> None:
        """Close all connections."""
        for sock in self.streams:
            sock.close()
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()
