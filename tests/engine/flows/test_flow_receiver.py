"""The entries of a round: by number, once each, and what overtakes."""

import socket
from collections.abc import Iterator

import pytest
from linkgauge.engine.flows.flow_receiver import ArrivalClock, FlowReceiver
from linkgauge.engine.protocol.flow_datagrams import ENTRY_ZERO, flow_number
from linkgauge.engine.protocol.payload_datagrams import PAYLOAD_HEADER

COOKIE = 7


@pytest.fixture
def receiver() -> Iterator[FlowReceiver]:
    """Give a receiver, whose socket is not used."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        yield FlowReceiver(sock, COOKIE, ArrivalClock())


def datagram(number: int, round_: int = 1, cookie: int = COOKIE) -> bytes:
    """Return a datagram that was sent at 0 of its sender's clock."""
    return PAYLOAD_HEADER.pack(flow_number(round_, number), 0, cookie)


def test_the_first_arrival_is_the_zero_of_all_delays(receiver: FlowReceiver) -> None:
    """Later ones are above it, as the clock runs."""
    assert receiver.take(datagram(0), [])
    assert receiver.take(datagram(1), [])
    assert receiver.entries[0] == ENTRY_ZERO
    assert receiver.entries[1] >= ENTRY_ZERO


def test_a_repeated_datagram_counts_once_and_a_strangers_not_at_all(receiver: FlowReceiver) -> None:
    """Nor does one of an earlier round."""
    receiver.take(datagram(0), [])
    receiver.take(datagram(0), [])
    assert receiver.duplicates == 1
    assert not receiver.take(datagram(1, cookie=8), [])
    receiver.begin(2)
    assert receiver.take(datagram(5), [])
    assert list(receiver.entries) == []


def test_a_second_datagram_of_a_sweep_that_comes_first_is_reordered(receiver: FlowReceiver) -> None:
    """Others that come late are not: their sweeps are far apart."""
    for number in (0, 3, 2, 8, 7):
        receiver.take(datagram(number), [])
    assert receiver.reordered == 1


def test_a_newer_round_begins_by_itself(receiver: FlowReceiver) -> None:
    """The near end's order may come later than its first datagrams."""
    receiver.take(datagram(4), [])
    receiver.take(datagram(0, round_=2), [])
    assert (receiver.round, len(receiver.entries), receiver.unread) == (2, 1, 0)
