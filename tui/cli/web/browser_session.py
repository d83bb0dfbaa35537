"""A page that is open: the process of its app, and what goes between the two.

Textual's driver for browsers (`textual.drivers.web_driver`) frames its output: a letter, a length of four
bytes, the payload. It reads the same. The browser's messages are JSON lists: a name and its data.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiohttp import WSCloseCode, WSMsgType, web

from ....engine.host.child_process import end_process
from ....engine.model.errors import explain_resource_error, make_printable
from .browser_page import BROWSER_DRIVER, DRIVER_VARIABLE

MAX_MESSAGE_BYTES: Final = 1 << 20  # of the browser: a text that the user pastes
_MAX_PACKET_BYTES: Final = 16 << 20  # of the app: a frame of a large screen has some 100 KiB
_MAX_WAITING_BYTES: Final = 8 << 20  # of frames that the browser has not taken yet
_MAX_CELLS: Final = 1_000
_MAX_ERROR_BYTES: Final = 4_096
_FIRST_LINE: Final = b"__GANGLION__\n"
_MAX_LINES_BEFORE: Final = 10
_HEARTBEAT_S: Final = 15.0
# A run that is stopped has 10 s to end in order, see terminal_app.
# As a terminal that goes away ends an app, then less and less politely.
_END_STEPS: Final = ((signal.SIGHUP, 15.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))
_log = logging.getLogger(__name__)


def clamp_cells(value: object, otherwise: int) -> int:
    """Return a number of columns or rows as a browser names it, within the limits of a screen."""
    try:
        number = int(value) if isinstance(value, int | str) else otherwise
    except ValueError:
        number = otherwise
    return min(max(number, 1), _MAX_CELLS)


class BrowserSession:
    """One page and the process of its app, which ends with it.

    Args:
        arguments: the arguments of `linkgauge` in that process.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = tuple(arguments)
        self.socket = web.WebSocketResponse(heartbeat=_HEARTBEAT_S, max_msg_size=MAX_MESSAGE_BYTES)
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._has_waiting = asyncio.Event()
        self._errors = bytearray()
        self._has_drawn = False
        self.failure: str | None = None

    async def run(self, request: web.Request) -> web.WebSocketResponse:
        """Open the WebSocket, start the app, and pass on between them until one of the two ends."""
        await self.socket.prepare(request)
        size = [clamp_cells(request.query.get(name), cells) for name, cells in (("width", 80), ("height", 24))]
        try:
            process = await self._start(size[0], size[1])
        except OSError as error:
            self.failure = f"the app has not started: {explain_resource_error(error)}"
            await self.socket.close(code=WSCloseCode.TRY_AGAIN_LATER)
            return self.socket
        tasks = [
            asyncio.create_task(work)
            for work in (self._read_browser(process), self._read_app(process), self._write_browser())
        ]
        errors = asyncio.create_task(self._read_errors(process))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            reader = tasks.pop(1)  # it goes on: an app that draws while it ends must not wait for a reader
            for task in tasks:
                task.cancel()
            await end_process(process, _END_STEPS)
            await asyncio.wait([*tasks, reader, errors])
            self._note_end(process, [*tasks, reader, errors])
            await self.socket.close(code=WSCloseCode.OK)
        return self.socket

    async def close(self) -> None:
        """End the page and its app, as at the end of the server."""
        await self.socket.close(code=WSCloseCode.GOING_AWAY)

    async def _start(self, width: int, height: int) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "linkgauge",
            *self._arguments,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=_environment(os.environ, width, height),
            start_new_session=True,  # Ctrl-C at the server's terminal: the server ends its apps in order
        )

    async def _read_browser(self, process: asyncio.subprocess.Process) -> None:
        async for message in self.socket:
            if message.type is not WSMsgType.TEXT:
                continue
            packet = await self._answer(message.data)
            if packet is not None and process.stdin is not None:
                process.stdin.write(packet)
                await process.stdin.drain()

    async def _answer(self, text: str) -> bytes | None:
        """Return the packet for the app that a message of the browser means; None for a message that means none."""
        try:
            message: Any = json.loads(text)
        except (ValueError, RecursionError):
            return None
        match message:
            case ["stdin", str(keys)]:
                return _packet(b"D", keys.encode("utf-8", "replace"))
            case ["resize", {"width": int(width), "height": int(height)}]:
                size = {"width": clamp_cells(width, 80), "height": clamp_cells(height, 24)}
                return _packet(b"M", json.dumps({"type": "resize", **size}).encode())
            case ["blur" | "focus" as change, *_]:
                return _packet(b"M", json.dumps({"type": change}).encode())
            case ["ping", int(data)] | ["ping", float(data)]:
                await self.socket.send_json(["pong", data])
            case _:
                pass
        return None

    async def _read_app(self, process: asyncio.subprocess.Process) -> None:
        """Take the frames of the app, at once: an app that waited for a slow browser could not measure."""
        output = process.stdout
        if output is None or not await _find_first_line(output):
            return
        self._has_drawn = True
        try:
            while True:
                head = await output.readexactly(5)
                size = int.from_bytes(head[1:], "big")
                if size > _MAX_PACKET_BYTES:
                    return
                payload = await output.readexactly(size)
                if head[:1] == b"D":
                    self._put(payload)
        except (asyncio.IncompleteReadError, ConnectionError):
            return

    def _put(self, payload: bytes) -> None:
        if self.socket.closed:
            return
        self._waiting.append(payload)
        self._waiting_bytes += len(payload)
        self._has_waiting.set()

    async def _write_browser(self) -> None:
        """Send what waits. A browser that has stopped reading ends its session: no frame can be left out."""
        while self._waiting_bytes <= _MAX_WAITING_BYTES:
            await self._has_waiting.wait()
            self._has_waiting.clear()
            while self._waiting:
                payload = self._waiting[0]
                sending = asyncio.ensure_future(self.socket.send_bytes(payload))
                await self._wait_for(sending)
                if not sending.done():
                    sending.cancel()
                    return
                sending.result()
                self._waiting.popleft()
                self._waiting_bytes -= len(payload)

    async def _wait_for(self, sending: asyncio.Future[None]) -> None:
        """Wait until a frame is sent, or too many others wait behind it."""
        try:
            while not sending.done() and self._waiting_bytes <= _MAX_WAITING_BYTES:
                await asyncio.wait([sending], timeout=1.0)
        except asyncio.CancelledError:
            sending.cancel()
            raise

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        """Keep the end of the app's stderr: it explains an end."""
        while process.stderr is not None and (text := await process.stderr.read(_MAX_ERROR_BYTES)):
            self._errors += text
            del self._errors[:-_MAX_ERROR_BYTES]

    def _note_end(self, process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]]) -> None:
        failures = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
        _log.debug("a page ended: its app with status %s, %s", process.returncode, failures or "in order")
        if not self._has_drawn:
            text = bytes(self._errors).decode("utf-8", "replace").strip().splitlines()
            self.failure = f"the app has not started: {make_printable(text[-1]) if text else 'it has no screen'}"


async def _find_first_line(output: asyncio.StreamReader) -> bool:
    """Return whether the driver has begun to draw: a command that has no screen never does."""
    for _ in range(_MAX_LINES_BEFORE):
        try:
            line = await output.readline()
        except ValueError:  # longer than a line can be
            return False
        if line == _FIRST_LINE:
            return True
        if not line:
            return False
    return False


def _packet(kind: bytes, payload: bytes) -> bytes:
    return kind + len(payload).to_bytes(4, "big") + payload


def _environment(own: Mapping[str, str], width: int, height: int) -> dict[str, str]:
    return {
        **own,
        DRIVER_VARIABLE: BROWSER_DRIVER,
        "TEXTUAL_COLOR_SYSTEM": "truecolor",
        "TERM": "xterm-256color",
        "PYTHONIOENCODING": "utf-8",
        "LC_ALL": "C.UTF-8",  # the page shows every character
        "COLUMNS": str(width),
        "ROWS": str(height),
    }
