"""The result of a cell: its run in the log, with the expected rate that the hosts do not know."""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.engine.model.events import Ended, Started
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.serialization import encode_tagged
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.results.run_log.event_blocks import unpack_events
from linkgauge.mesh.events import CellEnded, CellFailure, FailureCode
from linkgauge.mesh.plan import Cell, MeshMode
from linkgauge.presets.wire import Variant
from linkgauge.tui.mesh.cell_recorder import CellRecorder
from linkgauge.tui.session.run_spec import Judging

from ...json_schemas import check
from ..scripted_mesh import CATALOG, GOOD_BIT_S, PLAN, PRESET, SLOW_BIT_S, UNREACHABLE, cell_ended, run_events

CELL = Cell("db-01", "db-02")


def test_a_cell_is_a_run_of_the_mesh_s_group_with_its_expected_rate_and_verdict(tmp_path: Path) -> None:
    """The preset follows from both interfaces; the run log has the expectation as if the hosts had known it."""
    with RunLog.open(tmp_path) as log:
        figure = CellRecorder(PLAN, Judging(CATALOG), log).record(cell_ended(*CELL, SLOW_BIT_S))
        (row,) = log.runs_of_group(PLAN.group)
        started = next(log.events(row.run_id))
    assert isinstance(started, Started)
    assert started.expectation.out is not None
    assert figure.run_id == row.run_id
    assert (row.preset, row.peer, row.label, row.verdict) == (
        PRESET.id,
        "198.18.0.2:40001",
        "db-01 to db-02",
        "short",
    )
    assert figure.bit_s is not None
    assert figure.percent is not None
    assert abs(figure.bit_s / SLOW_BIT_S - 1) < 0.01
    assert 60 < figure.percent < 70
    assert figure.why is not None
    assert row.document is not None
    check("run.schema.json", row.document)
    assert row.document["cell"] == {"sender": "db-01", "receiver": "db-02", "near": "db-01", "is_again": False}


@pytest.mark.parametrize("spoil", [lambda text: text, lambda text: f"{text}\n", lambda text: f" {text}\u00a0"])
def test_the_events_of_a_host_are_stored_as_it_sent_them(tmp_path: Path, spoil: Callable[[str], str]) -> None:
    """They are not encoded again, unless a host sent them in a form that the log does not have."""
    ended = cell_ended(*CELL, GOOD_BIT_S)
    texts = tuple(spoil(json.dumps(encode_tagged(event))) for event in ended.events)
    with RunLog.open(tmp_path) as log:
        figure = CellRecorder(PLAN, Judging(CATALOG), log).record(replace(ended, texts=texts))
        events = list(log.events(figure.run_id or ""))
        assert events[1:] == list(ended.events[1:])
        assert isinstance(events[0], Started)
        assert events[0].expectation.out is not None
        with sqlite3.connect(log.path) as database:
            ((block,),) = database.execute("SELECT data FROM blocks").fetchall()
    assert (unpack_events(block)[1:] == list(texts[1:])) is (texts[1] == texts[1].strip())


def test_a_cell_at_its_expected_rate_needs_no_reason() -> None:
    """Without a log as well."""
    figure = CellRecorder(PLAN, Judging(CATALOG), None).record(cell_ended(*CELL, GOOD_BIT_S))
    assert figure.why is None
    assert figure.percent is not None
    assert figure.percent > 95


def test_a_cell_without_a_run_is_a_failure_and_nothing_is_stored(tmp_path: Path) -> None:
    """So is a cell whose host sent events without a run."""
    with RunLog.open(tmp_path) as log:
        recorder = CellRecorder(PLAN, Judging(CATALOG), log)
        assert recorder.record(CellEnded(CELL, "db-01", failure=UNREACHABLE)).failure == UNREACHABLE
        headless = recorder.record(CellEnded(CELL, "db-01", run_events(GOOD_BIT_S)[1:]))
        assert headless.failure is not None
        assert (headless.failure.code, headless.failure.host) == (FailureCode.FAILED, "db-01")
        assert log.runs_of_group(PLAN.group) == []


def test_a_run_that_broke_off_is_stored_and_its_cell_says_why() -> None:
    """Its rate is not a result."""
    end = Ended(RunEnd(Reason.PEER_LOST, "the connection to the remote host was lost"))
    ended = replace(cell_ended(*CELL), events=(*run_events(GOOD_BIT_S)[:-1], end))
    figure = CellRecorder(PLAN, Judging(CATALOG), None).record(ended)
    assert figure.failure == CellFailure(FailureCode.FAILED, "the connection to the remote host was lost")
    assert figure.value is None
    assert figure.run_id is not None


def test_cells_without_a_speed_are_measured_and_the_reason_and_the_remedy_are_told_once() -> None:
    """They are not judged, unless the link's rate is given."""
    recorder = CellRecorder(PLAN, Judging(CATALOG), None)
    for sender in ("db-01", "db-02"):
        figure = recorder.record(_silent(sender))
        assert figure.value is not None
        assert figure.percent is None
    (notice,) = recorder.notices
    assert notice.startswith("no expected rate: ")
    assert "--line-rate 1G" in notice
    given = CellRecorder(PLAN, Judging(CATALOG, Variant(line_rate_bit_s=10_000_000_000)), None)
    assert given.record(_silent("db-01")).percent is not None


def test_link_options_that_a_connection_contradicts_leave_its_cell_unjudged() -> None:
    """Every cell of the mesh is measured all the same."""
    recorder = CellRecorder(PLAN, Judging(PRESET, Variant(ip=6)), None)
    started, *rest = run_events(GOOD_BIT_S)
    assert isinstance(started, Started)
    ended = CellEnded(CELL, "db-01", (replace(started, ip_version=4), *rest))
    assert recorder.record(ended).percent is None
    assert "connect with -6" in recorder.notices[0]


def _silent(sender: str) -> CellEnded:
    """Return the end of a cell whose sender's interface is unknown."""
    started, *rest = run_events(GOOD_BIT_S)
    assert isinstance(started, Started)
    silent = replace(started, near=replace(started.near, nic=None))
    return CellEnded(Cell(sender, "db-03"), sender, (silent, *rest))


def test_a_cell_is_measured_again_only_where_others_were_measured_beside_it() -> None:
    """In the mode `isolated` the first test is alone."""
    ended = cell_ended(*CELL, is_isolated=True)
    assert CellRecorder(PLAN, Judging(), None).is_again(ended)
    assert not CellRecorder(replace(PLAN, mode=MeshMode.ISOLATED), Judging(), None).is_again(ended)
