"""A responsiveness test in the files of a run: document, lines of JSON, rows of CSV, and the list of runs."""

import csv
import io
import json
from pathlib import Path

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.comparison import Comparison, compare
from linkgauge.engine.results.csv_export import COLUMNS, CsvWriter
from linkgauge.engine.results.figure_codec import encode
from linkgauge.engine.results.json_stream import end_line, event_lines
from linkgauge.engine.results.meter import Meter, replay
from linkgauge.engine.results.run_log.run_brief import brief_row, read_brief
from linkgauge.engine.results.run_result import RunResult
from linkgauge.engine.results.sample_merging import SampleMerger
from linkgauge.presets.verdict import LatencyLimit, limit_figures
from linkgauge.tui.words.comparison import MARKS, changed_settings, comparison_json, comparison_table

from .... import json_schemas
from ..responsiveness_runs import MS, Link, steady

RUN = Link(steady(40, 8), local=1.0)


def document_of(link: Link) -> dict[str, object]:
    """Return the document of a run."""
    return encode(RunResult.of_run(replay(link.events()).summary(), run_id="r1"))


@pytest.mark.parametrize(
    "link",
    [
        RUN,
        Link(has_datagrams=False, has_handshakes=False, has_queue_readings=False),
        Link(phases=(Direction.DUPLEX,)),
        Link(phase_s=0.8),
        Link(sessions=1, idle_ms=0.001),
    ],
)
def test_the_document_is_as_its_schema_says(link: Link) -> None:
    """With all results, with hardly any, and of a run that was too short."""
    document = {**document_of(link), "latency_limit": encode(limit_figures(LatencyLimit(30 * MS, "B")))}
    json_schemas.check("run.schema.json", json.loads(json.dumps(document)))


def test_the_document_has_the_results_in_milliseconds() -> None:
    """Rounded as all figures, with the names of scale and method."""
    document = json.loads(json.dumps(document_of(RUN)))
    result = document["responsiveness"]
    assert document["plan"]["responsiveness"] == "phases"
    assert (result["probe"], result["probe_pace_ms"]) == ("datagram", 10.0)
    assert (result["grade"], result["grade_scale"]) == ("A", "dslreports")
    assert result["rise_ms"] == pytest.approx(24, rel=0.02)
    assert result["rpm_method"] == "draft-ietf-ippm-responsiveness-09, TCP only, loaded = tcpi_rtt"
    assert result["round_trips"]["class"] == "good"
    out, in_, both = result["loads"]
    assert [load["direction"] for load in result["loads"]] == ["out", "in", "duplex"]
    assert out["mbit_s"] == {"out": 94.1, "in": None, "total": 94.1}
    assert in_["one_way_rise_ms"]["in"] == pytest.approx(8, rel=0.02)
    assert out["queues"][0]["delay_ms"] == pytest.approx(40, rel=0.02)
    assert [queue["end"] for queue in both["queues"]] == ["near", "far"]


def test_a_run_without_such_a_test_says_so() -> None:
    """null, and not left out."""
    document = encode(RunResult.of_run(Meter().summary()))
    assert document["responsiveness"] is None
    assert document["plan"]["responsiveness"] is None


def test_each_line_says_what_is_loaded() -> None:
    """And the latency of its interval."""
    meter, lines = Meter(), []
    for event in RUN.events():
        lines += event_lines(event, meter.feed(event), meter, run_id="r1", preset=None)
    lines.append(end_line(document_of(RUN), run_id="r1"))
    intervals = [line["responsiveness"] for line in lines if line["type"] == "interval"]
    assert [part["load"] for part in intervals] == ["out"] * 25 + ["in"] * 25 + ["duplex"] * 25
    assert intervals[20]["datagram_p50_us"] == pytest.approx(40_400, rel=0.02)
    assert intervals[20]["rise_out_us"] == pytest.approx(40_000, rel=0.02)
    assert intervals[20]["near_backlog_bytes"] == pytest.approx(498_730, rel=0.02)
    for line in lines:
        json_schemas.check("stream.schema.json", json.loads(json.dumps(line)))


