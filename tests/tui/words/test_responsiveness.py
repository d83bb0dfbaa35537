"""A responsiveness test in words."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.plan import Dialect, Plan
from linkgauge.engine.results.responsiveness.grade import GRADES
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan, with_responsiveness
from linkgauge.engine.results.responsiveness.result import Responsiveness, SenderQueue
from linkgauge.tui.words import responsiveness as text

from ..responsiveness_results import IDLE, IN_THE_PATH, MS, RESULT, load


def plain(words: str) -> str:
    """Return text with plain spaces."""
    return words.replace("\N{NO-BREAK SPACE}", " ")


def test_rows_begin_with_the_idle_link_and_each_load_has_its_rise_and_goodput() -> None:
    """In the order in which they were measured."""
    table = text.load_table(RESULT)
    idle, out, in_, both = ([plain(cell) for cell in row] for row in table.rows)
    assert idle == ["idle", "412 µs", "600 µs", *["–"] * 6]
    assert out == [
        "load out", "45.6 ms", "54.7 ms", "+45.2 ms", "+49.7 ms", "+45.2 ms", "+100 µs", "94.10", "–",
    ]  # fmt: skip
    assert (in_[0], *in_[-2:]) == ("load in", "–", "94.10")
    assert both[0] == "both"
    assert len(out) == len(table.columns)


def test_what_is_unknown_is_a_dash_and_a_fall_of_latency_is_no_rise() -> None:
    """0 is measured: latency under load may be shorter than when idle, on a processor that sleeps."""
    blind = replace(
        load(Direction.OUT, 1),
        latency=None,
        rise_ns=None,
        peak_rise_ns=None,
        one_way_rise_ns=PerDirection(None, None, None),
    )
    row = text.load_table(replace(RESULT, idle=None, loads=(blind,))).rows[1]
    assert row[1:] == (*["–"] * 6, "94.10", "–")
    assert plain(text.rise(-3 * MS)) == "+0 ms"
    assert plain(text.rise(0)) == "+0 ms"


@pytest.mark.parametrize(
    ("grade", "words"),
    [
        ("A+", "under 5 ms"),
        ("A", "5 to 30 ms"),
        ("B", "30 to 60 ms"),
        ("D", "200 to 400 ms"),
        ("F", "400 ms or more"),
    ],
)
def test_a_grade_comes_with_the_rises_that_get_it(grade: str, words: str) -> None:
    """And with the source of these limits."""
    known = next(name for name in GRADES if name == grade)
    sentence = plain(text.grade_text(replace(RESULT, grade=known)))
    assert sentence == f"{grade}: mean rise of out and in +22.9 ms ({words}, limits of DSLReports)"


def test_a_grade_of_one_load_is_of_no_mean() -> None:
    """If only one direction was loaded."""
    only = replace(RESULT, loads=RESULT.loads[:1], grade="B", rise_ns=45.2 * MS)
    assert plain(text.grade_text(only)).startswith("B: rise +45.2 ms (30 to 60 ms")
    assert text.grade_text(Responsiveness("request", None, (), None, None, None)).startswith("none: ")


def test_round_trips_have_their_class_confidence_and_parts() -> None:
    """Without them the reason."""
    assert plain(text.round_trips_text(RESULT.round_trips)) == (
        "1 290 a minute, good, confidence high (handshake 41.2 ms, answer 47.1 ms, loaded sessions 50.8 ms)"
    )
    assert text.round_trips_text(None).startswith("unknown")


def test_a_link_that_lets_no_udp_through_is_told_from_one_that_does() -> None:
    """Requests measured its latency."""
    assert text.probe_text(RESULT).startswith("UDP datagrams")
    assert "UDP did not pass" in text.probe_text(replace(RESULT, probe="request"))
    assert text.probe_text(replace(RESULT, probe="request"), Dialect.BROWSER).startswith("pings to the page")


def test_losses_and_loads_that_were_not_steady_are_named() -> None:
    """Without lost probes and unsteady loads there are no words."""
    assert plain(text.lost_text(RESULT)) == "both 1.2 %"
    assert text.unsteady_text(RESULT) == "both"
    calm = replace(RESULT, loads=RESULT.loads[:2])
    assert text.lost_text(calm) == text.unsteady_text(calm) == ""


def test_what_waits_at_a_host_has_its_size_place_and_delay() -> None:
    """The name of the interface may come from the far end: it is one harmless line."""
    (queue,) = RESULT.loads[0].queues
    full = replace(queue, backlog_bytes=122_500.0)

    def lines(queue: SenderQueue) -> list[str]:
        result = replace(RESULT, loads=(replace(RESULT.loads[0], queues=(queue,)),))
        return [plain(line) for line in text.sender_queue_texts(result)]

    assert lines(full) == ["load out: local eth0, 120 KiB queued in fq_codel: 10.0 ms of waiting"]
    assert "\x1b" not in lines(replace(full, interface="e\x1b[2Jth0"))[0]
    assert lines(replace(full, interface=None, qdisc=None, drain_bit_s=None)) == [
        "load out: local host, 120 KiB queued in its interface"
    ]
    assert lines(queue) == lines(replace(full, backlog_bytes=None)) == []


def test_a_finding_about_the_queue_explains_the_rise_and_no_gap() -> None:
    """A gap is of the rate."""
    other = replace(IN_THE_PATH, code="window-below-bdp")
    assert plain(text.share_text(IN_THE_PATH)) == "98 % of the rise"
    assert plain(text.share_text(other)) == "98 % of the gap"
    assert text.split_findings([other, IN_THE_PATH]) == ((IN_THE_PATH,), (other,))


def test_a_phase_is_counted_only_where_there_are_several() -> None:
    """One load has no others to come."""
    assert text.phase_text(responsiveness_plan(), Direction.IN) == "2/3 load in"
    assert text.phase_text(responsiveness_plan(Direction.IN), Direction.IN) == "load in"
    assert IDLE.count == 200


def test_a_test_is_named_by_its_loads() -> None:
    """With the sessions that it begins with, and its longest duration."""
    assert plain(text.phases_text(responsiveness_plan(Direction.DUPLEX, 4))) == (
        "responsiveness test, both ways, 4 sessions each way, at most 10 s"
    )
    assert responsiveness_plan(Direction.IN).has_phases
    assert not with_responsiveness(Plan()).has_phases
