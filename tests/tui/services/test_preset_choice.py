"""The choice of the preset: by both ends' interfaces, or the default."""

import pytest
from linkgauge.engine.model.errors import UnknownPreset
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.services.preset_choice import detect_initial_preset, find_initial_preset

CATALOG = load_catalog()


def test_without_a_name_the_default_loop_is_used() -> None:
    """Loopback on loopback, the commonest link elsewhere."""
    assert find_initial_preset(CATALOG, None, LOOPBACK).preset.id == "loopback"
    assert find_initial_preset(CATALOG, None, Peer("db-02")).preset.id == "gbe-fd-1500"
    assert find_initial_preset(CATALOG, "10mb-fd", LOOPBACK).preset.id == "10mb-fd"
    with pytest.raises(UnknownPreset):
        find_initial_preset(CATALOG, "nonsense", LOOPBACK)


async def test_auto_on_loopback_is_loopback_and_says_why() -> None:
    """Nobody has to be asked."""
    notices: list[str] = []
    assert (await detect_initial_preset(CATALOG, LOOPBACK, notices)).preset.id == "loopback"
    assert notices[0].startswith("preset loopback: ")


async def test_auto_opens_the_app_also_where_nobody_answers() -> None:
    """With the usual preset, and what was in the way of a better one."""
    notices: list[str] = []
    picked = await detect_initial_preset(CATALOG, Peer("127.0.0.1", 1), notices)
    assert picked.preset.id == "gbe-fd-1500"
    assert "no preset could be picked" in notices[0]
