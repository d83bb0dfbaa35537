"""The preset option and the user's settings: ids, auto, link options, the pass mark, files that cannot be read."""

from pathlib import Path

import pytest
from linkgauge.engine.model.errors import PlanError, UnknownPreset
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.wire import DEFAULT_VARIANT, Variant
from linkgauge.tui.cli.preset_option import (
    check_link_options,
    find_preset,
    load_catalog_with_warnings,
    read_pass_mark,
)
from linkgauge.tui.session.preferences import Preferences, save_preferences
from linkgauge.tui.words.numbers import RateUnit

CATALOG = load_catalog()
SET = Preferences("monochrome", RateUnit.MIB, 2.5, 90.0)


def test_auto_is_the_whole_catalog_and_an_id_one_preset() -> None:
    """Without either there is nothing to hold a run against."""
    preset = CATALOG.find("gbe-fd-1500")
    assert find_preset("gbe-fd-1500", CATALOG) == preset
    assert find_preset("auto", CATALOG) is CATALOG
    assert find_preset(None, CATALOG) is None
    with pytest.raises(UnknownPreset):
        find_preset("nonsense", CATALOG)


def test_link_options_without_a_preset_or_against_its_framing_are_refused() -> None:
    """Before anything is opened."""
    check_link_options(None, DEFAULT_VARIANT)
    check_link_options(CATALOG, Variant(vlan_tags=1))
    with pytest.raises(PlanError, match="--preset auto"):
        check_link_options(None, Variant(vlan_tags=1))
    with pytest.raises(PlanError, match="VLAN"):
        check_link_options(CATALOG.find("atm155-9180"), Variant(vlan_tags=1))


def test_a_check_uses_the_saved_pass_mark_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So the app and a script say the same of a link; the usual mark is no news."""
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path))
    assert (read_pass_mark(), capsys.readouterr().err) == (95.0, "")
    save_preferences(tmp_path, SET)
    assert read_pass_mark() == 90.0
    assert "pass mark 90 % from" in capsys.readouterr().err


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
