"""Sweeps on the command line: ranges, words, a real small sweep that is cut off and gone on with."""

import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.errors import PlanError, RunLogError
from linkgauge.engine.model.events import Expectation, ExpectedRate, Reason, RunEnd
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Direction, PerDirection, Plan
from linkgauge.engine.results.confidence import Estimate
from linkgauge.engine.results.saturation import SaturationPoint
from linkgauge.engine.results.summary import CpuSummary, Measurement, Summary, TcpSummary
from linkgauge.engine.results.sweep import Sweep, SweepPoint, SweepResult
from linkgauge.presets.wire import Variant
from linkgauge.tui.cli.main import run_command_line
from linkgauge.tui.screens.sweep.sweep_screen import SweepScreen
from linkgauge.tui.services.sweeps import find_sweep, save_sweep
from linkgauge.tui.text import parsing
from linkgauge.tui.text.sweep import CSV_COLUMNS, grids, saturation_words

K = 1024
DEADLINE_S = 50.0


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("16K..128K", (16 * K, 32 * K, 64 * K, 128 * K)),
        ("16K..100K", (16 * K, 32 * K, 64 * K, 100 * K)),
        ("auto,64K", (None, 64 * K)),
        ("4K..16K/4K", (4 * K, 8 * K, 12 * K, 16 * K)),
        ("4K,4K", (4 * K,)),
    ],
)
def test_windows_are_read_with_ranges_that_double_or_add(text: str, values: tuple[int | None, ...]) -> None:
    """The last value is always among them."""
    assert parsing.window_values(text) == values


def test_sessions_messages_and_directions_are_read() -> None:
    """Numbers, sizes and words."""
    assert parsing.session_values("1,2,5,10") == (1, 2, 5, 10)
    assert parsing.session_values("1..4/1") == (1, 2, 3, 4)
    assert parsing.message_values("512..2K/512") == (512, 1024, 1536, 2048)
    assert parsing.direction_values("out, in") == (Direction.OUT, Direction.IN)


@pytest.mark.parametrize(
    "text", ["", "16K..", "..4M", "4M..16K", "16K..4M/0", "auto..4M", "64..16M/1", "1..2..3", "x"]
)
def test_ranges_that_cannot_be_are_told(text: str) -> None:
    """With what was given, and never with a million values."""
    with pytest.raises(PlanError):
        parsing.window_values(text)
    with pytest.raises(PlanError):
        parsing.direction_values(text)


SWEEP = Sweep(
    "sweep-a",
    "db-02",
    Plan(duration_ns=SECOND_NS),
    (Direction.OUT, Direction.IN),
    (1, 2),
    (16 * K, 32 * K, 64 * K),
    (K,),
)
AT = SweepPoint(Direction.OUT, 2, 32 * K, K)


@pytest.mark.parametrize(
    ("knee", "said"),
    [
        (
            SaturationPoint("window_bytes", AT, 32 * K, 0.8, is_first=False),
            "beyond 32K nothing is gained (at most 0.8 %)",
        ),
        (SaturationPoint("window_bytes", AT, 16 * K, 0.8, is_first=True), "from 16K on it makes no difference"),
        (SaturationPoint("window_bytes", AT, 64 * K, None, is_first=False), "still gains; try more"),
        (SaturationPoint("window_bytes", AT, 32 * K, 20.0, is_first=False), "give --seconds more"),
    ],
)
def test_a_knee_is_a_sentence_that_says_no_more_than_is_known(knee: SaturationPoint, said: str) -> None:
    """With the other settings it was found under."""
    words = saturation_words(SWEEP, knee).replace("\N{NO-BREAK SPACE}", " ")
    assert said in words
    assert words.startswith("window (out, 2 sessions): ")


def test_a_table_has_the_two_longest_axes_and_there_is_one_for_each_of_the_others() -> None:
    """Windows down, sessions across, a table for each direction."""
    made = list(grids(SWEEP))
    assert [(rows, columns) for _, rows, columns, _ in made] == [("window_bytes", "sessions")] * 2
    assert sum(len(points) for *_, points in made) == 12


def test_a_sweep_is_kept_with_what_its_link_is_had_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gone on with, it is held against the same; one that was kept without options has none."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    link = Variant(ip=6, mtu_bytes=9_000, tunnel="vxlan", timestamps=True)
    save_sweep(SWEEP, link)
    assert find_sweep("sweep-a") == (SWEEP, link)
    path = tmp_path / "sweeps" / "sweep-a.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**kept, "link_options": {**kept["link_options"], "ip": True}}), encoding="utf-8")
    with pytest.raises(RunLogError, match="one of 4, 6"):
        find_sweep("sweep-a")
    del kept["link_options"]
    path.write_text(json.dumps(kept), encoding="utf-8")
    assert find_sweep("sweep-a") == (SWEEP, Variant())


