"""The identification of accepted connections, byte by byte, and their refusal with a reason."""

import asyncio
import socket
import struct
from collections.abc import Iterator

import pytest
from linkgauge.engine.control.accepted_connection import ClientHello, Identification, ProvedControl, refuse
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import (
    ConnectionClosed,
    LimitReached,
    PeerVersionMismatch,
    RemoteProtocolError,
    RequestDeclined,
)
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.shared_key import FAR_ROLE, NEAR_ROLE, NONCE_BYTES, AuthContext, SharedKey
from linkgauge.engine.protocol.framing import FrameReader, decode_body, encode_frame
from linkgauge.engine.protocol.messages import Hello, Ping, Proof, Refuse, Welcome
from linkgauge.engine.protocol.preamble import (
    CONTROL_KIND,
    DATA_KIND,
    PREAMBLE_BYTES,
    PROTOCOL_VERSION,
    DataHello,
    encode_preamble,
)

KEY = SharedKey("a-key-of-this-test")
HELLO_FRAME = encode_frame(Hello("ab" * NONCE_BYTES))
HELLO = DataHello(b"r" * 16, b"t" * 16, Direction.IN, 3, 1, 65_536)


def identification_of(
    sock: socket.socket, limits: Limits | None = None, *, has_tls: bool = False
) -> Identification:
    """Return the identification of an accepted connection, by an endpoint with a key."""
    sock.setblocking(False)
    return Identification(sock, lambda: [KEY], limits or Limits(), has_tls=has_tls, accepts_control=True)


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
    assert identification_of(accepted).read() == HELLO
    assert accepted.recv(100) == b"payload"


async def test_a_client_proves_its_key_whatever_the_pieces_of_its_words(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    """Each byte may come by itself; the answer is one challenge."""
    client, accepted = sockets
    identification, identity = identification_of(accepted), None
    for byte in encode_preamble(CONTROL_KIND) + HELLO_FRAME:
        assert identification.read() is None
        client.sendall(bytes([byte]))
    assert identification.read() is None
    answer = client.recv(4_096).removeprefix(encode_preamble(CONTROL_KIND))
    conversation = AuthContext(encode_preamble(CONTROL_KIND) + HELLO_FRAME + answer)
    for byte in encode_frame(Proof(KEY.prove(NEAR_ROLE, conversation).hex())):
        assert identity is None
        client.sendall(bytes([byte]))
        identity = identification.read()
    assert isinstance(identity, ProvedControl)
    assert identity.check.welcome == Welcome(KEY.prove(FAR_ROLE, conversation).hex())


@pytest.mark.parametrize(
    ("words", "error", "reason"),
    [
        ([encode_frame(Ping(1))], RemoteProtocolError, b""),
        ([HELLO_FRAME, encode_frame(Proof("ab" * 32))], RemoteProtocolError, b"another key"),
        ([struct.pack(">I", 4_097)], LimitReached, b"limit message_bytes is 4096"),
        ([HELLO_FRAME], ConnectionClosed, b""),
    ],
    ids=["a message too early", "a wrong proof", "a message too long", "no proof"],
)
async def test_a_client_that_proves_nothing_is_dropped_with_the_reason(
    sockets: tuple[socket.socket, socket.socket], words: list[bytes], error: type[Exception], reason: bytes
) -> None:
    """If there is one to tell."""
    client, accepted = sockets
    identification = identification_of(accepted, Limits(message_bytes=4_096))
    *earlier, last = [encode_preamble(CONTROL_KIND), *words]
    for word in earlier:
        client.sendall(word)
        assert identification.read() is None
    client.sendall(last)
    client.shutdown(socket.SHUT_WR)
    with pytest.raises(error):
        _ = identification.read() or identification.read()
    assert reason in identification.last_words


async def test_a_connection_of_tls_is_told_from_one_without_by_its_first_byte(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    """All of it is left for the TLS library. A client without TLS reads what is missing."""
    client, accepted = sockets
    identification = identification_of(accepted, has_tls=True)
    client.sendall(b"\x16\x03")
    assert isinstance(identification.read(), ClientHello)
    assert accepted.recv(100) == b"\x16\x03"
    assert not identification.encode_refusal(RequestDeclined("any"))
    client.sendall(encode_preamble(CONTROL_KIND))
    with pytest.raises(RemoteProtocolError, match="a client without TLS"):
        identification.read()
    assert b"--tls-fingerprint" in identification.last_words


@pytest.mark.parametrize("has_greeted", [False, True])
async def test_a_refusal_is_understood_at_any_moment(
    sockets: tuple[socket.socket, socket.socket], *, has_greeted: bool
) -> None:
    """Whether this end has greeted already or not, it does so once."""
    client, accepted = sockets
    identification = identification_of(accepted)
    if has_greeted:
        client.sendall(encode_preamble(CONTROL_KIND) + HELLO_FRAME)
        assert identification.read() is None
    accepted.sendall(identification.encode_refusal(LimitReached("too many", "pending", 16)))
    words = client.recv(4_096)
    assert words[:PREAMBLE_BYTES] == encode_preamble(CONTROL_KIND)
    bodies = FrameReader(End.FAR).read_frames(words[PREAMBLE_BYTES:])
    assert [decode_body(body, End.FAR) for body in bodies][-1] == Refuse(
        "too many (its limit pending is 16)", "limit"
    )


async def test_a_client_of_another_version_gets_ours_and_is_refused(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    """So that its error names both versions."""
    client, accepted = sockets
    identification = identification_of(accepted)
    other = bytearray(encode_preamble(CONTROL_KIND))
    other[9] = PROTOCOL_VERSION + 1
    client.sendall(other)
    with pytest.raises(
        PeerVersionMismatch,
        match=f"speaks protocol {PROTOCOL_VERSION + 1}, this linkgauge speaks {PROTOCOL_VERSION}; install",
    ):
        identification.read()
    assert identification.last_words == encode_preamble(CONTROL_KIND)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "closed before"),
        (encode_preamble(DATA_KIND) + HELLO.pack()[:-1], "closed before"),
        (b"GET / HTTP/1.1\r\n", r"not a linkgauge client: it sent HTTP \('GET / HTTP/1"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\xff", "not a linkgauge client: it sent TLS$"),
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
        identification_of(accepted).read()


async def test_a_refused_client_reads_the_reason(sockets: tuple[socket.socket, socket.socket]) -> None:
    """A client that never closes is left after a deadline."""
    client, accepted = sockets
    client.sendall(b"unread bytes, which would reset the connection")
    async with asyncio.timeout(10):
        await refuse(accepted, RequestDeclined("one run at a time"))
    client.setblocking(False)
    data = client.recv(4_096)
    assert data[:PREAMBLE_BYTES] == encode_preamble(CONTROL_KIND)
    bodies = FrameReader(End.FAR).read_frames(data[PREAMBLE_BYTES:])
    assert [decode_body(body, End.FAR) for body in bodies] == [Refuse("one run at a time")]
