"""The conversation with LibreSpeed servers, and with what only seems to be one."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerError, PeerNotLinkgauge, PeerUnreachable
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.speedtest import http_connection, run
from linkgauge.engine.speedtest.librespeed import ANSWER_MIB

from ..speed_servers import Answer, Connection, served

pytestmark = pytest.mark.usefixtures("fork_server")
Recorder = Callable[..., Any]


def plan_of(direction: Direction = Direction.IN, seconds: int = 1) -> Plan:
    """Return a short plan."""
    return Plan(Settings(direction), duration_ns=seconds * SECOND_NS, interval_ns=SECOND_NS // 10)


def peer_at(port: int) -> Peer:
    """Return the peer of a server on loopback."""
    return Peer.parse(f"librespeed://127.0.0.1:{port}/speed")


def _page(connection: Connection) -> None:
    connection.answer("200 OK", "Content-Type: text/html", body=b"<html>everything is here</html>")


def _redirect(connection: Connection) -> None:
    connection.answer("302 Found", "Location: http://192.0.2.1/\x1b[2Jelsewhere")


def _silent(_connection: Connection) -> None:
    time.sleep(1.0)


def _closing(_connection: Connection) -> None:
    raise ConnectionError


def _endless_head(connection: Connection) -> None:
    connection.sock.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sock.sendall(b"X-Y: " + 1_000 * b"z" + b"\r\n")


def _other_protocol(connection: Connection) -> None:
    connection.sock.sendall(b"220 ftp.example ESMTP\r\n")


def _lonely(connection: Connection) -> None:
    connection.answer("200 OK", "Connection: close")


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (_page, PeerNotLinkgauge, r"has no /speed/empty.php.*it answers 200"),
        (_redirect, PeerNotLinkgauge, "redirects to http://192.0.2.1/.*not followed"),
        (_silent, PeerUnreachable, "no whole answer came within 0.5 s; check that a LibreSpeed server"),
        (_closing, PeerUnreachable, "closed the connection before it answered"),
        (_endless_head, PeerNotLinkgauge, "is not a LibreSpeed server: its answer is not HTTP"),
        (_other_protocol, PeerNotLinkgauge, "not HTTP"),
        (_lonely, PeerNotLinkgauge, "keep-alive"),
    ],
)
async def test_what_is_no_librespeed_server_is_told_before_any_payload(
    record: Recorder, monkeypatch: pytest.MonkeyPatch, answer: Answer, error: type[PeerError], words: str
) -> None:
    """With the address, the cause and a remedy."""
    monkeypatch.setattr(
        http_connection.HttpConnection.read_answer, "__kwdefaults__", {"is_whole": True, "deadline_s": 0.5}
    )
    with served(answer) as server:
        with pytest.raises(error, match=words) as caught:
            await record(plan_of(), peer_at(server.port))
        assert all("garbage" not in request for request in server.requests)
    assert str(caught.value).isprintable()


def _no_downloads(connection: Connection) -> None:
    if "garbage" in connection.target:
        connection.answer("503 Service Unavailable")
    else:
        connection.server.serve(connection)


def _page_for_download(connection: Connection) -> None:
    if "garbage" in connection.target:
        _page(connection)
    else:
        connection.server.serve(connection)


def _no_uploads(connection: Connection) -> None:
    if connection.method == "POST":
        connection.answer("405 Method Not Allowed")
    else:
        connection.server.serve(connection)


def _elsewhere(connection: Connection) -> None:
    if "garbage" in connection.target or connection.method == "POST":
        _redirect(connection)
    else:
        connection.server.serve(connection)


@pytest.mark.parametrize(
    ("answer", "direction", "words"),
    [
        (_no_downloads, Direction.IN, "answers a download with status 503"),
        (_page_for_download, Direction.IN, "answers a download with a page"),
        (_no_uploads, Direction.OUT, "answers an upload with status 405"),
        (_elsewhere, Direction.IN, "not followed"),
        (_elsewhere, Direction.OUT, "not followed"),
    ],
)
async def test_a_server_that_lacks_a_direction_is_told_before_the_test(
    record: Recorder, answer: Answer, direction: Direction, words: str
) -> None:
    """Its status says why."""
    with served(answer) as server, pytest.raises(PeerNotLinkgauge, match=words):
        await record(plan_of(direction), peer_at(server.port))


def _stalling(connection: Connection) -> None:
    if "garbage" in connection.target:
        connection.sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sock.sendall(b"7fffffffffffffff\r\n" + bytes(300_000))
        time.sleep(3.0)
    elif connection.method == "POST" and int(connection.headers["content-length"]) > 10_000:
        time.sleep(3.0)
    else:
        connection.server.serve(connection)


@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
async def test_a_server_that_moves_no_payload_ends_the_run(
    record: Recorder, monkeypatch: pytest.MonkeyPatch, direction: Direction
) -> None:
    """After some seconds, with that as the reason."""
    monkeypatch.setattr(run, "SILENCE_NS", SECOND_NS)
    with served(_stalling) as server:
        recorded = await record(plan_of(direction, seconds=10), peer_at(server.port))
    assert recorded.end.reason is Reason.PEER_LOST
    assert "no payload has moved" in recorded.end.detail


async def test_further_downloads_are_requested_ahead(record: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no round trip separates them."""
    monkeypatch.setattr("linkgauge.engine.speedtest.librespeed.ANSWER_MIB", 1)
    with served() as server:
        recorded = await record(plan_of(seconds=2), peer_at(server.port))
    assert recorded.end.reason is Reason.COMPLETED
    downloads = [request for request in server.requests if "garbage" in request]
    assert len(downloads) > 3
    assert all(request.endswith("&ckSize=1") for request in downloads)
    assert ANSWER_MIB == 1_024


def _vanishing(connection: Connection) -> None:
    if "garbage" in connection.target:
        connection.sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + bytes(300_000))
        time.sleep(0.6)
        raise ConnectionError
    connection.server.serve(connection)


async def test_a_connection_that_the_server_closes_is_the_reason(record: Recorder) -> None:
    """The run ends within seconds, and not regularly."""
    with served(_vanishing) as server:
        async with asyncio.timeout(8):
            recorded = await record(plan_of(seconds=10), peer_at(server.port))
    assert recorded.end.reason.is_fault
    assert "closed by the other host" in recorded.end.detail or "connection" in recorded.end.detail
