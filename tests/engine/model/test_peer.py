"""Peers: addresses in text, `ssh://…` without options of ssh in it, IP addresses, and keys."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import InvalidKeyError, PlanError
from linkgauge.engine.model.peer import (
    DEFAULT_PORT,
    LOOPBACK,
    IpVersion,
    Peer,
    SharedKey,
    SshSettings,
    canonical_host,
    check_port,
    is_loopback_address,
    parse_ip_address,
    unmap_ip_address,
)
from linkgauge.engine.model.plan import SocketOptions


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
    """With and without a port, IPv6 in brackets where a port follows."""
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


@pytest.mark.parametrize("address", ["fe80::1", "FE80::A:1", "febf::1"])
@pytest.mark.parametrize("form", ["{}", "[{}]", "[{}]:5210", "ssh://[{}]", "ssh://me@[{}]:22"])
def test_a_link_local_address_needs_an_interface(address: str, form: str) -> None:
    """The error shows how it is written."""
    with pytest.raises(PlanError, match=f"{address}%eth0"):
        Peer.parse(form.format(address))
    with pytest.raises(PlanError, match=f"invalid; .*{address}%eth0"):
        SocketOptions(source=address)


@pytest.mark.parametrize(
    "zone",
    ["", "x" * 16, "a/b", "../a", "a b", "a\tb", "a\x1b", "a:1", "a[b", "ä" * 8, ".", "..", "a\0", "a\u200b"],
)
@pytest.mark.parametrize("form", ["fe80::1%{}", "[fe80::1%{}]:5210", "ssh://[fe80::1%{}]"])
def test_the_name_of_an_interface_is_checked_where_it_is_read(zone: str, form: str) -> None:
    """No slash, space, colon or control character of it gets any further."""
    with pytest.raises(PlanError) as caught:
        Peer.parse(form.format(zone))
    assert str(caught.value).isprintable()
    with pytest.raises(PlanError):
        SocketOptions(source=f"fe80::1%{zone}")


@pytest.mark.parametrize("host", ["2001:db8::1%eth0", "192.0.2.1%eth0", "db-02%eth0", "::1%lo", "169.254.0.1%eth0"])
def test_only_a_link_local_address_has_an_interface(host: str) -> None:
    """Elsewhere it means nothing."""
    with pytest.raises(PlanError, match="only a link-local"):
        Peer.parse(host)


@given(st.sampled_from(["db-02", "::1", "fe80::1%eth0", "192.0.2.1", "loopback"]), st.integers(1, 65_535))
def test_a_peer_as_text_is_the_same_peer(host: str, port: int) -> None:
    """What is shown can be typed in again."""
    peer = Peer(host, port)
    assert Peer.parse(str(peer)) == peer
    assert peer.is_loopback == (host == "loopback")


@pytest.mark.parametrize(
    ("spelling", "host"),
    [
        ("DB-02", "db-02"),
        ("db-02.", "db-02"),
        ("Db-02.Example.COM.", "db-02.example.com"),
        ("B\u00dcRO.example", "xn--bro-hoa.example"),
        ("xn--BRO-hoa.example", "xn--bro-hoa.example"),
        ("2001:DB8:0:0::0001", "2001:db8::1"),
        ("2001:db8::0.0.0.1", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::FFFF:C000:0201", "192.0.2.1"),
        ("fe80:0::1%eth0", "fe80::1%eth0"),
        ("fe80::1%ETH0", "fe80::1%ETH0"),
        ("\uff11\uff19\uff12.0.2.1", "192.0.2.1"),
        ("192.0.513", "192.0.2.1"),
        ("0300.0.2.0x1", "192.0.2.1"),
        ("3221225985", "192.0.2.1"),
        ("0xC0000201", "192.0.2.1"),
        ("256.1", "256.1"),
        ("1.2.3.4.5", "1.2.3.4.5"),
        ("x" * 70 + "\u00fc", "x" * 70 + "\u00fc"),
    ],
)
def test_every_spelling_of_a_host_is_the_same_peer(spelling: str, host: str) -> None:
    """The resolver leads them to one host, so they have one key; another port is another peer."""
    assert canonical_host(spelling) == host
    assert canonical_host(host) == host
    assert Peer(spelling).identity == Peer(host).identity != Peer(host, 1).identity


@pytest.mark.parametrize("spelling", ["127.1", "0x7f000001", "0177.0.0.01", "::1", "0:0::1", "2130706433"])
def test_an_address_is_read_as_the_resolver_reads_it(spelling: str) -> None:
    """Or a key would be looked up for another address than the one that is connected to."""
    resolved = socket.getaddrinfo(spelling, 1, type=socket.SOCK_STREAM)[0][4][0]
    assert canonical_host(spelling) == resolved


@given(st.text(min_size=1, max_size=20))
def test_the_one_spelling_of_a_host_is_its_own(text: str) -> None:
    """Whatever a person typed."""
    assert canonical_host(canonical_host(text)) == canonical_host(text)


def test_the_loopback_peer_needs_no_address() -> None:
    """It stands for an embedded endpoint."""
    assert LOOPBACK.is_loopback
    assert check_port(1) == 1
    with pytest.raises(PlanError, match="65535"):
        check_port(0)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::", False),
        ("0.0.0.0", False),  # noqa: S104 - not bound here
        ("10.0.0.1", False),
        ("fe80::1%eth0", False),
    ],
)
def test_only_the_loopback_interface_needs_no_key(address: str, expected: bool) -> None:
    """All addresses of this host are more than that."""
    assert is_loopback_address(address) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("2001:db8::1", "2001:db8::1"),
        ("", ""),
        ("UNKNOWN", "UNKNOWN"),
    ],
)
def test_ipv4_is_written_as_ipv4_and_all_else_stays(text: str, expected: str) -> None:
    """A log names a client in one way, whichever socket it came by."""
    assert unmap_ip_address(text) == expected


def test_an_address_is_read_without_its_scope_and_anything_else_is_an_error() -> None:
    """Networks and families are those of the address beneath."""
    assert str(parse_ip_address("fe80::1%eth0")) == "fe80::1"
    assert parse_ip_address("::ffff:192.0.2.1").version == 4
    with pytest.raises(ValueError, match="does not appear to be"):
        parse_ip_address("db-02")


@pytest.mark.parametrize(
    "text", ["", "short", "x" * 15, "x" * 1_025, "has a blank in it", "has\nlines-in-it-x", "schlüssel-schlüssel"]
)
def test_a_key_that_is_short_or_cannot_be_typed_is_refused_and_not_repeated(text: str) -> None:
    """The error says what a key is, and never what was given."""
    with pytest.raises(InvalidKeyError, match="16 to 1024 letters") as caught:
        SharedKey(text)
    assert not text or text not in str(caught.value)


def test_a_new_key_is_usable_random_and_hidden() -> None:
    """No two are the same, none begins like an option, and none shows in a repr."""
    keys = [SharedKey.generate() for _ in range(20)]
    assert len({key.reveal() for key in keys}) == 20
    assert not any(key.reveal().startswith("-") or key.reveal() in repr(key) for key in keys)
    assert SharedKey.generate(lambda count: "n" * count).reveal() == "k" + "n" * 24


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
