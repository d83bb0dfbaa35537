"""The directories of data and configuration."""

from pathlib import Path

import pytest
from linkgauge.tui.services.config import config_dir, data_dir, presets_dir


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
    """An empty variable is no directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("LINKGAUGE_DATA_DIR", "LINKGAUGE_CONFIG_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    if value is not None:
        monkeypatch.setenv("LINKGAUGE_DATA_DIR", value)
    assert data_dir().name == config_dir().name == "linkgauge"
    assert data_dir().is_relative_to(tmp_path)
