"""The far end of the app: up from one run to the next, and down with another peer."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from linkgauge.engine.model.errors import PeerError
from linkgauge.engine.model.peer import LOOPBACK, Peer, SshSettings
from linkgauge.engine.near import connect
from linkgauge.tui.app.far_end_keeper import FarEndKeeper

SSH_PEER = Peer.parse("ssh://ops@db-02:2222")


async def no_prompt(*_arguments: Any) -> None:
    """Answer nothing: no test asks."""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Peer]]:
    """Return the list of far ends as they open and close; the one of db-09 cannot be opened."""
    steps: list[tuple[str, Peer]] = []

    @asynccontextmanager
    async def open_far_end(peer: Peer, _prompt: object) -> AsyncGenerator[Peer]:
        if peer.host == "db-09":
            raise PeerError("permission denied")
        steps.append(("open", peer))
        try:
            yield peer
        finally:
            steps.append(("close", peer))

    monkeypatch.setattr(connect, "open_far_end", open_far_end)
    return steps


async def test_a_far_end_is_opened_once_for_all_runs_and_closed_at_the_end(steps: list[tuple[str, Peer]]) -> None:
    """The user logs in once."""
    keeper = FarEndKeeper(no_prompt)
    assert await keeper.get_far_end(LOOPBACK) is await keeper.get_far_end(LOOPBACK)
    assert steps == [("open", LOOPBACK)]
    await keeper.aclose()
    await keeper.aclose()
    assert steps == [("open", LOOPBACK), ("close", LOOPBACK)]


async def test_another_peer_closes_the_far_end_before_its_own_is_opened(steps: list[tuple[str, Peer]]) -> None:
    """User and port are the peer's, every other setting of ssh the command line's."""
    keeper = FarEndKeeper(no_prompt, SshSettings(command="ssh -i lab"))
    await keeper.get_far_end(LOOPBACK)
    await keeper.get_far_end(SSH_PEER)
    await keeper.aclose()
    assert [step for step, _ in steps] == ["open", "close", "open", "close"]
    ssh = steps[2][1].ssh
    assert ssh is not None
    assert (ssh.user, ssh.port, ssh.command) == ("ops", 2222, "ssh -i lab")


async def test_another_far_end_opens_after_one_that_failed_to(steps: list[tuple[str, Peer]]) -> None:
    """Nothing of the failure is left."""
    keeper = FarEndKeeper(no_prompt)
    with pytest.raises(PeerError, match="permission denied"):
        await keeper.get_far_end(Peer.parse("ssh://db-09"))
    await keeper.get_far_end(LOOPBACK)
    assert steps == [("open", LOOPBACK)]
    await keeper.aclose()
