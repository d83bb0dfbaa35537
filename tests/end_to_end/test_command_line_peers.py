"""Peers that are none: each is told apart, within 5 s, with what to do; and the test exits 3."""

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ..command_line import RATE_LIMIT
from .conftest import assert_not_run


@pytest.fixture
def web_server() -> Iterator[str]:
    """Give the `HOST:PORT` of a real HTTP server."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it so
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def full_server() -> Iterator[str]:
    """Give the `HOST:PORT` of a server that never accepts, its queue full: the kernel drops what comes."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        for client in (first, second):
            client.setblocking(False)
            client.connect_ex(address)
        yield f"127.0.0.1:{address[1]}"


@pytest.mark.parametrize("command", [["run"], ["check", "gbe-fd-1500"]])
def test_a_refused_connection_says_how_to_start_the_far_end(linkgauge: Any, command: list[str]) -> None:
    """Nothing listens on port 1."""
    assert_not_run(linkgauge(*command, "127.0.0.1:1"), "127.0.0.1:1", "linkgauge endpoint")


def test_an_unresolvable_name_is_reported_as_such(linkgauge: Any) -> None:
    """The top-level domain .invalid never resolves (RFC 2606)."""
    assert_not_run(linkgauge("run", "no-such-host.invalid"), "no-such-host.invalid")


@pytest.mark.every
def test_a_connection_that_is_never_answered_times_out(linkgauge: Any, full_server: str) -> None:
    """After 5 s, with a word on firewalls."""
    assert_not_run(linkgauge("run", full_server), full_server, "5 s", "firewall")


def test_a_web_server_is_no_endpoint(linkgauge: Any, web_server: str) -> None:
    """It answers or hangs up, but it does not greet."""
    assert_not_run(linkgauge("run", web_server), web_server, "endpoint")


@pytest.mark.parametrize(
    "greeting",
    [
        b"SSH-2.0-OpenSSH_9.9\r\n",
        pytest.param(b"220 mail.example ESMTP\r\n", marks=pytest.mark.every),
        pytest.param(b"\x00" * 4_096, marks=pytest.mark.every),
        b"\x1b[2J\x1b]0;owned\x07" * 400,
    ],
    ids=["ssh", "smtp", "zeros", "escapes"],
)
def test_a_server_of_another_protocol_is_no_endpoint(
    linkgauge: Any, serve: Callable[[bytes], Any], greeting: bytes
) -> None:
    """Whatever it says first; nothing of it drives the terminal."""
    server = serve(greeting)
    process = linkgauge.start("run", server.address)
    server.wait_for_client()
    answer = linkgauge.finish(process)
    assert_not_run(answer, server.address, "not a linkgauge endpoint")
    assert answer.err.strip().isprintable()


@pytest.mark.every
def test_a_silent_server_times_out(linkgauge: Any, silent_server: Any) -> None:
    """It accepts, and says nothing for 5 s."""
    process = linkgauge.start("run", silent_server.address)
    silent_server.wait_for_client()
    assert_not_run(linkgauge.finish(process), silent_server.address, "5 s")


@pytest.mark.every
def test_a_server_that_hangs_up_is_reported_as_such(linkgauge: Any, silent_server: Any) -> None:
    """It accepts and closes."""
    process = linkgauge.start("run", silent_server.address)
    silent_server.wait_for_client().close()
    assert_not_run(linkgauge.finish(process), silent_server.address)


@pytest.mark.every
def test_a_peer_that_is_none_leaves_nothing_in_the_log_and_the_file_as_it_was(
    linkgauge: Any, far_end: str, tmp_path: Any
) -> None:
    """An earlier run's rows are still there."""
    path = tmp_path / "rows.csv"
    assert linkgauge("run", far_end, "--seconds", "1", *RATE_LIMIT, "--csv", path).status == 0
    before = path.read_bytes()
    assert_not_run(linkgauge("run", "127.0.0.1:1", "--csv", path))
    assert path.read_bytes() == before
    assert len(linkgauge("runs", "list", "--json").document) == 1
