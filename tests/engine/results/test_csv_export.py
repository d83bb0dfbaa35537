"""Rows of CSV, and the files that they are appended to."""

import csv
import io
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PlanError, RunLogError
from linkgauge.engine.model.events import Changed, Event, Started
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import MIB, Settings
from linkgauge.engine.results.csv_export import COLUMNS, CsvWriter, run_rows
from linkgauge.engine.results.meter import Meter, replay
from linkgauge.engine.results.responsiveness.interval_figures import FIGURES as RESPONSIVENESS_FIGURES
from linkgauge.engine.results.run_log import RunRecord
from linkgauge.engine.results.run_log.run_brief import RunBrief
from linkgauge.engine.results.sums.other_tests_sum import FIGURES as OTHER_TESTS_FIGURES
from linkgauge.engine.results.udp.interval_figures import FIGURES

from .datagram_runs import draw_datagram_run
from .iperf3_runs import iperf3_run
from .log_entries import HOST
from .simple_run import DUPLEX, GIGABIT, OUT, TICK, sampled, simplex, started


def _rows(events: list[Event], run_id: str = "r1", preset: str = "gbe-fd-1500") -> list[dict[str, str]]:
    stream = io.StringIO(newline="")
    CsvWriter(stream).write_run(events, run_id=run_id, preset=preset)
    return list(csv.DictReader(io.StringIO(stream.getvalue(), newline="")))


def test_the_columns_are_in_their_promised_order() -> None:
    """Others read them by place."""
    assert ",".join(COLUMNS) == (
        "run_id,started_utc,preset,workload,direction,session,sessions,window_bytes,elapsed_s,interval_s,warmup,"
        "bytes,mbit_s,mib_s,expected_mbit_s,percent_of_expected,transactions_s,latency_p50_us,latency_p99_us,"
        "near_cpu_percent,near_hottest_core_percent,far_cpu_percent,far_hottest_core_percent,"
        "near_cpu_msec_per_mib,far_cpu_msec_per_mib,retransmits,rtt_us,cwnd_bytes,"
        "rate_mbit_s,datagram_bytes,packets_s,sent,lost,lost_percent,duplicates,reordered,jitter_ms,"
        "delay_variation_p50_ms,delay_variation_p99_ms,counted_by,"
        "datagram_p50_us,datagram_p99_us,rise_out_us,rise_in_us,near_backlog_bytes,far_backlog_bytes,"
        "other_tests,other_received_mbit_s,other_sent_mbit_s,"
        "peer,address,ip_version,near_host,far_host,label"
    )


def test_an_interval_has_a_row_for_the_sum_and_for_each_session() -> None:
    """Bytes and time are the receiver's, TCP's figures the sender's."""
    whole, first, second = _rows(simplex())
    assert whole == {
        "run_id": "r1",
        "started_utc": "2026-11-21T01:15:30Z",
        "preset": "gbe-fd-1500",
        "workload": "stream",
        "direction": "out",
        "session": "all",
        "sessions": "1",
        "window_bytes": "",
        "elapsed_s": "0.25",
        "interval_s": "0.25",
        "warmup": "0",
        "bytes": str(25 * MIB),
        "mbit_s": "838.861",
        "mib_s": "100",
        "expected_mbit_s": "941.482",
        "percent_of_expected": "89.1",
        "transactions_s": "",
        "latency_p50_us": "",
        "latency_p99_us": "",
        "near_cpu_percent": "75",
        "near_hottest_core_percent": "100",
        "far_cpu_percent": "",
        "far_hottest_core_percent": "",
        "near_cpu_msec_per_mib": "10",
        "far_cpu_msec_per_mib": "",
        "retransmits": "2",
        "rtt_us": "200",
        "cwnd_bytes": "43440",
        **dict.fromkeys(FIGURES, ""),  # of datagrams
        "counted_by": "receiver",
        **dict.fromkeys(RESPONSIVENESS_FIGURES, ""),
        **dict.fromkeys(OTHER_TESTS_FIGURES, ""),
        "peer": "db-02:5820",
        **dict.fromkeys(("address", "ip_version", "label"), ""),
        **dict.fromkeys(("near_host", "far_host"), HOST.hostname),
    }
    assert (first["session"], first["bytes"], first["rtt_us"]) == ("1", str(10 * MIB), "100")
    assert (second["session"], second["bytes"], second["retransmits"]) == ("2", str(15 * MIB), "0")
    assert first["expected_mbit_s"] == first["percent_of_expected"] == first["near_cpu_msec_per_mib"] == ""


