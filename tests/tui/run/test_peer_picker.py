"""The choice of a peer: known peers, and whether they answer."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from linkgauge.discovery.announcement import FoundEndpoint
from linkgauge.engine.model.errors import PeerUnreachable
from linkgauge.engine.model.peer import Iperf3Settings, Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.kit.screens.prompts import TextPrompt
from linkgauge.tui.run.cockpit_screen import CockpitScreen
from linkgauge.tui.run.peer_picker import known_peers, read_ssh_config, recent_peers, ssh_hosts
from textual.widgets import Input, OptionList

from ..scripted_run import store_run
from ..stored_runs import entry_of

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


@pytest.fixture
def run_with(world: Any, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Give a function that stores a run with a peer in the run log of the app."""
    with RunLog.open(tmp_path / "runs") as log:

        def store(peer: str) -> None:
            script = world.script_of(world.catalog.find("gbe-fd-1500"), Plan(duration_ns=SECOND_NS))
            script.run_for(8, 9e8)
            script.end()
            store_run(log, "20261121-100000-a2b3", script, peer=peer)

        world.history = log
        yield store


@pytest.mark.parametrize(
    ("text", "peer"),
    [("db-02:5820", Peer("db-02", 5820)), ("[fe80::1%eth0]:5210", Peer("fe80::1%eth0", 5_210))],
)
async def test_a_known_peer_is_chosen_with_the_arrows_and_marked_by_whether_it_answers(
    world: Any, run_with: Callable[[str], None], text: str, peer: Peer
) -> None:
    """Its name goes into the input line, so that enter takes it."""
    run_with(text)
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("c")
        screen = cockpit.app.screen
        assert isinstance(screen, TextPrompt)
        await screen.workers.wait_for_complete([w for w in screen.workers if w.node is screen])
        await cockpit.settle()
        assert f"✓ {text}" in cockpit.text()
        assert "16 cores" in cockpit.text()
        await cockpit.press("down", "down")
        assert screen.query_one(Input).value == text
        await cockpit.press("enter")
        await cockpit.end()
        assert isinstance(cockpit.app.screen, CockpitScreen)
        assert cockpit.app.cockpit.state.peer == peer


async def test_a_silent_peer_is_reported_and_can_still_be_chosen(
    world: Any, run_with: Callable[[str], None]
) -> None:
    """It may come back."""
    run_with("db-02:5820")
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


NEW_KEY = SharedKey.generate().reveal()


@pytest.mark.every
@pytest.mark.parametrize(
    "text",
    [NEW_KEY, f"LINKGAUGE_KEY={NEW_KEY}", pytest.param("0123456789abcdef" * 3, marks=pytest.mark.every)],
    ids=["new", "set", "hex"],
)
async def test_a_key_alone_is_for_the_current_peer(world: Any, text: str) -> None:
    """It was copied without its command. On loopback there is no peer that it could be for."""
    async with world.cockpit((120, 40), peer=Peer("db-02", 6000)) as cockpit:
        await cockpit.press("c")
        cockpit.app.screen.query_one(Input).value = text
        await cockpit.press("enter")
        await cockpit.end()
        assert world.probed[-1] == Peer("db-02", 6000)
        assert world.probed[-1].access.key.reveal() == text.rpartition("=")[2]
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("c")
        cockpit.app.screen.query_one(Input).value = text
        await cockpit.press("enter")
        assert "a key alone names no host" in cockpit.text()


async def test_the_command_that_an_endpoint_prints_is_a_peer_with_its_key(world: Any) -> None:
    """Pasted as it was copied, with the key before it."""
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("c")
        command = f"LINKGAUGE_KEY={NEW_KEY} linkgauge check auto db-02:6000"
        cockpit.app.screen.query_one(Input).value = command
        await cockpit.press("enter")
        await cockpit.end()
        assert world.probed[-1] == Peer("db-02", 6000)
        assert world.probed[-1].access.key.reveal() == NEW_KEY


@pytest.mark.every
async def test_a_long_host_name_is_not_a_key(world: Any) -> None:
    """Clouds make such names."""
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("c")
        cockpit.app.screen.query_one(Input).value = "ip-10-0-0-12-internal-database-01"
        await cockpit.press("enter")
        await cockpit.end()
        assert world.probed[-1] == Peer("ip-10-0-0-12-internal-database-01")


