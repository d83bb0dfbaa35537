"""Attacks on the port at which an endpoint serves iperf3: its clients prove no key, so that all are strangers."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import json
import socket
import struct

from attack_target import (
    Attack,
    Target,
    connected,
    converse_in_turn,
    flood_datagrams,
    hold_connections,
    repeat,
    source,
)
from linkgauge.engine.iperf3.protocol.cookie_and_streams import COOKIE_BYTES, make_cookie
from linkgauge.engine.iperf3.protocol.datagrams import HELLO, OLD_HELLO
from linkgauge.engine.iperf3.protocol.json_bodies import MAX_PARAMETERS_BYTES, encode_body
from linkgauge.engine.iperf3.protocol.parameters import TestParameters, encode_parameters
from linkgauge.engine.iperf3.protocol.states import State

_READ_S = 5.0


async def iperf3_cookies(target: Target) -> None:
    """Hold connections that have sent no cookie, a part of one, or one that has no end."""
    async with asyncio.TaskGroup() as group:
        for network, first_bytes in enumerate((b"", b"a", b"a" * (COOKIE_BYTES - 1), make_cookie()), 9):
            group.create_task(hold_connections(target, 150, first_bytes, network=network))


async def iperf3_documents(target: Target) -> None:
    """Send documents of every length and shape in the place of the parameters."""
    most = MAX_PARAMETERS_BYTES
    documents = (
        struct.pack(">I", 2**32 - 1) + bytes(1 << 20),
        struct.pack(">I", most + 1) + bytes(most + 1),
        struct.pack(">I", most) + b"[" * most,
        struct.pack(">I", most) + b"9" * most,
        struct.pack(">I", 5) + b"\xff\xfe{}\x00",
        struct.pack(">I", 0),
        encode_body({"parallel": 2**62, "len": "x" * 4_000, "time": -1, "title": "\x1b[2J" * 500}),
        encode_body({"udp": True, "len": 0, "window": 2**40, "bandwidth": 10**18}),
    )
    await converse_in_turn(target, 16, documents, opening=make_cookie)


async def iperf3_broken_tests(target: Target) -> None:
    """Begin tests, and break off in each state in each way."""
    parameters = (
        TestParameters(duration_s=3),
        TestParameters(duration_s=3, is_reverse=True, parallel=4),
        TestParameters(duration_s=3, is_udp=True, block_bytes=1_000, asks_output=True),
        TestParameters(duration_s=0, is_bidirectional=True, parallel=128),
    )

    async def attempt(number: int) -> None:
        cookie, asked = make_cookie(), parameters[number % len(parameters)]
        socks: list[socket.socket] = []
        try:
            async with connected(target, number % 60) as (reader, writer):
                writer.write(cookie)
                async with asyncio.timeout(_READ_S):
                    await reader.readexactly(1)
                    writer.write(encode_body(encode_parameters(asked)))
                    if await reader.readexactly(1) == State.CREATE_STREAMS.wire_byte and not asked.is_udp:
                        for _ in range(min(asked.streams, number % 5)):
                            sock = await asyncio.to_thread(target.connect, source(number % 60))
                            socks.append(sock)
                            sock.sendall(cookie)
                        target.count("tests")
                    ends = (b"", b"\x07", State.TEST_END.wire_byte, State.CLIENT_TERMINATE.wire_byte)
                    writer.write(ends[number % 4])
                    await reader.read(1)
                if number % 3 == 0:
                    linger = struct.pack("ii", 1, 0)
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        except TimeoutError:
            target.count("unanswered")
        finally:
            for sock in socks:
                sock.close()

    await repeat(target, 12, attempt)


async def iperf3_silent_tests(target: Target) -> None:
    """Hold more tests without payload than an address has places, from the honest client's own address."""
    body = encode_body(encode_parameters(TestParameters(duration_s=60)))

    async def attempt(_number: int) -> None:
        cookie = make_cookie()
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        stream = None
        try:
            writer.write(cookie)
            await reader.readexactly(1)
            writer.write(body)
            if await reader.readexactly(1) == State.CREATE_STREAMS.wire_byte:
                stream = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", target.port))
                stream.sendall(cookie)
                target.count("tests")
            await reader.read()
        finally:
            writer.close()
            if stream is not None:
                stream.close()

    await repeat(target, 20, attempt)


async def iperf3_hellos(target: Target) -> None:
    """Flood the UDP port with hellos of no test from many addresses. No answer may come."""
    await flood_datagrams(target, (HELLO, OLD_HELLO, b"", b"\xff" * 1_400, HELLO * 2))


async def iperf3_logins(target: Target) -> None:
    """Send tokens that are none, as fast as it goes: each is an entry of the log."""
    tokens = ("", "AAAA" * 85 + "AAA=", "no base64", "x" * 6_000, json.dumps({"a": 1}))

    async def attempt(number: int) -> None:
        asked = TestParameters(auth_token=tokens[number % len(tokens)] or None, title="\x1b[2J")
        body = encode_body(encode_parameters(asked))
        try:
            async with connected(target, number) as (reader, writer), asyncio.timeout(_READ_S):
                writer.write(make_cookie() + body)
                await reader.readexactly(1)
                if await reader.read(1) == State.CREATE_STREAMS.wire_byte:
                    target.count("ADMITTED")
        except TimeoutError:
            target.count("unanswered")

    await repeat(target, 20, attempt)


ATTACKS_ON_IPERF3: dict[str, Attack] = {
    attack.__name__: attack
    for attack in (
        *(iperf3_cookies, iperf3_documents, iperf3_broken_tests, iperf3_silent_tests, iperf3_hellos),
        iperf3_logins,
    )
}
