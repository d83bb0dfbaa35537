"""Changes from dump to dump: what moved, what waits, what ended, and that no two sockets are joined."""

from linkgauge.engine.host.sockets.socket_table import SocketTable

from ....observe.made_sockets import Socket

FIRST = Socket(cookie=1, acked=1_000)


def test_the_first_dump_moves_nothing_and_the_next_one_by_its_difference() -> None:
    """What a connection carried before it was seen is of an unknown time."""
    table = SocketTable()
    assert not table.update([FIRST.message()]).moved
    change = table.update([FIRST.later(acked=1_500, received=70).message()])
    assert [(each.out_bytes, each.in_bytes) for each in change.moved] == [(500, 70)]
    assert (change.out_bytes, change.in_bytes) == (500, 70)


def test_a_connection_that_began_after_the_last_dump_counts_from_zero() -> None:
    """Its counters started then."""
    table = SocketTable()
    table.update([])
    assert table.update([FIRST.message()]).moved[0].out_bytes == 1_000


def test_the_next_connection_of_the_same_ports_is_another_one() -> None:
    """Its counters are smaller: a difference would be nonsense."""
    table = SocketTable()
    table.update([FIRST.message()])
    change = table.update([FIRST.later(cookie=2, acked=10).message()])
    assert (change.moved[0].out_bytes, change.ended, change.short_lived) == (10, 1, 0)


def test_a_connection_that_ended_counts_its_last_payload() -> None:
    """The kernel's broadcast has it; afterwards no dump does."""
    table = SocketTable()
    table.update([FIRST.message()])
    change = table.update([], ended=[FIRST.later(acked=1_200).message()])
    assert (change.ended, change.out_bytes, change.short_lived) == (1, 200, 0)


def test_a_connection_within_an_interval_is_counted() -> None:
    """No dump ever had it."""
    table = SocketTable()
    table.update([])
    change = table.update([], ended=[Socket(cookie=9, acked=30, received=12).message()])
    assert (change.ended, change.short_lived, change.short_lived_bytes) == (1, 1, 42)


def test_idle_sockets_are_not_listed_unless_they_hold_something() -> None:
    """Bytes in a queue that do not move are of interest: the transfer may be stuck."""
    table = SocketTable(idle_kept=1)
    sockets = [Socket(cookie=n) for n in range(3)] + [Socket(cookie=5, waiting=10), Socket(cookie=6, unread=10)]
    table.update([each.message() for each in sockets])
    change = table.update([each.message() for each in sockets])
    assert not change.moved
    assert [each.cookie for each in change.waiting] == [5, 6]
    assert [each.cookie for each in change.idle] == [0]


def test_sockets_of_other_processes_are_left_out() -> None:
    """The kernel cannot compare processes."""
    table = SocketTable()
    messages = [Socket(cookie=n).message() for n in range(4)]
    table.update(messages, allows=lambda message: message.cookie == 2)
    assert len(table.known) == 1