def test_a_duplex_run_has_rows_of_each_direction_on_its_receiver_s_clock() -> None:
    """If only a total is expected, the directions have no expected rate."""
    rows = _rows(
        [
            started(DUPLEX, Expectation(total=GIGABIT)),
            sampled(End.NEAR, 0, SessionSample(Direction.IN, 1, 7), settings=DUPLEX, elapsed_ns=1),
            sampled(End.FAR, 0, SessionSample(Direction.OUT, 1, 5), settings=DUPLEX, elapsed_ns=2),
        ]
    )
    assert [(row["direction"], row["session"], row["bytes"]) for row in rows] == [
        ("out", "all", "5"),
        ("out", "1", "5"),
        ("in", "all", "7"),
        ("in", "1", "7"),
    ]
    assert [row["elapsed_s"] for row in rows[::2]] == ["0.000000002", "0.000000001"]
    assert {row["expected_mbit_s"] for row in rows} == {""}
    assert {row["window_bytes"] for row in rows} == {"65536"}


def test_unknown_is_empty_and_nothing_is_zero() -> None:
    """An interval without the receiver's report has no bytes and no time, but TCP's figures."""
    events = simplex()
    rows = _rows([events[0], events[1], sampled(End.NEAR, 1), sampled(End.FAR, 1)])
    lost = rows[0]
    assert (lost["bytes"], lost["mbit_s"], lost["elapsed_s"], lost["interval_s"]) == ("", "", "", "")
    assert (lost["retransmits"], lost["session"]) == ("2", "all")
    silent = rows[-1]
    assert (silent["bytes"], silent["mbit_s"], silent["percent_of_expected"]) == ("0", "0", "0")
    assert (silent["retransmits"], silent["near_cpu_msec_per_mib"]) == ("", "")


def test_rows_are_rfc_4180() -> None:
    """Lines end in CRLF and a cell with a comma or a quote is quoted."""
    stream = io.StringIO(newline="")
    CsvWriter(stream).write_run(simplex(), run_id='a,"b"', preset="x")
    lines = stream.getvalue().split("\r\n")
    assert lines[0] == ",".join(COLUMNS)
    assert lines[1].startswith('"a,""b""",2026')
    assert lines[-1] == ""
    assert "\n" not in "".join(lines)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_text_that_a_spreadsheet_would_run_is_defused(text: str) -> None:
    """A preset's name is data, not a formula."""
    assert _rows(simplex(), preset=text)[0]["preset"] == f"'{text}"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        (" =1+1", "' =1+1"),
        ("\u00a0=1+1", "'\u00a0=1+1"),
        ('"=1+1"', '\'"=1+1"'),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("x;=1+1; @SUM(A1)", "x;'=1+1;' @SUM(A1)"),
        ("\t=1+1", "\ufffd=1+1"),
        ("a-b; c = d", "a-b; c = d"),
    ],
)
def test_text_that_is_a_formula_for_some_spreadsheets_is_defused(text: str, cell: str) -> None:
    """Those that drop spaces, know full-width signs, or split at the semicolon."""
    assert _rows(simplex(), preset=text)[0]["preset"] == cell


def test_small_rates_keep_their_digits() -> None:
    """64 bit/s is not 0, and is written without an exponent."""
    rows = _rows([started(OUT, Expectation()), sampled(End.FAR, 0, SessionSample(Direction.OUT, 1, 2))])
    assert rows[0]["mbit_s"] == "0.000064"
    assert rows[0]["mib_s"] == "0.00000763"


