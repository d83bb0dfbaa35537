"""The mesh command: what it refuses, its output in every form, and a mesh that is stopped and continued."""

import asyncio
import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.engine.model import errors
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.results.run_log.process_locks import FOLDER, claimed
from linkgauge.mesh.events import CellEnded, MeshBegan, MeshEvent
from linkgauge.mesh.plan import Cell
from linkgauge.presets.catalog import Catalog
from linkgauge.tui.cli.main import run_command_line
from linkgauge.tui.cli.runners import mesh_runner
from linkgauge.tui.mesh.cell_recorder import CellRecorder
from linkgauge.tui.mesh.mesh_session import MeshSession
from linkgauge.tui.mesh.mesh_spec import MeshSpec
from linkgauge.tui.mesh.stored_mesh import load_matrix, measured_figures, save_mesh
from linkgauge.tui.session.run_spec import Judging

from ....json_schemas import check
from ...scripted_mesh import HOST_DOWN, PLAN, ScriptedMesh, all_events, cell_ended


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store in this test's directory."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give the hosts"),
        (["db-01"], "a mesh needs at least 2 hosts; you gave 1"),
        (["db-01", "db-01"], "give each host once"),
        (["db-01", "db-02", "--hosts", "file"], "not both"),
        (["--hosts", "/nonexistent"], "no such file"),
        (["--scheduler", "10.0.0.1:8786"], "tcp://ADDRESS:PORT"),
        (["db-01", "db-02", "--local", "3"], "its own hosts"),
        (["db-01", "db-02", "--racks", "2"], "give --local N as well"),
        (["--local", "1"], "give 2 to 64"),
        (["--scheduler", "tcp://10.0.0.1:8786", "--remote-python", "x"], "ssh reaches"),
        (["db-01", "db-02", "--mode", "some"], "rounds, isolated or all"),
        (["db-01", "db-02", "--workload", "crr"], "stream, udp or rr"),
        (["db-01", "db-02", "--port", "70000"], "1 to 65535"),
        (["db-01", "db-02", "--seconds", "none"], "needs an end"),
        (["db-01", "db-02", "--max-loss", "some"], "--max-loss 'some' is invalid; give 0 to 100 percent"),
        (["db-01", "db-02", "--min-rate", "80"], "--min-rate '80' is invalid; give"),
        (["db-01", "db-02", "--min-rate", "1G", "--workload", "rr"], "leave it out, or --workload rr"),
        (["db-01", "db-02", "--max-rise", "5", "--workload", "udp"], "leave it out, or --workload udp"),
        (["--resume", "mesh", "--max-loss", "1"], "its own hosts and settings"),
        (["db-01", "db-02", "--preset", "nope"], "presets list"),
        (["db-01", "db-02", "--preset", "none", "--mtu", "1400"], "they need a preset"),
        (["--resume", "mesh", "--line-rate", "1G"], "its own hosts and settings"),
        (["db-01", "db-02", "--json", "--json-stream"], "exclude each other"),
        (["db-01", "db-02", "--report", "page.txt"], ".html"),
        (["--resume", "nothing"], "no mesh is saved"),
        (["--resume", "mesh", "--local", "3"], "its own hosts and settings"),
        (["--resume", "mesh", "--racks", "2"], "its own hosts and settings"),
        (["--resume", "mesh", "--slow", "host-2"], "its own hosts and settings"),
        (["--scheduler", "tcp://[::1]:1", "--emulated", "[]"], "linkgauge gives it to itself"),
        (["--resume", "mesh", "--seconds", "5"], "its own hosts and settings"),
    ],
)
def test_a_wrong_mesh_is_a_wrong_command_line(
    arguments: list[str], problem: str, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Told before anything runs."""
    assert run_command_line(["mesh", *arguments]) == 2
    assert problem in capsys.readouterr().err
    assert not data_dir.exists()


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That is no mistake of the command line."""
    monkeypatch.setattr(errors, "find_spec", lambda _name: None)
    assert run_command_line(["mesh", "db-01", "db-02"]) == 3
    assert "[mesh]" in capsys.readouterr().err


def test_other_commands_do_not_load_dask() -> None:
    """Its import takes a second."""
    code = (
        "import sys; from linkgauge.tui.cli.main import run_command_line as run; run(['mesh', '--help']); "
        "run(['mesh', 'a']); print([name for name in sys.modules if name in ('dask', 'distributed', 'textual')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout


class InterruptedAgain(ScriptedMesh):
    """A coordinator in whose first second measurement of a cell Ctrl-C is pressed."""

    async def measure_again(self, cells: Sequence[Cell]) -> AsyncIterator[MeshEvent]:
        """Play the first cell."""
        self.stopped = asyncio.Event()
        async for event in super().measure_again(cells):
            yield event
            if isinstance(event, CellEnded):
                os.kill(os.getpid(), signal.SIGINT)
                await self.stopped.wait()

    def stop(self) -> None:
        """Play nothing more."""
        super().stop()
        self.stopped.set()


class InterruptedMesh(ScriptedMesh):
    """A coordinator in whose third cell Ctrl-C is pressed."""

    async def __aiter__(self) -> AsyncIterator[MeshEvent]:
        """Play the events, and wait for the stop."""
        cells, self.stopped = 0, asyncio.Event()
        async for event in super().__aiter__():
            yield event
            cells += isinstance(event, CellEnded)
            if cells == 3 and not self.is_stopped:
                os.kill(os.getpid(), signal.SIGINT)
                await self.stopped.wait()

    def stop(self) -> None:
        """Play nothing more."""
        super().stop()
        self.stopped.set()


def script(monkeypatch: pytest.MonkeyPatch, mesh: ScriptedMesh) -> list[MeshSpec]:
    """Have a scripted coordinator measure. Return what it is asked to be."""
    asked: list[MeshSpec] = []

    @asynccontextmanager
    async def open_session(spec: MeshSpec, catalog: Catalog, log: RunLog | None) -> AsyncGenerator[MeshSession]:
        asked.append(spec)
        begun = MeshSpec(replace(PLAN, limits=spec.plan.limits), has_rechecks_left=True)
        done = measured_figures(load_matrix(log, begun).figures.values())
        session = MeshSession(mesh, begun, CellRecorder(begun.plan, Judging(catalog), log), earlier=done)
        yield session
        save_mesh(session.spec.with_failures(session.matrix.figures))

    monkeypatch.setattr(mesh_runner, "open_mesh_session", open_session)
    return asked


def complete_events() -> list[MeshEvent]:
    """Return the events of a mesh in which every cell is good."""
    good = (cell_ended(*event.cell) if isinstance(event, CellEnded) else event for event in all_events())
    return list(good)


def test_a_mesh_is_printed_as_a_map_with_its_rows_and_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slow cell makes the status 1; one without a result is named, and how to measure it."""
    asked = script(monkeypatch, ScriptedMesh(all_events(), dict.fromkeys(PLAN.cells, 15e9)))
    rows, page = tmp_path / "rows.csv", tmp_path / "page.html"
    arguments = ["--csv", str(rows), "--report", str(page), "--seed", "7", "--mode", "all", "-P", "2"]
    assert run_command_line(["mesh", "db-01", "db-02", "db-03", *arguments]) == 1
    out, errors = capsys.readouterr()
    plan = asked[0].plan
    assert [host.name for host in plan.hosts] == ["db-01", "db-02", "db-03"]
    assert (plan.seed, plan.mode.value, plan.preset) == (7, "all", "auto")
    assert plan.base.settings.sessions == 2
    text = out.replace("\u00a0", " ")
    assert "5 of 6 cells measured" in text
    assert "15.0▼" in text  # of the test alone
    assert "db-03 to db-02: not reached: db-03 refuses the connection" in text
    assert "round 2 of 3: 2 of 6 tests done" in errors
    assert f"linkgauge mesh --resume {PLAN.group}" in errors
    assert len(list(csv.reader(rows.read_text(encoding="utf-8").splitlines()))) == 7
    assert "15.0" in page.read_text(encoding="utf-8")


def test_a_cell_that_breaks_a_limit_is_named_everywhere_and_makes_the_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rate is as expected, and another cell has no result, which alone would make it 3."""
    page, hosts = tmp_path / "page.html", ["db-01", "db-02", "db-03"]
    asked = script(monkeypatch, ScriptedMesh(all_events(Cell("db-03", "db-02"))))
    assert (
        run_command_line(["mesh", *hosts, "--min-rate", "23.6G", "--max-rise", "5ms", "--report", str(page)]) == 1
    )
    assert asked[0].plan.base.responsiveness is not None
    out = " ".join(capsys.readouterr().out.split())
    words = "less than 23.6 Gb/s: db-01 to db-02, db-01 to db-03, db-02 to db-01 and 2 more: limit"
    assert words in out
    assert "23.5◆" in out
    assert ", 0 slow, 5 beyond a limit, 1 without a result" in out
    assert words in page.read_text(encoding="utf-8").replace("\u00a0", " ")
    script(monkeypatch, ScriptedMesh(all_events(Cell("db-03", "db-02"))))
    assert run_command_line(["mesh", *hosts, "--min-rate", "23.6G", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    check("mesh.schema.json", document)
    assert document["limits"]["min_rate_mbit_s"] == 23_600
    assert [cell["beyond"] for cell in document["cells"]] == [["min-rate"]] * 5 + [[]]
    assert document["findings"][-1]["limit"] == "min-rate"


def test_each_line_of_a_stream_and_the_document_are_as_their_schemas_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripts live on them. A mesh without a fault has the status 0."""
    script(monkeypatch, ScriptedMesh([*all_events()[:3], HOST_DOWN], dict.fromkeys(PLAN.cells, 15e9)))
    assert run_command_line(["mesh", "--scheduler", "tcp://10.0.0.1:8786", "--json-stream"]) == 3
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in lines:
        check("stream.schema.json", line)
    assert {line["type"] for line in lines} >= {"mesh_start", "mesh_round", "mesh_host_lost", "mesh_end"}
    script(monkeypatch, ScriptedMesh(complete_events(), dict.fromkeys(PLAN.cells, 15e9)))
    assert run_command_line(["mesh", "--scheduler", "tcp://10.0.0.1:8786", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    check("mesh.schema.json", document)
    assert (document["verdict"], document["is_complete"]) == ("pass", True)


def test_an_interrupted_mesh_resumes_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was measured stays, and is not measured again; a complete one is shown without its hosts."""
    script(monkeypatch, InterruptedMesh(complete_events()))
    assert run_command_line(["mesh", "db-01", "db-02", "db-03", "--json"]) == 130
    out, errors = capsys.readouterr()
    first = {cell["run_id"] for cell in json.loads(out)["cells"]}
    assert len(first) == 3
    assert f"--resume {PLAN.group}" in errors
    rest = complete_events()[9:]
    script(monkeypatch, ScriptedMesh([MeshBegan(PLAN, 3), *rest], dict.fromkeys(PLAN.cells, 15e9)))
    assert run_command_line(["mesh", "--resume", PLAN.group, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["is_complete"]
    assert first < {cell["run_id"] for cell in document["cells"]}
    asked = script(monkeypatch, ScriptedMesh([]))
    assert run_command_line(["mesh", "--resume", PLAN.group[:12], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == document["cells"]
    assert asked == []


def test_a_mesh_resumes_in_the_middle_of_its_second_measurements(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was measured again stays, what was not is measured; then the mesh is over."""
    events = [
        cell_ended(*event.cell, 15e9) if isinstance(event, CellEnded) and "db-03" in event.cell else event
        for event in complete_events()
    ]
    rates = dict.fromkeys(PLAN.cells, 23e9)
    first = InterruptedAgain(events, rates)
    script(monkeypatch, first)
    assert run_command_line(["mesh", "db-01", "db-02", "db-03", "--json"]) == 130
    out, errors = capsys.readouterr()
    document = json.loads(out)
    assert document["is_complete"]
    assert [cell["isolated_run_id"] is not None for cell in document["cells"]].count(True) == 1
    assert f"to measure the slow cells again, alone: linkgauge mesh --resume {PLAN.group}" in errors
    second = ScriptedMesh([MeshBegan(PLAN, 0)], rates)
    script(monkeypatch, second)
    assert run_command_line(["mesh", "--resume", PLAN.group, "--json"]) == 1
    out, errors = capsys.readouterr()
    assert "slow cells are measured again, alone" in errors
    assert second.asked
    assert first.asked[0] not in second.asked
    assert [cell["isolated_run_id"] is not None for cell in json.loads(out)["cells"]].count(True) > 1
    asked = script(monkeypatch, ScriptedMesh([]))
    assert run_command_line(["mesh", "--resume", PLAN.group, "--json"]) == 1
    assert asked == []


def test_a_mesh_is_not_resumed_without_its_run_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everything would be measured again."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    save_mesh(MeshSpec(PLAN))
    (tmp_path / "runs.sqlite3").write_bytes(b"no run log" * 100)
    asked = script(monkeypatch, ScriptedMesh([]))
    assert run_command_line(["mesh", "--resume", PLAN.group]) == 3
    assert "it is not a run log" in capsys.readouterr().err
    assert asked == []


def test_a_mesh_that_another_process_measures_is_not_resumed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everything would be measured twice."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    save_mesh(MeshSpec(PLAN))
    with claimed(tmp_path / FOLDER, PLAN.group):
        assert run_command_line(["mesh", "--resume", PLAN.group, "--headless"]) == 2
    assert f"{PLAN.group} is being measured by another process" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--local", "1"), "--local 1 is invalid; give 2 to 64"),
        (("--local", "0"), "--local 0 is invalid"),
        (("--local", "4", "--racks", "0"), "racks 0 is invalid"),
        (("a", "b", "--csv", "no-such-folder/x.csv"), "its directory does not exist"),
        (("--resume", "mesh-x", "--remote-python", "/bin/python3"), "give no others with it"),
    ],
)
def test_what_a_mesh_cannot_do_is_said_before_it_begins(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the option that is meant."""
    assert run_command_line(["mesh", *arguments]) == 2
    assert words in capsys.readouterr().err
