"""A run from its plan to its verdict, over a real embedded endpoint: what is kept, and when."""

import asyncio
import os
import threading
from pathlib import Path

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PlanError, WorkerError
from linkgauge.engine.model.events import Changed, Ended, Sampled, Started
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.session.run_session import open_run_session
from linkgauge.tui.session.run_spec import Judging, Outputs, RunSpec

DEADLINE_S = 30.0
# At its full speed, loopback takes two cores for as long as a run lasts.
RATE_BIT_S = 100_000_000
BRIEF = Plan(duration_ns=SECOND_NS, warmup_ns=0, interval_ns=SECOND_NS // 10, rate_bit_s=RATE_BIT_S)
ENDLESS = Plan(duration_ns=None, warmup_ns=0, interval_ns=SECOND_NS // 10, rate_bit_s=RATE_BIT_S)
PRESET = load_catalog().find("10mb-fd")
ENDLESS_RUN = RunSpec(ENDLESS, LOOPBACK, Judging(PRESET))


async def test_an_event_is_in_the_log_and_in_the_csv_before_the_caller_has_it(tmp_path: Path) -> None:
    """The log keeps every event that the user has seen."""
    path = tmp_path / "rows.csv"
    with RunLog.open(tmp_path) as log:
        seen = 0
        async with (
            asyncio.timeout(DEADLINE_S),
            open_run_session(
                RunSpec(BRIEF, LOOPBACK, Judging(PRESET), outputs=Outputs(csv=path)), log=log
            ) as session,
        ):
            rows = 0
            async for event in session:
                seen += 1
                assert list(log.events(session.run_id))[seen - 1] == event
                rows += len(session.intervals) * 2  # one session: its row, and the row of the sum
                assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + rows
        assert session.outcome is not None
        row = log.find(session.run_id)
        assert row.document == session.outcome.document
        assert (row.preset, row.peer, row.verdict) == ("10mb-fd", "loopback", "none")
        assert row.reason is Reason.COMPLETED
        assert session.notices == []


@pytest.mark.every
async def test_settings_change_while_it_runs_and_the_expectation_with_them(tmp_path: Path) -> None:
    """The preset tells what to expect under the new settings."""
    async with (
        asyncio.timeout(DEADLINE_S),
        open_run_session(ENDLESS_RUN, log=None) as session,
    ):
        wanted = Settings(Direction.DUPLEX, 2)
        samples = 0
        async for event in session:
            if isinstance(event, Sampled):
                samples += 1
                if samples == 4:
                    session.change_settings(wanted)
                elif samples == 30:
                    session.stop()
            if isinstance(event, Changed):
                assert event.settings == wanted == session.settings
                assert event.expectation.total is not None
                assert event.expectation.out is None
        assert session.outcome is not None
        assert [part.settings.direction for part in session.outcome.summary.periods] == [
            Direction.OUT,
            Direction.DUPLEX,
        ]
        assert session.outcome.summary.end.reason is Reason.STOPPED


async def test_a_block_that_is_left_early_ends_the_run_in_order(tmp_path: Path) -> None:
    """The last samples are taken in, and the log has the end."""
    with RunLog.open(tmp_path) as log:
        async with (
            asyncio.timeout(DEADLINE_S),
            open_run_session(ENDLESS_RUN, log=log) as session,
        ):
            async for event in session:
                if isinstance(event, Started):
                    break
        row = log.find(session.run_id)
        events = list(log.events(session.run_id))
    assert isinstance(events[-1], Ended)
    assert row.reason is Reason.STOPPED
    assert session.outcome is not None
    assert row.document == session.outcome.document


@pytest.mark.parametrize("stopped", [False, pytest.param(True, marks=pytest.mark.every)])
async def test_an_abandoned_run_is_closed_in_the_log_with_what_was_measured(tmp_path: Path, stopped: bool) -> None:
    """An exception in the block does not wait for the far end; a stop that was given before stands."""

    async def abandon(log: RunLog) -> None:
        samples = 0
        async with open_run_session(ENDLESS_RUN, log=log) as session:
            async for event in session:
                samples += isinstance(event, Sampled)
                if samples == 8:
                    if stopped:
                        session.stop(Reason.INTERRUPTED, "interrupted by SIGTERM")
                    raise ZeroDivisionError

    with RunLog.open(tmp_path) as log:
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(abandon(log), DEADLINE_S)
        [row] = log.list_runs()
        events = list(log.events(row.run_id))
    assert isinstance(events[-1], Ended)
    assert row.reason is (Reason.INTERRUPTED if stopped else Reason.FAILED)
    assert row.verdict == "none"
    assert row.document is not None
    assert row.document["measured"]["total"]["bytes"] > 0


@pytest.mark.every
async def test_a_csv_that_becomes_unwritable_causes_a_notice_and_the_run_continues(tmp_path: Path) -> None:
    """Its reader has gone: a pipe stands for every file that fails in the middle."""
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def read_the_header() -> None:
        with path.open("rb") as pipe:
            assert pipe.readline().startswith(b"run_id,")

    reader = threading.Thread(target=read_the_header)
    reader.start()
    with RunLog.open(tmp_path / "data") as log:
        async with (
            asyncio.timeout(DEADLINE_S),
            open_run_session(
                RunSpec(BRIEF, LOOPBACK, Judging(PRESET), outputs=Outputs(csv=path)), log=log
            ) as session,
        ):
            await asyncio.to_thread(reader.join)
            async for _event in session:
                pass
        assert session.outcome is not None
        assert session.outcome.summary.end.reason is Reason.COMPLETED
        assert [text for text in session.notices if str(path) in text and session.run_id in text]
        assert log.find(session.run_id).verdict == "none"


async def test_a_csv_path_is_looked_at_before_anything_is_started(tmp_path: Path) -> None:
    """No endpoint is started, and no peer is connected to, for a run that could not be written."""
    peer = Peer("host.invalid")
    with pytest.raises(PlanError, match="CSV file"):
        async with open_run_session(
            RunSpec(BRIEF, peer, Judging(PRESET), outputs=Outputs(csv=tmp_path / "no" / "rows.csv")), log=None
        ):
            raise AssertionError("the run must not start")


async def test_an_endpoint_that_the_caller_has_is_used_for_loopback() -> None:
    """The app keeps one for all its runs. This one is none, and that is found out."""
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1") as caught:
        async with open_run_session(RunSpec(BRIEF, LOOPBACK), log=None, far_end=Peer("127.0.0.1", 1)):
            raise AssertionError("the run must not start")
    assert not isinstance(caught.value, WorkerError)


@pytest.mark.every
@pytest.mark.parametrize(("percent", "is_reached"), [(90.0, True), (0.01, False)])
async def test_a_run_ends_when_its_mean_is_precise_enough_or_its_time_is_up(
    percent: float, is_reached: bool
) -> None:
    """The document says which, and a notice says if the time was too short."""
    plan = Plan(duration_ns=2 * SECOND_NS, warmup_ns=0, interval_ns=SECOND_NS // 20)
    plan = plan if not is_reached else ENDLESS
    async with (
        asyncio.timeout(DEADLINE_S),
        open_run_session(RunSpec(plan, LOOPBACK, Judging(PRESET), target_ci_percent=percent), log=None) as session,
    ):
        async for _event in session:
            pass
    outcome = session.outcome
    assert outcome is not None
    assert outcome.summary.end.reason is Reason.COMPLETED
    assert outcome.document["until_ci"] == {"percent": percent, "is_reached": is_reached}
    assert any("--max-seconds" in notice for notice in session.notices) is not is_reached
