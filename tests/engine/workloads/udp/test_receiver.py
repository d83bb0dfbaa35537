"""The receiver of a UDP session: loss, copies, order, forged payload, marks, and losses of its own socket."""

import asyncio
import socket
import time

import pytest
from linkgauge.engine.metering.shared_counters import EMPTY_HISTOGRAM
from linkgauge.engine.model.counters.latency_histogram import diff_histograms
from linkgauge.engine.model.counters.session_counters import DATAGRAM_COUNTER_NAMES
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Mode, Settings
from linkgauge.engine.protocol.payload_datagrams import FEEDBACK_BYTES, PAYLOAD_HEADER
from linkgauge.engine.workloads.udp import socket_options

from ...tcp_pair import only_linux
from ...waiting import until
from .datagram_pair import KEYS, DatagramPair, connected_sockets
from .lossy_order import DATAGRAM_BYTES, LossyOrder

pytestmark = only_linux
SETTINGS = Settings(rate_bit_s=8_000_000, datagram_bytes=DATAGRAM_BYTES)


def payload(number: int, *, cookie: int = KEYS.cookie, size: int = DATAGRAM_BYTES) -> bytes:
    """Return a datagram with a number."""
    return PAYLOAD_HEADER.pack(number, time.monotonic_ns(), cookie).ljust(size, b"x")


@pytest.mark.parametrize("mode", [Mode.RATE, Mode.QUALITY])
async def test_loss_copies_and_order_are_counted_exactly(mode: Mode) -> None:
    """For five seeds."""
    for seed in range(5):
        arriving = LossyOrder(seed)
        pair = DatagramPair(SETTINGS, mode, has_sender=False)
        await arriving.send(pair, payload)
        arriving.assert_counted(pair)
        pair.close()


@pytest.mark.parametrize(("far", "counts"), [("127.0.0.2", (4, 1, 0)), (None, (4, 0, 0))])
async def test_each_header_of_a_group_is_read_if_it_comes_from_another_host(
    far: str | None, counts: tuple[int, ...]
) -> None:
    """Another address stands for another host. Within one the sender makes the groups, so one header is enough."""
    pair = DatagramPair(SETTINGS, Mode.RATE, has_sender=False, sockets=connected_sockets(far=far))
    pair.start()
    assert socket_options.set_segment(pair.sending_socket, DATAGRAM_BYTES)
    pair.sending_socket.send(b"".join(map(payload, (0, 1, 3, 2))))
    await until(lambda: pair.known("receiver", "received") == 4)
    names = ("received", "reordered", "invalid")
    assert tuple(pair.known("receiver", name) for name in names) == counts
    pair.sending_socket.send(b"".join(payload(number, cookie=1) for number in (4, 5)))
    await until(lambda: pair.known("receiver", "invalid") == 2)
    pair.close()


@pytest.mark.parametrize("mode", [Mode.RATE, Mode.QUALITY])
async def test_datagrams_are_counted_with_their_bytes(mode: Mode) -> None:
    """At every moment: a sample between two refreshes would have the rate of one time and the loss of another."""
    pair = DatagramPair(SETTINGS, mode, has_sender=False)
    pair.start()

    def numbers() -> tuple[int | None, ...]:
        values = dict(zip(DATAGRAM_COUNTER_NAMES, pair.counters.read_datagrams(Direction.IN, 1), strict=True))
        return values["received"], values["advanced"]

    assert numbers() == (0, 0)
    for number in (0, 1, 4):
        pair.sending_socket.send(payload(number))
    await until(lambda: numbers() == (3, 5))
    slot = pair.counters.read(Direction.IN, 1)
    assert slot is not None
    assert slot.bytes == 300
    pair.close()


async def test_payload_of_another_cookie_counts_as_invalid_only() -> None:
    """An attacker who sends from the peer's address, and does not see its datagrams, changes no result."""
    pair = DatagramPair(SETTINGS, has_sender=False)
    pair.start()
    pair.sending_socket.send(payload(0))
    pair.sending_socket.send(payload(2**40, cookie=1))
    pair.sending_socket.send(payload(2**63))
    pair.sending_socket.send(b"short")
    pair.sending_socket.send(payload(2**61))
    await until(lambda: pair.known("receiver", "invalid") == 4)
    assert pair.count("receiver", "received") == pair.count("receiver", "advanced") == 1
    pair.close()


