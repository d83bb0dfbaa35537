"""The conversation with NDT7 servers, and with what only seems to be one."""

import asyncio
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerNotLinkgauge, PeerUnreachable
from linkgauge.engine.model.events import Warned
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.speedtest import http_connection, run

from ..speed_servers import NDT7, Answer, Connection, served

pytestmark = pytest.mark.usefixtures("fork_server")
Recorder = Callable[..., Any]


def plan_of(direction: Direction = Direction.IN, seconds: int = 1) -> Plan:
    """Return a short plan."""
    return Plan(Settings(direction), duration_ns=seconds * SECOND_NS, interval_ns=SECOND_NS // 10)


def peer_at(port: int) -> Peer:
    """Return the peer of a server on loopback."""
    return Peer.parse(f"ndt7://127.0.0.1:{port}")


def _missing(connection: Connection) -> None:
    connection.answer("404 Not Found")


def _redirect(connection: Connection) -> None:
    connection.answer("307 Temporary Redirect", "Location: ws://192.0.2.1/")


def _wrong_accept(connection: Connection) -> None:
    connection.headers["sec-websocket-key"] = "AAAA"
    connection.upgrade()


def _wrong_protocol(connection: Connection) -> None:
    connection.sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")


def _extended(connection: Connection) -> None:
    connection.upgrade("Sec-WebSocket-Extensions: permessage-deflate")


def _silent(_connection: Connection) -> None:
    time.sleep(1.0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (_missing, "with status 404"),
        (_redirect, "redirects to ws://192.0.2.1/, which is not followed"),
        (_wrong_accept, "does not answer this request"),
        (_wrong_protocol, "does not answer this request"),
        (_extended, "extensions that were not asked for"),
    ],
)
async def test_a_wrong_upgrade_is_told_before_any_payload(record: Recorder, answer: Answer, words: str) -> None:
    """With the address and the cause."""
    with served(answer) as server, pytest.raises(PeerNotLinkgauge, match=words) as caught:
        await record(plan_of(), peer_at(server.port))
    assert str(caught.value).isprintable()


async def test_silence_instead_of_an_upgrade_has_a_deadline(
    record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the hint that something else may listen there."""
    defaults = {"is_whole": True, "deadline_s": 0.3}
    monkeypatch.setattr(http_connection.HttpConnection.read_answer, "__kwdefaults__", defaults)
    with served(_silent) as server, pytest.raises(PeerUnreachable, match="check that an NDT7 server"):
        await record(plan_of(), peer_at(server.port))


def _hostile(frame: bytes) -> Answer:
    def answer(connection: Connection) -> None:
        connection.upgrade()
        connection.sock.sendall(frame)
        time.sleep(0.8)

    return answer


HUGE = b"\x82\x7f" + struct.pack(">Q", 1 << 63)
TEXT = b"\x81\x7f" + struct.pack(">Q", 1 << 40)


@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
@pytest.mark.parametrize(
    "frame",
    [HUGE, TEXT, b"\xc1\x01a", b"\x88\x02" + struct.pack(">H", 1_011)],
    ids=["huge", "text", "bits", "code"],
)
async def test_a_frame_that_a_server_must_not_send_ends_the_run(
    record: Recorder, direction: Direction, frame: bytes
) -> None:
    """Nothing of its size is kept."""
    with served(_hostile(frame)) as server:
        async with asyncio.timeout(10):
            recorded = await record(plan_of(direction, seconds=8), peer_at(server.port))
    assert recorded.end.reason.is_fault, recorded.end
    assert "WebSocket" in recorded.end.detail or "a text of more" in recorded.end.detail, recorded.end


@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
async def test_a_server_that_is_silent_after_the_upgrade_ends_the_run(
    record: Recorder, monkeypatch: pytest.MonkeyPatch, direction: Direction
) -> None:
    """It neither sends nor reads."""

    def answer(connection: Connection) -> None:
        connection.upgrade()
        time.sleep(2.5)

    monkeypatch.setattr(run, "SILENCE_NS", SECOND_NS)
    with served(answer) as server:
        recorded = await record(plan_of(direction, seconds=9), peer_at(server.port))
    assert recorded.end.reason is Reason.PEER_LOST
    assert "no payload has moved" in recorded.end.detail


async def test_too_many_reports_and_false_ones_change_no_rate(record: Recorder) -> None:
    """A server that claims to have received far more than was acknowledged is told."""

    def answer(connection: Connection) -> None:
        connection.upgrade()
        for _ in range(300):
            connection.report(BytesReceived=10**12)
            connection.send_frame(9, b"ping")
        wait = connection.pace()
        while True:
            wait(connection.server.read_frame(connection))

    with served(answer) as server:
        recorded = await record(plan_of(Direction.OUT), peer_at(server.port))
    assert recorded.end.reason is Reason.COMPLETED
    warnings = [event.text for event in recorded.events if isinstance(event, Warned)]
    assert any("cannot be right" in text for text in warnings)


async def test_each_subtest_has_its_path_and_says_who_asks(record: Recorder) -> None:
    """In the query, as the specification wants."""
    with served() as server:
        await record(plan_of(Direction.IN), peer_at(server.port))
        await record(plan_of(Direction.OUT), peer_at(server.port))
    first, second = server.requests
    assert first.startswith("GET /ndt/v7/download?client_name=linkgauge&client_version=")
    assert second.startswith("GET /ndt/v7/upload?client_name=linkgauge&client_version=")
    assert NDT7.endswith(".ndt.v7")
