"""Labels and notes from the command line, and the filters of the list."""

import json
from pathlib import Path

import pytest
from linkgauge.engine.model.events import Ended, Reason, RunEnd
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.cli.main import run_command_line

RUNS = (("20261121-014629-7f3a", "gbe-fd-1500", "db-02", "pass"), ("20261121-015000-k2m4", "", "loopback", "none"))


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep two runs without events, and have the command line find them."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    with RunLog.open(tmp_path) as log:
        for run_id, preset, peer, verdict in RUNS:
            log.begin(run_id, preset, peer, label=None)
            log.add(run_id, Ended(RunEnd(Reason.COMPLETED, "its duration is up")))
            log.finish(run_id, verdict, {"schema": 1})


def listed(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """Return the ids that the list has."""
    capsys.readouterr()
    assert run_command_line(["runs", "list", "--json", *options]) == 0
    return [row["run_id"] for row in json.loads(capsys.readouterr().out)]


def test_a_label_and_a_note_are_set_shown_and_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    """In the list, in what is shown again, and in the document."""
    run_id = RUNS[0][0]
    assert run_command_line(["runs", "label", run_id[:14] + "9", "before"]) == 0
    assert run_command_line(["runs", "note", run_id, "ticket 4711"]) == 0
    assert run_command_line(["runs", "list"]) == 0
    told = capsys.readouterr()
    assert f"run {run_id} has the label 'before'" in told.err
    assert "label" in told.out.splitlines()[0]
    assert told.out.splitlines()[2].rstrip().endswith("before")
    assert run_command_line(["runs", "show", run_id]) == 0
    assert "  note     ticket 4711\n" in capsys.readouterr().out
    assert run_command_line(["runs", "show", run_id, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["label"], document["note"], document["group"]) == ("before", "ticket 4711", None)
    assert run_command_line(["runs", "label", run_id, ""]) == 0
    assert "has no label" in capsys.readouterr().err


def test_the_list_is_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    """Each filter narrows it; what is left over is told to be nothing."""
    first, second = (run[0] for run in RUNS)
    assert listed(capsys) == [second, first]
    assert listed(capsys, "--preset", "gbe") == [first]
    assert listed(capsys, "--peer", "LOOP", "--verdict", "none") == [second]
    assert listed(capsys, "--verdict", "fail") == []
    assert run_command_line(["runs", "--label", "x"]) == 0
    assert "none of the 2 runs that are kept has all of that" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs", "label", "nonsense", "x"],
        ["runs", "label", RUNS[0][0], "x" * 81],
        ["runs", "list", "--verdict", "good"],
        ["check", "gbe-fd-1500", "loopback", "--label", "x" * 81],
    ],
)
def test_an_impossible_request_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, before anything is tested."""
    assert run_command_line(arguments) == 2
    assert "linkgauge:" in capsys.readouterr().err
