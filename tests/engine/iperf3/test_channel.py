"""The control connection of iperf3 over real sockets: bounded, with deadlines, and closed without a reset."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator

import pytest
from linkgauge.engine.iperf3.channel import Iperf3Channel
from linkgauge.engine.iperf3.protocol.cookie_and_streams import make_cookie
from linkgauge.engine.iperf3.protocol.json_bodies import MAX_PARAMETERS_BYTES, MAX_SERVER_RESULTS_BYTES
from linkgauge.engine.iperf3.protocol.parameters import TestParameters, encode_parameters
from linkgauge.engine.iperf3.protocol.results import EndResults, StreamResult, decode_results, encode_results
from linkgauge.engine.iperf3.protocol.states import State
from linkgauge.engine.model.errors import ConnectionClosed, LimitReached, RemoteProtocolError, SilentPeer

from ..iperf3_peer import needs_iperf3, stock_server

PATIENCE_S = 10.0
SOON_S = 0.05


@pytest.fixture(params=["127.0.0.1", "::1"])
async def ends(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Iperf3Channel, socket.socket]]:
    """Give a channel and the socket of the other end, which does not block."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.create_server((request.param, 0), family=family) as listener:
        near = socket.create_connection(listener.getsockname()[:2])
        far, _address = listener.accept()
    for sock in (near, far):
        sock.setblocking(False)
    channel = Iperf3Channel(near)
    yield channel, far
    far.close()
    await channel.aclose()


async def read_to_end(sock: socket.socket) -> bytes:
    """Return everything up to the end of a connection."""
    loop, data = asyncio.get_running_loop(), b""
    async with asyncio.timeout(PATIENCE_S):
        while chunk := await loop.sock_recv(sock, 65_536):
            data += chunk
    return data


async def test_states_that_arrive_together_are_read_one_by_one(ends: tuple[Iperf3Channel, socket.socket]) -> None:
    """A server sends TEST_START and TEST_RUNNING at once."""
    channel, far = ends
    far.send(b"\x01\x02\xff")
    states = [await channel.read_state(PATIENCE_S) for _ in range(3)]
    assert states == [State.TEST_START, State.TEST_RUNNING, State.ACCESS_DENIED]


async def test_a_document_arrives_whole_however_it_is_cut(ends: tuple[Iperf3Channel, socket.socket]) -> None:
    """The bytes after it stay for the next read."""
    channel, far = ends
    reading = asyncio.create_task(channel.read_json(MAX_PARAMETERS_BYTES, PATIENCE_S))
    for byte in struct.pack(">I", 11) + b'{"time": 5}\x0d':
        await asyncio.get_running_loop().sock_sendall(far, bytes([byte]))
        await asyncio.sleep(0)
    assert await reading == {"time": 5}
    assert await channel.read_state(PATIENCE_S) is State.EXCHANGE_RESULTS


@pytest.mark.parametrize("length", [MAX_PARAMETERS_BYTES + 1, 2**31, 2**32 - 1])
async def test_a_length_over_the_limit_is_refused_before_anything_is_read(
    ends: tuple[Iperf3Channel, socket.socket], length: int
) -> None:
    """Nothing is as large as the other end announces."""
    channel, far = ends
    far.send(struct.pack(">I", length) + b"{")
    with pytest.raises(LimitReached):
        await channel.read_json(MAX_PARAMETERS_BYTES, PATIENCE_S)


async def test_bytes_that_come_one_by_one_extend_no_deadline(ends: tuple[Iperf3Channel, socket.socket]) -> None:
    """The deadline applies to the whole document."""
    channel, far = ends

    async def trickle() -> None:
        far.send(struct.pack(">I", MAX_PARAMETERS_BYTES))
        while True:
            await asyncio.get_running_loop().sock_sendall(far, b" ")
            await asyncio.sleep(SOON_S / 10)

    trickling = asyncio.create_task(trickle())
    with pytest.raises(SilentPeer):
        async with asyncio.timeout(PATIENCE_S):
            await channel.read_json(MAX_PARAMETERS_BYTES, 4 * SOON_S)
    trickling.cancel()
    with contextlib.suppress(asyncio.CancelledError, OSError):
        await trickling


async def test_what_is_not_json_is_a_protocol_error(ends: tuple[Iperf3Channel, socket.socket]) -> None:
    """Whatever error the decoder raises."""
    channel, far = ends
    far.send(struct.pack(">I", 1) + b"{")
    with pytest.raises(RemoteProtocolError):
        await channel.read_json(MAX_PARAMETERS_BYTES, PATIENCE_S)


