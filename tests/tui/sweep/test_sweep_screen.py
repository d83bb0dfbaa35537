"""Sweeps in the app: described in a form, carried out for real, stopped, resumed, opened again; their progress."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.meter import Meter
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.results.summary import Summary
from linkgauge.engine.results.sweep import Sweep, SweepResult
from linkgauge.presets.auto_select import PresetSelection
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.app.app import LinkgaugeApp
from linkgauge.tui.app.far_end_keeper import FarEndKeeper
from linkgauge.tui.cli.terminal_app import AppBackend
from linkgauge.tui.kit.screens.prompts import TextPrompt
from linkgauge.tui.kit.widgets.typed_input import TextField
from linkgauge.tui.run.run_services import RunServices
from linkgauge.tui.session.run_spec import Judging, RunSpec
from linkgauge.tui.sweep.sweep_form import SweepForm
from linkgauge.tui.sweep.sweep_map import best_lines, failure_lines
from linkgauge.tui.sweep.sweep_screen import SweepProgress, SweepScreen
from linkgauge.tui.sweep.sweep_words import point_words

from ..app_driver import screen_text, until

DEADLINE_S = 90.0  # for real runs


@asynccontextmanager
async def real_app(directory: Path) -> AsyncIterator[tuple[LinkgaugeApp, RunLog]]:
    """Give the app in the real world, on loopback."""
    catalog = load_catalog()
    picked = PresetSelection(catalog.find("loopback"), "")

    async def ask(_question: str) -> str | None:
        return None

    async with aclosing(FarEndKeeper(ask)) as standing:
        with RunLog.open(directory) as log:
            world = AppBackend(lambda: log, standing, [], picked, catalog)
            yield (
                LinkgaugeApp(
                    RunServices(
                        catalog=catalog,
                        start_run=world.start_run,
                        query_host_info=world.query_host_info,
                        export=world.export,
                        open_log=lambda: log,
                        variant_of=world.variant_of,
                    ),
                    RunSpec(Plan(duration_ns=SECOND_NS), LOOPBACK, Judging(picked.preset)),
                ),
                log,
            )
            await world.wait_until_idle(10)


@pytest.mark.every
@pytest.mark.timeout(240)
async def test_a_sweep_is_started_stopped_resumed_and_reopened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real runs over loopback: points with a result are not run again."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    async with real_app(tmp_path) as (app, log), app.run_test(size=(80, 24)) as pilot:
        await pilot.press("g")
        await until(pilot, lambda: isinstance(app.screen, SweepForm))
        for name, value in (("window", "4M..64K"), ("sessions", "1,2"), ("seconds", "0.7")):
            app.screen.query_one(f"#{name}", TextField).value = value
        await pilot.press("enter")
        await pilot.pause()
        assert "✗ window" in screen_text(pilot.app)
        app.screen.query_one("#window", TextField).value = "64K,1M"
        await pilot.pause()
        assert "4 runs, about 6 s" in screen_text(pilot.app)
        await pilot.press("enter")

        await until(pilot, lambda: "1 of 4 runs" in screen_text(pilot.app), DEADLINE_S)
        await pilot.press("space")
        await until(pilot, lambda: "press space to resume" in screen_text(pilot.app), DEADLINE_S)
        before = {row.run_id for row in log.list_runs() if row.reason is not None and row.reason.is_regular}
        assert 1 <= len(before) < 4
        await pilot.press("space")
        await until(pilot, lambda: "Sweep complete" in screen_text(pilot.app), DEADLINE_S)
        assert "4 of 4 runs" in screen_text(pilot.app)
        assert "64K" in screen_text(pilot.app)

        await pilot.press("e", "h")
        await until(pilot, lambda: isinstance(app.screen, TextPrompt))
        app.screen.query_one(TextField).value = str(tmp_path / "sweep.html")
        await pilot.press("enter")
        await until(pilot, (tmp_path / "sweep.html").exists, DEADLINE_S)

        await pilot.press("escape", "h")
        await until(pilot, lambda: "saved runs" in screen_text(pilot.app))
        await pilot.press("g")
        await until(pilot, lambda: isinstance(app.screen, SweepScreen))
        await until(pilot, lambda: "Sweep complete" in screen_text(pilot.app))
        regular = [row for row in log.list_runs() if row.reason is not None and row.reason.is_regular]
        assert len(regular) == 4
        assert before < {row.run_id for row in regular}
        groups = {row.group for row in regular}
        assert len(groups) == 1
        assert f"<h1>Sweep {groups.pop()}</h1>" in (tmp_path / "sweep.html").read_text(encoding="utf-8")


SWEEP = Sweep(
    "sweep-20261121-014629-7f3a",
    "db-02",
    Plan(duration_ns=10 * SECOND_NS),
    (Direction.OUT,),
    (1, 2, 5, 10),
    (None,),
    (65_536,),
)


def plain(content: Any) -> str:
    """Return the text of a line with plain spaces."""
    return content.plain.replace("\u00a0", " ")


class Clock:
    """A clock that a test sets."""

    now_ns = 0

    def __call__(self) -> int:
        """Return the time."""
        return self.now_ns


@pytest.fixture
def summary(world: Any) -> Summary:
    """Return the summary of a scripted run."""
    run = world.script_of(world.catalog.find("10gbe-fd-1500"), Plan(duration_ns=10 * SECOND_NS))
    run.run_for(40, 9.3e9)
    run.end()
    meter = Meter()
    while not run.queue.empty():
        meter.feed(run.queue.get_nowait())
    meter.flush()
    return meter.summary()


def test_the_time_left_follows_from_the_mean_of_the_runs_so_far(summary: Summary) -> None:
    """Before the first run has ended it is estimated from the plan."""
    clock = Clock()
    progress = SweepProgress(SWEEP, (), clock)
    assert "about" not in plain(progress.head())
    progress.start()
    progress.load(())
    assert "0 of 4 runs, about " in plain(progress.head())
    progress.begin_point(SWEEP.points[0])
    clock.now_ns = 20 * SECOND_NS
    progress.end_point(SWEEP.points[0], SweepResult(SWEEP.points[0], "run-1", summary))
    head = plain(progress.head())
    assert "1 of 4 runs, about 1 min left" in head
    assert head.index(SWEEP.group) + len(SWEEP.group) < 78  # what --resume needs is whole at 80 columns


def test_a_run_without_a_result_counts_only_for_the_time() -> None:
    """Its point is left to run."""
    clock = Clock()
    progress = SweepProgress(SWEEP, (), clock)
    progress.start()
    progress.load(())
    clock.now_ns = 10 * SECOND_NS
    progress.end_point(SWEEP.points[0], None, "remote lost")
    assert "0 of 4 runs, about 40 s left" in plain(progress.head())


def test_points_that_failed_are_named_until_they_have_a_result(summary: Summary) -> None:
    """A run that was stopped has not failed."""
    progress = SweepProgress(SWEEP, (), Clock())
    progress.start()
    first, second, third, fourth = SWEEP.points
    progress.end_point(first, SweepResult(first, "run-1", summary))
    progress.end_point(second, None, "remote lost")
    progress.end_point(third, SweepResult(third, "run-3", summary))
    progress.is_stopping = True
    progress.end_point(fourth, None, "the sweep was stopped")
    progress.finish(None)
    assert progress.failures == {second: "remote lost"}
    assert "1 point failed; press space to run what is missing" in plain(progress.status())
    lines = [plain(line) for line in failure_lines(SWEEP, progress.results, progress.failures)]
    assert lines == [
        f"▲ failed: {point_words(second, ['sessions'])}: remote lost".replace("\xa0", " "),
        "▲ 1 point not run yet",
    ]
    (best,) = [plain(line) for line in best_lines(SWEEP, progress.results) if "fastest" in line.plain]
    assert "fastest so far of 2 of 4 points: " in best
    progress.start()
    progress.end_point(second, SweepResult(second, "run-2", summary))
    assert progress.failures == {}


def test_the_status_names_the_current_point_and_the_last_result(summary: Summary) -> None:
    """Then that the sweep is stopping, and how to resume it."""
    progress = SweepProgress(SWEEP, [SweepResult(SWEEP.points[0], "run-1", summary)], Clock())
    progress.start()
    assert plain(progress.status()).startswith("● starting")
    progress.begin_point(SWEEP.points[1])
    assert plain(progress.status()).startswith(f"● {SWEEP.points[1].sessions} session")
    assert f"last: {SWEEP.points[0].sessions} session" in plain(progress.status())
    progress.is_stopping = True
    assert plain(progress.status()).startswith("● stopping")
    progress.finish(None)
    assert plain(progress.status()).startswith("◌ Stopped.")


def test_a_problem_is_shown_until_the_next_start(summary: Summary) -> None:
    """A complete sweep shows neither."""
    progress = SweepProgress(SWEEP, (), Clock())
    progress.start()
    progress.finish("the far end is gone")
    assert plain(progress.status()) == "✗ the far end is gone"
    progress.start()
    for point in SWEEP.points:
        progress.end_point(point, SweepResult(point, "run", summary))
    progress.finish(None)
    assert progress.is_complete
    assert plain(progress.status()) == "✓ Sweep complete"
