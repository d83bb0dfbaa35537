"""The sweep command: what it refuses, the figures of documents, and a sweep that is cut off and resumed."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from linkgauge.engine.results.sweep import Sweep
from linkgauge.tui.cli.main import run_command_line
from linkgauge.tui.session.run_spec import RunSpec
from linkgauge.tui.sweep.sweep_words import CSV_COLUMNS

K = 1024
DEADLINE_S = 50.0


def test_a_wrong_sweep_is_a_wrong_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Told before anything runs."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    for arguments, problem in (
        ([], "PEER"),
        (["loopback", "--window", "4M..1K"], "doubles"),
        (["loopback", "--figure", "aix-9"], "hp-1"),
        (["--resume", "nothing"], "no sweep is saved"),
        (["loopback", "--resume", "x", "--window", "16K"], "its own settings"),
        (["loopback", "--preset", "nope"], "presets list"),
        (["loopback", "--ipv6"], "need a preset"),
        (["loopback", "--preset", "lpar-1500", "--ipv6"], "does not come from a line rate"),
    ):
        assert run_command_line(["sweep", *arguments]) == 2
        assert problem in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_figure_of_a_document_is_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its windows, message sizes and preset, from the catalogue."""
    from linkgauge.tui.cli.runners import sweep_runner as sweep_run

    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    asked: list[tuple[Sweep, RunSpec]] = []
    monkeypatch.setattr(sweep_run, "run_sweep", lambda sweep, spec: asked.append((sweep, spec)) or 0)
    assert run_command_line(["sweep", "db-02", "--figure", "hp-1", "--seconds", "2"]) == 0
    ((sweep, spec),) = asked
    assert spec.judging.preset_id == "hp-atm155-clip-9180"
    assert sweep.windows == (32 * K, 56 * K)
    assert sweep.messages[-1] == 10_240
    assert len(sweep.points) == 24


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Give the environment of a command that keeps its runs in this test's directory."""
    return {**os.environ, "LINKGAUGE_DATA_DIR": str(tmp_path / "data")}


@pytest.mark.every
@pytest.mark.timeout(120)
def test_an_interrupted_sweep_resumes_where_it_stopped(tmp_path: Path, environment: dict[str, str]) -> None:
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
    assert process.returncode == 130, errors
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


@pytest.mark.parametrize(("option", "name"), [("--csv", "rows.csv"), ("--report", "page.html")])
def test_a_sweep_replaces_a_file_only_with_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, name: str
) -> None:
    """The file of a person is left alone, and nothing is measured; with --force the next check is reached."""
    path = tmp_path / name
    path.write_text("precious")
    assert run_command_line(["sweep", "loopback", option, str(path)]) == 2
    assert f"{option} {path}: it exists already; give another file, or --force" in capsys.readouterr().err
    assert run_command_line(["sweep", option, str(path), "-f"]) == 2
    assert "PEER is missing" in capsys.readouterr().err
    assert path.read_text() == "precious"