def test_a_wrong_sweep_is_a_wrong_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Told before anything runs."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    for arguments, said in (
        ([], "PEER"),
        (["loopback", "--window", "4M..1K"], "doubles"),
        (["loopback", "--figure", "aix-9"], "hp-1"),
        (["--resume", "nothing"], "none is"),
        (["loopback", "--resume", "x", "--window", "16K"], "axes"),
        (["loopback", "--preset", "nope"], "presets list"),
        (["loopback", "--ipv6"], "they go with a preset"),
        (["loopback", "--preset", "lpar-1500", "--ipv6"], "without a line"),
    ):
        assert run_command_line(["sweep", *arguments]) == 2
        assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_figure_of_a_document_is_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its windows, message sizes and preset, from the catalogue."""
    from linkgauge.tui.cli import sweep_runner as sweep_run

    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    asked: list[sweep_run.SweepJob] = []
    monkeypatch.setattr(sweep_run, "run_sweep", lambda one: asked.append(one) or 0)
    assert run_command_line(["sweep", "db-02", "--figure", "hp-1", "--seconds", "2"]) == 0
    (one,) = asked
    assert one.preset is not None
    assert one.preset.id == "hp-atm155-clip-9180"
    assert one.sweep.windows == (32 * K, 56 * K)
    assert one.sweep.messages[-1] == 10_240
    assert len(one.sweep.points) == 24


def cells() -> list[SweepResult]:
    """Return a cell for each point of the sweep, the wider window the faster."""
    found: list[SweepResult] = []
    for point in SWEEP.points:
        steady = Estimate((point.window_bytes or 0) * 1e3, 1e4, 15.0, 24)
        measured = Measurement(round(steady.mean / 8), SECOND_NS, estimate=steady)
        cpu, tcp = CpuSummary(None, None, None, None), TcpSummary(None, None, None, None, None, None)
        end = RunEnd(Reason.COMPLETED, "")
        expected = Expectation(out=ExpectedRate(94_000_000, "computed", "the wire model"))
        plan = point.to_plan(SWEEP.base)
        summary = Summary(plan, PerDirection(measured, None, measured), expected, (), cpu, cpu, tcp, (), end)
        found.append(SweepResult(point, f"run-{len(found)}", summary))
    return found


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_a_sweep_on_the_screen(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Half of it is measured; the rest can be gone on with."""
    sweep = replace(SWEEP, directions=(Direction.OUT,))
    measured = [cell for cell in cells() if cell.point.direction is Direction.OUT][:5]

    async def shown(pilot: Any) -> None:
        screen = SweepScreen(sweep, None, None, preset=None, peer=LOOPBACK, results=measured, autostart=False)
        await pilot.app.push_screen(screen)
        await pilot.pause()

    assert snap_compare(world.app(), terminal_size=size, run_before=shown)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Give the environment of a command that keeps its runs in this test's directory."""
    return {**os.environ, "LINKGAUGE_DATA_DIR": str(tmp_path / "data")}


@pytest.mark.timeout(120)
def test_a_sweep_that_is_cut_off_goes_on_where_it_was(tmp_path: Path, environment: dict[str, str]) -> None:
    """What was measured stays, and is not measured again; Ctrl-C says how to go on."""
    command = [sys.executable, "-m", "linkgauge", "sweep"]
    axes = ["loopback", "--window", "64K,128K", "--message-size", "64K,128K", "--seconds", "0.7"]
    with subprocess.Popen(
        [*command, *axes, "--json"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert "1/4" in first, first
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 3, errors
    cut = json.loads(out)
    assert cut["is_complete"] is False
    measured = {cell["run_id"] for cell in cut["cells"]}
    assert 1 <= len(measured) < 4
    assert f"--resume {cut['group']}" in errors
    rows = tmp_path / "rows.csv"
    again = subprocess.run(
        [*command, "--resume", cut["group"], "--csv", str(rows), "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    whole = json.loads(again.stdout)
    assert whole["is_complete"] is True
    assert len(whole["cells"]) == 4
    assert measured < {cell["run_id"] for cell in whole["cells"]}
    assert whole["axes"]["window_bytes"] == [64 * K, 128 * K]
    with rows.open(encoding="utf-8", newline="") as stream:
        header, *lines = csv.reader(stream)
    assert tuple(header) == CSV_COLUMNS
    assert [line[1] for line in lines] == [cell["run_id"] for cell in whole["cells"]]
