"""The prompts of the app: ssh's questions, a key, the address of a peer, and yes or no before runs are deleted."""

import asyncio
from typing import Any

import pytest
from linkgauge.engine.model.errors import (
    PeerKeyRequired,
)
from linkgauge.engine.model.peer import Peer
from linkgauge.tui.kit.screens.prompts import ConfirmScreen, TextPrompt
from textual.widgets import Input

from ...stored_runs import FIRST, LOST, SHORT, open_history, run_ids, until

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


async def test_c_connects_to_another_peer(world: Any) -> None:
    """The dialog explains an invalid peer; a valid one is queried at once."""
    async with world.cockpit() as cockpit:
        await cockpit.press("c")
        field = cockpit.app.screen.query_one(Input)
        field.value = "db-02:99999"
        await cockpit.press("enter")
        assert isinstance(cockpit.app.screen, TextPrompt)
        assert "port 99999 is invalid" in cockpit.text()
        field.value = "db-02:6000"
        await cockpit.press("enter")
        await cockpit.end()
        assert world.probed[-1] == Peer("db-02", 6000)
        assert "db-02:6000" in cockpit.line(0)


FAR = Peer("db-02")


@pytest.mark.every
async def test_a_far_end_with_a_key_makes_the_app_prompt_for_it(world: Any) -> None:
    """The prompt hides the key and explains an invalid one; the app then queries the far end with it."""
    world.refusal = PeerKeyRequired("db-02:5820 asks for a key: set LINKGAUGE_KEY")
    async with world.cockpit((120, 40), peer=FAR) as cockpit:
        await cockpit.end()
        assert f"key of {FAR}" in cockpit.text()
        await cockpit.press(*"tiny", "enter")
        assert "16 to 1024 letters" in cockpit.text()
        assert "tiny" not in cockpit.text()
        world.refusal = None
        await cockpit.press(*"-and-then-some", "enter")
        await cockpit.end()
        access = world.probed[-1].access
        assert access is not None
        assert access.key.reveal() == "tiny-and-then-some"
        assert "Save the key" in cockpit.text()
        await cockpit.press("n")
        assert "key of" not in cockpit.text()
        assert "READY" in cockpit.line(0)


async def test_deleting_asks_first(world: Any, history_log: Any) -> None:
    """Anything but yes keeps the runs; yes deletes all that are marked."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit, "x")
        assert isinstance(cockpit.app.screen, ConfirmScreen)
        assert LOST in cockpit.text()
        await cockpit.press("enter")
        assert len(run_ids(cockpit)) == 4
        await cockpit.press("space", "space", "delete", "y")
        await until(cockpit, lambda: len(run_ids(cockpit)) == 2)
        assert [row.run_id for row in history_log.list_runs()] == [SHORT, FIRST]
