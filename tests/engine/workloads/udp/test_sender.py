"""The sender of a UDP session: its rate, its sizes, its stop without feedback, and forged feedback."""

import asyncio
import errno
import socket
import time
from dataclasses import replace

import pytest
from linkgauge.engine.model.plan import Mode, Settings
from linkgauge.engine.protocol.payload_datagrams import PAYLOAD_HEADER, DatagramKeys, Feedback
from linkgauge.engine.workloads.udp import sender as sender_module

from ...tcp_pair import only_linux
from ...waiting import until
from .datagram_pair import KEYS, DatagramPair

pytestmark = only_linux
SLOW = Settings(rate_bit_s=8_000_000, datagram_bytes=1_000)
FEEDBACK = Feedback(1, 0, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("family", [socket.AF_INET, pytest.param(socket.AF_INET6, marks=pytest.mark.every)])
@pytest.mark.parametrize("mode", [Mode.RATE, Mode.QUALITY])
@pytest.mark.parametrize("size", [24, 100, 1_400, 1_452, 1_471, 8_000])
async def test_every_datagram_arrives_once_at_its_size(size: int, mode: Mode, family: socket.AddressFamily) -> None:
    """In both modes, at sizes with and without whole words, over IPv4 and IPv6."""
    pair = DatagramPair(Settings(rate_bit_s=size * 8 * 2_000, datagram_bytes=size), mode, family=family)
    pair.start()
    await until(lambda: pair.known("receiver", "received") >= 200)
    await pair.stop()
    sent = pair.known("sender", "sent")
    assert pair.known("receiver", "received") == pair.known("receiver", "advanced") == sent
    assert pair.count("receiver", "duplicates") == pair.count("receiver", "invalid") == 0
    assert pair.count("sender", "datagram_bytes") == size
    assert pair.count("sender", "is_grouped") == int(mode is Mode.RATE)
    assert pair.lost == []
    pair.close()


async def test_new_settings_change_size_and_rate_of_an_open_session() -> None:
    """No socket is opened again, and the numbers go on."""
    pair = DatagramPair(SLOW)
    pair.start()
    await until(lambda: pair.known("receiver", "received") >= 50)
    pair.apply(Settings(rate_bit_s=80_000_000, datagram_bytes=200))
    await until(lambda: pair.known("receiver", "received") >= 5_000)
    await pair.stop()
    assert pair.count("sender", "datagram_bytes") == 200
    assert pair.count("sender", "rate_bit_s") == 80_000_000
    assert pair.count("receiver", "received") == pair.count("sender", "sent")
    pair.close()


async def test_a_sender_without_feedback_stops_within_a_second_and_is_lost_after_five(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A host that does not listen any more is not flooded."""
    monkeypatch.setattr(sender_module, "_LOSS_NS", 1_500_000_000)
    pair = DatagramPair(SLOW, has_receiver=False)
    began = time.monotonic()
    pair.start()
    pair.receiving_socket.settimeout(0.4)
    last = began
    loop = asyncio.get_running_loop()
    while True:
        try:
            await loop.run_in_executor(None, pair.receiving_socket.recv, 2_000)
        except TimeoutError:
            break
        last = time.monotonic()
    assert last - began < 1.0
    assert pair.lost == []
    await until(lambda: pair.count("sender", "sent") and pair.lost)
    assert pair.lost == [sender_module.REPORTS_STOPPED]
    pair.close()


async def test_a_sender_goes_on_when_feedback_comes_again() -> None:
    """A receiver that was stopped for a moment is not a lost receiver."""
    pair = DatagramPair(SLOW, has_receiver=False)
    pair.start()
    await asyncio.sleep(1.0)
    stopped_at = pair.known("sender", "sent")
    await asyncio.sleep(0.2)
    assert pair.count("sender", "sent") == stopped_at
    pair.receiving_socket.send(KEYS.encode_feedback(replace(FEEDBACK, serial=7)))
    await until(lambda: pair.known("sender", "sent") > stopped_at + 20)
    pair.close()


async def test_forged_and_repeated_feedback_keeps_no_sender_going() -> None:
    """Neither another secret's code nor a datagram that was sent before counts as a sign of life."""
    pair = DatagramPair(SLOW, has_receiver=False)
    pair.start()
    genuine = KEYS.encode_feedback(FEEDBACK)
    pair.receiving_socket.send(genuine)
    until = time.monotonic() + 1.2
    forged = DatagramKeys(b"another").encode_feedback(replace(FEEDBACK, serial=2**40))
    while time.monotonic() < until:
        pair.receiving_socket.send(genuine)
        pair.receiving_socket.send(forged)
        pair.receiving_socket.send(b"\xff" * 100)
        await asyncio.sleep(0.02)
    stopped_at = pair.count("sender", "sent")
    await asyncio.sleep(0.2)
    assert pair.count("sender", "sent") == stopped_at
    pair.close()


async def test_a_datagram_that_does_not_fit_the_path_ends_the_session_with_the_remedy() -> None:
    """Nothing is fragmented."""
    pair = DatagramPair(
        Settings(rate_bit_s=10_000_000, datagram_bytes=65_507), Mode.QUALITY, family=socket.AF_INET6
    )
    pair.sending_socket.setsockopt(socket.IPPROTO_IPV6, 24, 1_400)  # IPV6_MTU, ipv6(7)
    pair.start()
    await until(lambda: pair.lost)
    assert "does not fit the path's MTU" in pair.lost[0]
    assert "--datagram auto" in pair.lost[0]
    pair.close()


async def test_a_size_that_the_kernel_refuses_ends_no_session_whose_settings_have_another_by_now() -> None:
    """The group of the settings before is in force for a moment more."""
    pair = DatagramPair(Settings(rate_bit_s=10_000_000), Mode.QUALITY)
    assert pair.sender is not None
    pair.sender._settings = Settings(rate_bit_s=10_000_000, datagram_bytes=500)
    assert pair.sender._survives(OSError(errno.EMSGSIZE, ""), 1)
    assert pair.sender._group.datagram_bytes == 500
    pair.close()


async def test_an_mtu_that_falls_for_a_moment_ends_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel refused what fits again when this end asks for the MTU; for good, it has another reason."""
    pair = DatagramPair(SLOW, Mode.QUALITY)
    assert pair.sender is not None
    assert pair.sender._survives(OSError(errno.EMSGSIZE, ""), 1)
    monkeypatch.setattr(sender_module, "_REFUSED_NS", 0)
    with pytest.raises(OSError, match="does not fit"):
        pair.sender._survives(OSError(errno.EMSGSIZE, ""), 1)
    pair.close()


async def test_a_receiver_that_has_gone_ends_the_session() -> None:
    """Its host answers that nothing takes the datagrams any more."""
    pair = DatagramPair(SLOW, has_receiver=False)
    pair.receiving_socket.close()
    pair.start()
    await until(lambda: pair.lost)
    assert "refused" in pair.lost[0].lower()
    pair.close()


async def test_payload_begins_with_number_stamp_and_cookie() -> None:
    """The far end's reader depends on it."""
    pair = DatagramPair(SLOW, has_receiver=False)
    pair.start()
    await asyncio.sleep(0.3)
    headers = [PAYLOAD_HEADER.unpack_from(pair.receiving_socket.recv(2_000)) for _ in range(20)]
    assert [number for number, _, _ in headers] == list(range(20))
    assert all(cookie == KEYS.cookie for _, _, cookie in headers)
    stamps = [stamp for _, stamp, _ in headers]
    assert stamps == sorted(stamps)
    pair.close()


async def test_what_is_not_sent_while_no_feedback_comes_is_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skipped are the datagrams for which this host was too slow."""
    monkeypatch.setattr(sender_module, "_SILENCE_NS", 100_000_000)
    pair = DatagramPair(Settings(rate_bit_s=80_000_000, datagram_bytes=1_000), has_receiver=False)
    pair.start()
    await asyncio.sleep(0.6)
    sent = pair.known("sender", "sent")
    pair.receiving_socket.send(KEYS.encode_feedback(replace(FEEDBACK, serial=7)))
    await until(lambda: pair.known("sender", "sent") > sent + 50)
    assert pair.known("sender", "skipped") < 2_500  # half of the pause
    pair.close()


@pytest.mark.parametrize("family", [socket.AF_INET, pytest.param(socket.AF_INET6, marks=pytest.mark.every)])
@pytest.mark.parametrize("mode", [Mode.RATE, Mode.QUALITY])
async def test_a_sender_without_a_rate_loses_nothing_in_its_receiver(
    mode: Mode, family: socket.AddressFamily
) -> None:
    """The receiver shares its interpreter with it, and is the slower one: it tells how much it has room for."""
    pair = DatagramPair(Settings(datagram_bytes=1_200), mode, family=family)
    pair.start()
    await until(lambda: pair.known("receiver", "received") >= 100_000)
    await pair.stop()
    await until(lambda: pair.count("receiver", "advanced") == pair.count("sender", "sent"))
    assert pair.count("receiver", "received") == pair.count("sender", "sent")
    assert pair.count("receiver", "socket_dropped") == 0
    pair.close()


async def test_a_receiver_that_stands_still_stops_a_sender_without_a_rate() -> None:
    """Its reports go on, but nothing of its buffer is taken. A flood goes on."""
    pair = DatagramPair(Settings(datagram_bytes=1_000), has_receiver=False)
    buffer_bytes = 256 << 10
    pair.start()
    for serial in range(1, 30):
        report = replace(FEEDBACK, serial=serial, sent_ns=serial, buffer_bytes=buffer_bytes)
        pair.receiving_socket.send(KEYS.encode_feedback(report))
        await asyncio.sleep(0.002)
    assert 0 < pair.known("sender", "sent") <= buffer_bytes // 1_000
    pair.apply(Settings(datagram_bytes=1_000, floods=True))
    await until(lambda: pair.known("sender", "sent") > 10 * buffer_bytes // 1_000)
    pair.apply(SLOW)
    await until(lambda: pair.count("sender", "rate_bit_s") == SLOW.rate_bit_s)
    pair.close()
