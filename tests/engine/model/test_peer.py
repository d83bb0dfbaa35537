"""Peers: addresses in text, `ssh://…` without options of ssh in it, IP addresses, and keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.ip_address import (
    IpVersion,
)
from linkgauge.engine.model.peer import DEFAULT_PORT, LOOPBACK, Peer, SshSettings, check_port


@pytest.mark.parametrize(
    ("text", "host", "ssh"),
    [
        ("ssh://db-02", "db-02", SshSettings()),
        ("ssh://office\\me@db-02", "db-02", SshSettings("office\\me")),
        ("ssh://me@db-02:2222", "db-02", SshSettings("me", 2222)),
        ("ssh://[fe80::1%eth0]:22", "fe80::1%eth0", SshSettings(port=22)),
        ("ssh://[fe80::1%ünet0]:22", "fe80::1%ünet0", SshSettings(port=22)),
        (" ssh://10.0.0.1/ ", "10.0.0.1", SshSettings()),
        ("ssh://loopback", "loopback", SshSettings()),
    ],
)
def test_an_address_is_a_host_and_how_to_log_in(text: str, host: str, ssh: SshSettings) -> None:
    """The port is ssh's; written out again it is the same place."""
    peer = Peer.parse(text)
    assert (peer.host, peer.ssh) == (host, ssh)
    assert Peer.parse(str(peer)) == peer
    assert not peer.is_loopback


@pytest.mark.parametrize(
    "text",
    [
        "ssh://",
        "ssh://me@",
        "ssh://-oProxyCommand=x",
        "ssh://-lroot@db-02",
        "ssh://`id`",
        "ssh://$(id)",
        "ssh://db;id",
        "ssh://db|id@db-02",
        "ssh://`id`@db-02",
        "ssh://db'02",
        "ssh://me\\@db-02",
        "ssh://db\\02",
        "ssh://me:secret@db-02",
        "ssh://db-02:0",
        "ssh://db-02:65536",
        "ssh://db-02:http",
        "ssh://db-02/tmp",
        "ssh://[::1",
        "ssh://[::1]22",
        "ssh://[-oX]",
        "ssh://a b",
        "ssh://a\nb",
        pytest.param("db-02:" + "9" * 5_000, id="digits without end"),
    ],
)
def test_an_invalid_address_is_a_plan_error(text: str) -> None:
    """Options in disguise and passwords among it."""
    with pytest.raises(PlanError):
        Peer.parse(text)


@given(st.text(max_size=30))
def test_no_host_and_no_user_begins_with_a_dash(text: str) -> None:
    """Whatever is typed."""
    try:
        peer = Peer.parse(f"ssh://{text}")
    except PlanError as error:
        assert str(error).isprintable()  # noqa: PT017 - most texts raise, a few do not
    else:
        assert peer.ssh is not None
        assert not peer.host.startswith("-")
        assert not (peer.ssh.user or "").startswith("-")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("db-02", "db-02", DEFAULT_PORT),
        (" db-02 ", "db-02", DEFAULT_PORT),
        ("db-02:7", "db-02", 7),
        ("192.0.2.1:65535", "192.0.2.1", 65_535),
        ("2001:db8::1", "2001:db8::1", DEFAULT_PORT),
        ("[2001:db8::1]", "2001:db8::1", DEFAULT_PORT),
        ("[2001:db8::1]:99", "2001:db8::1", 99),
        ("fe80::1%eth0", "fe80::1%eth0", DEFAULT_PORT),
        ("[fe80::1%eth0]", "fe80::1%eth0", DEFAULT_PORT),
        ("[fe80::1%eth0]:5210", "fe80::1%eth0", 5_210),
        ("febf::1%br-lan.100+x@y", "febf::1%br-lan.100+x@y", DEFAULT_PORT),
        ("fe80::1%3", "fe80::1%3", DEFAULT_PORT),
        ("[fe80::1%ünet0]:5210", "fe80::1%ünet0", 5_210),
        ("fe80::1%a%b~\\", "fe80::1%a%b~\\", DEFAULT_PORT),
    ],
)
def test_a_peer_is_read_as_people_write_it(text: str, host: str, port: int) -> None:
    """With and without a port, IPv6 in brackets if a port follows."""
    assert Peer.parse(text) == Peer(host, port)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", ":5820", "a b", "[::1", "[::1]x", "[]", "a\x1b[2J", "x" * 254),
        *("x:0", "x:65536", "x:-1", "x:+5", "x:\u0663", "x:1e3"),
    ],
)
def test_a_peer_that_cannot_be_is_refused_in_words(text: str) -> None:
    """No control character of it gets into the text."""
    with pytest.raises(PlanError) as caught:
        Peer.parse(text)
    assert str(caught.value).isprintable()


@given(st.sampled_from(["db-02", "::1", "fe80::1%eth0", "192.0.2.1", "loopback"]), st.integers(1, 65_535))
def test_a_peer_as_text_is_the_same_peer(host: str, port: int) -> None:
    """What is shown can be typed in again."""
    peer = Peer(host, port)
    assert Peer.parse(str(peer)) == peer
    assert peer.is_loopback == (host == "loopback")


def test_the_loopback_peer_needs_no_address() -> None:
    """It stands for an embedded endpoint."""
    assert LOOPBACK.is_loopback
    assert LOOPBACK.shown == "loopback"
    assert Peer("loopback", 7_000).shown == "loopback"
    assert Peer("::1").shown == "[::1]:5820"
    assert check_port(1) == 1
    with pytest.raises(PlanError, match="65535"):
        check_port(0)


@pytest.mark.parametrize(
    ("host", "own"), [("192.0.2.7", 4), ("2001:db8::7", 6), ("::ffff:192.0.2.7", 4), ("loopback", 4)]
)
def test_an_address_is_limited_to_its_own_ip_version_only(host: str, own: IpVersion) -> None:
    """The other one is refused, with what to leave out."""
    other: IpVersion = 6 if own == 4 else 4
    assert Peer(host).over_ip(own).only_ip == own
    with pytest.raises(PlanError, match=f"{host} is an IPv{own} address: leave out -{other}"):
        Peer(host).over_ip(other)


def test_a_name_has_the_ip_version_that_it_is_limited_to() -> None:
    """Without one it may have both."""
    assert Peer("db-02").ip_version is None
    assert Peer("db-02").over_ip(6).ip_version == 6
    assert Peer("db-02").over_ip(6).over_ip(None).ip_version is None


@pytest.mark.parametrize(
    ("host", "text"), [("10.0.0.9", "browser://10.0.0.9"), ("fe80::1%eth0", "browser://[fe80::1%eth0]")]
)
def test_a_page_is_named_and_cannot_be_connected_to(host: str, text: str) -> None:
    """It comes by itself: the error names the command that serves it."""
    assert str(Peer(host, is_browser=True)) == text
    with pytest.raises(PlanError, match="linkgauge endpoint --http"):
        Peer.parse(text)
