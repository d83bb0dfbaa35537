"""The listening socket: by which addresses it is reached."""

import socket

import pytest
from linkgauge.engine.far.listener import (
    format_host,
    listen,
    reachable_hosts,
    spell_for_client,
)


@pytest.mark.parametrize("bind", [None, "0.0.0.0", "127.0.0.1"])  # noqa: S104
def test_every_printed_address_of_an_endpoint_accepts_connections(bind: str | None) -> None:
    """Loopback and link-local addresses lead other hosts to themselves: only a socket bound to one has it."""
    with listen(bind, 0) as listener:
        hosts = reachable_hosts(listener)
        assert hosts
        for host in hosts:
            socket.create_connection((host, listener.getsockname()[1]), 5).close()
        if bind == "127.0.0.1":
            assert hosts == [bind]


def test_the_hosts_name_is_printed_only_if_it_resolves_to_an_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many hosts resolve their own name to loopback; a literal address resolves to itself."""
    with listen(None, 0) as listener:
        addresses = [host for host in reachable_hosts(listener) if host != socket.gethostname()]
        monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
        assert reachable_hosts(listener) == (addresses or ["localhost"])
        if addresses:
            monkeypatch.setattr(socket, "gethostname", lambda: addresses[-1])
            assert reachable_hosts(listener)[0] == addresses[-1]


def test_a_clients_address_has_its_own_notation_and_its_interface() -> None:
    """IPv4 on a socket of both families, and link-local addresses, which are the same on every link."""
    index, name = socket.if_nameindex()[0]
    assert format_host(("::ffff:192.0.2.1", 5820, 0, 0)) == "192.0.2.1"
    assert format_host(("192.0.2.1", 5820)) == "192.0.2.1"
    assert format_host(("fe80::1", 5820, 0, index)) == f"fe80::1%{name}"
    assert format_host(("fe80::1%eth9", 5820, 0, index)) == "fe80::1%eth9"
    assert format_host(("fe80::1", 5820, 0, 2**31 - 1)) == f"fe80::1%{2**31 - 1}"


def test_a_link_local_address_is_written_with_the_interface_of_the_host_that_uses_it() -> None:
    """The name of this host's interface would lead nowhere there."""
    assert spell_for_client("fe80::1%eth0") == "fe80::1%INTERFACE"
    assert spell_for_client("[fe80::1%eth0]:5821") == "[fe80::1%INTERFACE]:5821"
    assert [spell_for_client(host) for host in ("db-01", "192.0.2.1")] == ["db-01", "192.0.2.1"]
