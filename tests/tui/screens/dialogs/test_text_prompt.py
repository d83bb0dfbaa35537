"""What ssh asks, in the app: the question stands there whole, and only what may be seen is."""

import asyncio
from typing import Any

import pytest
from linkgauge.engine.model.peer import Peer

UNKNOWN_HOST = (
    "The authenticity of host 'db-02 (192.0.2.7)' can't be established.\n"
    "Are you sure you want to continue connecting (yes/no/[fingerprint])? "
)


@pytest.mark.parametrize(
    ("question", "typed", "is_shown"),
    [(UNKNOWN_HOST, "yes", True), ("Enter passphrase for key '/home/me/.ssh/id':", "sesame", False)],
    ids=["unknown host", "passphrase"],
)
async def test_a_question_is_answered_with_what_is_typed(
    world: Any, question: str, typed: str, *, is_shown: bool
) -> None:
    """A passphrase stays hidden, yes or no does not."""
    async with world.cockpit(peer=Peer.parse("ssh://db-02")) as cockpit:
        asking = asyncio.create_task(cockpit.app.ask(question))
        await cockpit.settle()
        await cockpit.press(*typed)
        text = " ".join(cockpit.text().split())
        assert "ssh asks" in text
        assert question.split("\n", maxsplit=1)[0] in text
        assert (typed in text.replace("yes/no", "")) is is_shown
        await cockpit.press("enter")
        assert await asyncio.wait_for(asking, 20) == typed


async def test_a_question_closes_when_its_caller_is_cancelled(world: Any) -> None:
    """As when ssh gives up. Escape answers None."""
    async with world.cockpit(peer=Peer.parse("ssh://db-02")) as cockpit:
        asking = asyncio.create_task(cockpit.app.ask(UNKNOWN_HOST))
        await cockpit.settle()
        asking.cancel()
        await asyncio.wait([asking])
        await cockpit.settle()
        assert "ssh asks" not in cockpit.text()
        asking = asyncio.create_task(cockpit.app.ask(UNKNOWN_HOST))
        await cockpit.settle()
        await cockpit.press("escape")
        assert await asyncio.wait_for(asking, 20) is None