async def test_silence_unknown_states_and_the_end_are_errors_of_ours(
    ends: tuple[Iperf3Channel, socket.socket],
) -> None:
    """In this order on one connection."""
    channel, far = ends
    with pytest.raises(SilentPeer):
        await channel.read_state(SOON_S)
    far.send(b"\x07")
    with pytest.raises(RemoteProtocolError):
        await channel.read_state(PATIENCE_S)
    far.close()
    with pytest.raises(ConnectionClosed, match="closed"):
        await channel.read_state(PATIENCE_S)


async def test_a_reset_is_an_error_of_ours(ends: tuple[Iperf3Channel, socket.socket]) -> None:
    """Reading and sending tell it."""
    channel, far = ends
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    far.close()
    with pytest.raises(ConnectionClosed):
        await channel.read_state(PATIENCE_S)
    with pytest.raises(ConnectionClosed):
        await channel.send_state(State.TEST_END)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (struct.pack(">ii", 37, 5), (37, 5)),
        (struct.pack(">i", 142), (142, None)),
        (b"\0\0", (None, None)),
        (b"", (None, None)),
    ],
)
async def test_words_of_an_error_that_old_servers_leave_out_are_none(
    ends: tuple[Iperf3Channel, socket.socket], sent: bytes, words: tuple[int | None, int | None]
) -> None:
    """Version 3.2 to 3.19 send one after a failed login."""
    channel, far = ends
    far.send(sent)
    far.close()
    assert await channel.read_error_words(PATIENCE_S) == words


async def test_an_error_arrives_whole_even_when_its_reader_was_sending(
    ends: tuple[Iperf3Channel, socket.socket],
) -> None:
    """A close with unread bytes would reset the connection, and lose the error."""
    channel, far = ends
    far.send(bytes(10_000))
    sending = asyncio.create_task(channel.send_error(37, 2))
    assert await read_to_end(far) == b"\xfe" + struct.pack(">ii", 37, 2)
    far.close()
    await sending
    assert channel.is_closed


async def test_an_end_that_never_closes_is_left_after_the_linger(
    ends: tuple[Iperf3Channel, socket.socket],
) -> None:
    """Closing does not wait for it."""
    channel, _far = ends
    async with asyncio.timeout(PATIENCE_S):
        await channel.aclose(SOON_S)
    with pytest.raises(ConnectionClosed):
        await channel.send_state(State.IPERF_DONE)


async def connect(address: tuple[str, int]) -> socket.socket:
    """Return a connected socket that does not block."""
    sock = socket.create_connection(address)
    sock.setblocking(False)
    return sock


@needs_iperf3
async def test_a_stock_server_takes_a_test_of_one_stream_to_its_end() -> None:
    """Every state, both documents, and its count of the bytes."""
    async with stock_server() as port:
        channel, cookie = Iperf3Channel(await connect(("127.0.0.1", port))), make_cookie()
        await channel.send_cookie(cookie)
        assert await channel.read_state(PATIENCE_S) is State.PARAM_EXCHANGE
        await channel.send_json(encode_parameters(TestParameters(duration_s=5, asks_output=True)))
        assert await channel.read_state(PATIENCE_S) is State.CREATE_STREAMS
        stream = await connect(("127.0.0.1", port))
        await asyncio.get_running_loop().sock_sendall(stream, cookie)
        assert await channel.read_state(PATIENCE_S) is State.TEST_START
        assert await channel.read_state(PATIENCE_S) is State.TEST_RUNNING
        await asyncio.get_running_loop().sock_sendall(stream, bytes(200_000))
        await asyncio.sleep(4 * SOON_S)  # the server counts until it reads the next state
        await channel.send_state(State.TEST_END)
        assert await channel.read_state(PATIENCE_S) is State.EXCHANGE_RESULTS
        ours = EndResults((StreamResult(1, 200_000, retransmits=0, span_s=0.2),), has_retransmits=1)
        await channel.send_json(encode_results(ours))
        results = decode_results(await channel.read_json(MAX_SERVER_RESULTS_BYTES, PATIENCE_S))
        assert await channel.read_state(PATIENCE_S) is State.DISPLAY_RESULTS
        stream.close()
        await channel.send_state(State.IPERF_DONE)
        await channel.aclose()
        assert [(each.id, each.bytes, each.retransmits) for each in results.streams] == [(1, 200_000, None)]
        assert isinstance(results.server_output, str)
        assert "receiver" in results.server_output
