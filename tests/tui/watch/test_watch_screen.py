"""The screen of a watch: its rows, its panel, its keys, and its end."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.errors import PlanError, RunLogError
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.app.app import WatchApp
from linkgauge.tui.history.history_screen import HistoryScreen
from linkgauge.tui.kit.screens.export import ExportScreen
from linkgauge.tui.kit.screens.feature_app import StoredServices
from linkgauge.tui.kit.screens.help import HelpScreen
from linkgauge.tui.watch.watch_screen import WatchScreen
from linkgauge.watch.watch_plan import WatchPlan
from textual.pilot import Pilot

from ..app_driver import screen_text, until
from ..example_watch import NOW_S, ScriptedWatch, all_failed, ended, failed, good, plan, probe
from ..scripted_run import store_run

pytestmark = pytest.mark.usefixtures("world")


def export(run_ids: Any, form: Any, path: Path) -> Path:
    """Write nothing."""
    del run_ids, form
    return path


def notices(app: WatchApp) -> list[str]:
    """Return the message above the keys, in a list that is empty without one."""
    return [] if app.shown_message is None else [app.shown_message.message]


@asynccontextmanager
async def watch_app(
    watch: ScriptedWatch,
    size: tuple[int, int] = (120, 40),
    log: RunLog | None = None,
    read_plan: Callable[[], WatchPlan] | None = None,
) -> AsyncGenerator[tuple[WatchApp, Pilot[None]]]:
    """Run the app of a watch without a terminal."""
    services = StoredServices(catalog=load_catalog(), export=export, open_log=lambda: log)
    app = WatchApp(watch, services, read_plan=read_plan, clock=lambda: NOW_S)
    async with app.run_test(size=size) as pilot:
        watch.begin()
        yield app, pilot


async def test_a_watch_of_another_process_is_shown_and_not_tested() -> None:
    """The key says so; quitting leaves the watch as it is."""
    watch = ScriptedWatch(3)
    watch.is_elsewhere = True
    async with watch_app(watch) as (app, pilot):
        await until(pilot, lambda: "watch office  followed, 3 peers" in screen_text(pilot.app))
        await pilot.press("t")
        await until(pilot, lambda: bool(notices(app)))
        assert "Another process carries this watch out" in notices(app)[0]
        assert watch.checked == []


async def test_rows_fill_in_while_the_watch_goes_on() -> None:
    """From no test to a verdict. A running test is marked, and the list of events has the result."""
    watch = ScriptedWatch(3, is_new=True)
    async with watch_app(watch) as (_, pilot):
        await until(pilot, lambda: "watching 3 peers" in screen_text(pilot.app))
        assert "next test: db-01 in 40 s" in screen_text(pilot.app)
        assert "3 not tested yet" in screen_text(pilot.app)
        watch.start_test("db-01")
        await until(pilot, lambda: "testing 00:04" in screen_text(pilot.app))
        assert "● testing db-01" in screen_text(pilot.app)
        check = ended("db-01", NOW_S, good())
        watch.change("db-01", running_since_s=None, last_check=check, day=(check,), checks=(1, 0, 0))
        watch.change("db-01", last_probe=probe("db-01", NOW_S), next_check_s=NOW_S + 3_000)
        watch.emit(check)
        await until(pilot, lambda: "db-01: ✓ PASS: 937 Mb/s" in screen_text(pilot.app))
        line = next(line for line in screen_text(pilot.app).splitlines() if line.startswith("   db-01"))
        for words in ("✓ PASS", "99.6", "937.2", "412 µs", "in 50 min", "0 B of 10.0 GiB"):
            assert words in line
        watch.end()


async def test_the_panel_has_the_details_of_the_peer_at_the_cursor() -> None:
    """Its last test, its levels, its changes with both levels and their causes, its failures."""
    watch = ScriptedWatch(3)
    async with watch_app(watch) as (_, pilot):
        await until(pilot, lambda: "No change of a level." in screen_text(pilot.app))
        await pilot.press("down")
        await until(pilot, lambda: "▼ rate fell at 08:35, by 40 %" in screen_text(pilot.app))
        for words in (
            "before  937 Mb/s",
            "19 tests: at the link's rate",
            "after   563 Mb/s",
            "2 flaps",
            "level    rate",
        ):
            assert words in screen_text(pilot.app)
        await pilot.press("down")
        await until(pilot, lambda: "! probe at 14:04" in screen_text(pilot.app))
        assert "! test at 14:02: db-03.example.com:5820: connection refused" in screen_text(pilot.app)
        watch.end()


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_leaving_ends_the_watch_in_order(key: str) -> None:
    """The app ends when the watch has ended, or at the second request."""
    watch = ScriptedWatch()
    async with watch_app(watch) as (app, pilot):
        await pilot.press(key)
        await until(pilot, lambda: "ending: a test in progress" in screen_text(pilot.app))
        assert watch.stops == 1
        assert app.is_running
        if key == "q":
            watch.end()
        else:
            await pilot.press(key)
        await until(pilot, lambda: not app.is_running)


async def test_a_watch_that_fails_stays_on_the_screen_with_the_reason() -> None:
    """A LinkgaugeError, and an unforeseen one; `q` leaves."""
    for problem, words in (
        (RunLogError("the disk is full"), "the disk is full"),
        (KeyError("x"), "internal error"),
    ):
        watch = ScriptedWatch()
        watch.problem = problem
        async with watch_app(watch) as (app, pilot):
            await until(pilot, lambda words=words: f"✗ {words}" in screen_text(pilot.app))
            await pilot.press("t", "q")
            await until(pilot, lambda app=app: not app.is_running)
        assert watch.checked == []


async def test_a_test_is_asked_for_by_a_key() -> None:
    """Of the peer at the cursor. A peer that is tested already is not tested twice."""
    watch = ScriptedWatch()
    async with watch_app(watch) as (app, pilot):
        await pilot.press("down", "t")
        assert watch.checked == ["db-02"]
        watch.start_test("db-03")
        await pilot.press("down", "t")
        await until(pilot, lambda: any("db-03 is tested already" in text for text in notices(app)))
        assert watch.checked == ["db-02"]
        watch.end()


async def test_the_file_is_read_again_by_a_key() -> None:
    """The peers of the new plan are shown; a wrong file changes nothing and says why."""
    plans: list[WatchPlan] = [plan(5)]

    def read_plan() -> WatchPlan:
        if not plans:
            raise PlanError("every", "'soon'", "give a time such as 1h")
        return plans.pop()

    watch = ScriptedWatch(3)
    async with watch_app(watch, read_plan=read_plan) as (app, pilot):
        await pilot.press("r")
        await until(pilot, lambda: "db-05" in screen_text(pilot.app))
        await pilot.press("r")
        await until(pilot, lambda: any("'soon'" in text for text in notices(app)))
        assert len(watch.plan.peers) == 5
        watch.end()
    async with watch_app(ScriptedWatch(1)) as (app, pilot):
        await pilot.press("r")
        await until(pilot, lambda: any("without a file" in text for text in notices(app)))


async def test_enter_opens_the_runs_of_the_peer_and_of_no_other(world: Any, tmp_path: Path) -> None:
    """Not the runs of a peer with a longer name, nor of another watch. Escape comes back."""
    with RunLog.open(tmp_path) as log:
        for number, (label, group) in enumerate(
            (("db-01", "watch-office"), ("db-011", "watch-office"), ("db-01", "watch-office-2"), ("db-01", None))
        ):
            script = world.script_of(world.catalog.find("gbe-fd-1500"), Plan())
            script.run_for(4, 9.3e8)
            script.end()
            store_run(log, f"20261123-13050{number}-a2b3", script, label=label, group=group)
        assert log.flush()
        watch = ScriptedWatch()
        async with watch_app(watch, log=log) as (app, pilot):
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, HistoryScreen))
            await until(pilot, lambda: "1 of 4 saved runs" in screen_text(pilot.app))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, WatchScreen))
            watch.end()


async def test_without_a_run_log_enter_says_so() -> None:
    """The watch goes on."""
    watch = ScriptedWatch()
    async with watch_app(watch) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: any("no run log" in text for text in notices(app)))


async def test_help_and_export_open_from_the_watch() -> None:
    """Help has the keys of this screen alone, and its marks."""
    async with watch_app(ScriptedWatch()) as (app, pilot):
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert "Test the peer at the cursor" in screen_text(pilot.app)
        assert "network" not in screen_text(pilot.app)
        await pilot.press("escape", "e")
        assert isinstance(app.screen, ExportScreen)


@pytest.mark.every
@pytest.mark.parametrize("count", [3, 40])
async def test_every_size_can_be_shown(count: int) -> None:
    """The name and the last verdict are there; the cursor reaches the last peer."""
    watch = ScriptedWatch(count, long_names=count == 3)
    async with watch_app(watch, (20, 5)) as (app, pilot):
        for size in ((20, 5), (40, 10), (80, 24), (200, 60)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: "✓" in screen_text(pilot.app))
            await pilot.press("end", "tab", "pagedown", "tab", "home")
            await pilot.pause()
            assert app.is_running
        watch.end()


@pytest.mark.every
async def test_failures_and_used_up_data_are_said() -> None:
    """In the row and in the panel."""
    watch = ScriptedWatch(2)
    watch.use_up("db-01")
    watch.statuses["db-02"] = all_failed(watch.statuses["db-02"])
    async with watch_app(watch) as (_, pilot):
        await until(pilot, lambda: "data is used up: 10.0 GiB of 10.0 GiB" in screen_text(pilot.app))
        await pilot.press("down")
        await until(pilot, lambda: "24 without a result" in screen_text(pilot.app))
        watch.emit(ended("db-02", NOW_S, failed()))
        await until(pilot, lambda: "✗ db-02: ! no result" in screen_text(pilot.app))
