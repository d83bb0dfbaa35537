"""Fixtures of the tests of the app and of the command line."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan
from linkgauge.engine.results.run_log import RunLog

from ..command_line import carry_out
from ..engine.results.responsiveness_runs import Link, steady
from .app_driver import ScriptedServices
from .scripted_loads import QUEUE_OUT, emit_loads
from .scripted_run import store_run


@pytest.fixture
def cli() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a command line in this process."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        result = carry_out(arguments, environment)
        return subprocess.CompletedProcess(arguments, result.status, result.out, result.err)

    return run


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ScriptedServices:
    """Return scripted services, independent of the terminal and the home of the person who runs the tests."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    return ScriptedServices()


@pytest.fixture
def bytes_for_aiohttp(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the size of each piece that aiohttp is given to read."""
    from aiohttp.web_protocol import RequestHandler

    sizes: list[int] = []
    plain = RequestHandler.data_received

    def count(handler: RequestHandler, data: bytes) -> None:
        sizes.append(len(data))
        plain(handler, data)

    monkeypatch.setattr(RequestHandler, "data_received", count)
    return sizes


@pytest.fixture(scope="session")
def four_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of the log that tests on stored runs have copies of: making it takes 0.1 s of CPU."""
    world = ScriptedServices()
    runs = (
        ("20261118-091200-a2b3", "10gbe-fd-1500", "db-02", "before", Settings(sessions=5), 9.38e9),
        ("20261119-221030-c4d5", "10gbe-fd-1500", "db-03", None, Settings(window_bytes=57_344), 5.5e9),
        ("20261120-070000-e6f7", "gbe-fd-1500", "db-02:6000", "after the new cable", Settings(), 940e6),
    )
    folder = tmp_path_factory.mktemp("four_runs")
    with RunLog.open(folder) as log:
        for run_id, preset, peer, label, settings, bit_s in runs:
            script = world.script_of(world.catalog.find(preset), Plan(settings, duration_ns=30 * SECOND_NS))
            script.run_for(60, bit_s)
            if settings == Settings():
                script.change_settings(settings.with_changes(sessions=5))
                script.run_for(30, bit_s)
            script.end()
            store_run(log, run_id, script, peer=peer, label=label)
        script = world.script_of(world.catalog.find("10gbe-fd-1500"), Plan())
        script.run_for(8, 9.3e9)
        script.end(Reason.PEER_LOST, "the far end said nothing for 5 s")
        store_run(log, "20261121-014629-g8h9", script)
        assert log.flush()
    return folder


@pytest.fixture(scope="session")
def runs_under_load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of the log of two responsiveness tests: a long queue, then a short one."""
    world = ScriptedServices()
    folder = tmp_path_factory.mktemp("under_load")
    preset = world.catalog.find("100mb-fd")
    with RunLog.open(folder) as log:
        for run_id, label, link in (
            ("20261122-090000-a2b3", "before", QUEUE_OUT),
            ("20261122-091000-c4d5", "with cake", Link(steady(1.1, 0.7))),
        ):
            script = world.script_of(preset, responsiveness_plan())
            emit_loads(script, link)
            store_run(log, run_id, script, label=label)
        script = world.script_of(preset, Plan(duration_ns=10 * SECOND_NS))
        script.run_for(40, 94.1e6)
        script.end()
        store_run(log, "20261122-092000-e6f7", script)
        assert log.flush()
    return folder


@pytest.fixture
def load_log(world: ScriptedServices, runs_under_load: Path, tmp_path: Path) -> Iterator[RunLog]:
    """Yield a log of two responsiveness tests and an ordinary run that the app has."""
    with RunLog.open(shutil.copytree(runs_under_load, tmp_path / "log")) as log:
        world.history = log
        yield log


@pytest.fixture
def history_log(world: ScriptedServices, four_runs: Path, tmp_path: Path) -> Iterator[RunLog]:
    """Yield a log of four runs that the app has: as expected, short, changed half-way, and cut off."""
    with RunLog.open(shutil.copytree(four_runs, tmp_path / "log")) as log:
        world.history = log
        yield log