def test_rows_are_in_the_file_as_soon_as_an_interval_is_complete(tmp_path: Path) -> None:
    """So that tail -f works: the header before the run, and each interval at its end."""
    path = tmp_path / "run.csv"
    meter = Meter()
    with CsvWriter.append(path) as writer:
        assert path.read_bytes() == (",".join(COLUMNS) + "\r\n").encode()
        for event, lines in zip(simplex(), (1, 1, 4, 4), strict=True):
            writer.write(meter, meter.feed(event), run_id="r", preset="p")
            assert len(path.read_bytes().splitlines()) == lines


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        ("missing/run.csv", "its directory does not exist; make it, or give another"),
        ("a-file/run.csv", "its directory does not exist; make it, or give another"),
        (".", "give a file that can be written"),
    ],
)
def test_an_unwritable_path_is_reported_before_the_test(tmp_path: Path, place: str, remedy: str) -> None:
    """The error names the path and the remedy."""
    (tmp_path / "a-file").write_text("")
    path = tmp_path / place
    with pytest.raises(PlanError, match=remedy) as raised, CsvWriter.create(path):
        pass
    assert str(path) in str(raised.value)


def test_a_disk_that_fills_up_is_one_error_and_closing_is_quiet() -> None:
    """The run goes on without its CSV. The writer reports it once."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full to stand for a full disk")
    with Path("/dev/full").open("w", encoding="utf-8", newline="") as stream:
        with pytest.raises(RunLogError, match="no space left"):
            CsvWriter(stream, "run.csv")
        with pytest.raises(OSError, match="No space left"):
            stream.close()
    with pytest.raises(PlanError, match="no space left"), CsvWriter.create(Path("/dev/full")):
        pass


def _broken_off() -> Iterator[Event]:
    yield from simplex()[:2]
    raise RunLogError("the log has gone")


def test_an_export_that_breaks_off_leaves_the_earlier_one(tmp_path: Path) -> None:
    """The new file takes its place only when all rows are in it."""
    path = tmp_path / "runs.csv"
    path.write_text("earlier")
    with pytest.raises(RunLogError, match="the log has gone"), CsvWriter.create(path) as writer:
        writer.write_run(_broken_off(), run_id="r", preset="p")
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


_COUNTS = st.lists(st.integers(0, 2**40), min_size=1, max_size=3)


@st.composite
def _runs(draw: st.DrawFn) -> list[Event]:
    """Draw a run with a change, with intervals that an end skipped, and with any sessions."""
    settings = draw(st.sampled_from([OUT, DUPLEX, Settings(Direction.IN)]))
    events: list[Event] = [started(settings, Expectation(out=GIGABIT))]
    for index in range(draw(st.integers(1, 8))):
        if draw(st.integers(0, 3)) == 0:
            settings = draw(st.sampled_from([OUT, DUPLEX, Settings(Direction.IN, 5)]))
            events.append(Changed(index * TICK, settings, Expectation(total=GIGABIT)))
        for end in End:
            if draw(st.integers(0, 5)):
                # Sessions may be told twice, and in a direction that the settings do not have.
                sessions = [
                    SessionSample(flow, draw(st.integers(1, 3)), count)
                    for flow in Direction.DUPLEX.flows
                    for count in draw(_COUNTS)
                ]
                warmup = draw(st.booleans())
                events.append(sampled(end, index, *sessions, settings=settings, warmup=warmup))
    return events


@given(_runs())
def test_the_rows_add_up_to_the_summary_exactly(events: list[Event]) -> None:
    """The sums of the measured rows are the summary's bytes, and the sessions' rows are their sum's."""
    rows = _rows(events)
    measured = [int(r["bytes"]) for r in rows if r["session"] == "all" and r["warmup"] == "0" and r["bytes"]]
    summary = replay(events).summary()
    assert sum(measured) == summary.payload_bytes
    whole = ""
    rest = 0
    for row in [*rows, {"session": "all", "bytes": ""}]:
        if row["session"] == "all":
            assert whole == "" or rest == 0
            whole, rest = row["bytes"], int(row["bytes"] or 0)
        elif whole:
            rest -= int(row["bytes"] or 0)


