"""The relay between two ends, on a clock of the test's own."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.lab.link_spec import LabLink
from linkgauge.engine.lab.relay import Medium
from linkgauge.engine.model.serialization import decode, encode

MS = 1_000_000
PLAIN = LabLink(10_000_000, 1500, 1500, 24, "ethernet", 16_384, 40_000, smallest_bytes=84)
FRAME = bytes(1514)  # 1538 bytes of the line: 1,230,400 ns at 10 Mb/s
ON_THE_LINE_NS = 1_230_400


def changed(**changes: object) -> LabLink:
    """Return the plain link with some of it changed."""
    return decode(LabLink, {**encode(PLAIN), **changes})


def medium(link: LabLink, seed: int = 1) -> Medium:
    """Return a medium for a link."""
    return Medium(link, random.Random(seed).random)  # noqa: S311 - chance, not secrets


def test_a_frame_comes_out_at_the_other_side_after_its_delay_and_not_before() -> None:
    """And the relay knows until when it may sleep."""
    held = medium(changed(delay_ns=5 * MS))
    held.send(0, b"out", 100)
    assert held.next_event_ns() == 100 + 5 * MS
    assert list(held.pop_arrivals(99 + 5 * MS)) == []
    assert list(held.pop_arrivals(100 + 5 * MS)) == [(0, b"out")]
    assert held.next_event_ns() is None


def test_frames_keep_their_order() -> None:
    """A relay that overtakes would look like loss to TCP."""
    held = medium(changed(delay_ns=MS))
    for number in range(5):
        held.send(1, bytes([number]), number)
    assert [frame[0] for _, frame in held.pop_arrivals(2 * MS)] == [0, 1, 2, 3, 4]


def test_lost_frames_are_the_requested_percentage_and_the_same_for_the_same_seed() -> None:
    """Within what chance allows for 20,000 draws."""

    def arrived(seed: int) -> list[bytes]:
        lossy = medium(changed(loss_percent=10), seed)
        for number in range(20_000):
            lossy.send(number % 2, number.to_bytes(4, "big"), 0)
        return [frame for _, frame in lossy.pop_arrivals(0)]

    assert 17_700 < len(arrived(1)) < 18_300
    assert arrived(1) == arrived(1)
    assert arrived(1) != arrived(2)


def test_a_loss_of_everything_lets_nothing_through() -> None:
    """A cable that was pulled."""
    cut = medium(changed(loss_percent=100))
    cut.send(0, FRAME, 0)
    assert cut.next_event_ns() is None


def test_a_shared_medium_carries_one_frame_at_a_time() -> None:
    """Two directions together get no more than the line."""
    shared = medium(changed(half_duplex=True))
    for _ in range(4):
        shared.send(0, FRAME, 0)
        shared.send(1, FRAME, 0)
    came = [(side, at) for at in range(0, 12 * MS, 100) for side, _ in shared.pop_arrivals(at)]
    assert [side for side, _ in came] == [0, 1, 0, 1, 0, 1, 0, 1]
    assert [round(at / ON_THE_LINE_NS, 2) for _, at in came] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_relay_that_wakes_up_late_loses_no_time_of_the_line() -> None:
    """The frames that were due meanwhile have gone out."""
    shared = medium(changed(half_duplex=True))
    for _ in range(8):
        shared.send(0, FRAME, 0)
    assert len(list(shared.pop_arrivals(0))) == 0
    assert len(list(shared.pop_arrivals(8 * ON_THE_LINE_NS))) == 8


def test_a_free_medium_is_the_first_comers() -> None:
    """Taking turns is for those that both wait."""
    shared = medium(changed(half_duplex=True))
    shared.send(1, FRAME, 10)
    shared.send(0, FRAME, 20)
    assert [side for side, _ in shared.pop_arrivals(10 + ON_THE_LINE_NS)] == [1]
    assert [side for side, _ in shared.pop_arrivals(10 + 2 * ON_THE_LINE_NS)] == [0]


def test_a_full_queue_at_a_shared_medium_loses_what_comes() -> None:
    """As at any interface."""
    shared = medium(changed(half_duplex=True))
    for _ in range(100):
        shared.send(0, FRAME, 0)
    assert len(list(shared.pop_arrivals(1_000 * MS))) == PLAIN.buffer_bytes // len(FRAME)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(60, 1514), st.integers(0, 3 * MS)), max_size=40))
def test_a_shared_medium_never_carries_more_than_its_line(sent: list[tuple[int, int, int]]) -> None:
    """Whatever either end sends, and whenever; with room for all frames, all of them arrive."""
    link = changed(half_duplex=True, buffer_bytes=1_000_000)
    shared = medium(link)
    now = 0
    for side, size, pause in sent:
        now += pause
        shared.send(side, bytes(size), now)
    arrived: list[tuple[int, int]] = []
    while (due := shared.next_event_ns()) is not None:
        arrived += [(due, len(frame)) for _, frame in shared.pop_arrivals(due)]
    assert sorted(size for _, size in arrived) == sorted(size for _, size, _ in sent)
    times = [at for at, _ in arrived]
    for (before, _), (at, size) in pairwise(arrived):
        assert at - before >= link.wire_ns(size)
    assert times == sorted(times)
