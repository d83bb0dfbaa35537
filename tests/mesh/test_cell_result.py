"""A host's answer: a whole run of the requested plan, or one reason. Nothing else is accepted."""

import json
from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Ended, Event, Started, Warned
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.serialization import encode_tagged
from linkgauge.mesh.cell_result import MAX_LINES, read_cell
from linkgauge.mesh.events import CellFailure, FailureCode
from linkgauge.mesh.plan import Pairing

PAIR = Pairing("db-01", "db-02")
PLAN = Plan(duration_ns=3 * SECOND_NS)
ENDED = Ended(RunEnd(Reason.COMPLETED, ""))


def lines(*events: Event) -> list[str]:
    """Return events as a host sends them."""
    return [json.dumps(encode_tagged(event)) for event in events]


@pytest.fixture
def started() -> Started:
    """Give the first event of a run of the plan."""
    host = HostInfo("db", "Linux 6.12", 2, "linkgauge 1", "uvloop")
    return Started("2026-01-01T00:00:00Z", "192.0.2.2", host, host, PLAN, Expectation())


def test_a_whole_run_comes_back_as_its_events(started: Started) -> None:
    """In their order."""
    events = (started, Warned("window"), ENDED)
    assert read_cell(lines(*events), PLAN, PAIR) == events


@pytest.mark.parametrize(("end", "host"), [("near", "db-01"), ("far", "db-02"), (None, None)])
def test_an_error_names_the_host_of_its_end(end: str | None, host: str | None) -> None:
    """The text is one printable line."""
    line = json.dumps({"error": "no\nroute\x1b[31m", "code": "unreachable", "end": end})
    expected = CellFailure(FailureCode.UNREACHABLE, "no route\N{REPLACEMENT CHARACTER}[31m", host)
    assert read_cell([line], PLAN, PAIR) == expected


def test_a_run_that_broke_off_is_a_failure(started: Started) -> None:
    """With its reason, and without a host at fault before the hosts are asked."""
    result = read_cell(lines(started, Ended(RunEnd(Reason.PEER_LOST, "db-02 vanished"))), PLAN, PAIR)
    assert result == CellFailure(FailureCode.FAILED, "the test broke off: db-02 vanished")


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "text",
        [],
        [7],
        ["{"],
        ["[]"],
        ["7"],
        ['{"type": "Warned", "text": "alone"}'],
        ['{"error": 7, "code": "failed", "end": null}'],
        ['{"error": "x", "code": "fine", "end": null}'],
        ['{"error": "x", "code": ["failed"], "end": null}'],
        ['{"error": "x", "code": "failed", "end": "middle"}'],
        ['{"error": "x", "error": "y", "code": "failed", "end": null}'],
        ["[" * 100_000],
        ["x"] * (MAX_LINES + 1),
        ["x" * (33 << 20)],
    ],
)
def test_any_other_answer_is_a_failure_of_the_host_that_sent_it(sent: Any) -> None:
    """It does no harm here."""
    result = read_cell(sent, PLAN, PAIR)
    assert isinstance(result, CellFailure)
    assert (result.code, result.host) == (FailureCode.FAILED, "db-01")
    assert len(result.detail) < 400


@pytest.mark.parametrize("which", ["another plan", "two runs", "no end", "no beginning", "another direction"])
def test_a_run_of_another_plan_is_refused(started: Started, which: str) -> None:
    """The matrix would show the result of another test."""
    other = replace(started, plan=Plan(duration_ns=SECOND_NS))
    back = replace(started, plan=replace(PLAN, settings=Settings(direction=Direction.IN)))
    sent = {
        "another plan": lines(other, ENDED),
        "another direction": lines(back, ENDED),
        "two runs": lines(started, ENDED, started, ENDED),
        "no end": lines(started),
        "no beginning": lines(ENDED),
    }[which]
    result = read_cell(sent, PLAN, PAIR)
    assert isinstance(result, CellFailure)
    assert result.host == "db-01"
