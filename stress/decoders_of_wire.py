"""Every decoder of what the other end, a worker or ssh sends, with valid inputs."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import json
import os
import socket
import struct
from functools import partial
from typing import Any, Final

from decoders import BrokenPromise, Decoder, own_loop
from linkgauge.engine.control.multiplexer import Mux
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.serialization import decode_tagged, encode_tagged
from linkgauge.engine.model.shared_key import NEAR_ROLE
from linkgauge.engine.protocol.burst_datagrams import (
    BurstArrivals,
    BurstQuery,
    BurstRequest,
    BurstSent,
    decode_burst_datagram,
)
from linkgauge.engine.protocol.datagram_handshake import (
    DatagramAccepted,
    DatagramChallenge,
    DatagramHello,
    decode_handshake,
)
from linkgauge.engine.protocol.flow_datagrams import (
    ArrivalQuery,
    FlowArrivals,
    FlowTrace,
    RoundOrder,
    RoundStatus,
    decode_flow_datagram,
)
from linkgauge.engine.protocol.framing import FrameCodes, FrameReader, add_length_prefix, compress, decompress
from linkgauge.engine.protocol.path_probe import PathDatagram, PathKind, decode_path_datagram
from linkgauge.engine.protocol.payload_datagrams import DatagramKeys, Feedback
from linkgauge.engine.protocol.preamble import (
    CONTROL_KIND,
    DATA_HELLO_BYTES,
    DATA_KIND,
    PREAMBLE_BYTES,
    DataHello,
    decode_preamble,
    encode_preamble,
)
from linkgauge.engine.protocol.probe_datagrams import EchoDatagram, ProbeDatagram, decode_echo, decode_probe
from linkgauge.engine.protocol.tokens import SerialWindow
from linkgauge.engine.ssh.bundle import BOOTSTRAP_MARK
from linkgauge.engine.ssh.ssh_far_end import _Login
from linkgauge.engine.workers.ipc import (
    COMMANDS,
    EVENTS,
    AdoptSession,
    ConnectionFailed,
    ConnectionLost,
    StartPayload,
    WorkerReady,
)
from linkgauge.engine.workloads.session_handshake import SessionSpec

_MUX_HEADER: Final = struct.Struct(">II")
_MOST_DECOMPRESSED: Final = 1_000


def _preamble(data: bytes) -> str:
    return "none" if decode_preamble(data[:PREAMBLE_BYTES].ljust(PREAMBLE_BYTES)) is None else "one"


def _data_hello(data: bytes) -> str:
    hello = DataHello.unpack(data[:DATA_HELLO_BYTES].ljust(DATA_HELLO_BYTES))
    if DataHello.unpack(hello.pack()) != hello:
        raise BrokenPromise(f"{hello} is another one once it is sent on")
    return "read"


_SESSION_SECRET: Final = b"a session's secret"


def _handshake_datagram(data: bytes) -> str:
    datagram = decode_handshake(data)
    if datagram is not None and datagram.pack() != data:
        raise BrokenPromise(f"{datagram} is another one once it is sent on")
    return "nothing" if datagram is None else type(datagram).__name__


def _flow_datagram(data: bytes) -> str:
    datagram = decode_flow_datagram(data, _SESSION_SECRET)
    if datagram is not None and datagram.pack(_SESSION_SECRET) != data:
        raise BrokenPromise(f"{datagram} is another one once it is sent on")
    return "nothing" if datagram is None else type(datagram).__name__


def _path_datagram(data: bytes) -> str:
    datagram = decode_path_datagram(data, _SESSION_SECRET)
    if datagram is not None and len(datagram.pack(_SESSION_SECRET)) != len(data):
        raise BrokenPromise(f"{datagram} came with {len(data)} bytes")
    return "nothing" if datagram is None else datagram.kind.name


def _burst_datagram(data: bytes) -> str:
    datagram = decode_burst_datagram(data, _SESSION_SECRET)
    if datagram is not None and datagram.pack(_SESSION_SECRET) != data:
        raise BrokenPromise(f"{datagram} is another one once it is sent on")
    return "nothing" if datagram is None else type(datagram).__name__


def _probe_datagram(data: bytes) -> str:
    datagram = decode_probe(data, _SESSION_SECRET) or decode_echo(data, _SESSION_SECRET)
    if datagram is None:
        return "nothing"
    if datagram.pack(_SESSION_SECRET) != data:
        raise BrokenPromise(f"{datagram} came as {data.hex()}")
    is_new = SerialWindow().take(datagram.serial)
    return type(datagram).__name__ + ("" if is_new else ", taken")


def _feedback(data: bytes) -> str:
    return type(DatagramKeys(_SESSION_SECRET).decode_feedback(data)).__name__


def _frames(data: bytes) -> str:
    reader = FrameReader(End.NEAR)
    count = 0
    for start in range(0, len(data), 700):
        count += sum(len(body) <= reader.max_frame_bytes for body in reader.read_frames(data[start : start + 700]))
    return f"{min(count, 5)} bodies"


_BODIES: Final = (b'{"type":"Start"}', b'{"type":"Ping","serial":7}', b"", b"x" * 300)


def _coded_stream() -> bytes:
    codes = FrameCodes(b"shared", NEAR_ROLE)
    frames = [add_length_prefix(body) for body in _BODIES]
    return b"".join(frame + codes.next_code(frame) for frame in frames)


def _coded_frames(data: bytes) -> str:
    """Read frames with codes: what is accepted is the beginning of what was sent, whatever was changed."""
    reader = FrameReader(End.NEAR)
    reader.codes = FrameCodes(b"shared", NEAR_ROLE)
    accepted: list[bytes] = []
    try:
        for body in reader.read_frames(data):
            accepted.append(body)  # noqa: PERF402 - up to the error
    finally:
        if accepted != list(_BODIES[: len(accepted)]):
            raise BrokenPromise("a frame with a wrong code was accepted")
    return f"{len(accepted)} bodies"


def _compressed(data: bytes) -> str:
    whole = decompress(data, _MOST_DECOMPRESSED)
    if data.startswith(b"z") and len(whole) > _MOST_DECOMPRESSED:
        raise BrokenPromise("more was unpacked than the limit")
    return "read"


class _Sink(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        pass

    def data_received(self, data: bytes) -> None:
        pass


def _multiplexer(data: bytes) -> str:
    async def feed() -> str:
        lost: list[bool] = []
        mux = Mux(lambda _channel: _Sink(), lambda: lost.append(True), extra={})
        for start in range(0, len(data), 900):
            mux.data_received(data[start : start + 900])
        channels = len(mux._channels)
        if channels > 64:
            raise BrokenPromise(f"{channels} channels are open")
        mux.eof_received()
        await asyncio.sleep(0)
        if len(lost) != 1:
            raise BrokenPromise(f"its end was reported {len(lost)} times")
        return f"{min(channels, 3)} channels"

    return own_loop(os.getpid()).run_until_complete(feed())


def _mux_frames(*frames: tuple[int, bytes]) -> bytes:
    return b"".join(_MUX_HEADER.pack(number, len(body)) + body for number, body in frames)


def _ssh_greeting(data: bytes) -> str:
    """Read what a remote shell prints, up to the answer that it listens."""

    async def read() -> str:
        login = _Login(Peer.parse("ssh://host"), None)
        stream, other = socket.socketpair()
        other.close()
        stream.setblocking(False)
        login._ssh._stream, login._ssh._buffer = stream, data
        words: list[str] = []
        with stream:
            while (line := await login._ssh.next_line()) is not None:
                word, _, rest = line.partition(" ")
                words.append(word if word in {"up", "ready", "engine", "python"} else "other")
                if word == "up":
                    login._checked(rest)
                    return "up"
                if word == "python":
                    await login._answer(word, rest)
        return words[-1] if words else "nothing"

    return own_loop(os.getpid()).run_until_complete(read())


def _worker_lines(kinds: tuple[type[Any], ...], data: bytes) -> str:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return "no JSON"  # the channel has two ends of one program: it never happens
    if isinstance(body, dict):
        body.pop("fd", None)
    return type(decode_tagged(kinds, body)).__name__


def _lines_of(*messages: object) -> tuple[bytes, ...]:
    return tuple(json.dumps({"fd": False, **encode_tagged(message)}).encode() for message in messages)


_SPEC: Final = SessionSpec(Direction.OUT, 1, 0, 65_536, "ab" * 32)
_HELLO: Final = DataHello(bytes(16), bytes(16), Direction.IN, 3, 1, 65_536).pack()
_UP: Final = f'{BOOTSTRAP_MARK} up {{"port": 5820, "problem": null}}\n'.encode()


WIRE_DECODERS: Final = (
    Decoder("preamble", _preamble, (encode_preamble(CONTROL_KIND), encode_preamble(DATA_KIND))),
    Decoder("data hello", _data_hello, (_HELLO,)),
    Decoder(
        "handshake datagrams",
        _handshake_datagram,
        (
            DatagramHello(DataHello.unpack(_HELLO), b"c" * 16).pack(),
            DatagramChallenge(b"c" * 16, b"t" * 16).pack(),
            DatagramAccepted.of_session(_SESSION_SECRET).pack(),
        ),
    ),
    Decoder(
        "path datagrams",
        _path_datagram,
        tuple(
            PathDatagram(kind, 7, 200, "192.0.2.1", 9 if kind is PathKind.TRACE else 0).pack(_SESSION_SECRET)
            for kind in PathKind
        ),
    ),
    Decoder(
        "burst datagrams",
        _burst_datagram,
        (
            BurstRequest(1, 40, 500, 1_472, 10**8).pack(_SESSION_SECRET),
            BurstSent(1, 540, 0, is_over=True).pack(_SESSION_SECRET),
            BurstQuery(1, 140).pack(_SESSION_SECRET),
            BurstArrivals(1, 3, 0, 1, ((7, 12_000), (9, 24_000))).pack(_SESSION_SECRET),
        ),
    ),
    Decoder(
        "flow datagrams",
        _flow_datagram,
        (
            RoundOrder(1, 200, 256, 256_000, (1, 2, 512)).pack(_SESSION_SECRET),
            RoundStatus(1, 3, is_over=True).pack(_SESSION_SECRET),
            ArrivalQuery(1, 7, 250).pack(_SESSION_SECRET),
            FlowArrivals(1, 7, 225, 1, 2, 3, 200, (5, 0, 7)).pack(_SESSION_SECRET),
            FlowTrace(7, is_on=True).pack(_SESSION_SECRET),
        ),
    ),
    Decoder(
        "probe datagrams",
        _probe_datagram,
        (ProbeDatagram(7, 8).pack(_SESSION_SECRET), EchoDatagram(7, 8, 9, 10).pack(_SESSION_SECRET)),
    ),
    Decoder("feedback", _feedback, (DatagramKeys(_SESSION_SECRET).encode_feedback(Feedback(*range(1, 10))),)),
    Decoder("frames", _frames, (b"".join(map(add_length_prefix, _BODIES)),)),
    Decoder("coded frames", _coded_frames, (_coded_stream(),)),
    Decoder("compressed", _compressed, (compress(b'{"type":"Report","sample":' * 20), compress(bytes(9_000)))),
    Decoder("multiplexer", _multiplexer, (_mux_frames((1, b"ab"), (2, b"c" * 90), (0, b""), (1, b""), (3, b"x")),)),
    Decoder(
        "ssh greeting",
        _ssh_greeting,
        (b"Welcome\n" + _UP, f"motd\r\n{BOOTSTRAP_MARK} python Python 3.9.2\n".encode(), _UP),
        is_text=True,
    ),
    Decoder(
        "worker commands",
        partial(_worker_lines, COMMANDS),
        _lines_of(AdoptSession(_SPEC), StartPayload()),
        is_text=True,
    ),
    Decoder(
        "worker events",
        partial(_worker_lines, EVENTS),
        _lines_of(
            WorkerReady(),
            ConnectionFailed(Direction.IN, 1, 0, "refused"),
            ConnectionLost(Direction.OUT, 2, 1, "reset"),
        ),
        is_text=True,
    ),
)
