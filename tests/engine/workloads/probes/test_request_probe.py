"""Latency under load: a probe beside real streams between two real ends, and the use of its answers."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from linkgauge.engine.metering.shared_counters import slot_index
from linkgauge.engine.model.counters.samples import Sample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import DecodeError
from linkgauge.engine.model.events import Event, Opened, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import MAX_SESSIONS, PROBE_SESSION, SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.near.run import Run
from linkgauge.engine.protocol.messages import Report
from linkgauge.engine.results.csv_export import CsvWriter
from linkgauge.engine.results.figure_codec import encode
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.run_result import RunResult

from ...results.meter_events import probe_sample

Recorder = Callable[..., Any]
ON_UVLOOP = pytest.mark.loop("uvloop")


def test_the_probe_has_a_slot_that_no_session_has() -> None:
    """Its counts are not added to those of a session."""
    slots = {slot_index(flow, number) for flow in Direction.DUPLEX.flows for number in range(1, MAX_SESSIONS + 1)}
    assert slot_index(Direction.OUT, PROBE_SESSION) not in slots


def test_a_far_end_that_tells_of_a_probe_is_refused() -> None:
    """It cannot measure there."""
    sample = Sample(End.FAR, 0, SECOND_NS, SECOND_NS, (), probe=probe_sample((1, 1)))
    with pytest.raises(DecodeError, match="probe"):
        Report(sample)


@pytest.mark.every
@ON_UVLOOP
async def test_a_probe_tells_latency_before_and_under_load_and_is_no_payload(
    far_end: Peer, record: Recorder
) -> None:
    """Through changes of everything; the near end alone reports it, and it is not part of any other figure."""
    settings = Settings(Direction.DUPLEX)
    plan = Plan(settings, duration_ns=SECOND_NS, warmup_ns=0, interval_ns=SECOND_NS // 10, probe=True)
    changes = {
        2: settings.with_changes(direction=Direction.IN),
        5: settings.with_changes(sessions=2, window_bytes=65_536),
    }

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.end is End.NEAR and event.sample.index in changes:
            run.change_settings(changes.pop(event.sample.index))

    recorded = await record(plan, far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    assert not changes
    idle = recorded.started.idle
    assert idle is not None
    assert 0 < idle.latency.transactions <= 101 * idle.span_ns / SECOND_NS
    near = [event.sample for event in recorded.samples if event.sample.end is End.NEAR]
    assert all(event.sample.probe is None for event in recorded.samples if event.sample.end is End.FAR)
    assert near[-1].probe is not None
    assert near[-1].probe.rtt_us
    assert (
        sum(near_sample.probe.latency.transactions for near_sample in near[-4:] if near_sample.probe) > 0
    )  # after the changes too
    sessions = {part.session for event in recorded.samples for part in event.sample.sessions}
    assert PROBE_SESSION not in sessions
    assert all(e.facts.session != PROBE_SESSION for e in recorded.events if isinstance(e, Opened))
    _check_told(recorded.events)


def _check_told(events: list[Event]) -> None:
    """Look for the same counts in the summary, the document and the rows."""
    meter = replay(events)
    summary = meter.summary()
    assert summary.probe is not None
    assert summary.probe.loaded is not None
    assert summary.measured.total is not None
    assert summary.measured.total.transactions is None
    document = encode(RunResult.of_run(summary))
    assert document["plan"]["probe"] is True
    idle = document["latency"]["idle_us"]
    assert idle["min"] <= idle["p50"] <= idle["max"]
    assert document["latency"]["loaded_us"]["p50"] > 0
    assert document["latency"]["loaded_probes"]["transactions"] == summary.probe.loaded.transactions
    stream = io.StringIO()
    CsvWriter(stream).write_run(events, run_id="r", preset="")
    header, *rows = [line.split(",") for line in stream.getvalue().splitlines()]
    cells = [dict(zip(header, row, strict=True)) for row in rows]
    assert any(row["latency_p50_us"] for row in cells if row["session"] == "all")
    assert not any(row["latency_p50_us"] for row in cells if row["session"] != "all")
    assert not any(row["transactions_s"] for row in cells)


@ON_UVLOOP
async def test_a_run_without_a_probe_has_no_probe_latency(far_end: Peer, record: Recorder) -> None:
    """Unknown is null, and no row has a percentile."""
    recorded = await record(Plan(duration_ns=SECOND_NS // 2), far_end)
    assert recorded.started.idle is None
    document = encode(RunResult.of_run(replay(recorded.events).summary()))
    assert document["latency"] is None
    assert document["plan"]["probe"] is False
