"""A relay between two real ends: it passes everything on, each frame of control through an attack."""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from linkgauge.engine.model.directions import End
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.protocol.framing import MAX_FRAME_BYTES, decompress
from linkgauge.engine.protocol.preamble import CONTROL_KIND, DATA_HELLO_BYTES, PREAMBLE_BYTES, encode_preamble
from linkgauge.engine.protocol.tokens import CODE_BYTES

LENGTH = struct.Struct(">I")
LAST_WITHOUT_CODE = {End.NEAR: "Proof", End.FAR: "Welcome"}
Attack = Callable[[End, str, bytes], list[bytes]]
Rewrite = Callable[[bytes], bytes]


def pass_on(_sender: End, _kind: str, frame: bytes) -> list[bytes]:
    """Change nothing."""
    return [frame]


class FrameRelay:
    """One relay. `attack` gets each frame with its sender and its message's name, and returns the bytes to send.

    A frame is a length, a body, and a code if the conversation has come that far. `rewrite_header` gets the
    header of each data connection. `cut` ends the control connection at both ends, and `send` speaks in it. With
    `hides_ends` no end learns that the other one has closed.
    """

    def __init__(self, target: Peer, *, is_keyed: bool) -> None:
        self.attack: Attack = pass_on
        self.rewrite_header: Rewrite = bytes
        self.kinds: list[tuple[End, str]] = []
        self.hides_ends = False
        self._target = target
        self._is_keyed = is_keyed
        self._writers: dict[End, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, receiver: End, data: bytes) -> None:
        """Send bytes in the control connection."""
        if not self._writers[receiver].is_closing():
            self._writers[receiver].write(data)

    def cut(self) -> None:
        """End the control connection, in order."""
        for writer in self._writers.values():
            writer.write_eof()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection of the near end."""
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)

    async def close(self) -> None:
        """End all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, near: asyncio.StreamReader, to_near: asyncio.StreamWriter) -> None:
        far, to_far = await asyncio.open_connection(self._target.host, self._target.port)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                opening = await near.readexactly(PREAMBLE_BYTES)
                to_far.write(opening)
                if opening == encode_preamble(CONTROL_KIND):
                    self._writers = {End.NEAR: to_near, End.FAR: to_far}
                    to_near.write(await far.readexactly(PREAMBLE_BYTES))
                    pumps = (self._relay(End.NEAR, near, to_far), self._relay(End.FAR, far, to_near))
                else:
                    to_far.write(self.rewrite_header(await near.readexactly(DATA_HELLO_BYTES)))
                    pumps = (self._pump(near, to_far), self._pump(far, to_near))
                await asyncio.gather(*pumps)
        finally:
            to_near.close()
            to_far.close()

    async def _relay(self, sender: End, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        code_bytes = 0
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readexactly(LENGTH.size)
                body = await reader.readexactly(*LENGTH.unpack(head))
                kind: str = read_body(body, sender)["type"]
                frame = head + body + await reader.readexactly(code_bytes)
                if self._is_keyed and kind == LAST_WITHOUT_CODE[sender]:
                    code_bytes = CODE_BYTES
                self.kinds.append((sender, kind))
                for each in self.attack(sender, kind, frame):
                    if not writer.is_closing():
                        writer.write(each)
        await self._pass_end_on(writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass payload on; drop it once the other side is closed."""
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                with suppress(OSError):
                    if not writer.is_closing():
                        writer.write(data)
                        await writer.drain()
        await self._pass_end_on(writer)

    async def _pass_end_on(self, writer: asyncio.StreamWriter) -> None:
        if self.hides_ends:
            await asyncio.Event().wait()
        with suppress(OSError):
            writer.write_eof()


def read_body(body: bytes, sender: End) -> dict[str, Any]:
    """Return the JSON object in a body."""
    return json.loads(decompress(body, MAX_FRAME_BYTES[sender]))


@asynccontextmanager
async def relay_to(target: Peer, *, is_keyed: bool) -> AsyncIterator[tuple[Peer, FrameRelay]]:
    """Give the address of a relay to a far end, with the access of that peer, and the relay."""
    relay = FrameRelay(target, is_keyed=is_keyed)
    server = await asyncio.start_server(relay.accept, target.host, 0)
    async with server:
        try:
            host, port = server.sockets[0].getsockname()[:2]
            yield Peer(host, port, target.access), relay
        finally:
            await relay.close()
