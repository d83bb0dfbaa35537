"""Strangers at an honest client's own address, as a program of their own: the soak starts it beside a run.

Usage: .venv/bin/python stress/strangers_beside.py KIND HOST PORT

An endpoint tells addresses apart, so that such strangers share the client's bounds. They open connections, and
hold them, or send datagrams, until SIGTERM.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import contextlib
import secrets
import socket
import struct
import sys
from collections import deque

from linkgauge.engine.model.shared_key import NONCE_BYTES
from linkgauge.engine.protocol.datagram_handshake import HELLO_BYTES
from linkgauge.engine.protocol.framing import encode_frame
from linkgauge.engine.protocol.messages import Hello
from linkgauge.engine.protocol.preamble import CONTROL_KIND, encode_preamble

_A_SECOND = 300
_HELD = 600
_GREETING = encode_preamble(CONTROL_KIND)
FIRST_BYTES = {
    "silent": b"",
    "greeting": _GREETING,
    "hello": _GREETING + encode_frame(Hello("ab" * NONCE_BYTES)),
    "tls": bytes.fromhex("16030102000100"),  # a record that announces 512 bytes
    "tls_records": bytes.fromhex("1603010005") + b"\x01\x00\x00\x00\x00" + bytes.fromhex("1503010002") * 100,
    "garbage": b"GET / HTTP/1.1\r\n\r\n" * 20,
    "reset": b"",
    "datagrams": b"",
}
_ABORT = struct.pack("ii", 1, 0)  # SO_LINGER


async def _open(held: deque[socket.socket], kind: str, place: tuple[str, int]) -> None:
    sock = socket.socket()
    sock.setblocking(False)
    held.append(sock)
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().sock_connect(sock, place)
        sock.send(FIRST_BYTES[kind])
        if kind == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            sock.close()


async def _disturb(kind: str, place: tuple[str, int]) -> None:
    held: deque[socket.socket] = deque()
    opening: set[asyncio.Task[None]] = set()
    number = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.setblocking(False)
        while True:
            number += 1
            if number == _A_SECOND // 2:
                print("under way", flush=True)
            if kind == "datagrams":
                with contextlib.suppress(OSError):
                    datagrams.sendto(secrets.token_bytes(HELLO_BYTES), place)
            else:
                task = asyncio.create_task(_open(held, kind, place))
                opening.add(task)
                task.add_done_callback(opening.discard)
                while len(held) > _HELD:
                    held.popleft().close()
            await asyncio.sleep(1 / _A_SECOND)


if __name__ == "__main__":
    asyncio.run(_disturb(sys.argv[1], (sys.argv[2], int(sys.argv[3]))))
