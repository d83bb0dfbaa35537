"""One attack on an endpoint, as a program: strangers without the key, and clients that have it.

Usage: .venv/bin/python stress/attackers.py NAME --port PORT [--victim-port PORT] [--tls FINGERPRINT] < KEY

`attacks.py` starts it, waits for the line "under way", and ends it. It attacks until it is ended.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import struct
import sys
from collections import deque

from attack_target import (
    Attack,
    Target,
    connected,
    converse,
    converse_in_turn,
    flood_datagrams,
    hold_connections,
    repeat,
    source,
)
from attackers_of_iperf3 import ATTACKS_ON_IPERF3
from attackers_with_key import ATTACKS_WITH_KEY
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.shared_key import NONCE_BYTES, SharedKey
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.protocol.datagram_handshake import COOKIE_BYTES, DatagramHello
from linkgauge.engine.protocol.framing import MAX_FRAME_BYTES, add_length_prefix, compress, encode_frame
from linkgauge.engine.protocol.messages import Hello, Ping
from linkgauge.engine.protocol.payload_datagrams import CONTROL_MAGIC
from linkgauge.engine.protocol.preamble import (
    CONTROL_KIND,
    DATA_HELLO_BYTES,
    DATA_KIND,
    DataHello,
    encode_preamble,
)
from linkgauge.engine.protocol.tokens import TOKEN_BYTES

_GREETING = encode_preamble(CONTROL_KIND)
_HELLO = encode_frame(Hello("ab" * NONCE_BYTES))
_TLS_BEGINNING = bytes.fromhex("160301020001000"[:14])  # a handshake record that announces 512 bytes
_TCP_REPAIR = 19  # linux/tcp.h: a socket in this mode is closed without a packet
_PINGS_OF_A_CHUNK = 8_000
_FLOOD_S = 1_000
_HELD = 4_000  # more than an endpoint has places, fewer than an address has ports
_RESET = struct.pack("ii", 1, 0)  # for SO_LINGER: a close leaves no port in TIME_WAIT


async def silent(target: Target) -> None:
    """Hold more silent connections than the endpoint takes, and replace each that it drops."""
    await hold_connections(target, 700, b"")


async def _flood(target: Target, first_bytes: bytes) -> None:
    """Open a thousand connections a second from the honest client's own address, and hold the newest of them."""
    held: deque[socket.socket] = deque()
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    try:
        while True:
            while target.counts.get("connections", 0) < (loop.time() - began_s) * _FLOOD_S:
                sock = socket.socket()
                held.append(sock)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                sock.setblocking(False)
                sock.connect_ex(("127.0.0.1", target.port))
                with contextlib.suppress(OSError):
                    sock.send(first_bytes)
                target.count("connections")
                if len(held) > _HELD:
                    held.popleft().close()
            if target.counts.get("connections", 0) >= _FLOOD_S:
                target.report_strength()
            await asyncio.sleep(1 / _FLOOD_S)
    finally:
        for sock in held:
            sock.close()


async def silent_flood(target: Target) -> None:
    """Open silent connections from the honest client's own address."""
    await _flood(target, b"")


async def greeting_flood(target: Target) -> None:
    """Open connections from the honest client's own address that greet as a client does, and prove nothing."""
    await _flood(target, _GREETING + _HELLO)


async def silent_tls(target: Target) -> None:
    """Hold connections that begin TLS and say no more."""
    await hold_connections(target, 700, _TLS_BEGINNING)


async def idle_crowd(target: Target) -> None:
    """Hold ten thousand connections at once, from as many addresses."""
    await hold_connections(target, 10_000, _GREETING[:4])


async def half_open(target: Target) -> None:
    """End one half of a connection early, or vanish without a packet, again and again."""

    async def attempt(number: int) -> None:
        sock = await asyncio.to_thread(target.connect, source(number))
        with sock:
            sock.sendall((b"", _GREETING[:5], _GREETING, _GREETING + _HELLO[:9])[number % 4])
            if number % 2 and os.geteuid() == 0:
                sock.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)
                return
            sock.shutdown(socket.SHUT_WR)
            while await asyncio.to_thread(sock.recv, 4_096):
                pass

    await repeat(target, 50, attempt)


async def slow_greeting(target: Target) -> None:
    """Send the greeting byte by byte on two hundred connections."""
    data = (_GREETING + _HELLO, encode_preamble(DATA_KIND) + bytes(DATA_HELLO_BYTES))

    async def attempt(number: int) -> None:
        async with connected(target, number) as (_reader, writer):
            for byte in data[number % 2][:-1]:
                writer.write(bytes((byte,)))
                await writer.drain()
                target.count("bytes")
                if target.counts["bytes"] == 400:
                    target.report_strength()
                await asyncio.sleep(0.3)

    await repeat(target, 200, attempt)


