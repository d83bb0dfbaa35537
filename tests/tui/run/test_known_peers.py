"""The far ends that are offered: from the run log and from ssh's configuration, and nothing that is no peer."""

from dataclasses import replace
from pathlib import Path

from linkgauge.tui.run.known_peers import known_peers, read_ssh_config, recent_peers, ssh_hosts

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


def test_hosts_of_ssh_are_those_that_are_no_patterns() -> None:
    """By name or `=`, several on a line, comments left out; a quotation without an end names nobody."""
    assert ssh_hosts(CONFIG) == ["db-02", "web-07", "jump", "quoted host"]
    assert ssh_hosts("") == []


def test_each_peer_of_the_log_is_offered_once_with_its_newest_run() -> None:
    """This machine and what is no peer are left out."""
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
    """As its newest run was started."""
    rows = [
        entry_of("DB-02."),
        entry_of("db-02:5820"),
        entry_of("[2001:db8:0::1]:5820"),
        entry_of("[2001:db8::1]:5820"),
        entry_of("127.1"),
    ]
    assert [peer.text for peer in recent_peers(rows)] == ["DB-02.", "[2001:db8:0::1]:5820"]


def test_peers_from_the_ssh_configuration_come_last_and_are_not_probed() -> None:
    """To ask it, something would have to be started there; a host that a run was made with is there already."""
    found = known_peers([entry_of("ssh://web-07"), entry_of("db-03")], CONFIG)
    assert [known_peer.text for known_peer in found] == [
        "loopback",
        "ssh://web-07",
        "db-03",
        "ssh://db-02",
        "ssh://jump",
    ]
    assert [known_peer.text for known_peer in found if known_peer.can_query] == ["db-03"]


def test_an_ssh_configuration_that_is_not_there_or_no_text_is_none(tmp_path: Path) -> None:
    """A person without one has no hosts by name."""
    assert read_ssh_config(tmp_path) == ""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_bytes(b"Host \xff\xfe\nHost db-02\n")
    assert "db-02" in ssh_hosts(read_ssh_config(tmp_path))


def test_peers_that_were_gone_after_their_run_are_not_offered() -> None:
    """A lab's addresses, this machine's own, and a mesh's endpoints: nothing listens there any more."""
    rows = [
        replace(entry_of("192.0.2.8:40123"), group="mesh-20270101-000000-aaaa"),
        entry_of("198.18.0.2:40001"),
        entry_of("127.0.0.1:5820"),
        entry_of("[::1]:5820"),
        entry_of("localhost"),
        entry_of("192.0.2.7"),
    ]
    assert [peer.text for peer in recent_peers(rows)] == ["192.0.2.7"]
