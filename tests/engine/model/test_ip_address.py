"""IP addresses: one spelling of each, IPv4 within IPv6, and the interface of a link-local one."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.ip_address import (
    canonical_host,
    is_loopback_address,
    parse_ip_address,
    unmap_ip_address,
)
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SocketOptions


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
    """Whatever the user typed."""
    assert canonical_host(canonical_host(text)) == canonical_host(text)


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
