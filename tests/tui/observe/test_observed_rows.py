"""The rows of the table: order, filter, freeze, and connections that ended."""

from dataclasses import replace

import pytest
from linkgauge.observe.observation import Status
from linkgauge.tui.observe.observed_rows import ENDED_NS, SORTS, ObservedRows, Order

from .example_observations import SLOW_READER, connection, ended, examples, observation, received

ENDED_S = ENDED_NS // 1_000_000_000


def numbers(rows: ObservedRows) -> list[int]:
    """Return the numbers of the rows, in order."""
    return [row.key.cookie for row in rows.rows]


@pytest.mark.parametrize(
    ("column", "order"),
    [
        ("Mb/s", [1, 2, 3, 4, 5, 6]),
        ("RTT", [6, 5, 4, 2, 1, 3]),
        ("why", [2, 3, 4, 1, 5, 6]),
        ("process", [1, 2, 4, 6, 3, 5]),
        ("peer", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_rows_are_sorted_by_a_column(column: str, order: list[int]) -> None:
    """Large values, bad results and first names come first; what is unknown comes last."""
    rows = ObservedRows()
    rows.order = Order().by(column) if column != "Mb/s" else Order()
    rows.update(observation(examples()))
    assert numbers(rows) == order


def test_the_same_column_again_is_the_reverse_order_and_the_next_key_the_next_column() -> None:
    """After the last column, the first."""
    assert Order().by("Mb/s") == Order("Mb/s", is_descending=False)
    order = Order()
    for name in [*list(SORTS)[1:], "Mb/s"]:
        order = order.by_next()
        assert order.column == name
    assert order == Order()


def test_a_frozen_order_stays_while_the_values_change() -> None:
    """A new connection comes at the end. Released, the rows are in order again."""
    rows = ObservedRows()
    rows.update(observation([connection(1, 3e6), connection(2, 2e6)]))
    rows.is_frozen = True
    rows.update(observation([connection(3, 9e6), connection(2, 5e6), connection(1, 1e6)], 2))
    assert numbers(rows) == [1, 2, 3]
    assert rows.rows[1].bit_s == 5e6
    rows.is_frozen = False
    rows.arrange()
    assert numbers(rows) == [3, 2, 1]


def test_a_connection_that_ended_is_shown_for_a_while_with_its_last_finding() -> None:
    """It is below the others. While the order is frozen, it keeps its place."""
    rows = ObservedRows()
    slow = connection(1, 3e6, Status.LIMITED, findings=(SLOW_READER,))
    rows.update(observation([slow, connection(2, 2e6)]))
    rows.update(observation([ended(slow), connection(2, 2e6)], 2))
    assert numbers(rows) == [2, 1]
    assert rows.rows[1].findings == (SLOW_READER,)
    rows.update(observation([connection(2, 2e6)], 1 + ENDED_S))
    assert numbers(rows) == [2, 1]
    rows.update(observation([connection(2, 2e6)], 2 + ENDED_S))
    assert numbers(rows) == [2]
    assert rows.find(slow.key) is None
    rows.is_frozen = True
    rows.update(observation([ended(connection(2, 2e6))], 20))
    rows.update(observation([], 20 + 2 * ENDED_S))
    assert numbers(rows) == [2]


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("", [1, 2, 3, 4, 5, 6]),
        ("NGINX", [1, 2, 4, 6]),
        ("nginx/1002", [2]),
        ("peer:10.0.0.4", [4]),
        ("user:anna receiver", [2]),
        ("why:receiver", [2]),
        ("why:idle", [6]),
        ("local:40003 process:rsync", [3]),
        ("nic:eth0 cc:cubic 443", [1, 2, 3, 4, 5, 6]),
        ("10.0.0.1:443", [1]),
        ("nothing-like-it", []),
    ],
)
def test_each_word_of_a_filter_must_match(text: str, matching: list[int]) -> None:
    """In any column, or in the one that it names; an address with a port is no field."""
    rows = ObservedRows()
    rows.filter_text = text
    rows.update(observation(examples()))
    assert numbers(rows) == matching
    assert rows.total == 6


def test_a_connection_that_moves_nothing_any_more_is_gone() -> None:
    """The observer leaves it out."""
    rows = ObservedRows()
    rows.update(observation([received(1, 5.0)]))
    rows.update(observation([], 2))
    assert rows.rows == ()
    assert rows.keys == frozenset()


def test_an_address_used_again_is_another_connection() -> None:
    """The kernel's cookie tells them apart."""
    rows = ObservedRows()
    first = connection(1, 3e6)
    second = replace(first, key=first.key._replace(cookie=99))
    rows.update(observation([ended(first), second], 2))
    assert numbers(rows) == [99, 1]