HEADER_LINE = (",".join(COLUMNS) + "\r\n").encode()
OLD_HEADER = ",".join(COLUMNS[:28]).encode()


@pytest.mark.parametrize("exists", [True, False])
def test_a_new_or_empty_file_begins_with_the_header(tmp_path: Path, exists: bool) -> None:
    """It is written at once."""
    path = tmp_path / "rows.csv"
    if exists:
        path.touch()
    CsvWriter.append(path).close()
    assert path.read_bytes() == HEADER_LINE


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (HEADER_LINE, HEADER_LINE),
        (HEADER_LINE + b"a,b\r\n", HEADER_LINE + b"a,b\r\n"),
        (HEADER_LINE.replace(b"\r", b"") + b"a,b\n", HEADER_LINE.replace(b"\r", b"") + b"a,b\n"),
        (HEADER_LINE + b"a,b\r\nc", HEADER_LINE + b"a,b\r\nc\r\n"),
    ],
    ids=["header only", "rows", "line feeds", "a row cut off"],
)
def test_a_file_of_earlier_runs_is_continued_without_a_second_header(
    tmp_path: Path, content: bytes, expected: bytes
) -> None:
    """The next row does not continue one that was cut off in a crash."""
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    CsvWriter.append(path).close()
    assert path.read_bytes() == expected


def test_a_file_of_an_earlier_version_keeps_the_columns_that_it_has(tmp_path: Path) -> None:
    """Its reader knows only these. New columns come at the end, so that the first ones keep their meaning."""
    path = tmp_path / "rows.csv"
    path.write_bytes(OLD_HEADER + b"\r\n")
    events, _ = draw_datagram_run(1, Direction.OUT)
    with CsvWriter.append(path) as writer:
        writer.write_run(events, run_id="r1", preset="")
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    assert first == OLD_HEADER.decode()
    assert lines == [",".join(row[column] for column in COLUMNS[:28]) for row in _rows(events, preset="")]


@pytest.mark.parametrize("direction", list(Direction))
def test_rows_of_datagrams_add_up_to_what_the_run_counted_in_time(direction: Direction) -> None:
    """Of a direction and of each session; the drain has no row."""
    events, _ = draw_datagram_run(5, direction)
    measured = replay(events).summary().measured
    rows = _rows(events)
    for flow in direction.flows:
        whole = [row for row in rows if (row["direction"], row["session"]) == (flow.value, "all")]
        parts = [row for row in rows if row["direction"] == flow.value and row["session"] != "all"]
        counts = measured[flow] and measured[flow].datagrams
        assert counts is not None
        assert len(whole) == 10
        for column in ("sent", "duplicates", "reordered"):
            assert sum(int(row[column]) for row in whole) == sum(int(row[column]) for row in parts)
        assert sum(int(row["sent"]) for row in whole) == counts.sent
        packets = sum(float(row["packets_s"]) * float(row["interval_s"]) for row in whole)
        assert packets == pytest.approx(counts.in_time)
        assert {row["rate_mbit_s"] for row in whole} == {"1"}
        assert {row["rate_mbit_s"] for row in parts} == {"0.5"}
        assert {row["datagram_bytes"] for row in whole} == {"1400"}
        assert {row["delay_variation_p50_ms"] != "" for row in whole} == {True}
        assert {row["delay_variation_p50_ms"] for row in parts} == {""}
        assert all(int(row["lost"]) >= 0 for row in whole)


@pytest.mark.parametrize("content", [b"x", b"\n", HEADER_LINE[:-10], OLD_HEADER[:-9], b"\xff\xfe", b"x" * 10_000])
def test_a_file_of_anything_else_is_refused_and_stays_as_it_was(tmp_path: Path, content: bytes) -> None:
    """A mistyped path does no damage."""
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(PlanError, match="other data"):
        CsvWriter.append(path)
    assert path.read_bytes() == content


