"""What became of datagrams, in words: small losses are never rounded away, and an unknown value is a dash."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.counters.latency_histogram import LatencySummary
from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.summary import (
    CapacitySummary,
    CpuSummary,
    DatagramSummary,
    LossByHost,
    Measurement,
    Summary,
    TcpSummary,
)
from linkgauge.tui.words.datagram_results import (
    capacity_text,
    datagram_facts,
    delay_table,
    loss_percent,
    loss_places_text,
    loss_shares_text,
    loss_table,
    loss_text,
    run_losses,
    service_text,
    udp_text,
)

from ..scripted_run import ScriptedRun

UNKNOWN = DatagramSummary(*[None] * 25)
UNKNOWN_CPU = CpuSummary(None, None, None, None)


def known(**values: Any) -> DatagramSummary:
    """Return a summary in which only these values are known."""
    return replace(UNKNOWN, **values)


def spaced(text: str) -> str:
    """Return text with plain spaces."""
    return text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("percent", "text"),
    [
        (None, "– %"),
        (0.0, "0 %"),
        (1e-7, "<0.001 %"),
        (0.004, "0.004 %"),
        (0.0994, "0.099 %"),
        (0.25, "0.25 %"),
        (1.25, "1.25 %"),
        (12.34, "12.3 %"),
        (99.99, "99.9 %"),
        (100.0, "100.0 %"),
    ],
)
def test_a_small_loss_is_never_rounded_to_nothing(percent: float | None, text: str) -> None:
    """Nor is a datagram that arrived rounded to none."""
    assert spaced(loss_percent(percent)) == text


def test_losses_are_named_with_their_places() -> None:
    """An unknown place has no number, and without losses there are no places."""
    places = LossByHost(near=0, far=12, network=1_222)
    assert spaced(loss_places_text(places)) == "network 1 222, remote host 12"
    assert spaced(loss_shares_text(places)) == "network 99 %, remote 1 %"
    assert loss_shares_text(LossByHost(0, 0, 7)) == "network"
    for nothing in (None, LossByHost(0, 0, 0), LossByHost(None, None, None)):
        assert (loss_places_text(nothing), loss_shares_text(nothing)) == ("", "")
    assert spaced(loss_text(known(lost=3, received=297))) == "3 lost (1.00 %)"
    assert loss_text(known(lost=0, received=5)) == "no loss"
    assert loss_text(UNKNOWN) == "loss unknown"


def test_facts_name_only_what_is_known_and_not_usual() -> None:
    """Each of them has a unit or a word."""
    assert datagram_facts(UNKNOWN) == []
    usual = known(late=0, skipped=0, ce_marks=0, bursts=0, reordered=0, sent_tos=0, received_tos=0)
    assert datagram_facts(usual) == []
    facts = known(
        datagram_bytes=1_472,
        mode="quality",
        rtt_us=212,
        bursts=2,
        longest_burst=5,
        reordered=34,
        max_extent=3,
        late=1,
        skipped=7,
        delay_rise_ns=1_250_000.0,
        ce_marks=9,
    )
    assert list(map(spaced, datagram_facts(facts))) == [
        "1 472-byte datagrams",
        "mode quality",
        "median RTT 212 µs",
        "2 bursts of loss, the longest 5",
        "34 reordered by up to 3",
        "1 too late",
        "7 not sent in time",
        "one-way delay 1.25 ms above the minimum",
        "9 marked for congestion",
    ]


@pytest.mark.parametrize(
    ("sent", "arrived", "text"),
    [
        (184, 184, ""),
        (184, None, ""),
        (184, 0, "DSCP 46 sent, 0 arrived"),
        (2, 3, "ECT(0) sent, CE arrived"),
        (186, 1, "DSCP 46 sent, 0 arrived, ECT(0) sent, ECT(1) arrived"),
    ],
)
def test_a_changed_type_of_service_is_named_by_its_parts(sent: int, arrived: int | None, text: str) -> None:
    """The upper six bits are the DSCP, the others ECN."""
    assert service_text(known(sent_tos=sent, received_tos=arrived)) == text


@pytest.mark.parametrize(
    ("loss_free", "is_complete", "end"),
    [
        (900_000_000, True, ", 900 Mb/s within the loss goal for 5 s"),
        (None, True, ", no rate within the loss goal"),
        (None, False, "; the search was cut off"),
    ],
)
def test_a_search_names_its_best_second_and_the_rate_without_loss(
    loss_free: int | None, is_complete: bool, end: str
) -> None:
    """One that was cut off does not claim that there is none."""
    found = CapacitySummary(941_000_000, 0.4, 1_250_000, 8_000_000, loss_free, is_complete)
    best = "941 Mb/s in the best second (0.40 % lost, delay variation 1.25 ms, RTT 8.00 ms)"
    assert spaced(capacity_text(found)) == best + end


def test_a_run_has_a_row_for_each_direction_and_its_losses_in_words(world: Any) -> None:
    """The total of both has counts, and no delays."""
    plan = Plan(Settings(Direction.DUPLEX, 2, rate_bit_s=10**8), Workload.UDP, 10 * SECOND_NS)
    script: ScriptedRun = world.script_of(world.catalog.find("gbe-fd-1500"), plan)
    script.lost_share = 0.02
    script.run_for(40, 98e6)
    script.drain()
    script.end()
    while not script.queue.empty():
        script.meter.feed(script.queue.get_nowait())
    script.meter.flush()
    summary = script.meter.summary()
    losses, delays = loss_table(summary), delay_table(summary)
    assert [row[0] for row in losses.rows] == ["out →", "in  ←", "total ⇄"]
    (share,) = {spaced(row[4]) for row in losses.rows}
    assert share in {"2.00 %", "1.99 %", "2.01 %"}
    out, in_, total = (int(spaced(row[3]).replace(" ", "")) for row in losses.rows)
    assert total == out + in_ > 0
    assert [row[0] for row in delays.rows] == ["out →", "in  ←"]
    for table in (losses, delays):
        assert {len(row) for row in table.rows} == {len(table.columns)}
    assert [text[0] for text in run_losses(summary)] == ["→", "←"]
    assert "1 472-byte datagrams" in spaced(udp_text(summary))


def test_delays_of_nothing_are_dashes(world: Any) -> None:
    """A run that ended before anything was measured has no rows at all."""
    known_delays = LatencySummary(1, 2_000, 3_000, 4_000, 5_000, 6_000)
    for delays, cells in (
        (None, ["–"] * 5),
        (known_delays, ["2.00 µs", "3.00 µs", "4.00 µs", "5.00 µs", "6.00 µs"]),
    ):
        measured = Measurement(1, SECOND_NS, datagrams=known(delay_variation=delays))
        summary = Summary(
            Plan(workload=Workload.UDP),
            PerDirection(measured, None, measured),
            Expectation(),
            (),
            UNKNOWN_CPU,
            UNKNOWN_CPU,
            TcpSummary(*[None] * 6),
            (),
            RunEnd(Reason.COMPLETED, ""),
        )
        assert [spaced(cell) for cell in delay_table(summary).rows[0][3:]] == cells
    script = world.script_of(world.catalog.find("gbe-fd-1500"), Plan(workload=Workload.UDP))
    script.end()
    while not script.queue.empty():
        script.meter.feed(script.queue.get_nowait())
    summary = script.meter.summary()
    assert [*loss_table(summary).rows, *delay_table(summary).rows, *run_losses(summary)] == []
    assert udp_text(summary) == ""
