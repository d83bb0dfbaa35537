"""Sweeps in the app: asked for in a form, carried out for real, stopped, gone on with, found again."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.auto_select import PresetSelection
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.app import LinkgaugeApp
from linkgauge.tui.cli.terminal_app import AppBackend, StoredSweeps
from linkgauge.tui.rendering.diff_compositor import screen_strips
from linkgauge.tui.screens.dialogs.text_prompt import TextPrompt
from linkgauge.tui.screens.sweep.sweep_form import SweepForm
from linkgauge.tui.screens.sweep.sweep_screen import SweepScreen
from linkgauge.tui.services.far_end_keeper import FarEndKeeper
from linkgauge.tui.widgets.common.typed_input import TextField
from textual.pilot import Pilot

DEADLINE_S = 90.0


@asynccontextmanager
async def real_app(directory: Path) -> AsyncIterator[tuple[LinkgaugeApp, RunLog]]:
    """Give the app in the real world, on loopback."""
    catalog = load_catalog()
    picked = PresetSelection(catalog.find("loopback"), "")

    async def ask(_question: str) -> str | None:
        return None

    async with aclosing(FarEndKeeper(ask)) as standing:
        with RunLog.open(directory) as log:
            world = AppBackend(log, standing, [], picked)
            yield (
                LinkgaugeApp(
                    catalog,
                    LOOPBACK,
                    start_run=world.start_run,
                    query_host_info=world.query_host_info,
                    export=world.export,
                    history=log,
                    sweeps=StoredSweeps(log, world.start_run, picked),
                    initial_plan=Plan(duration_ns=SECOND_NS),
                    initial_preset=picked.preset,
                ),
                log,
            )
            await world.wait_until_idle(10)


def text_of(pilot: Pilot[None]) -> str:
    """Return what is on the screen, with plain spaces."""
    strips = screen_strips(pilot.app.screen)
    return "\n".join(strip.text for strip in strips).replace("\u00a0", " ")


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await pilot.pause(0.05)


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
        assert "✗ window" in text_of(pilot)
        app.screen.query_one("#window", TextField).value = "64K,1M"
        await pilot.pause()
        assert "4 runs, about 00:06" in text_of(pilot)
        await pilot.press("enter")

        await until(pilot, lambda: "1 of 4 runs" in text_of(pilot))
        await pilot.press("space")
        await until(pilot, lambda: "space goes on" in text_of(pilot))
        before = {row.run_id for row in log.list_runs() if row.reason is not None and row.reason.is_regular}
        assert 1 <= len(before) < 4
        await pilot.press("space")
        await until(pilot, lambda: "every run is made" in text_of(pilot))
        assert "4 of 4 runs" in text_of(pilot)
        assert "64K" in text_of(pilot)

        await pilot.press("e", "h")
        await until(pilot, lambda: isinstance(app.screen, TextPrompt))
        app.screen.query_one(TextField).value = str(tmp_path / "sweep.html")
        await pilot.press("enter")
        await until(pilot, (tmp_path / "sweep.html").exists)

        await pilot.press("escape", "h")
        await until(pilot, lambda: "runs kept" in text_of(pilot))
        await pilot.press("g")
        await until(pilot, lambda: isinstance(app.screen, SweepScreen))
        await until(pilot, lambda: "every run is made" in text_of(pilot))
        regular = [row for row in log.list_runs() if row.reason is not None and row.reason.is_regular]
        assert len(regular) == 4
        assert before < {row.run_id for row in regular}
        groups = {row.group for row in regular}
        assert len(groups) == 1
        assert f"<h1>Sweep {groups.pop()}</h1>" in (tmp_path / "sweep.html").read_text(encoding="utf-8")
