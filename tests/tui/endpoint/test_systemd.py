"""The endpoint as a service of systemd: a socket that systemd passed, and notifications."""

import os
import socket
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import EndpointError
from linkgauge.tui.endpoint.systemd import get_inherited_listener, notify_systemd


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
        monkeypatch.setattr("linkgauge.tui.endpoint.systemd._FIRST_FD", number)
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
