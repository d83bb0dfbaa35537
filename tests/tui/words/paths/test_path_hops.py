"""A path in words: its tables, and a sentence for each thing that was found."""

from dataclasses import replace

from linkgauge.engine.model.counters.path_trace import MtuReport
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.path.path_result import LossPlace, PathResult, QueuePlace, Way
from linkgauge.tui.words.paths.path_hops import path_sentences, way_name, way_table

from ...example_path import FIRST, IN, LAST, MS, OUT, QUEUE, SILENT, THIRD, plain


def sentences(*ways: Way) -> list[str]:
    """Return what is said of some directions."""
    return [plain(sentence) for sentence in path_sentences(PathResult(ways))]


def test_a_queue_is_told_with_its_hop_its_direction_and_the_rise() -> None:
    """Hops of the way in are counted from the remote end."""
    text = "RTT rises there from 200 µs to 41.0 ms under load."
    assert sentences(OUT) == [f"The queue is before hop 3 (10.0.2.1), on the way out: {text}"]
    assert sentences(IN) == [f"The queue is before hop 3 from the remote end (10.0.2.1), on the way in: {text}"]


def test_hops_that_do_not_tell_are_said_to_lie_between() -> None:
    """The queue may be before them or behind them."""
    (sentence,) = sentences(replace(OUT, queues=(QueuePlace(1, 3, 41 * MS, 1.0),)))
    assert sentence.startswith(
        "The queue is before hop 3 (10.0.2.1) and behind hop 1 (hop 2 does not tell), on the way out"
    )
    (sentence,) = sentences(replace(OUT, queues=(QueuePlace(0, 4, 41 * MS, 1.0),)))
    assert "before the remote end and behind the local host (hops 1 and 2 and 3 do not tell)" in sentence


def test_a_link_without_routers_is_between_the_ends_and_a_second_queue_is_another() -> None:
    """Each in its own words."""
    only = replace(LAST, ttl=1)
    (sentence,) = sentences(Way(Direction.OUT, Direction.OUT, (only,), True, (QueuePlace(0, 1, 41 * MS, 1.0),)))
    assert sentence.startswith("The queue is on the link between the ends or in the local host, on the way out")
    second = sentences(replace(OUT, queues=(QUEUE, QueuePlace(0, 1, 12 * MS, 0.3))))[1]
    assert second == (
        "Another queue is before hop 1 (10.0.1.1), on the way out: RTT rises there by another 12.0 ms under load."
    )


def test_losses_mtus_late_answers_and_an_end_that_is_not_reached_are_told() -> None:
    """And that no hop has a queue."""
    slow = replace(FIRST, answers="slow")
    way = replace(OUT, hops=(slow, SILENT, THIRD, LAST), queues=(), loss=LossPlace(2, 3, 8.2, True))
    way = replace(way, mtus=(MtuReport("10.0.2.1", 1_400),))
    assert sentences(way) == [
        "No hop has a queue that delays other traffic under load.",
        "The loss is before hop 3 (10.0.2.1): 8.2 % of the probes are lost on the way out.",
        "Behind 10.0.2.1, on the way out, the MTU is 1400 bytes.",
        "Hop 1 answers late, but traffic passes in time: a slow control plane, not a queue.",
    ]
    seldom = replace(IN, queues=(), loss=LossPlace(0, 4, 8.2, False), is_reached=False)
    assert sentences(seldom)[1:] == [
        "8.2 % of the probes are lost on the way in; the hops do not tell where.",
        "No probe came back from the local end: nothing is judged on the way in.",
    ]


def test_a_rise_without_a_queue_of_its_direction_is_explained() -> None:
    """The answers wait on their way back. Without any load nothing is judged."""
    found = sentences(OUT, replace(IN, queues=(), answers_wait=True))
    answers = "the answers wait in the queue on the way out"
    assert found[1:] == [f"RTT rises by 41.0 ms on the way in, too, without a queue there: {answers}."]
    idle = [replace(each, kept_rise_ns=None, rise_ns=None, loaded_ns=None) for each in (FIRST, SILENT, LAST)]
    assert sentences(Way(Direction.OUT, None, tuple(idle), True)) == [
        "No hop is judged: nothing was measured under load."
    ]


def test_the_table_has_a_row_for_each_hop_and_no_text_of_a_stranger_as_it_is() -> None:
    """A name by reverse DNS is any text."""
    named = replace(FIRST, name="gw\x1b[31m.example")
    table = way_table(replace(OUT, hops=(named, SILENT, THIRD, LAST)))
    rows = [[plain(cell) for cell in row] for row in table.rows]
    assert way_name(OUT) == "way out, hops from the local end, load out"
    assert [row[0] for row in rows] == ["1", "2", "3", "remote"]
    assert "\x1b" not in rows[0][1]
    assert rows[0][1].startswith("10.0.1.1, gw")
    assert rows[1][1:] == ["–", "–", "–", "–", "–", "silent"]
    assert rows[2][1:] == [
        "10.0.2.1, 10.0.2.5",
        "200 µs",
        "41.0 ms",
        "+41.0 ms",
        "90.0 %",
        "▓ queue before it; limits its answers",
    ]
