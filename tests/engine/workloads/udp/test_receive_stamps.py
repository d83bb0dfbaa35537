"""The kernel's time of arrival: on the monotonic clock, and never one that cannot be."""

import select
import socket
import struct
import time
from itertools import chain, repeat

import pytest
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.workloads.udp import receive_stamps
from linkgauge.engine.workloads.udp.receive_stamps import ReceiveStamps, request_stamps
from linkgauge.engine.workloads.udp.socket_options import SO_TIMESTAMPNS


def stamp_of(wall_ns: int) -> list[tuple[int, int, bytes]]:
    """Return the ancillary data of a datagram that came at a time of the wall clock."""
    return [(socket.SOL_SOCKET, SO_TIMESTAMPNS, struct.pack("@qq", *divmod(wall_ns, SECOND_NS)))]


def test_a_datagram_came_between_its_sending_and_its_reading() -> None:
    """However late it is read."""
    stamps = ReceiveStamps()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        request_stamps(sock)
        sent_ns = time.monotonic_ns()
        time.sleep(0.001)  # the clocks are compared to within some ten microseconds, and loopback takes less
        sock.sendto(b"x", sock.getsockname())
        assert select.select([sock], [], [], 20)[0]
        arrived_ns = time.monotonic_ns()
        time.sleep(0.05)  # a thread that is held up
        _data, ancillary, _flags, _address = sock.recvmsg(10, 128)
        read_ns = time.monotonic_ns()
    came_ns = stamps.read(ancillary, sent_ns, read_ns)
    assert sent_ns <= came_ns <= arrived_ns + 1_000_000


@pytest.mark.parametrize("step_ns", [-3_600 * SECOND_NS, -SECOND_NS, SECOND_NS, 3_600 * SECOND_NS])
def test_after_a_step_of_the_wall_clock_the_time_of_reading_counts(step_ns: int) -> None:
    """Once; then the clocks have been compared again."""
    stamps = ReceiveStamps()
    offset_ns = stamps.offset_ns
    stamps.offset_ns += step_ns  # as it was before the clock was set
    now_ns = time.monotonic_ns()
    assert stamps.read(stamp_of(now_ns - 1_000 + offset_ns), now_ns - 10_000, now_ns) == now_ns
    assert abs(stamps.offset_ns - offset_ns) < 1_000_000
    later_ns = time.monotonic_ns()
    came_ns = stamps.read(stamp_of(later_ns - 2_000_000 + offset_ns), later_ns - 10_000_000, later_ns)
    assert abs(came_ns - (later_ns - 2_000_000)) < 1_000_000


def test_without_a_stamp_the_time_of_reading_counts() -> None:
    """Other systems, and control messages of another kind or size."""
    stamps = ReceiveStamps()
    for ancillary in ([], [(socket.SOL_SOCKET, SO_TIMESTAMPNS, b"short")], [(socket.IPPROTO_IP, 8, bytes(16))]):
        assert stamps.read(ancillary, 0, 77) == 77


@pytest.mark.parametrize("held_up_ms", [(), (30,), (30, 5, 5), (30, 40, 30, 30, 3, 30, 30, 30)])
def test_clocks_are_compared_again_if_the_thread_was_held_up_in_between(
    monkeypatch: pytest.MonkeyPatch, held_up_ms: tuple[int, ...]
) -> None:
    """A busy machine does that. If it does so every time, the first comparison takes the shortest, a later none."""
    offset_ns = 1_763_000_000 * SECOND_NS
    hold_ups = chain(held_up_ms, repeat(0))
    now_ns = 7 * SECOND_NS

    class Clock:
        """The two clocks; a hold-up is between the wall clock and the second reading."""

        def monotonic_ns(self) -> int:
            return now_ns

        def time_ns(self) -> int:
            nonlocal now_ns
            wall_ns = now_ns + offset_ns
            now_ns += next(hold_ups) * 1_000_000
            return wall_ns

    monkeypatch.setattr(receive_stamps, "time", Clock())
    is_always = len(held_up_ms) == 8
    stamps = ReceiveStamps()
    assert abs(stamps.offset_ns - offset_ns) <= (1_500_000 if is_always else 0)
    stamps.offset_ns = offset_ns + SECOND_NS  # as before the clock was set
    hold_ups = chain(held_up_ms, repeat(0))
    stamps.measure()
    assert stamps.offset_ns == offset_ns + is_always * SECOND_NS
