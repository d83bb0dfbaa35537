"""`linkgauge ceiling`: measured once, told again, measured anew on demand."""

import json
from pathlib import Path

import pytest
from linkgauge.engine.model.plan import Mode
from linkgauge.engine.near.ceiling import load_ceiling
from linkgauge.tui.cli.main import run_command_line


@pytest.mark.every
@pytest.mark.timeout(120)
def test_the_ceiling_is_measured_once_and_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Really, over loopback; the second time it is read."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    assert run_command_line(["ceiling", "--seconds", "0.5", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert {rate["mode"] for rate in first["rates"]} == {mode for mode in Mode if not mode.is_for_datagrams}
    assert {rate["sessions"] for rate in first["rates"]} >= {1}
    assert all(rate["mbit_s"] > 0 for rate in first["rates"])
    stored_ceiling = load_ceiling(tmp_path)
    assert stored_ceiling is not None
    assert run_command_line(["ceiling"]) == 0
    output = capsys.readouterr()
    assert "--again" in output.err
    assert "sendfile" in output.out
    assert load_ceiling(tmp_path) == stored_ceiling