async def test_what_the_socket_had_no_room_for_is_counted_as_its_own_loss() -> None:
    """The kernel counts it, and no loss of the network is in it."""
    pair = DatagramPair(SETTINGS, Mode.QUALITY, has_sender=False)
    pair.receiving_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    for number in range(500):
        pair.sending_socket.send(payload(number))
    pair.start()
    await until(lambda: pair.known("receiver", "received") > 0)
    pair.sending_socket.send(payload(500))
    await until(lambda: pair.known("receiver", "advanced") == 501)
    lost = pair.known("receiver", "advanced") - pair.known("receiver", "received")
    assert lost > 0
    assert pair.count("receiver", "socket_dropped") == lost
    pair.close()


async def test_the_traffic_class_that_arrives_is_counted() -> None:
    """DSCP 46 with a mark for congestion."""
    pair = DatagramPair(SETTINGS, has_sender=False)
    pair.start()
    pair.sending_socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 46 << 2 | 3)
    for number in range(10):
        pair.sending_socket.send(payload(number))
    await until(lambda: pair.known("receiver", "received") == 10)
    assert pair.count("receiver", "received_tos") == 46 << 2 | 3
    assert pair.count("receiver", "ce_marks") == 10
    pair.close()


async def test_feedback_comes_every_50_ms_with_the_counts() -> None:
    """The sender learns of losses from it."""
    pair = DatagramPair(SETTINGS, has_sender=False)
    pair.start()
    for number in (0, 1, 3):
        pair.sending_socket.send(payload(number))
    pair.sending_socket.settimeout(0)
    serials: list[int] = []
    for _ in range(60):
        await asyncio.sleep(0.01)
        try:
            feedback = KEYS.decode_feedback(pair.sending_socket.recv(FEEDBACK_BYTES + 1))
        except BlockingIOError:
            continue
        serials.append(feedback.serial)
        assert (feedback.advanced, feedback.received, feedback.received_bytes) == (4, 3, 300)
    assert len(serials) >= 5
    assert serials == list(range(1, len(serials) + 1))
    pair.close()


async def test_the_buffer_holds_50_ms_of_the_rate() -> None:
    """And at least 4 MiB, if this process may have it."""
    settings = Settings(rate_bit_s=10**9, datagram_bytes=1_000)
    assert socket_options.receive_buffer_bytes(settings) == 10**9 // 8 // 20
    assert socket_options.receive_buffer_bytes(Settings(sessions=4, rate_bit_s=10**6)) == 1 << 20
    pair = DatagramPair(settings, has_sender=False)
    granted = pair.receiver and socket_options.set_up_receiver(pair.receiving_socket, Mode.RATE, settings)
    assert granted
    assert pair.known("receiver", "receive_buffer_bytes") == granted
    pair.close()


@pytest.mark.parametrize("mode", [Mode.RATE, Mode.QUALITY])
async def test_copies_have_no_delay(mode: Mode) -> None:
    """The first copy of a datagram has come by then (RFC 5560): only its delay counts."""
    pair = DatagramPair(SETTINGS, mode, has_sender=False)
    pair.start()
    first = [payload(number) for number in range(20)]
    for datagram in first:
        pair.sending_socket.send(datagram)
    await until(lambda: pair.known("receiver", "received") == 20)
    await asyncio.sleep(0.05)
    for datagram in first:
        pair.sending_socket.send(datagram)
    await until(lambda: pair.known("receiver", "duplicates") == 20)
    counts = diff_histograms(EMPTY_HISTOGRAM, pair.counters.read_latency(Direction.IN, 1))
    assert sum(counts.values()) == 20
    assert pair.count("receiver", "jitter_count") == 19
    pair.close()


async def test_a_thread_that_is_held_up_between_two_clocks_does_not_set_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time between their readings would pass for delay."""
    pair = DatagramPair(SETTINGS, has_sender=False)
    assert pair.receiver is not None
    before_ns = pair.receiver._stamps.offset_ns
    wall_clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: (time.sleep(0.02), wall_clock())[1])
    pair.receiver.refresh()
    assert pair.receiver._stamps.offset_ns == before_ns
    pair.close()


def test_no_rate_that_the_other_end_names_takes_more_buffer_than_a_run_may_have() -> None:
    """In all of its sessions together."""
    for sessions in (1, 2, 128):
        settings = Settings(sessions=sessions, rate_bit_s=10**13)
        assert sessions * socket_options.receive_buffer_bytes(settings) <= 256 << 20
