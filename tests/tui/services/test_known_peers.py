"""The far ends that are offered: from the run log and from ssh's configuration, and nothing that is no peer."""

from pathlib import Path
from typing import Any

from linkgauge.engine.model.errors import PeerUnreachable
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.results.run_log import RunRecord
from linkgauge.tui.screens.dialogs.text_prompt import TextPrompt
from linkgauge.tui.screens.run.cockpit_screen import CockpitScreen
from linkgauge.tui.services.known_peers import known_peers, read_ssh_config, recent_peers, ssh_hosts
from textual.widgets import Input, OptionList

CONFIG = """
# Host commented
Host db-02 web-07   # two names
    HostName 10.0.0.2
host=jump
  HostName jump.example.org
Host *.example.org !bad pat?ern "quoted host"
Match host db-02
    User me
Host "unended
"""


def row(peer: str, verdict: str | None = "pass", day: str = "2026-11-21") -> RunRecord:
    """Return a run of the log."""
    return RunRecord("id", "gbe-fd-1500", peer, None, f"{day}T10:00:00Z", None, None, verdict, None, False)


def test_hosts_of_ssh_are_those_that_are_no_patterns() -> None:
    """By name or `=`, several on a line, comments left out; a quotation without an end names nobody."""
    assert ssh_hosts(CONFIG) == ["db-02", "web-07", "jump", "quoted host"]
    assert ssh_hosts("") == []


def test_each_peer_of_the_log_is_offered_once_with_its_newest_run() -> None:
    """This machine and what is no peer are left out."""
    rows = [row("db-02:5820", "short"), row("loopback"), row("db-02:5820"), row("a b:x:y"), row("db-03", None)]
    assert [(one.text, one.source) for one in recent_peers(rows)] == [
        ("db-02:5820", "2026-11-21, ▼ SHORT"),
        ("db-03", "2026-11-21"),
    ]


def test_what_ssh_knows_comes_last_and_is_not_asked() -> None:
    """To ask it, something would have to be started there; a host that a run was made with is there already."""
    found = known_peers([row("ssh://web-07"), row("db-03")], CONFIG)
    assert [one.text for one in found] == ["loopback", "ssh://web-07", "db-03", "ssh://db-02", "ssh://jump"]
    assert [one.text for one in found if one.can_query] == ["db-03"]


def test_an_ssh_configuration_that_is_not_there_or_no_text_is_none(tmp_path: Path) -> None:
    """A person without one has no hosts by name."""
    assert read_ssh_config(tmp_path) == ""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_bytes(b"Host \xff\xfe\nHost db-02\n")
    assert "db-02" in ssh_hosts(read_ssh_config(tmp_path))


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


async def test_a_peer_that_does_not_answer_is_told_and_can_be_chosen_all_the_same(world: Any) -> None:
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
