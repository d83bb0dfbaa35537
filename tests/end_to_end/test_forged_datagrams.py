"""Somebody who sends in the name of either end of a UDP session, and does not know its secret."""

import asyncio
import os
import socket
import struct
from pathlib import Path

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Ended, Event, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.datagram_handshake import DatagramAccepted, DatagramChallenge
from linkgauge.engine.protocol.path_probe import PathDatagram, PathKind
from linkgauge.engine.protocol.payload_datagrams import PAYLOAD_HEADER, DatagramKeys, Feedback

_UDP_HEADER = struct.Struct(">HHHH")  # RFC 768; a checksum of 0 is none


def ports_of_sessions(port: int) -> list[int]:
    """Return the local ports of the sockets that are connected to a port of this host."""
    rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    ends = [(int(row[1].split(":")[1], 16), int(row[2].split(":")[1], 16)) for row in rows]
    return [local for local, remote in ends if remote == port]


def forge(raw: socket.socket, source_port: int, target_port: int, data: bytes) -> None:
    """Send a datagram from 127.0.0.1 in the name of another socket."""
    header = _UDP_HEADER.pack(source_port, target_port, _UDP_HEADER.size + len(data), 0)
    raw.sendto(header + data, ("127.0.0.1", 0))


@pytest.mark.parametrize("direction", [Direction.OUT, pytest.param(Direction.IN, marks=pytest.mark.every)])
async def test_payload_and_feedback_that_somebody_forges_count_for_nothing(direction: Direction) -> None:
    """Neither end loses, repeats or reorders anything by them, and the sender goes on."""
    if os.geteuid() != 0:
        pytest.skip("only root sends in the name of another socket")
    key, other = SharedKey("a-key-of-this-test"), DatagramKeys(b"not the session's")
    forged = (
        PAYLOAD_HEADER.pack(10**12, 1, 7).ljust(1_000, b"\0"),
        PAYLOAD_HEADER.pack(0, 0, other.cookie),
        other.encode_feedback(Feedback(10**9, 1, 0, 1, 10**9, 0, 0, 10**9, 0)),
        DatagramAccepted.of_session(b"not the session's").pack(),
        DatagramChallenge(b"c" * 16, b"t" * 16).pack(),
        PathDatagram(PathKind.REQUEST, 1, 60_000).pack(b"not the session's"),
        b"\xff" * 500,
    )
    settings = Settings(direction, rate_bit_s=4_000_000, datagram_bytes=1_000)
    plan = Plan(settings, Workload.UDP, duration_ns=SECOND_NS, interval_ns=SECOND_NS // 10)
    events: list[Event] = []
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as raw:
        async with Endpoint(listen("127.0.0.1", 0), keys=[key]) as endpoint, asyncio.timeout(20):
            port = endpoint.address[1]
            async with open_run(plan, Peer("127.0.0.1", port).with_key(key)) as run:
                async for event in run:
                    events.append(event)
                    for near_port in ports_of_sessions(port):
                        for data in forged:
                            forge(raw, near_port, port, data)
                            forge(raw, port, near_port, data)
    assert isinstance(events[-1], Ended)
    assert events[-1].end.reason is Reason.COMPLETED
    samples = [event.sample for event in events if isinstance(event, Sampled)]
    counts = [counts for sample in samples for counts in sample.datagrams]
    sender = End.NEAR if direction is Direction.OUT else End.FAR
    sent = sum(c.sent or 0 for s in samples if s.end is sender for c in s.datagrams)
    received = sum(c.received or 0 for c in counts)
    assert sent == received > 20
    assert sum((c.duplicates or 0) + (c.reordered or 0) + (c.late or 0) for c in counts) == 0
    assert sum(c.invalid or 0 for c in counts) > 0
