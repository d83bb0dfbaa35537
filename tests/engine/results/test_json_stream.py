"""A run as JSON lines."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Changed, Event, Warned
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.results.figure_codec import encode
from linkgauge.engine.results.json_stream import end_line, error_line, event_lines
from linkgauge.engine.results.meter import Meter, replay
from linkgauge.engine.results.run_result import RunResult

from ... import json_schemas
from .datagram_runs import draw_datagram_run
from .iperf3_runs import INTERVALS, iperf3_run, reported, total
from .meter_events import E200, IN, TICK, of_flow
from .simple_run import simplex


def lines_of(events: list[Event]) -> list[dict[str, Any]]:
    """Return the lines of a run, as a program reads them."""
    meter = Meter()
    found: list[dict[str, Any]] = []
    for event in events:
        intervals = meter.feed(event)
        found += event_lines(event, intervals, meter, run_id="r1", preset="gbe")
    document = encode(RunResult.of_run(replay(events).summary(), run_id="r1"))
    found.append(end_line(document, run_id="r1"))
    return json.loads(json.dumps(found))


def test_a_run_is_a_start_its_intervals_and_an_end() -> None:
    """An interval has the figures of the CSV, with every session of a direction."""
    start, interval, end = lines_of(simplex())
    assert (start["type"], start["peer"], start["plan"]["duration_s"]) == ("start", "db-02:5820", 10.0)
    assert (interval["type"], interval["elapsed_s"], interval["warmup"]) == ("interval", 0.25, False)
    assert interval["in"] is None
    assert (interval["out"]["mbit_s"], interval["out"]["percent_of_expected"]) == (838.861, 89.1)
    assert [session["session"] for session in interval["out"]["sessions"]] == [1, 2]
    assert interval["total_mbit_s"] == 838.861
    assert interval["near"] == {"cpu_percent": 75.0, "hottest_core_percent": 100.0, "cpu_msec_per_mib": 10.0}
    assert (end["type"], end["summary"]["measured"]["out"]["mbit_s"]) == ("end", 838.861)


def test_changes_and_warnings_stand_where_they_happened() -> None:
    """A change follows the intervals that were complete before it."""
    events = simplex()
    changed = Changed(TICK, IN, Expectation(in_=E200))
    later = [
        of_flow(Direction.IN, end, 1, 1000, settings=IN)
        for end in {event.sample.end: 0 for event in events if hasattr(event, "sample")}  # type: ignore[union-attr]
    ]
    events[-1:-1] = [Warned("the window is small"), changed, *later]
    lines = lines_of(events)
    assert [line["type"] for line in lines] == ["start", "interval", "warning", "change", "interval", "end"]
    change = lines[3]
    assert (change["direction"], change["expected"]["in"]["mbit_s"]) == ("in", 200.0)
    assert lines[4]["out"] is None


def test_every_line_fits_the_schema() -> None:
    """The schema describes every key of every line."""
    for line in [*lines_of(simplex()), error_line("nothing listens there")]:
        json_schemas.check("stream.schema.json", line)


def test_a_document_of_an_earlier_version_fits_the_schema() -> None:
    """Programs that validate can read what was printed then."""
    path = Path(__file__).parent / "data" / "earlier_version.json"
    json_schemas.check("run.schema.json", json.loads(path.read_text(encoding="utf-8")))


def test_a_line_of_no_known_type_does_not_fit_the_schema() -> None:
    """Otherwise the schema would prove nothing."""
    with pytest.raises(AssertionError, match="not valid"):
        json_schemas.check("stream.schema.json", {"type": "interval"})


@pytest.mark.parametrize("direction", list(Direction))
def test_intervals_have_the_datagrams_of_the_csv_and_a_change_its_rate(direction: Direction) -> None:
    """With every session; for TCP they are null."""
    events, _ = draw_datagram_run(3, direction, change=lambda settings: replace(settings, rate_bit_s=2 * 10**6))
    lines = lines_of(events)
    for line in lines:
        json_schemas.check("stream.schema.json", line)
    (change,) = [line for line in lines if line["type"] == "change"]
    assert (change["rate"], change["rate_mbit_s"]) == ("fixed", 2.0)
    intervals = [line for line in lines if line["type"] == "interval"]
    assert len(intervals) == 10
    for flow in (line[part.value] for line in intervals for part in direction.flows):
        assert flow["udp"]["sent"] == sum(part["udp"]["sent"] for part in flow["sessions"])
        assert flow["udp"]["lost_percent"] is not None
    (of_tcp,) = [line for line in lines_of(simplex()) if line["type"] == "interval"]
    assert of_tcp["out"]["udp"] is None


@pytest.mark.parametrize("direction", list(Direction))
def test_a_run_against_an_iperf3_says_who_counted_and_has_the_totals_as_a_line(direction: Direction) -> None:
    """Every line matches the schema; only an interval that the iperf3 received has the sender's counts."""
    parts = [total(flow, 1, 1_000_000, retransmits=3 if flow is Direction.IN else None) for flow in direction.flows]
    events = iperf3_run(direction, totals=reported(*parts, cpu_ns=SECOND_NS))
    lines = lines_of(events)
    for line in lines:
        json_schemas.check("stream.schema.json", line)
    kinds = [line["type"] for line in lines]
    assert kinds == ["start", *["interval"] * INTERVALS, "totals", "end"]
    interval, totals, document = lines[1], lines[-2], lines[-1]["summary"]
    known = {flow: interval[flow]["counted_by"] for flow in ("out", "in") if interval[flow] is not None}
    assert known == {flow.value: "sender" if flow is Direction.OUT else "receiver" for flow in direction.flows}
    assert (lines[0]["far"]["system"], lines[0]["far"]["cores"]) == (None, None)
    assert (totals["end"], totals["cpu_seconds"], len(totals["sessions"])) == ("far", 1.0, len(parts))
    assert document["dialect"] == "iperf3"
    assert {document["measured"][flow.value]["counted_by"] for flow in direction.flows} == {"receiver"}
