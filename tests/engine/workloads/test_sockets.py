"""The socket options of a data connection, as the kernel grants them."""

import socket

import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import Mode, SocketOptions
from linkgauge.engine.workloads.sockets import granted_window, prepare, read_socket_info

from ..tcp_pair import carry, only_linux, pair

PAYLOAD_BYTES = 8 << 20


@only_linux
@pytest.mark.parametrize("asked_bytes", [16_384, 57_344, 262_144])
def test_a_window_set_after_accept_bounds_the_bytes_in_flight(asked_bytes: int) -> None:
    """Once data flows the peer's window is at least about the requested one, and within its doubled buffer.

    Linux doubles SO_RCVBUF for its book-keeping (socket(7)), and if packets are large and book-keeping is little
    it lends the rest to the window: it is a bound and not the window itself.
    """
    sender, receiver = pair(asked_bytes)
    with sender, receiver:
        granted = granted_window(receiver, is_sender=False)
        windows = list(carry(sender, receiver, max(PAYLOAD_BYTES // 8, 16 * asked_bytes)))
    assert granted == asked_bytes
    settled = windows[len(windows) // 2 :]
    assert max(settled) <= 2 * asked_bytes
    assert max(settled) >= 0.9 * asked_bytes


@only_linux
def test_facts_of_a_session_are_what_the_kernel_granted() -> None:
    """The sender reports its send buffer, the receiver its receive buffer; auto is unknown."""
    sender, receiver = pair(65_536)
    with sender, receiver:
        for sock, end in ((sender, End.NEAR), (receiver, End.FAR)):
            granted = granted_window(sock, is_sender=end is End.NEAR)
            facts = read_socket_info(sock, end, Direction.OUT, 3, Mode.COPY, granted)
            assert (facts.end, facts.direction, facts.session) == (end, Direction.OUT, 3)
            assert facts.window_granted_bytes == 65_536
            assert facts.congestion
            assert facts.mss_bytes
        unasked = read_socket_info(sender, End.NEAR, Direction.OUT, 3, Mode.COPY)
        assert unasked.window_granted_bytes is None


def test_a_congestion_control_that_is_not_there_is_an_error_with_what_to_do() -> None:
    """The text names it and the command that lists those there are."""
    with (
        socket.socket() as sock,
        pytest.raises(OSError, match=r"no_such_control is not available; that host has .*cubic"),
    ):
        prepare(sock, None, SocketOptions(congestion="no_such_control"))
