"""The listening socket: by which addresses it is reached, from systemd, and notifications to systemd."""

import os
import socket
from pathlib import Path

import pytest
from linkgauge.engine.far.listener import (
    format_host,
    get_inherited_listener,
    listen,
    notify_systemd,
    reachable_hosts,
    spell_for_client,
)
from linkgauge.engine.model.errors import EndpointError


def test_a_socket_that_is_meant_for_another_process_is_left_alone() -> None:
    """A parent's variables may come down to a child; they are taken out all the same."""
    environment = {"LISTEN_PID": str(os.getpid() + 1), "LISTEN_FDS": "1", "HOME": "/"}
    assert get_inherited_listener(environment) is None
    assert environment == {"HOME": "/"}
    assert get_inherited_listener({}) is None
    assert get_inherited_listener({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "none"}) is None


def test_more_than_one_socket_is_refused() -> None:
    """It says how one is enough."""
    with pytest.raises(EndpointError, match=r"2 sockets.* of both families"):
        get_inherited_listener({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "2"})


@pytest.mark.parametrize("kind", ["udp", "unix", "not listening", "closed"])
def test_a_socket_that_does_not_listen_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left open, because it belongs to the process that handed it over."""
    families = {"udp": (socket.AF_INET, socket.SOCK_DGRAM), "unix": (socket.AF_UNIX, socket.SOCK_STREAM)}
    with socket.socket(*families.get(kind, (socket.AF_INET, socket.SOCK_STREAM))) as sock:
        number = 1_000_000 if kind == "closed" else sock.fileno()
        monkeypatch.setattr("linkgauge.engine.far.listener._FIRST_FD", number)
        with pytest.raises(
            EndpointError, match="cannot be used" if kind == "closed" else "no listening TCP socket"
        ):
            get_inherited_listener({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"})
        assert sock.fileno() >= 0
        assert sock.getsockname() is not None


@pytest.mark.parametrize("is_abstract", [False, True])
def test_a_service_manager_is_notified_on_request(tmp_path: Path, is_abstract: bool) -> None:
    """By a name in the file system or an abstract one; without a listener there is no error."""
    name = f"@linkgauge-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name[1:] if is_abstract else name)
        manager.settimeout(10)
        notify_systemd("READY=1", name)
        assert manager.recv(100) == b"READY=1"
    notify_systemd("READY=1", name)
    notify_systemd("READY=1", None)


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
