"""Answers to ssh's questions when the app uses the terminal: passwords, passphrases, unknown host keys.

ssh runs the program in SSH_ASKPASS with the question and reads the answer from its standard output. That program is
a short script, which passes both on over a socket in a directory that only this user can enter.
"""

import asyncio
import contextlib
import shlex
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

_MOST_QUESTION_BYTES: Final = 16_384
_HELPER: Final = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as door:
    door.connect(sys.argv[1])
    door.sendall(" ".join(sys.argv[2:]).encode(errors="replace"))
    door.shutdown(socket.SHUT_WR)
    answer = b""
    while more := door.recv(4096):
        answer += more
if not answer:
    sys.exit(1)
os.write(1, answer)
"""


@asynccontextmanager
async def serve_askpass(prompt: Callable[[str], Awaitable[str | None]]) -> AsyncGenerator[dict[str, str]]:
    """Yield an environment in which ssh asks its questions through `prompt`, one at a time."""
    order = asyncio.Lock()
    meeting: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(meet(reader, writer))
        meeting.add(task)
        task.add_done_callback(meeting.discard)

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            try:
                question = (await reader.read())[:_MOST_QUESTION_BYTES]
                async with order:
                    answer = await prompt(question.decode(errors="replace"))
                if answer is not None:
                    writer.write(answer.encode() + b"\n")
                    await writer.drain()
            finally:
                writer.close()

    with tempfile.TemporaryDirectory(prefix="linkgauge-") as folder:
        program, door = _furnish(Path(folder))
        server = await asyncio.start_unix_server(begin, door)
        try:
            # DISPLAY for an ssh that is older than the other variable, and asks for it.
            yield {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}
        finally:
            server.close()
            for task in meeting:  # no ssh waits for an answer any more
                task.cancel()


def _furnish(folder: Path) -> tuple[Path, Path]:
    """Write the program into a folder; return its path and the path of its socket."""
    program, helper, door = folder / "ask", folder / "ask.py", folder / "door"
    helper.write_text(_HELPER, encoding="utf-8")
    command = shlex.join([sys.executable, "-I", "-S", str(helper), str(door)])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return program, door
