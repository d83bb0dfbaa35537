"""The receiver of iperf3's datagrams: numbers of both sizes, copies, order, strangers, groups and the jitter."""

import struct
from typing import Any

import pytest
from linkgauge.engine.model.plan import Dialect, Mode, Settings

from ...tcp_pair import only_linux
from ...waiting import until
from ..udp.datagram_pair import DatagramPair
from ..udp.lossy_order import DATAGRAM_BYTES, LossyOrder

pytestmark = only_linux
SETTINGS = Settings(rate_bit_s=8_000_000, datagram_bytes=DATAGRAM_BYTES)
HEADERS = {False: struct.Struct(">III"), True: struct.Struct(">IIQ")}


def payload(counter: int, is_wide: bool, *, stamp_us: int = 0, size: int = DATAGRAM_BYTES) -> bytes:
    """Return a datagram with iperf3's counter, which begins at 1."""
    if not is_wide:
        counter %= 2**32
    return HEADERS[is_wide].pack(stamp_us // 10**6, stamp_us % 10**6, counter).ljust(size, b"x")


def receiver(is_wide: bool, mode: Mode = Mode.QUALITY, **values: Any) -> DatagramPair:
    """Return a pair whose sender is the test."""
    return DatagramPair(
        SETTINGS, mode, has_sender=False, dialect=Dialect.IPERF3, has_64bit_counters=is_wide, **values
    )


@pytest.mark.parametrize("mode", [Mode.RATE, Mode.QUALITY])
@pytest.mark.parametrize("is_wide", [False, True])
async def test_loss_copies_and_order_of_iperf3_are_counted_exactly(mode: Mode, is_wide: bool) -> None:
    """As linkgauge's own are."""
    arriving, pair = LossyOrder(7), receiver(is_wide, mode)
    await arriving.send(pair, lambda number: payload(number + 1, is_wide))
    arriving.assert_counted(pair)
    assert pair.count("receiver", "invalid") == 0
    pair.close()


@pytest.mark.parametrize("is_wide", [False, True])
async def test_numbers_pass_four_billion(is_wide: bool) -> None:
    """An hour of a fast test: the header's 32 bits begin again, and nothing is lost."""
    pair = receiver(is_wide)
    assert pair.receiver is not None
    start = pair.receiver._tracker.advanced = 2**32 - 50
    pair.start()
    for number in range(start, start + 100):
        pair.sending_socket.send(payload(number + 1, is_wide))
    await until(lambda: pair.known("receiver", "received") == 100)
    assert pair.count("receiver", "advanced") == 2**32 + 50
    pair.close()


@pytest.mark.parametrize("mode", [Mode.RATE, Mode.QUALITY])
@pytest.mark.parametrize("is_wide", [False, True])
async def test_what_is_no_payload_is_invalid(mode: Mode, is_wide: bool) -> None:
    """A repeated hello, half a header, and impossible numbers; the session goes on."""
    strange = [b"9876", b"x", payload(0, is_wide), bytes(HEADERS[is_wide].size - 1), payload(2**31, is_wide)]
    if is_wide:
        strange += [payload(2**64 - 1, is_wide), payload(2**62, is_wide)]
    pair = receiver(is_wide, mode)
    pair.start()
    for data in strange:
        pair.sending_socket.send(data)
    pair.sending_socket.send(payload(1, is_wide))
    await until(
        lambda: pair.known("receiver", "received") == 1 and pair.known("receiver", "invalid") == len(strange)
    )
    assert not pair.lost
    with pytest.raises(BlockingIOError):  # nothing is answered
        pair.sending_socket.recv(100)
    pair.close()


async def test_a_group_from_one_system_call_is_counted_whole() -> None:
    """As `iperf3 --gsro` sends: up to 65,507 bytes, whose last datagram can be shorter than a header."""
    from linkgauge.engine.workloads.udp import socket_options

    pair = receiver(True, Mode.RATE)
    pair.start()
    assert socket_options.set_segment(pair.sending_socket, 1_024)
    group = b"".join(payload(number + 1, True, size=1_024) for number in range(63))
    pair.sending_socket.send(group + bytes(10))
    await until(lambda: pair.known("receiver", "received") == 63 and pair.known("receiver", "invalid") == 1)
    pair.sending_socket.send(payload(65, True, size=1_024) + payload(64, True, size=1_024))
    await until(lambda: pair.known("receiver", "received") == 65)
    assert pair.count("receiver", "reordered") == 1
    pair.close()


async def test_jitter_is_that_of_the_stamps() -> None:
    """They leap by a second from one datagram to the next: a sixteenth of it, and then less."""
    pair = receiver(False)
    pair.start()
    for number in range(3):
        pair.sending_socket.send(payload(number + 1, False, stamp_us=number * 10**6))
    await until(lambda: pair.known("receiver", "received") == 3)
    assert pair.known("receiver", "jitter_max_ns") == pytest.approx(10**9 / 16 * (1 + 15 / 16), rel=0.01)
    pair.close()
