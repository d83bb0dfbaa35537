"""IP addresses in text: scopes, and IPv4 that a socket of both families writes as IPv6."""

import pytest
from linkgauge.engine.model.ip_address import is_loopback_address, parse_ip_address, unmap_ip_address


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