async def wrong_keys(target: Target) -> None:
    """Try one wrong key after another, twenty at a time."""

    async def attempt(_number: int) -> None:
        with contextlib.suppress(LinkgaugeError):
            await query_host_info(target.peer_with(SharedKey.generate()))
            target.count("ADMITTED")

    await repeat(target, 20, attempt)


async def early_pings(target: Target) -> None:
    """Send thousands of pings in one chunk, in place of a greeting and after it."""
    pings = b"".join(encode_frame(Ping(number)) for number in range(_PINGS_OF_A_CHUNK))
    await converse_in_turn(target, 10, (_GREETING + pings, _GREETING + _HELLO + pings))


async def oversized_lengths(target: Target) -> None:
    """Announce frames of no size, of the limit, beyond it and of 4 GiB, and send what a socket takes."""
    most = MAX_FRAME_BYTES[End.NEAR]
    lengths = (0, 1, most, most + 1, 2**31, 2**32 - 1)

    async def attempt(number: int) -> None:
        length = lengths[number % len(lengths)]
        head = _GREETING + (_HELLO if number % 2 else b"") + struct.pack(">I", length)
        await converse(target, head + bytes(min(length, 1 << 20)), number)

    await repeat(target, 12, attempt)


async def bombs(target: Target) -> None:
    """Send frames that unpack to thousands of times their size, and JSON nested as deep as it fits."""
    most = MAX_FRAME_BYTES[End.NEAR]
    bodies = (
        compress(bytes(8 << 20)),
        compress(b'{"type":"Hello","nonce":"' + b"0" * (8 << 20) + b'"}'),
        b"[" * most,
        b'{"a":' * (most // 5),
        b"9" * most,
        json.dumps({"type": "Hello", "nonce": "\ud800" * 2_000}).encode(),
    )
    await converse_in_turn(target, 12, [_GREETING + add_length_prefix(body[:most]) for body in bodies])


async def strangers(target: Target) -> None:
    """Connect with bytes of another protocol, as fast as it goes: each is an entry of the log."""
    await converse_in_turn(target, 30, [b"GET / HTTP/1.1\r\nHost: \x1b[2J\r\n\r\n"])


async def denied(target: Target) -> None:
    """Flood from addresses that the endpoint denies: silent ones, and ones with the right key."""
    async with asyncio.TaskGroup() as group:
        group.create_task(hold_connections(target, 400, b""))
        group.create_task(converse_in_turn(target, 20, [_GREETING + _HELLO]))


async def datagrams(target: Target) -> None:
    """Flood the UDP port from many addresses: noise, hellos of no test, and parts of them. No answer may come."""
    header = DataHello(os.urandom(TOKEN_BYTES), os.urandom(TOKEN_BYTES), Direction.IN, 1, 0, None)
    hello = DatagramHello(header).pack()
    data = (
        hello,
        hello[:-1],
        b"\xff" * 1_400,
        CONTROL_MAGIC,
        DatagramHello(header, b"c" * COOKIE_BYTES).pack(),
        b"",
    )
    await flood_datagrams(target, data)


ATTACKS: dict[str, Attack] = {
    attack.__name__: attack
    for attack in (
        *(silent, silent_tls, idle_crowd, half_open, slow_greeting, wrong_keys, early_pings, oversized_lengths),
        *(bombs, strangers, denied, datagrams, silent_flood, greeting_flood),
    )
} | {**ATTACKS_WITH_KEY, **ATTACKS_ON_IPERF3}


async def _attack(attack: Attack, target: Target) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    work = asyncio.ensure_future(attack(target))
    ended = asyncio.ensure_future(stop.wait())
    await asyncio.wait([work, ended], return_when=asyncio.FIRST_COMPLETED)
    for task in (work, ended):
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work
    print(json.dumps(target.counts), flush=True)


def main() -> int:
    """Attack until SIGTERM; print what was done as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=sorted(ATTACKS))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--victim-port", type=int, default=9)
    parser.add_argument("--tls", default="", help="the fingerprint of the endpoint's certificate")
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    key = sys.stdin.readline().strip()
    fingerprint = bytes.fromhex(options.tls) or None
    target = Target(options.port, SharedKey(key) if key else None, fingerprint, options.victim_port)
    run(_attack(ATTACKS[options.name], target))
    return 0


if __name__ == "__main__":
    sys.exit(main())
