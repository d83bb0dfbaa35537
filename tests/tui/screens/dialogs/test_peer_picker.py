"""The choice of a peer: known peers, and whether they answer."""

from typing import Any

from linkgauge.engine.model.errors import PeerUnreachable
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.results.run_log import RunRecord
from linkgauge.tui.screens.dialogs.prompts import TextPrompt
from linkgauge.tui.screens.run.cockpit_screen import CockpitScreen
from textual.widgets import Input, OptionList


def row(peer: str, verdict: str | None = "pass", day: str = "2026-11-21") -> RunRecord:
    """Return a run of the log."""
    return RunRecord("id", "gbe-fd-1500", peer, None, f"{day}T10:00:00Z", None, None, verdict, None, False)


class Kept:
    """A history of these runs, which is all the picker asks for."""

    def __init__(self, *rows: RunRecord) -> None:
        self._rows = rows

    def list_runs(self) -> tuple[RunRecord, ...]:
        """Return them."""
        return self._rows


async def test_a_known_peer_is_chosen_with_the_arrows_and_marked_by_whether_it_answers(world: Any) -> None:
    """Its name goes into the line, so that enter takes what stands there."""
    world.history = Kept(row("db-02:5820"))
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("c")
        screen = cockpit.app.screen
        assert isinstance(screen, TextPrompt)
        await screen.workers.wait_for_complete([w for w in screen.workers if w.node is screen])
        await cockpit.settle()
        text = cockpit.text()
        assert "✓ db-02:5820" in text
        assert "16 cores" in text
        await cockpit.press("down", "down")
        assert screen.query_one(Input).value == "db-02:5820"
        await cockpit.press("enter")
        await cockpit.end()
        assert isinstance(cockpit.app.screen, CockpitScreen)
        assert cockpit.app.cockpit.state.peer == Peer("db-02", 5820)


async def test_a_silent_peer_is_reported_and_can_still_be_chosen(world: Any) -> None:
    """It may be about to come back."""
    world.history = Kept(row("db-02:5820"))
    world.refusal = PeerUnreachable("db-02:5820 refused the connection")
    async with world.cockpit((80, 24)) as cockpit:
        await cockpit.press("c")
        screen = cockpit.app.screen
        await screen.workers.wait_for_complete([w for w in screen.workers if w.node is screen])
        await cockpit.settle()
        assert "✗ db-02:5820" in cockpit.text()
        assert screen.query_one(OptionList).option_count == 2
        await cockpit.press("up", "enter")
        assert cockpit.app.cockpit.state.peer == Peer("db-02", 5820)
