"""A page of an endpoint without a browser, whose connections move payload as fast as plain sockets do.

Usage: page_client.py PORT SECONDS down|up SESSIONS        prints the bits a second that it moved

aiohttp opens the page and follows its test; each connection of payload is a WebSocket in its opening only. So the
endpoint is the limit, and not a browser.
"""

import asyncio
import base64
import os
import socket
import sys
import time
from typing import Any

import aiohttp

_HOST = "127.0.0.1"
_BLOCK = b"\x82\xff" + (1 << 20).to_bytes(8, "big") + bytes(4) + os.urandom(1 << 20)  # masked with zeros
_PATIENCE_S = 15.0


class FastPage:
    """The page, from its opening to the end of its only test."""

    def __init__(self, port: int, way: str) -> None:
        self._port, self._way = port, way
        self._origin = f"http://{_HOST}:{port}"
        self.moved_bytes = 0
        self._ended_s = 0.0
        self._socks: list[socket.socket] = []

    async def test(self, seconds: int, sessions: int) -> float:
        """Return the bits a second of a test."""
        async with aiohttp.ClientSession() as client, asyncio.timeout(seconds + _PATIENCE_S):
            control = await client.ws_connect(f"{self._origin}/ws", origin=self._origin)
            hello = await control.receive_json()
            settings = {"direction": self._way, "sessions": sessions, "seconds": seconds, "preset": "none"}
            await control.send_json({"type": "start", **settings})
            moves: list[asyncio.Task[None]] = []
            began_s = 0.0
            while True:
                match await control.receive_json():
                    case {"type": "ping", "n": number}:
                        await control.send_json({"type": "pong", "n": number})
                    case {"type": "open", "places": places}:
                        for place in places:
                            await self._open(hello["test"], place)
                    case {"type": "begin"}:
                        began_s = time.monotonic()
                        moves = [asyncio.create_task(asyncio.to_thread(self._move, sock)) for sock in self._socks]
                    case {"type": "result"}:
                        break
                    case {"type": "refused", "text": text}:
                        raise SystemExit(f"page_client.py: error: {text}")
                    case _:
                        pass
            await asyncio.gather(*moves)
            return self.moved_bytes * 8 / (self._ended_s - began_s)

    async def _open(self, test: str, place: dict[str, Any]) -> None:
        sock = socket.create_connection((_HOST, self._port))
        path = f"/data?test={test}&flow={place['flow']}&n={place['n']}&g={place['g']}"
        headers = {
            "Host": f"{_HOST}:{self._port}",
            "Origin": self._origin,
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        }
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        sock.sendall("\r\n".join(lines).encode())
        loop = asyncio.get_running_loop()
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):  # one byte at a time: payload may follow at once
            answer += await loop.run_in_executor(None, sock.recv, 1)
        self._socks.append(sock)

    def _move(self, sock: socket.socket) -> None:
        """Move payload until the endpoint closes the connection."""
        moved = 0
        buffer = bytearray(1 << 20)
        try:
            if self._way == "down":
                while count := sock.recv_into(buffer):
                    moved += count
            else:
                while True:
                    sock.sendall(_BLOCK)
                    moved += len(_BLOCK)
        except OSError:
            pass
        self._ended_s = time.monotonic()
        self.moved_bytes += moved


if __name__ == "__main__":
    port, seconds, way, sessions = sys.argv[1:]
    print(asyncio.run(FastPage(int(port), way).test(int(seconds), int(sessions))))