def test_a_path_that_cannot_be_written_is_a_plan_error(tmp_path: Path) -> None:
    """A directory, a missing directory, a name that no file can have, a full device."""
    for path in (tmp_path, tmp_path / "no" / "rows.csv", tmp_path / "a\0b", Path("/dev/full")):
        with pytest.raises(PlanError, match="CSV file"):
            CsvWriter.append(path)


def test_a_device_is_written_as_it_is() -> None:
    """There is nothing in it to continue."""
    CsvWriter.append(Path(os.devnull)).close()


def test_rows_of_what_an_iperf3_receives_say_that_the_sender_counted_them() -> None:
    """It reports nothing before the end: time and bytes are those that it acknowledged."""
    rows = _rows(iperf3_run(Direction.DUPLEX))
    assert {(row["direction"], row["counted_by"]) for row in rows} == {("out", "sender"), ("in", "receiver")}
    assert {row["counted_by"] for row in _rows(simplex())} == {"receiver"}


def test_rows_name_the_peer_the_address_in_use_and_the_label() -> None:
    """A name may have addresses of both families. A formula becomes text."""
    stream, events = io.StringIO(newline=""), simplex()
    assert isinstance(events[0], Started)
    events[0] = replace(events[0], address="2001:db8::7", ip_version=6)
    CsvWriter(stream).write_run(events, run_id="r1", preset="", label="=after")
    row = next(csv.DictReader(io.StringIO(stream.getvalue(), newline="")))
    assert (row["peer"], row["address"], row["ip_version"], row["label"]) == (
        *("db-02:5820", "2001:db8::7", "6", "'=after"),
    )


def _record(document: dict[str, Any] | None) -> RunRecord:
    texts = {"run_id": "r1", "started_utc": "2026-11-21T01:15:30Z", "preset": "", "peer": "db-02:5820"}
    unknown: dict[str, Any] = dict.fromkeys(("label", "reason", "verdict", "note", "group", "detail"))
    return RunRecord(**texts, **unknown, number=1, is_running=False, figures=RunBrief(), document=document)


def test_a_run_is_one_row_with_the_figures_of_its_document() -> None:
    """Figures that its document lacks are empty."""
    whole = {
        "address": "192.0.2.7",
        "ip_version": 4,
        "far": {"hostname": "db-02"},
        "plan": {"workload": "stream", "sessions": 2},
        "measured": {"out": {"mbit_s": 938.861}, "total": {"mbit_s": 938.861, "udp": None}},
        "ended": {"reason": "completed"},
    }
    header, full, bare = run_rows([_record(whole), _record(None)])
    assert header[:8] == ["run_id", "started_utc", "peer", "label", "preset", "verdict", "address", "ip_version"]
    row = dict(zip(header, full, strict=True))
    assert (row["address"], row["ip_version"], row["near_host"], row["far_host"]) == ("192.0.2.7", "4", "", "db-02")
    assert (row["out_mbit_s"], row["in_mbit_s"], row["lost_percent"]) == ("938.861", "", "")
    assert set(bare[6:]) == {""}


def test_the_row_of_a_run_has_the_settings_that_its_results_are_of() -> None:
    """After a change they are not the plan's. A change that was not measured has no results."""
    measured = {"total": {"bytes": 1}}
    document = {
        "plan": {"direction": "out", "sessions": 1},
        "stretches": [
            {"direction": "out", "sessions": 1, "measured": measured},
            {"direction": "in", "sessions": 3, "measured": measured},
            {"direction": "in", "sessions": 5, "measured": {"total": None}},
        ],
    }
    header, row = run_rows([_record(document)])
    cells = dict(zip(header, row, strict=True))
    assert (cells["direction"], cells["sessions"], cells["periods"]) == ("in", "3", "3")
