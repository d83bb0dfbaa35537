"""The probe of datagrams, against a real socket at its other end: its counts, and echoes that it ignores."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from linkgauge.engine.metering.shared_counters import (
    ProbeCount,
    ProbeHistogram,
)
from linkgauge.engine.model.counters.latency_histogram import bucket_midpoint_ns
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.protocol.probe_datagrams import (
    DATAGRAM_PROBE_BYTES,
    EchoDatagram,
    ProbeDatagram,
    decode_probe,
)
from linkgauge.engine.workloads.probes import datagram_probe
from linkgauge.engine.workloads.probes.datagram_probe import DatagramProbe

from .probe_counts import DEADLINE_S, ProbeCounts

SECRET = b"secret of a session"
MILLISECOND_NS = 1_000_000
FAR_OFFSET_NS = 10**15  # the far end's clock began at another time
Replies = Callable[[ProbeDatagram], list[bytes]]


def echo(probe: ProbeDatagram, held_ns: int = 0) -> bytes:
    """Return an echo of the far end, which had the probe for a time."""
    now_ns = time.monotonic_ns() + FAR_OFFSET_NS
    return probe.echo(now_ns, now_ns + held_ns).pack(SECRET)


class Scene(ProbeCounts):
    """A probe, and a thread that answers each datagram with the result of `replies`."""

    def __init__(self, host: str, replies: Replies) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        near, self._far = (socket.socket(family, socket.SOCK_DGRAM) for _ in range(2))
        for sock in (near, self._far):
            sock.bind((host, 0))
        near.connect(self._far.getsockname())
        self._far.connect(near.getsockname())
        super().__init__()
        self.lost: list[str] = []
        self.probes: list[ProbeDatagram] = []
        self._replies = replies
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()
        self.probe = DatagramProbe(near, SECRET, self.counters, self.lost.append)
        self.probe.start()

    def _answer(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._far.recv(2_048):
                probe = decode_probe(data, SECRET)
                assert probe is not None
                self.probes.append(probe)
                for reply in self._replies(probe):
                    self._far.send(reply)

    def end_far(self) -> None:
        """Close the far end: its port is free from now on."""
        with contextlib.suppress(OSError):
            self._far.shutdown(socket.SHUT_RDWR)
        self._thread.join(DEADLINE_S)
        self._far.close()

    @property
    def sent(self) -> int:
        """How many were sent."""
        return self.counters.read_probe_count(ProbeCount.DATAGRAMS_SENT)

    def close(self) -> None:
        """End both ends."""
        self.probe.stop()
        assert not self.probe._thread.is_alive()
        self.end_far()
        self.counters.close()


@contextlib.contextmanager
def scene(replies: Replies, host: str = "127.0.0.1") -> Iterator[Scene]:
    """Yield a probe whose other end answers so."""
    if ":" in host and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    made = Scene(host, replies)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_each_echo_counts_once_in_the_round_trip_and_in_each_direction(host: str) -> None:
    """All are sent, all come back, and the clocks of both ends need not agree."""
    with scene(lambda probe: [echo(probe)], host) as made:
        made.until(lambda: made.total(ProbeHistogram.ROUND_TRIP) >= 20)
        made.probe.stop()
        counts = [
            made.total(each)
            for each in (ProbeHistogram.ROUND_TRIP, ProbeHistogram.RISE_OUT, ProbeHistogram.RISE_IN)
        ]
        assert len(set(counts)) == 1
        assert made.sent - counts[0] <= 1  # the last one may have been on its way
        assert [probe.serial for probe in made.probes[:20]] == list(range(1, 21))
        assert not made.lost


def test_what_the_far_end_holds_a_probe_for_is_no_latency() -> None:
    """It was busy; the link was not."""
    held_ns = 50 * MILLISECOND_NS

    def late(probe: ProbeDatagram) -> list[bytes]:
        arrived_ns = time.monotonic_ns() + FAR_OFFSET_NS
        time.sleep(held_ns / SECOND_NS)
        return [probe.echo(arrived_ns, time.monotonic_ns() + FAR_OFFSET_NS).pack(SECRET)]

    with scene(late) as made:
        made.until(lambda: made.total(ProbeHistogram.ROUND_TRIP) >= 3)
        assert min(map(bucket_midpoint_ns, made.counts(ProbeHistogram.ROUND_TRIP))) < held_ns


def test_it_goes_on_sending_without_echoes() -> None:
    """Its pace is the same in a full queue; datagrams without an echo are lost."""
    with scene(lambda probe: [echo(probe)] if probe.serial % 4 == 0 else []) as made:
        made.until(lambda: made.total(ProbeHistogram.ROUND_TRIP) >= 5)
        assert made.sent >= 20
        assert made.total(ProbeHistogram.ROUND_TRIP) <= made.sent // 4 + 1


def test_forged_repeated_and_impossible_echoes_do_not_count() -> None:
    """Another secret, another serial, a second copy, and more time at the far end than the probe was away."""

    def replies(probe: ProbeDatagram) -> list[bytes]:
        if probe.serial % 2:
            return [
                probe.echo(1, 2).pack(b"another secret"),
                EchoDatagram(probe.serial + 500, probe.sent_ns, 1, 2).pack(SECRET),
                probe.pack(SECRET),
                b"\xff" * DATAGRAM_PROBE_BYTES,
                b"",
                bytes(1_400),
                probe.echo(1, 3_600 * SECOND_NS).pack(SECRET),
            ]
        return [echo(probe), echo(probe), echo(probe)]

    with scene(replies) as made:
        made.until(lambda: made.total(ProbeHistogram.ROUND_TRIP) >= 10)
        assert made.total(ProbeHistogram.ROUND_TRIP) <= made.sent // 2


def test_a_flood_of_answers_does_not_keep_it_from_sending() -> None:
    """From a far end that answers each probe a thousand times."""
    with scene(lambda probe: [echo(probe)] * 1_000) as made:
        made.until(lambda: made.sent >= 30)
        assert made.total(ProbeHistogram.ROUND_TRIP) <= made.sent


def test_times_that_run_backwards_do_not_count() -> None:
    """A clock of the far end that was set, or a lie."""
    with scene(lambda probe: [probe.echo(10**12, 10**12 - 1).pack(SECRET)]) as made:
        made.until(lambda: made.sent >= 20)
        assert made.total(ProbeHistogram.ROUND_TRIP) == 0


def test_a_far_end_that_has_gone_is_reported_once_and_asked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its port refuses; the thread lives on, because a far end may come back."""
    with scene(lambda probe: [echo(probe)]) as made:
        made.until(lambda: made.total(ProbeHistogram.ROUND_TRIP) >= 3)
        made.end_far()
        made.until(lambda: bool(made.lost))
        sent = made.sent
        made.until(lambda: made.sent > sent + 20)
        assert made.lost == ["connection refused"]


def test_silence_is_reported_once_and_echoes_count_again_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a firewall that forgot the connection for a while."""
    monkeypatch.setattr(datagram_probe, "SILENCE_NS", SECOND_NS // 5)
    is_silent = threading.Event()

    with scene(lambda probe: [] if is_silent.is_set() else [echo(probe)]) as made:
        made.until(lambda: made.total(ProbeHistogram.ROUND_TRIP) >= 3)
        is_silent.set()
        made.until(lambda: bool(made.lost))
        before = made.total(ProbeHistogram.ROUND_TRIP)
        is_silent.clear()
        made.until(lambda: made.total(ProbeHistogram.ROUND_TRIP) >= before + 5)
        assert made.lost == ["no echo came back for 0.2 s"]


def test_a_thousand_echoes_that_are_missing_take_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest ones are given up."""
    monkeypatch.setattr(datagram_probe, "DATAGRAM_PACE_NS", MILLISECOND_NS)
    monkeypatch.setattr(datagram_probe, "_MAX_AWAITED", 50)
    with scene(lambda _probe: []) as made:
        made.until(lambda: made.sent >= 120)
        assert len(made.probe._awaited) <= 50
