"""The first bytes of an accepted connection: read to the byte, or refused in words."""

import asyncio
import socket
from collections.abc import Iterator

import pytest
from linkgauge.engine.control.accept import read_connection_header, refuse
from linkgauge.engine.model.errors import RemoteProtocolError
from linkgauge.engine.model.plan import Direction, End
from linkgauge.engine.protocol.framing import FrameReader, decode_body
from linkgauge.engine.protocol.messages import Refuse
from linkgauge.engine.protocol.preamble import (
    CONTROL_KIND,
    DATA_KIND,
    PREAMBLE_BYTES,
    PROTOCOL_VERSION,
    DataHello,
    encode_preamble,
)

HELLO = DataHello(b"r" * 16, b"t" * 16, Direction.IN, 3, 1, 65_536)


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give the client's socket and the accepted one."""
    client, accepted = socket.socketpair()
    with client, accepted:
        yield client, accepted


async def test_a_data_connection_is_read_up_to_its_payload(sockets: tuple[socket.socket, socket.socket]) -> None:
    """The payload is left for the worker that takes the socket over."""
    client, accepted = sockets
    client.sendall(encode_preamble(DATA_KIND) + HELLO.pack() + b"payload")
    assert await read_connection_header(accepted) == (encode_preamble(DATA_KIND), HELLO)
    assert accepted.recv(100) == b"payload"


async def test_a_control_connection_is_read_up_to_its_first_frame(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    """The frame may arrive with the preamble."""
    client, accepted = sockets
    client.sendall(encode_preamble(CONTROL_KIND) + b"frame")
    assert await read_connection_header(accepted) == (encode_preamble(CONTROL_KIND), None)
    assert accepted.recv(100) == b"frame"


async def test_a_client_of_another_version_gets_ours_and_is_refused(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    """So that its error names both versions."""
    client, accepted = sockets
    other = bytearray(encode_preamble(CONTROL_KIND))
    other[9] = PROTOCOL_VERSION + 1
    client.sendall(other)
    with pytest.raises(
        RemoteProtocolError, match=f"protocol {PROTOCOL_VERSION + 1}, this endpoint {PROTOCOL_VERSION}"
    ):
        await read_connection_header(accepted)
    assert client.recv(100) == encode_preamble(CONTROL_KIND)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "closed before"),
        (encode_preamble(DATA_KIND) + HELLO.pack()[:-1], "closed before"),
        (b"GET / HTTP/1.1\r\n", "does not speak linkgauge"),
    ],
)
async def test_a_client_without_a_whole_header_is_an_error(
    sockets: tuple[socket.socket, socket.socket], data: bytes, message: str
) -> None:
    """A port scanner and a browser among them."""
    client, accepted = sockets
    client.sendall(data)
    client.shutdown(socket.SHUT_WR)
    with pytest.raises(RemoteProtocolError, match=message):
        await read_connection_header(accepted)


async def test_a_refused_client_reads_the_reason(sockets: tuple[socket.socket, socket.socket]) -> None:
    """A client that never closes is left after a deadline."""
    client, accepted = sockets
    client.sendall(b"unread bytes, which would reset the connection")
    async with asyncio.timeout(10):
        await refuse(accepted, "one run at a time")
    assert accepted.fileno() < 0
    client.setblocking(False)
    data = client.recv(4_096)
    assert data[:PREAMBLE_BYTES] == encode_preamble(CONTROL_KIND)
    bodies = FrameReader(End.FAR).feed(data[PREAMBLE_BYTES:])
    assert [decode_body(body, End.FAR) for body in bodies] == [Refuse("one run at a time")]
