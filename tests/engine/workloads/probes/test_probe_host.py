"""The host of both further probes: with an endpoint's listener, and if UDP does not pass."""

import socket
from collections.abc import AsyncIterator

import pytest
from linkgauge.engine.metering.shared_counters import ProbeCount, ProbeHistogram, SharedCounters
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import DATAGRAM_PROBE_SESSION, HANDSHAKE_PROBE_SESSION, SocketOptions
from linkgauge.engine.protocol.tokens import RunSecret
from linkgauge.engine.workloads.probes import probe_host
from linkgauge.engine.workloads.probes.probe_host import ProbeHost
from linkgauge.engine.workloads.session_handshake import ConnectTarget, SessionSpec

from ...waiting import until

SECRET = RunSecret(b"shared", b"nonce", b"open")


def spec_of(session: int) -> SessionSpec:
    """Return the session of a probe."""
    settings = (Direction.OUT, session, 0, None)
    return SessionSpec(*settings, SECRET.session_secret(*settings).hex())


def target_of(sock: socket.socket) -> ConnectTarget:
    """Return a socket's own address as the far end's."""
    return ConnectTarget.from_address(SECRET.run_tag.hex(), sock.getsockname())


class Scene:
    """A host of probes, and its reports."""

    def __init__(self) -> None:
        self.counters = SharedCounters.create()
        self.lost: list[tuple[SessionSpec, str]] = []
        self.host = ProbeHost(self.counters, SocketOptions(), lambda spec, why: self.lost.append((spec, why)))


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """Give a host, and close it."""
    made = Scene()
    try:
        yield made
    finally:
        made.host.close()
        made.counters.close()


async def test_where_nothing_answers_the_datagram_probe_fails_with_what_to_open(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within its short deadline, and without a socket left open."""
    monkeypatch.setattr(probe_host, "OPEN_DEADLINE_S", 0.2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        with pytest.raises(
            OSError, match=f"no UDP came back from 127.0.0.1 port {port} in 0.2 s.*allow UDP port {port}"
        ):
            await scene.host.open_datagrams(spec_of(DATAGRAM_PROBE_SESSION), target_of(silent))
    assert scene.counters.read_probe_count(ProbeCount.DATAGRAMS_SENT) == 0


async def test_handshakes_begin_at_once_and_end_with_the_host(scene: Scene) -> None:
    """Nothing is awaited for them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        scene.host.open_handshakes(spec_of(HANDSHAKE_PROBE_SESSION), target_of(listener))
        await until(lambda: any(scene.counters.read_probe_histogram(ProbeHistogram.CONNECT)))
        scene.host.close()
        assert scene.host._handshakes is not None
        assert not scene.host._handshakes._thread.is_alive()
    assert not scene.lost
