"""Presets and settings of a person, as the commands read them."""

from pathlib import Path

import pytest
from linkgauge.tui.cli.user_settings import load_catalog_with_warnings, read_pass_mark
from linkgauge.tui.services.preferences import (
    Preferences,
    save_preferences,
)
from linkgauge.tui.text.numbers import RateUnit

SET = Preferences("monochrome", RateUnit.MIB, 2.5, 90.0)


def test_a_check_uses_the_saved_pass_mark_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So the app and a script say the same of a link; the usual mark is no news."""
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path))
    assert (read_pass_mark(), capsys.readouterr().err) == (95.0, "")
    save_preferences(tmp_path, SET)
    assert read_pass_mark() == 90.0
    assert "the pass mark is 90 %, as kept in" in capsys.readouterr().err


def test_a_file_of_presets_that_cannot_be_read_is_reported_and_keeps_no_other_from_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, one line for each problem."""
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets" / "mine.toml").write_text("[[preset")
    assert load_catalog_with_warnings().find("gbe-fd-1500")
    written = capsys.readouterr()
    assert written.out == ""
    assert "mine.toml" in written.err