async def test_an_announced_endpoint_is_listed_and_not_connected_to(
    world: Any, run_with: Callable[[str], None]
) -> None:
    """Anybody can announce any address. A peer of the list is not listed twice."""
    run_with("10.9.0.2:5820")
    iperf3 = Peer("10.9.0.7", 5201, iperf3=Iperf3Settings())
    world.announced = [
        FoundEndpoint("rack 2", Peer("10.9.0.2", 5820), 3, wants_key=False, wants_tls=False),
        FoundEndpoint("rack 7", Peer("10.9.0.7", 5820), 3, wants_key=True, wants_tls=True, iperf3_peer=iperf3),
    ]
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("c")
        screen = cockpit.app.screen
        await screen.workers.wait_for_complete([w for w in screen.workers if w.node is screen])
        await cockpit.settle()
        assert screen.query_one(OptionList).option_count == 4  # loopback is the first
        assert "announces itself as rack 7, wants a key and TLS" in cockpit.text()
        assert "rack 2" not in cockpit.text()
        assert {peer.host for peer in world.probed} == {"10.9.0.2"}
        await cockpit.press("up", "up")
        assert screen.query_one(Input).value == "10.9.0.7:5820"
        await cockpit.press("enter")
        await cockpit.end()
        assert cockpit.app.cockpit.state.peer == Peer("10.9.0.7", 5820)


@pytest.mark.every
async def test_a_lan_full_of_announcements_leaves_the_list_short(world: Any) -> None:
    """`linkgauge discover` lists them all."""
    world.announced = [
        FoundEndpoint(f"rack {number}", Peer(f"10.9.1.{number}", 5820), 3, wants_key=None, wants_tls=None)
        for number in range(1, 200)
    ]
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("c")
        screen = cockpit.app.screen
        await screen.workers.wait_for_complete([w for w in screen.workers if w.node is screen])
        assert screen.query_one(OptionList).option_count == 13


def test_hosts_of_ssh_are_the_names_that_are_not_patterns() -> None:
    """By name or `=`, several on a line, without comments. An open quotation has no hosts."""
    assert ssh_hosts(CONFIG) == ["db-02", "web-07", "jump", "quoted host"]
    assert ssh_hosts("") == []


def test_each_peer_of_the_log_is_offered_once_with_its_newest_run() -> None:
    """This machine and invalid peers are left out."""
    rows = [
        entry_of("db-02:5820", "short"),
        entry_of("loopback"),
        entry_of("db-02:5820"),
        entry_of("a b:x:y"),
        entry_of("db-03", None),
    ]
    assert [(known_peer.text, known_peer.source) for known_peer in recent_peers(rows)] == [
        ("db-02:5820", "2026-11-21, ▼ SHORT"),
        ("db-03", "2026-11-21"),
    ]


def test_a_peer_that_is_spelled_in_several_ways_is_offered_once() -> None:
    """It is spelled as in its newest run."""
    rows = [
        entry_of("DB-02."),
        entry_of("db-02:5820"),
        entry_of("[2001:db8:0::1]:5820"),
        entry_of("[2001:db8::1]:5820"),
        entry_of("127.1"),
    ]
    assert [peer.text for peer in recent_peers(rows)] == ["DB-02.", "[2001:db8:0::1]:5820"]


def test_peers_from_the_ssh_configuration_come_last_and_are_not_probed() -> None:
    """A query would start a program there. Hosts of earlier runs are in the list already."""
    found = known_peers([entry_of("ssh://web-07"), entry_of("db-03")], CONFIG)
    assert [known_peer.text for known_peer in found] == [
        "loopback",
        "ssh://web-07",
        "db-03",
        "ssh://db-02",
        "ssh://jump",
    ]
    assert [known_peer.text for known_peer in found if known_peer.can_query] == ["db-03"]


def test_a_missing_or_binary_ssh_configuration_is_read_as_far_as_possible(tmp_path: Path) -> None:
    """Without it, the user has no hosts by name."""
    assert read_ssh_config(tmp_path) == ""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_bytes(b"Host \xff\xfe\nHost db-02\n")
    assert "db-02" in ssh_hosts(read_ssh_config(tmp_path))


def test_peers_that_were_gone_after_their_run_are_not_offered() -> None:
    """Addresses of a lab or of this machine and endpoints of a mesh: nothing listens there any more."""
    rows = [
        replace(entry_of("192.0.2.8:40123"), group="mesh-20270101-000000-aaaa"),
        entry_of("198.18.0.2:40001"),
        entry_of("127.0.0.1:5820"),
        entry_of("[::1]:5820"),
        entry_of("localhost"),
        entry_of("192.0.2.7"),
    ]
    assert [peer.text for peer in recent_peers(rows)] == ["192.0.2.7"]