def test_the_rows_of_csv_have_columns_at_the_end() -> None:
    """An older file can be continued: it has fewer columns."""
    stream = io.StringIO(newline="")
    CsvWriter(stream).write_run(RUN.events(), run_id="r1", preset="")
    rows = list(csv.DictReader(io.StringIO(stream.getvalue())))
    names = ("datagram_p50_us", "datagram_p99_us", "rise_out_us", "rise_in_us")
    first = COLUMNS.index(names[0])
    assert COLUMNS[first : first + 6] == (*names, "near_backlog_bytes", "far_backlog_bytes")
    row = [row for row in rows if row["session"] == "all" and row["direction"] == "out"][20]
    assert float(row["datagram_p99_us"]) == pytest.approx(40_400, rel=0.02)
    assert float(row["latency_p50_us"]) == pytest.approx(40_400, rel=0.02)
    assert float(row["near_backlog_bytes"]) == pytest.approx(498_730, rel=0.02)
    assert all(row["datagram_p50_us"] == "" for row in rows if row["session"] != "all")


def test_a_file_of_an_older_version_is_continued_with_its_own_columns(tmp_path: Path) -> None:
    """The new ones have no place in it."""
    path = tmp_path / "runs.csv"
    path.write_text(",".join(COLUMNS[:-6]) + "\r\n")
    with CsvWriter.append(path) as writer:
        writer.write_run(RUN.events(), run_id="r1", preset="")
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    assert {len(row) for row in rows} == {len(COLUMNS) - 6}


def test_the_list_of_runs_has_grade_and_rise() -> None:
    """A run of another kind has neither."""
    brief = read_brief(brief_row(document_of(RUN)))
    assert brief.plan.responsiveness == "phases"
    assert brief.responsiveness is not None
    assert brief.responsiveness.grade == "A"
    assert brief.responsiveness.rise_ms == pytest.approx(24, rel=0.02)
    assert read_brief(brief_row(encode(RunResult.of_run(Meter().summary())))).responsiveness is None


def compared(first: Link, second: Link) -> Comparison:
    """Return two runs compared."""
    return compare(replay(first.events()).summary(), replay(second.events()).summary())


def test_two_tests_are_compared_by_rise_grade_and_round_trips() -> None:
    """No difference is called significant: none of them has an interval."""
    table = comparison_table(compared(RUN, Link(steady(4, 2))), (), ("A", "B"))
    rows = {name: cells for _, name, *cells in table.rows}
    assert rows["grade"][:2] == ["A", "A+"]
    assert rows["grade"][2].startswith("better")
    assert rows["out latency rise"][2].startswith("36")
    assert "shorter" in rows["out latency rise"][2]
    assert "as many" in rows["round trips/min"][2]
    marks = {name: mark for mark, name, *_ in table.rows}
    assert {marks[name] for name in ("grade", "latency rise", "out Mb/s", "both Mb/s")} == {MARKS[None]}
    assert "idle latency mean" in rows


def test_a_comparison_of_two_kinds_of_test_names_the_kinds() -> None:
    """The mean rate over phases is no rate of the link: it is not compared."""
    other = Meter().summary()
    comparison = compare(other, replay(RUN.events()).summary())
    assert changed_settings(comparison)[-1][0] == "latency under load"
    assert not [figure for figure in comparison.figures if figure.key.startswith("measured.")]
    grades = [f for f in comparison_json(comparison, "b", "a")["figures"] if f["key"] == "responsiveness.grade"]
    assert [(figure["first"], figure["second"]) for figure in grades] == [(None, "A")]


def test_a_thinned_run_has_nearly_the_same_results() -> None:
    """One sample a second is left of five."""
    events = RUN.events()
    plan = replay(events).summary().plan
    merged = SampleMerger(plan, has_silent_end=False).merge(events, is_last=True).events
    before, after = (replay(part).summary().responsiveness for part in (events, merged))
    assert before is not None
    assert after is not None
    assert len(merged) < len(events) / 4
    assert after.grade == before.grade
    assert [load.direction for load in after.loads] == [load.direction for load in before.loads]
    for old, new in zip(before.loads, after.loads, strict=True):
        assert new.rise_ns == pytest.approx(old.rise_ns, rel=0.02)
        assert new.bit_s.total == pytest.approx(old.bit_s.total)
        assert [queue.backlog_bytes for queue in new.queues] == [
            pytest.approx(queue.backlog_bytes, rel=0.02) for queue in old.queues
        ]
