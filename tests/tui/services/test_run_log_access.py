"""The run log of this machine: opened for a run, opened for reading, and searched."""

from pathlib import Path

import pytest
from linkgauge.engine.model.errors import UsageError
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.services.run_log_access import find_run, open_run_list, open_run_log


def test_a_log_that_cannot_be_opened_is_reported_and_the_run_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file stands where the data directory should be."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path / "file"))
    messages: list[str] = []
    assert open_run_log(messages.append) is None
    assert "not kept" in messages[0]
    assert str(tmp_path / "file") in messages[0]


def test_reading_creates_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that only reads leaves no trace."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path / "data"))
    with open_run_list() as log:
        assert log.list_runs() == []
    assert not (tmp_path / "data").exists()


def test_a_run_is_found_by_the_beginning_of_its_id_and_a_wrong_id_is_a_usage_error(tmp_path: Path) -> None:
    """The error is the person's to mend, and so of another kind than that of a damaged log."""
    with RunLog.open(tmp_path) as log:
        log.begin("20261121-014629-7f3a", "", "loopback")
        assert find_run(log, "20261121").run_id == "20261121-014629-7f3a"
        with pytest.raises(UsageError):
            find_run(log, "nope")
