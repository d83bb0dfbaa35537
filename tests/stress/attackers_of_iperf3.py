"""Attacks on the port at which an endpoint serves iperf3: its clients prove no key, so that all are strangers."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import contextlib
import json
import socket
import struct

from attack_target import Attack, Target, converse, hold_connections, repeat, source
from linkgauge.engine.protocol.iperf3.datagrams import HELLO, OLD_HELLO
from linkgauge.engine.protocol.iperf3.json_bodies import MAX_PARAMETERS_BYTES, encode_body
from linkgauge.engine.protocol.iperf3.parameters import TestParameters, encode_parameters
from linkgauge.engine.protocol.iperf3.states import COOKIE_BYTES, State, make_cookie

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

    async def attempt(number: int) -> None:
        await converse(target, make_cookie() + documents[number % len(documents)], number)

    await repeat(target, 16, attempt)


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
        address = (source(number % 60), 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=address)
        socks: list[socket.socket] = []
        try:
            writer.write(cookie)
            async with asyncio.timeout(_READ_S):
                await reader.readexactly(1)
                writer.write(encode_body(encode_parameters(asked)))
                if await reader.readexactly(1) == State.CREATE_STREAMS.wire_byte and not asked.is_udp:
                    for _ in range(min(asked.streams, number % 5)):
                        sock = await asyncio.to_thread(target.connect, address[0])
                        socks.append(sock)
                        sock.sendall(cookie)
                    target.count("tests")
                writer.write((b"", b"\x07", State.TEST_END.wire_byte, State.CLIENT_TERMINATE.wire_byte)[number % 4])
                await reader.read(1)
            if number % 3 == 0:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        except TimeoutError:
            target.count("unanswered")
        finally:
            for sock in socks:
                sock.close()
            writer.close()

    await repeat(target, 12, attempt)


async def iperf3_hellos(target: Target) -> None:
    """Flood the UDP port with hellos of no test from many addresses. No answer may come."""
    data = (HELLO, OLD_HELLO, b"", b"\xff" * 1_400, HELLO * 2)
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(50)]
        for number, sock in enumerate(socks):
            sock.setblocking(False)
            sock.bind((source(number), 0))
        while True:
            for number, sock in enumerate(socks):
                with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                    sock.sendto(data[number % len(data)], ("127.0.0.1", target.port))
                    target.count("datagrams")
                    sock.recv(100)
                    target.count("ADMITTED")
            target.report_strength()
            await asyncio.sleep(0.001)


async def iperf3_logins(target: Target) -> None:
    """Send tokens that are none, as fast as it goes: each is an entry of the log."""
    tokens = ("", "AAAA" * 85 + "AAA=", "no base64", "x" * 6_000, json.dumps({"a": 1}))

    async def attempt(number: int) -> None:
        asked = TestParameters(auth_token=tokens[number % len(tokens)] or None, title="\x1b[2J")
        body = encode_body(encode_parameters(asked))
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(source(number), 0))
        try:
            writer.write(make_cookie() + body)
            async with asyncio.timeout(_READ_S):
                await reader.readexactly(1)
                if await reader.read(1) == State.CREATE_STREAMS.wire_byte:
                    target.count("ADMITTED")
        except TimeoutError:
            target.count("unanswered")
        finally:
            writer.close()

    await repeat(target, 20, attempt)


ATTACKS_ON_IPERF3: dict[str, Attack] = {
    attack.__name__: attack
    for attack in (iperf3_cookies, iperf3_documents, iperf3_broken_tests, iperf3_hellos, iperf3_logins)
}
