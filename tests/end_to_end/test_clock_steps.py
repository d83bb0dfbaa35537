"""Clocks that are wrong: of the wall, which may step, and of the two ends, which have nothing in common."""

import ast
import asyncio
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import linkgauge.engine.near.base_run
import linkgauge.tui
import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Sampled, Warned
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.near.run import open_run

# Run on uvloop only.
pytestmark = pytest.mark.loop("uvloop")

ENGINE = Path(linkgauge.engine.__file__).parent
TUI = Path(linkgauge.tui.__file__).parent
AHEAD_S = 1_000_000


class SteppingClock(datetime):
    """A wall clock that somebody sets back by a day each time it is looked at."""

    looks = 0

    @classmethod
    def now(cls, tz: Any = None) -> Self:
        """Return a time that is a day before the one before."""
        cls.looks += 1
        return cls(2026, 11, 21, tzinfo=tz) - timedelta(days=cls.looks)


def wall_clock_uses(package: Path) -> set[tuple[str, str]]:
    """Return the modules of a package that look at a clock which may step, each with what it calls."""
    walls = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow"), ("time", "gmtime")}
    walls |= {("time", "localtime"), ("time", "strftime"), ("date", "today"), ("datetime", "today")}
    found: set[tuple[str, str]] = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Attribute):
                continue
            name = node.value.id if isinstance(node.value, ast.Name) else ""
            if (name, node.attr) in walls or node.attr in {"st_mtime", "st_mtime_ns", "st_ctime", "getmtime"}:
                found.add((path.name, f"{name}.{node.attr}"))
    return found


def test_the_wall_clock_is_looked_at_to_name_a_moment_and_never_to_measure() -> None:
    """All of the engine, by its syntax: only where a run, a measurement or a login of iperf3 is dated.

    The kernel stamps datagrams by the wall clock: their receivers read it to get the monotonic time of a stamp.
    """
    found = wall_clock_uses(ENGINE)
    found.remove(("receive_stamps.py", "time.time_ns"))
    dated = {"base_run.py", "ceiling_measurement.py", "run.py"}
    logins = {"run.py", "service.py"}
    assert found == {(name, "datetime.now") for name in dated | logins}


def test_the_command_line_and_the_app_date_runs_and_log_lines_and_measure_nothing_by_the_wall_clock() -> None:
    """An id, a line of a log, a login of iperf3, when a watch is due, and the age from which runs are pruned."""
    dated = {
        "run_recorder.py",
        "sweep_session.py",
        "mesh_spec.py",
        "endpoint_runner.py",
        "endpoint_on_screen.py",
        "step_runner.py",
    }
    dated |= {"iperf3_output.py", "credentials.py", "named_keys.py", "observed_records.py"}
    aged = {"pruning.py", "runs_delete.py", "runs_export.py"}
    # A watch is due at times of the day; what it measures, runs measure.
    due = {"watch_session.py", "followed_watch.py", "watch_runner.py", "watch_screen.py", "app.py"}
    assert wall_clock_uses(TUI) == {(name, "datetime.now") for name in dated | aged} | {
        (name, "time.time") for name in due
    }


def in_another_time() -> list[str]:
    """Return what to begin a command with so that its monotonic clock is far ahead; skip where that cannot be."""
    unshare = shutil.which("unshare") or pytest.skip("there is no unshare(1)")
    command = [unshare, "--time", "--fork", "--monotonic", str(AHEAD_S), sys.executable, "-P"]
    clock = [*command, "-c", "import time; print(time.monotonic())"]
    done = subprocess.run(clock, capture_output=True, check=False, timeout=30)
    if done.returncode != 0:
        pytest.skip("unshare(1) cannot make a time namespace here")
    assert float(done.stdout) > AHEAD_S
    return command


@pytest.mark.every
async def test_clocks_that_have_nothing_in_common_measure_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The far end's clock is eleven days ahead, the near end's calendar is set back while it runs."""
    command = [*in_another_time(), "-m", "linkgauge.engine.far.loopback"]
    monkeypatch.setattr(linkgauge.engine.near.base_run, "datetime", SteppingClock)
    plan = Plan(Settings(Direction.OUT, 1, 65_536), duration_ns=SECOND_NS, interval_ns=SECOND_NS // 10)
    async with asyncio.timeout(40):
        process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            peer = Peer("127.0.0.1", int(await process.stdout.readline()))
            async with open_run(plan, peer) as run:
                events = [event async for event in run]
        finally:
            process.stdin.close()
            await process.communicate()

    assert events[0].started_utc == SteppingClock(2026, 11, 20, tzinfo=UTC).isoformat(timespec="milliseconds")
    assert events[-1].end.reason is Reason.COMPLETED
    assert not [event.text for event in events if isinstance(event, Warned) and "clock" in event.text]
    for end in End:
        samples = [event.sample for event in events if isinstance(event, Sampled) and event.sample.end is end]
        assert sum(sample.interval_ns for sample in samples) == samples[-1].elapsed_ns
        assert plan.duration_ns is not None
        assert plan.duration_ns // 2 < samples[-1].elapsed_ns < 30 * SECOND_NS
