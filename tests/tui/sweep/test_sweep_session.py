"""Sweeps: their definition is stored with the options of the link, and one loop runs their points."""

import json
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.model.events import Event
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.near.connect import open_far_end
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.results.sweep import SweepPoint, SweepResult
from linkgauge.engine.workers.fork_client import ForkServerLease
from linkgauge.presets.wire import Variant
from linkgauge.tui.session.run_session import RunSession, open_run_session
from linkgauge.tui.session.run_spec import Record, RunSpec
from linkgauge.tui.sweep.sweep_session import (
    find_sweep,
    load_failures,
    load_results,
    missing_points,
    run_points,
    save_sweep,
)

from ..sweep_example import SWEEP

pytestmark = pytest.mark.usefixtures("fork_server")


def test_a_sweep_is_saved_with_the_options_of_its_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gone on with, it is held against the same; one that was kept without options has none."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    link = Variant(ip=6, mtu_bytes=9_000, tunnel="vxlan", timestamps=True)
    save_sweep(SWEEP, link)
    assert find_sweep("sweep-a") == (SWEEP, link)
    path = tmp_path / "sweeps" / "sweep-a.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(
        json.dumps({**stored, "link_options": {**stored["link_options"], "ip": True}}), encoding="utf-8"
    )
    with pytest.raises(RunLogError, match="one of 4, 6"):
        find_sweep("sweep-a")
    del stored["link_options"]
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert find_sweep("sweep-a") == (SWEEP, Variant())


class Breaker:
    """An observer that breaks off the first run, and stops the sweep after `limit` points."""

    def __init__(self, limit: int) -> None:
        self.ends: list[tuple[SweepPoint, SweepResult | None, str]] = []
        self.events = 0
        self._limit = limit

    @property
    def is_stopping(self) -> bool:
        """Whether enough points have run."""
        return len(self.ends) >= self._limit

    def begin_point(self, point: SweepPoint, run: RunSession) -> None:  # noqa: ARG002
        """Break off the first run."""
        if not self.ends:
            run.stop(Reason.FAILED, "the cable was pulled")

    def advance(self, _event: Event) -> None:
        """Count an event."""
        self.events += 1

    def end_point(self, point: SweepPoint, result: SweepResult | None, detail: str) -> None:
        """Note the end of a point."""
        self.ends.append((point, result, detail))


@pytest.mark.every
async def test_a_run_that_breaks_off_leaves_its_point_missing_and_the_sweep_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real runs over loopback; the observer ends the sweep before its last point."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    sweep = replace(SWEEP, base=replace(SWEEP.base, duration_ns=SECOND_NS // 2))
    broken, measured, _ = sweep.points[:3]
    observer = Breaker(limit=2)
    with RunLog.open(tmp_path) as log:
        async with ForkServerLease(), open_far_end(LOOPBACK) as far:

            def open_run(point: SweepPoint) -> AbstractAsyncContextManager[RunSession]:
                spec = RunSpec(point.to_plan(sweep.base), LOOPBACK, record=Record(group=sweep.group))
                return open_run_session(spec, log=log, far_end=far)

            await run_points(sweep.points[:3], open_run, observer)
    with RunLog.open(tmp_path) as log:
        assert load_failures(log, sweep) == {broken: "the cable was pulled"}
        assert [result.point for result in load_results(log, sweep)] == [measured]
    assert [point for point, _, _ in observer.ends] == [broken, measured]
    results = [result for _, result, _ in observer.ends]
    assert results[0] is None
    assert observer.ends[0][2] == "the cable was pulled"
    assert results[1] is not None
    assert results[1].point == measured
    assert observer.events > 4
    assert set(missing_points(sweep, [results[1]])) == {*sweep.points} - {measured}


class Impatient(Breaker):
    """An observer that stops each run as soon as something is measured."""

    def begin_point(self, point: SweepPoint, run: RunSession) -> None:  # noqa: ARG002
        """Take the run of the point."""
        self.run = run

    def advance(self, _event: Event) -> None:
        """Stop the run in the midst of its time."""
        if self.run.meter.summary().measured.total is not None:
            self.run.stop()


async def test_a_point_that_the_user_stops_early_has_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of its time cannot be ranked beside whole runs: it is measured again when the sweep continues."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    sweep = replace(SWEEP, base=replace(SWEEP.base, duration_ns=20 * SECOND_NS))
    observer = Impatient(limit=1)
    with RunLog.open(tmp_path) as log:
        async with ForkServerLease(), open_far_end(LOOPBACK) as far:

            def open_run(point: SweepPoint) -> AbstractAsyncContextManager[RunSession]:
                spec = RunSpec(point.to_plan(sweep.base), LOOPBACK, record=Record(group=sweep.group))
                return open_run_session(spec, log=log, far_end=far)

            await run_points(sweep.points[:1], open_run, observer)
    with RunLog.open(tmp_path) as log:
        assert [row.reason for row in log.list_runs()] == [Reason.STOPPED]
        assert load_results(log, sweep) == []
    assert [result for _, result, _ in observer.ends] == [None]
