"""Runs against small servers of LibreSpeed and NDT7: real sockets, real workers, TLS."""

import hashlib
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PeerUntrusted, PlanError
from linkgauge.engine.model.events import Event, Opened, Warned
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Dialect, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.shared_key import Access
from linkgauge.engine.near.base_run import Run
from linkgauge.engine.near.connect import query_ends
from linkgauge.engine.results.meter import replay

from ..speed_servers import Connection, served

pytestmark = pytest.mark.usefixtures("fork_server")
Recorder = Callable[..., Any]
BOTH = ("librespeed", "ndt7")
CASES = [
    *(("librespeed", direction, 1) for direction in Direction),
    pytest.param("librespeed", Direction.DUPLEX, 3, marks=pytest.mark.every),
    *(("ndt7", direction, 1) for direction in (Direction.OUT, Direction.IN)),
]


def peer_at(port: int, scheme: str) -> Peer:
    """Return the peer of a server on loopback; LibreSpeed is in a folder of its own."""
    path = "/speed/" if scheme.startswith("librespeed") else ""
    return Peer.parse(f"{scheme}://127.0.0.1:{port}{path}")


def plan_of(direction: Direction = Direction.OUT, sessions: int = 1, **more: Any) -> Plan:
    """Return a plan of a second."""
    return Plan(Settings(direction, sessions), **{"duration_ns": SECOND_NS, "interval_ns": SECOND_NS // 10, **more})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, bytes]:
    """Give the context of a server with TLS, and the fingerprint of its certificate."""
    folder: Path = tmp_path_factory.mktemp("tls")
    made = trustme.CA().issue_cert("127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.configure_cert(context)
    (folder / "cert.pem").write_bytes(made.cert_chain_pems[0].bytes())
    der = ssl.PEM_cert_to_DER_cert((folder / "cert.pem").read_text(encoding="ascii"))
    return context, hashlib.sha256(der).digest()


@pytest.mark.parametrize(("scheme", "direction", "sessions"), CASES)
async def test_a_server_carries_each_direction_at_its_rate(
    record: Recorder, scheme: str, direction: Direction, sessions: int
) -> None:
    """By the counts of this kernel, with the latency that the protocol has."""
    with served() as server:
        plan = plan_of(direction, sessions, probe=scheme == "librespeed")
        recorded = await record(plan, peer_at(server.port, scheme))
    assert recorded.end.reason is Reason.COMPLETED, recorded.end
    assert recorded.started.dialect is Dialect(scheme)
    opened = {(e.facts.direction, e.facts.session) for e in recorded.events if isinstance(e, Opened)}
    assert opened == {(flow, n) for flow in direction.flows for n in range(1, sessions + 1)}
    summary = replay(recorded.events).summary()
    for flow in direction.flows:
        measured = summary.measured[flow]
        assert measured is not None
        assert 20e6 < measured.bit_s < 250e6 * sessions
    assert (summary.probe is not None) is (scheme == "librespeed")
    if scheme == "librespeed":
        assert summary.probe is not None
        assert summary.probe.idle is not None
        assert summary.probe.loaded is not None
    assert summary.unseen_end is End.FAR


async def test_the_reports_of_an_ndt7_server_are_the_senders_counters(record: Recorder) -> None:
    """They show what this kernel cannot know of a download: its round trips and retransmits."""
    with served() as server:
        recorded = await record(plan_of(Direction.IN), peer_at(server.port, "ndt7"))
    far = [event.sample for event in recorded.samples if event.sample.end is End.FAR]
    assert far
    assert not any(sample.is_from_sender for sample in far)
    assert any(part.rtt_us for sample in far for part in sample.sessions)
    assert sum(part.bytes for sample in far for part in sample.sessions) > 1_000_000
    assert replay(recorded.events).summary().tcp.retransmits is not None


@pytest.mark.parametrize("scheme", BOTH)
@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
async def test_a_server_with_tls_is_known_by_its_certificate(
    record: Recorder, certificate: tuple[ssl.SSLContext, bytes], scheme: str, direction: Direction
) -> None:
    """An authority of this system, or a fingerprint; another certificate ends it before any payload."""
    context, fingerprint = certificate
    with served(context=context) as server:
        peer = peer_at(server.port, f"{scheme}s")
        with pytest.raises(PeerUntrusted, match="--tls-fingerprint"):
            await record(plan_of(direction), peer)
        with pytest.raises(PeerUntrusted, match="not that of"):
            await record(plan_of(direction), with_fingerprint(peer, bytes(32)))
        recorded = await record(plan_of(direction), with_fingerprint(peer, fingerprint))
    assert recorded.end.reason is Reason.COMPLETED, recorded.end
    measured = replay(recorded.events).summary().measured[direction]
    assert measured is not None
    assert 20e6 < measured.bit_s < 300e6


def with_fingerprint(peer: Peer, fingerprint: bytes) -> Peer:
    """Return a peer that must have this certificate."""
    return Peer(peer.host, peer.port, Access(fingerprint=fingerprint), speed=peer.speed)


async def test_pings_go_on_over_another_connection_if_the_server_closes_theirs(record: Recorder) -> None:
    """Servers allow a number of requests on each."""
    with served(requests_each=7) as server:
        recorded = await record(plan_of(Direction.IN, probe=True), peer_at(server.port, "librespeed"))
    assert recorded.end.reason is Reason.COMPLETED
    assert not [event for event in recorded.events if isinstance(event, Warned)]
    assert sum("empty" in request for request in server.requests) > 14


@pytest.mark.parametrize("is_tls", [False, True])
async def test_an_upload_goes_on_over_another_connection_if_the_server_closes_one(
    record: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    certificate: tuple[ssl.SSLContext, bytes],
    is_tls: bool,
) -> None:
    """Its counts go on as well."""
    monkeypatch.setattr("linkgauge.engine.speedtest.librespeed.UPLOAD_BYTES", 256 * 1_024)
    context, fingerprint = certificate
    with served(requests_each=20, context=context if is_tls else None) as server:
        peer = peer_at(server.port, "librespeeds" if is_tls else "librespeed")
        peer = with_fingerprint(peer, fingerprint) if is_tls else peer
        recorded = await record(plan_of(Direction.OUT, duration_ns=2 * SECOND_NS), peer)
    assert recorded.end.reason is Reason.COMPLETED, recorded.end
    assert sum(request.startswith("POST") for request in server.requests) > 20
    measured = replay(recorded.events).summary().measured[Direction.OUT]
    assert measured is not None
    assert measured.bit_s > 20e6  # what still arrives on the old connection counts, too


@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
async def test_an_ndt7_server_may_end_the_test_before_its_time(record: Recorder, direction: Direction) -> None:
    """As one does that knows enough: what was measured until then counts."""
    with served(seconds=1.5) as server:
        recorded = await record(plan_of(direction, duration_ns=4 * SECOND_NS), peer_at(server.port, "ndt7"))
    assert recorded.end.reason is Reason.COMPLETED, recorded.end
    assert re.fullmatch(r"the server has ended the test after \d\.\d s", recorded.end.detail)


async def test_an_endless_test_of_ndt7_is_cut_with_a_warning(record: Recorder) -> None:
    """Its servers end every test after ten seconds."""

    def stop(run: Run, event: Event) -> None:
        if isinstance(event, Warned):
            run.stop()

    with served() as server:
        recorded = await record(plan_of(duration_ns=None), peer_at(server.port, "ndt7"), act=stop)
    assert recorded.started.plan.duration_ns == 10 * SECOND_NS
    assert any("10 s at the most" in event.text for event in recorded.events if isinstance(event, Warned))


@pytest.mark.parametrize("scheme", BOTH)
async def test_settings_stay_as_they_are(record: Recorder, scheme: str) -> None:
    """A warning says why."""
    changed = Settings(Direction.IN, 2)

    def change(run: Run, event: Event) -> None:
        if isinstance(event, Opened):
            run.change_settings(changed)

    with served() as server:
        recorded = await record(plan_of(), peer_at(server.port, scheme), act=change)
    warnings = [event.text for event in recorded.events if isinstance(event, Warned)]
    assert any("cannot change a test that runs" in text for text in warnings)
    assert recorded.end.reason is Reason.COMPLETED


async def test_a_query_sends_the_server_nothing() -> None:
    """What is known of both ends is the route."""
    with served() as server:
        ends = await query_ends(peer_at(server.port, "librespeed"))
        assert not server.requests
    assert (ends.far.software, ends.address) == ("librespeed", "127.0.0.1")


@pytest.mark.parametrize(
    ("scheme", "plan", "words"),
    [
        ("ndt7", plan_of(sessions=2), "one connection"),
        ("ndt7", plan_of(Direction.DUPLEX), "one direction"),
        ("ndt7", plan_of(probe=True), "answers no probe"),
        ("librespeed", plan_of(sessions=33), "at most 32"),
        ("librespeed", plan_of(bytes_limit=1_000, duration_ns=None), "has a duration"),
    ],
)
async def test_a_plan_that_the_protocol_lacks_is_refused(
    record: Recorder, scheme: str, plan: Plan, words: str
) -> None:
    """Before a connection is opened."""
    with pytest.raises(PlanError, match=words):
        await record(plan, peer_at(1, scheme))


def _refuse_upload(connection: Connection) -> None:
    if connection.method == "POST" and int(connection.headers["content-length"]) > 1_024:
        connection.answer("413 Content Too Large", "Connection: close")
        raise ConnectionError
    connection.server.serve(connection)


async def test_an_upload_that_the_server_refuses_ends_the_run_with_its_status(record: Recorder) -> None:
    """A proxy in front of it may have a limit."""
    with served(_refuse_upload) as server:
        recorded = await record(plan_of(duration_ns=3 * SECOND_NS), peer_at(server.port, "librespeed"))
    assert recorded.end.reason in {Reason.PEER_STOPPED, Reason.SESSION_LOST, Reason.PEER_LOST}
