"""The directories of data and configuration."""

from pathlib import Path

import pytest
from linkgauge.engine.model.errors import UsageError
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.session.storage import config_dir, data_dir, find_run, open_run_list, open_run_log, presets_dir


def test_an_environment_variable_names_the_directory_and_nothing_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that only reads leaves no trace."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path / "config"))
    assert data_dir() == tmp_path / "data"
    assert config_dir() == tmp_path / "config"
    assert presets_dir() == tmp_path / "config" / "presets"
    assert list(tmp_path.iterdir()) == []


def test_a_tilde_and_a_relative_path_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report is made by another process, which may have another working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", "~/runs")
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", "settings")
    assert data_dir() == tmp_path / "home" / "runs"
    assert config_dir() == tmp_path / "settings"


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_variable_the_directories_are_those_of_the_user(
    value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty variable does not name a directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("LINKGAUGE_DATA_DIR", "LINKGAUGE_CONFIG_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    if value is not None:
        monkeypatch.setenv("LINKGAUGE_DATA_DIR", value)
    assert data_dir().name == config_dir().name == "linkgauge"
    assert data_dir().is_relative_to(tmp_path)


def test_a_log_that_cannot_be_opened_is_reported_and_the_run_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file has the name of the data directory."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path / "file"))
    messages: list[str] = []
    assert open_run_log(messages.append) is None
    assert "not saved" in messages[0]
    assert str(tmp_path / "file") in messages[0]


def test_reading_creates_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that only reads leaves no trace."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path / "data"))
    with open_run_list() as log:
        assert log.list_runs() == []
    assert not (tmp_path / "data").exists()


def test_a_run_is_found_by_the_beginning_of_its_id_and_a_wrong_id_is_a_usage_error(tmp_path: Path) -> None:
    """The user can mend it, so it is another kind of error than a damaged log."""
    with RunLog.open(tmp_path) as log:
        log.begin("20261121-014629-7f3a", "", "loopback")
        assert find_run(log, "20261121").run_id == "20261121-014629-7f3a"
        with pytest.raises(UsageError):
            find_run(log, "nope")


def test_the_usual_directory_becomes_its_owners_alone_and_a_named_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable may name a directory that others work in."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for value, mode in ((str(tmp_path / "named"), 0o755), ("", 0o700)):
        monkeypatch.setenv("LINKGAUGE_DATA_DIR", value)
        data_dir().mkdir(parents=True)
        data_dir().chmod(0o755)
        log = open_run_log(pytest.fail)
        assert log is not None
        log.close()
        assert data_dir().stat().st_mode & 0o777 == mode
