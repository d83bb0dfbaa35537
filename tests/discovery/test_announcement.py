"""Announcements are read without trust."""

from ipaddress import ip_interface
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.discovery.announcement import (
    SERVICE_TYPE,
    Announcement,
    FoundEndpoint,
    find_address,
    read_announcement,
)
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.peer import Peer
from linkgauge.tui.session.credentials import with_access

NAME = f"rack 7.{SERVICE_TYPE}"


def test_an_announcement_comes_back_as_it_was_written() -> None:
    """It has no host name, no key and no fingerprint."""
    made = Announcement("rack 7", 5820, wants_key=True, wants_tls=False, iperf3_port=5201)
    properties = {key.encode(): value.encode() for key, value in made.properties().items()}
    assert set(properties) == {b"v", b"key", b"tls", b"iperf3"}
    found = read_announcement(NAME, ["192.0.2.7"], 5820, properties)
    assert found is not None
    assert (found.name, found.wants_key, found.wants_tls) == ("rack 7", True, False)
    assert (str(found.peer), str(found.iperf3_peer)) == ("192.0.2.7:5820", "iperf3://192.0.2.7:5201")


@pytest.mark.parametrize("name", ["", " ", "a\x1b[31m", "x" * 64, "ä" * 32, "a\nb"])
def test_a_name_that_cannot_be_announced_is_refused(name: str) -> None:
    """Before anything is sent."""
    with pytest.raises(PlanError):
        Announcement(name, 5820, wants_key=True, wants_tls=False)


@given(
    st.text(max_size=300),
    st.lists(st.one_of(st.ip_addresses().map(str), st.text(max_size=40)), max_size=40),
    st.one_of(st.none(), st.integers()),
    st.dictionaries(st.sampled_from([b"v", b"key", b"tls", b"iperf3", b"x"]), st.one_of(st.none(), st.binary())),
)
def test_any_announcement_gives_a_printable_endpoint_or_none(
    name: str, addresses: list[str], port: int | None, properties: dict[bytes, bytes | None]
) -> None:
    """No control character reaches a terminal."""
    found = read_announcement(f"{name}.{SERVICE_TYPE}", addresses, port, properties)
    assert found is None or (f"{found.name}{found.peer}".isprintable() and len(found.name) <= 63)


@pytest.mark.parametrize(
    ("addresses", "chosen"),
    [
        (["2001:db8::7", "192.0.2.7"], "192.0.2.7"),
        (["fe80::7%eth0", "2001:db8::7"], "2001:db8::7"),
        (["fe80::7"], None),
        (["127.0.0.1", "::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"], None),  # noqa: S104
        (["::ffff:127.0.0.1"], None),
        (["loopback", "ssh://host", "-oProxyCommand=x"], None),
        (["192.0.2.7"] * 5_000, "192.0.2.7"),
    ],
)
def test_only_the_address_of_another_host_is_used(addresses: list[str], chosen: str | None) -> None:
    """A name would be looked up, and loopback is this host."""
    assert find_address(addresses) == chosen


@pytest.mark.parametrize(
    ("addresses", "chosen"),
    [
        (["172.17.0.1", "192.168.1.7"], "192.168.1.7"),  # both hosts have containers
        (["10.9.0.1", "192.168.1.7"], "192.168.1.7"),
        (["10.9.0.1", "2001:db8::7"], "2001:db8::7"),
        (["192.0.2.7", "10.9.0.1"], "192.0.2.7"),  # neither is in a network of this host
        (["192.168.1.4"], "192.168.1.4"),  # an endpoint on this host itself
        (["fe80::7%eth0", "172.17.0.1"], "172.17.0.1"),
    ],
)
def test_an_address_in_a_network_of_this_host_comes_first(addresses: list[str], chosen: str) -> None:
    """Bridges of containers have the same addresses on many hosts."""
    own = [ip_interface(each) for each in ("192.168.1.4/24", "172.17.0.1/16", "2001:db8::4/64", "fe80::4/64")]
    assert find_address(addresses, own) == chosen


def test_credentials_of_a_name_are_not_shown_to_an_address_that_claims_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They belong to the host that the user named, or to the address itself."""
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("LINKGAUGE_KEY", raising=False)
    monkeypatch.setenv("IPERF3_PASSWORD", "secret")
    keys = tmp_path / "keys"
    keys.write_text("db-02 a-key-of-this-test\ndb-02.local a-key-of-this-test\n192.0.2.7 the-key-of-that-address\n")
    keys.chmod(0o600)

    def key_shown(found: FoundEndpoint | None) -> str | None:
        assert found is not None
        access = with_access(Peer.parse(str(found.peer))).access
        return None if access is None or access.key is None else access.key.reveal()

    for name in ("db-02", "db-02.local", "db-02:5820"):
        assert key_shown(read_announcement(f"{name}.{SERVICE_TYPE}", ["192.0.2.66"], 5820, {})) is None
    assert key_shown(read_announcement(NAME, ["192.0.2.7"], 5821, {})) is None
    assert key_shown(read_announcement(NAME, ["192.0.2.7"], 5820, {})) == "the-key-of-that-address"
    found = read_announcement(f"db-02.{SERVICE_TYPE}", ["192.0.2.66"], 5820, {b"iperf3": b"5201"})
    assert found is not None
    assert found.iperf3_peer is not None
    iperf3 = with_access(found.iperf3_peer).iperf3
    assert iperf3 is not None
    assert iperf3.login is None
