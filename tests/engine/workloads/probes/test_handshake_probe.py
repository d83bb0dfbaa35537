"""The probe that opens connections, against a real listener: its counts, and that it leaves nothing behind."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from linkgauge.engine.metering.shared_counters import ProbeCount, ProbeHistogram
from linkgauge.engine.model.counters.latency_histogram import bucket_midpoint_ns
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import HANDSHAKE_PROBE_SESSION, SECOND_NS, SocketOptions
from linkgauge.engine.protocol.preamble import (
    DATA_ACCEPTED,
    DATA_HELLO_BYTES,
    DATA_KIND,
    PREAMBLE_BYTES,
    DataHello,
    encode_preamble,
)
from linkgauge.engine.protocol.tokens import RunSecret, SerialTokens
from linkgauge.engine.workloads.probes import handshake_probe
from linkgauge.engine.workloads.probes.handshake_probe import HandshakeProbe
from linkgauge.engine.workloads.session_handshake import ConnectTarget, SessionSpec

from .probe_counts import DEADLINE_S, ProbeCounts

SECRET = RunSecret(b"shared", b"nonce", b"open")
SETTINGS = (Direction.OUT, HANDSHAKE_PROBE_SESSION, 0, None)
SPEC = SessionSpec(*SETTINGS, SECRET.session_secret(*SETTINGS).hex())
HOSTS = ["127.0.0.1", "::1"]


class Listener:
    """A far end that answers each connection with the result of `reply`, after its header."""

    def __init__(self, host: str, reply: Callable[[DataHello], bytes | None]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._sock = socket.create_server((host, 0), family=family, backlog=64)
        self._reply = reply
        self.hellos: list[DataHello] = []
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def target(self) -> ConnectTarget:
        """Its address, and the run."""
        return ConnectTarget.from_address(SECRET.run_tag.hex(), self._sock.getsockname())

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _address = self._sock.accept()
                with contextlib.suppress(OSError):
                    header = sock.recv(PREAMBLE_BYTES + DATA_HELLO_BYTES, socket.MSG_WAITALL)
                    assert header.startswith(encode_preamble(DATA_KIND))
                    self.hellos.append(DataHello.unpack(header[PREAMBLE_BYTES:]))
                    reply = self._reply(self.hellos[-1])
                    if reply is None:
                        self._held.append(sock)
                        continue
                    sock.sendall(reply)
                sock.close()

    def close(self) -> None:
        """Refuse connections from now on."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        self._thread.join(DEADLINE_S)
        for sock in self._held:
            sock.close()


class Scene(ProbeCounts):
    """A probe with its counters."""

    def __init__(self, target: ConnectTarget, options: SocketOptions | None = None) -> None:
        super().__init__()
        self.probe = HandshakeProbe(SPEC, target, options or SocketOptions(), self.counters)
        self.probe.start()

    @property
    def failed(self) -> int:
        """How many connections failed."""
        return self.counters.read_probe_count(ProbeCount.HANDSHAKES_FAILED)

    def close(self) -> None:
        """End the probe."""
        self.probe.stop()
        assert not self.probe._thread.is_alive()
        self.counters.close()


@contextlib.contextmanager
def scene(
    host: str, reply: Callable[[DataHello], bytes | None], options: SocketOptions | None = None
) -> Iterator[tuple[Scene, Listener]]:
    """Yield a probe and the listener that it connects to."""
    if ":" in host and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    listener = Listener(host, reply)
    made = Scene(listener.target, options)
    try:
        yield made, listener
    finally:
        made.close()
        listener.close()


@pytest.mark.parametrize("host", HOSTS)
def test_each_connection_has_a_token_of_its_own_and_two_times(host: str) -> None:
    """One for the TCP handshake and one for the answer; the far end takes each token once."""
    tokens = SerialTokens(bytes.fromhex(SPEC.secret_hex))
    with scene(host, lambda _hello: DATA_ACCEPTED) as (made, listener):
        made.until(lambda: made.total(ProbeHistogram.ANSWER) >= 4)
        assert made.failed == 0
        assert made.total(ProbeHistogram.CONNECT) >= made.total(ProbeHistogram.ANSWER)
        assert [hello.generation for hello in listener.hellos[:4]] == [1, 2, 3, 4]
        assert all(tokens.redeem(hello.generation, hello.token) for hello in listener.hellos[:4])


def test_a_slow_answer_is_counted_as_slow_and_delays_no_other_probe() -> None:
    """Ten a second are begun, whatever their latency; the handshake before it is not slow."""

    def reply(hello: DataHello) -> bytes | None:
        if hello.generation == 1:
            return None
        return DATA_ACCEPTED

    with scene("127.0.0.1", reply) as (made, listener):
        made.until(lambda: made.total(ProbeHistogram.ANSWER) >= 3)
        listener._held[0].sendall(DATA_ACCEPTED)
        made.until(lambda: max(map(bucket_midpoint_ns, made.counts(ProbeHistogram.ANSWER))) > 2 * SECOND_NS // 10)
        assert made.failed == 0


@pytest.mark.parametrize("reply", [b"", b"\x15"])
def test_another_answer_than_the_endpoints_is_a_failure(reply: bytes) -> None:
    """As of an endpoint that does not know the run any more."""
    with scene("127.0.0.1", lambda _hello: reply) as (made, _listener):
        made.until(lambda: made.failed >= 2)
        assert made.total(ProbeHistogram.ANSWER) == 0
        assert made.total(ProbeHistogram.CONNECT) >= 2


def test_refused_connections_are_failures_and_no_times() -> None:
    """The endpoint has gone."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        target = ConnectTarget.from_address(SECRET.run_tag.hex(), gone.getsockname())
    made = Scene(target)
    made.until(lambda: made.failed >= 3)
    assert made.total(ProbeHistogram.CONNECT) == 0
    made.close()


def test_a_connection_without_an_answer_fails_after_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent ones are closed, so that their number is bounded."""
    monkeypatch.setattr(handshake_probe, "HANDSHAKE_DEADLINE_NS", SECOND_NS // 5)
    with scene("127.0.0.1", lambda _hello: None) as (made, _listener):
        made.until(lambda: made.failed >= 3)
        assert len(made.probe._open) <= 4


def test_at_the_end_connections_get_the_answers_that_are_on_their_way() -> None:
    """The far end would log them as strangers once it has forgotten the run."""
    with scene("127.0.0.1", lambda _hello: DATA_ACCEPTED) as (made, listener):
        made.until(lambda: made.total(ProbeHistogram.ANSWER) >= 2)
        made.probe.stop()
        assert made.total(ProbeHistogram.ANSWER) == made.probe._serial
        assert len(listener.hellos) == made.probe._serial


def test_a_source_that_this_host_lacks_is_a_failure_and_not_the_end() -> None:
    """As if an interface loses its address."""
    with scene("127.0.0.1", lambda _hello: DATA_ACCEPTED, SocketOptions(source="192.0.2.77")) as (made, _listener):
        made.until(lambda: made.failed >= 2)
        assert made.probe._thread.is_alive()
        assert not made.probe._open
