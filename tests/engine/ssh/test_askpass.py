"""The questions of ssh, answered by a callback."""

import asyncio
from pathlib import Path

import pytest
from linkgauge.engine.ssh.askpass import serve_askpass

# Run on asyncio alone: the command line's tests of ssh run on uvloop.
pytestmark = pytest.mark.loop("asyncio")

DEADLINE_S = 40.0


async def test_a_question_of_ssh_is_answered_by_the_callback() -> None:
    """An answer is printed, as ssh reads it; none is a failure."""
    asked: list[str] = []

    async def ask(question: str) -> str | None:
        asked.append(question)
        return "open sesame" if "passphrase" in question else None

    async with asyncio.timeout(DEADLINE_S), serve_askpass(ask) as environment:
        said: list[tuple[bytes, int | None]] = []
        for question in ("Enter passphrase for 'key':", "Continue (yes/no)?\nReally?"):
            process = await asyncio.create_subprocess_exec(
                environment["SSH_ASKPASS"], question, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
            said.append((out, process.returncode))
    assert said == [(b"open sesame\n", 0), (b"", 1)]
    assert asked == ["Enter passphrase for 'key':", "Continue (yes/no)?\nReally?"]
    assert not Path(environment["SSH_ASKPASS"]).exists()  # noqa: ASYNC240 - a look is no work
