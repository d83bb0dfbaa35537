"""The list of presets in the app: families, filter, details, and problems of the user's own presets."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.auto_select import PresetSelection
from linkgauge.presets.catalog import listed_presets, load_catalog
from linkgauge.tui.kit.widgets.scroll_views import TextPage
from linkgauge.tui.run.cockpit_screen import CockpitScreen
from linkgauge.tui.run.preset_picker import PresetList, PresetPicker, preset_sections
from rich.cells import cell_len
from textual import events
from textual.widgets import Input

from ..app_driver import BOTH_SIZES
from ..stored_runs import until

BAD = """
[source]
id = "own"
title = "the office"

[[preset]]
id = "office"
name = "The office"
family = "Own"

[preset.link]
framing = "ether"
"""


def headings(cockpit: Any) -> list[str]:
    """Return the headings of the list, top down."""
    return [row.text for row in cockpit.app.screen.query_one(PresetList).rows if not row.id]


def ids(cockpit: Any) -> list[str]:
    """Return the ids in the list, top down."""
    return [row.id for row in cockpit.app.screen.query_one(PresetList).rows if row.id]


async def test_each_family_has_one_heading(world: Any) -> None:
    """Every preset is below one of them."""
    async with world.cockpit() as cockpit:
        await cockpit.press("n")
        assert headings(cockpit) == ["Automatic", *listed_presets(world.catalog.presets)]
        assert ids(cockpit)[0] == "auto"
        assert sorted(ids(cockpit)[1:]) == sorted(preset.id for preset in world.catalog.presets)


async def test_the_list_has_the_rates_of_the_chosen_workload(world: Any) -> None:
    """Datagrams are compared with the link's rate, not with the rate at which they are sent."""
    plan = Plan(Settings(rate_bit_s=5_000_000), Workload.UDP)
    async with world.cockpit((120, 40), preset="gbe-fd-1500", plan=plan) as cockpit:
        await cockpit.press("n")
        rates = {row.id: row.rate for row in cockpit.app.screen.query_one(PresetList).rows if row.id}
        assert rates["gbe-fd-1500"] == "957.1"
        assert rates["loopback"] == "–"
        assert "rates for udp, out, datagram size auto" in cockpit.text()


@pytest.mark.every
async def test_the_filter_hides_headings_without_presets(world: Any) -> None:
    """Every word must match id, name, family or document; the number of matches is shown."""
    async with world.cockpit() as cockpit:
        await cockpit.press("n", *"hp 9180")
        assert headings(cockpit) == ["ATM: HP ATM adapter performance report"]
        assert ids(cockpit) == ["hp-atm155-clip-9180", "hp-atm622-clip-9180"]
        assert f"2 of {len(world.catalog.presets)} presets" in cockpit.text()
        await cockpit.press(*["backspace"] * 4, "enter")
        assert cockpit.app.cockpit.preset.source.id == "hp"


async def test_auto_selects_the_preset_by_both_interfaces(world: Any) -> None:
    """Its name finds it, and it replaces a preset that the user has chosen."""
    world.selection = PresetSelection(world.catalog.find("100gbe-9000"), "both ends have 100 Gb/s")
    async with world.cockpit((120, 40), peer=Peer("db-02")) as cockpit:
        await cockpit.press("n", *"auto")
        assert ids(cockpit) == ["auto"]
        assert "The preset is chosen when" in " ".join(cockpit.text().split())
        await cockpit.press("enter")
        await cockpit.end()
        assert cockpit.app.cockpit.preset.id == "100gbe-9000"
        await cockpit.press("n")
        assert cockpit.app.screen.query_one(PresetList).selected_row.id == "auto"
        await cockpit.press("escape", "space", "n", *"auto", "enter")
        assert "Stop the test first" in cockpit.app.shown_message.message


@pytest.mark.parametrize(
    ("typed", "preset_id"),
    [
        pytest.param("auto", "auto", marks=pytest.mark.every),
        pytest.param("10g", "10gbe-fd-1500", marks=pytest.mark.every),
        ("gigabit", "gbe-fd-1500"),
        pytest.param("25gbe", "25gbe-1500", marks=pytest.mark.every),
    ],
)
async def test_the_filter_takes_names_as_users_type_them(world: Any, typed: str, preset_id: str) -> None:
    """The same search as on the command line. Home and end move in the typed words."""
    async with world.cockpit() as cockpit:
        await cockpit.press("n", *typed[1:], "home", typed[0], "end")
        field = cockpit.app.screen.query_one(Input)
        assert (field.value, field.cursor_position) == (typed, len(typed))
        assert preset_id in ids(cockpit)
        assert len(ids(cockpit)) < 20


@pytest.mark.every
async def test_details_are_next_to_the_list_on_a_wide_screen(world: Any) -> None:
    """The sheet that `presets show` prints, following the arrows."""
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("n")
        assert "10gbe-fd-1500" in cockpit.text()
        assert "expected rates" in cockpit.text()
        await cockpit.press("down")
        assert "10gbe-fd-9000" in cockpit.text()
        assert "10gbe-fd-1500" not in cockpit.text()


async def test_on_a_small_screen_a_key_puts_the_details_in_place_of_the_list(world: Any) -> None:
    """Arrows then scroll it. Typing, the same key and escape go back to the list."""
    async with world.cockpit((80, 24)) as cockpit:
        await cockpit.press("n")
        assert "expected rates" not in cockpit.text()
        assert "tab details" in cockpit.text()
        for back in ("tab", "escape", "x"):
            await cockpit.press("tab")
            assert "expected rates" in cockpit.text()
            assert "100 Mb Ethernet" not in cockpit.text()
            await cockpit.press(back)
            assert "expected rates" not in cockpit.text()
            assert isinstance(cockpit.app.screen, PresetPicker)
        assert cockpit.app.screen.query_one(Input).value == "x"


@pytest.mark.every
@BOTH_SIZES
async def test_the_whole_sheet_can_be_reached_by_keys(world: Any, size: tuple[int, int]) -> None:
    """From the link to the slips. Enter chooses from there as well."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("n", "down", "tab")
        seen = cockpit.text()
        pane = cockpit.app.screen.query_one(TextPage)
        while pane.scroll_offset.y < pane.max_scroll_y:
            before = pane.scroll_offset.y
            await cockpit.press("pagedown")
            await cockpit.pilot.wait_for_scheduled_animations()
            assert pane.scroll_offset.y > before
            seen += cockpit.text()
        for words in (
            "line rate",
            "9 900.4 Mb/s",
            "AIX table 2, as printed",
            "▲ payload_mbit_s",
            "(error)",
            "errors in",
        ):
            assert words in seen
        await cockpit.press("home")
        assert pane.scroll_offset.y == 0
        await cockpit.press("end")
        assert pane.scroll_offset.y == pane.max_scroll_y
        await cockpit.press("enter")
        assert cockpit.app.cockpit.preset.id == "10gbe-fd-9000"


@pytest.mark.every
@BOTH_SIZES
async def test_problems_of_own_presets_are_notified_and_can_be_read_in_full(
    world: Any, tmp_path: Path, size: tuple[int, int]
) -> None:
    """In a notification, in a line above the list, and at its end: file, key, expected value."""
    (tmp_path / "bad.toml").write_text(BAD)
    (tmp_path / "torn.toml").write_text("[source")
    world.catalog = load_catalog([tmp_path])
    async with world.cockpit(size, app=world.app()) as cockpit:
        notification = cockpit.app.shown_message
        assert f"{tmp_path / 'bad.toml'}: office.link.framing" in notification.message
        assert "1 more" in notification.message
        await cockpit.press("n")
        assert "▲ 2 problems in your own presets" in cockpit.text()
        assert cockpit.app.shown_message is None
        await cockpit.press(*"framing")
        assert headings(cockpit) == ["not usable"]
        await cockpit.press("enter")
        assert isinstance(cockpit.app.screen, PresetPicker)
        for words in ("office.link.framing", "expected one of ethernet", "'ether'"):
            assert words in cockpit.text()


async def test_without_problems_there_is_no_notice_of_any(world: Any) -> None:
    """No notification, and no line in the list."""
    async with world.cockpit((120, 40)) as cockpit:
        assert cockpit.app.shown_message is None
        await cockpit.press("n")
        assert "problem" not in cockpit.text()
        assert "not usable" not in headings(cockpit)


@pytest.mark.every
async def test_the_preset_keys_open_a_list_with_a_filter(world: Any) -> None:
    """Type, go down with the arrow, choose with enter."""
    async with world.cockpit() as cockpit:
        for key in ("n", "f", "slash"):
            await cockpit.press("escape", key)
            assert isinstance(cockpit.app.screen, PresetPicker)
        await cockpit.press(*"atm 622")
        assert "ATM 155" not in cockpit.text()
        await cockpit.press("down", "enter")
        assert isinstance(cockpit.app.screen, CockpitScreen)
        assert cockpit.app.cockpit.preset.id == "atm622-9180"
        assert "ATM 622, MTU 9180" in cockpit.line(1)


@pytest.mark.every
async def test_escape_leaves_the_list_and_the_preset_alone(world: Any) -> None:
    """Neither does enter with a filter that matches nothing."""
    async with world.cockpit() as cockpit:
        await cockpit.press("n", *"zzz", "enter")
        assert isinstance(cockpit.app.screen, PresetPicker)
        await cockpit.press("escape")
        assert cockpit.app.cockpit.preset.id == "10gbe-fd-1500"


async def test_a_text_that_arrives_together_with_the_key_of_its_dialog_is_text(world: Any) -> None:
    """Its letters are also keys of the cockpit: for direction, workload and duration."""
    async with world.cockpit() as cockpit:
        settings = cockpit.app.screen.state.plan
        for opener in "nfc":
            for key in (opener, *"dwt"):
                cockpit.app.post_message(events.Key(key, key))
            await until(
                cockpit, lambda: [each.value[-3:] for each in cockpit.app.screen.query(Input)][:1] == ["dwt"]
            )
            assert cockpit.app.screen_stack[-2].state.plan == settings
            await cockpit.press("escape")


def test_the_preset_of_an_interface_of_this_host_is_marked(world: Any) -> None:
    """By its speed and MTU; an interface without a speed, or without carrier, marks none."""
    fast = NicInfo("eth0", "device", "ixgbe", 10_000_000_000, "full", 9_000)
    nics = (fast, replace(fast, name="wlan0", line_rate_bit_s=None))
    sections = preset_sections(world.catalog, Settings(), "en", nics=nics)
    marked = {row.id: row.text.partition("  ← ")[2] for _, rows in sections for row in rows if "←" in row.text}
    assert marked == {"10gbe-9000": "eth0"}


@pytest.mark.every
@BOTH_SIZES
async def test_no_line_of_the_list_wraps(world: Any, size: tuple[int, int]) -> None:
    """Each preset takes one row, and its rate is whole, also after a resize."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("n", *"10gb")
        for width in (size[0], 100, 160):
            await cockpit.pilot.resize_terminal(width, size[1])
            await cockpit.settle()
            row = next(
                line for line in cockpit.text().splitlines() if "10 Gb Ethernet, full duplex, MTU 9000" in line
            )
            assert "9 631" in row


@BOTH_SIZES
async def test_presets_that_differ_only_at_the_end_of_their_names_look_different(
    world: Any, size: tuple[int, int]
) -> None:
    """With and without largesend, even in a list that is too narrow for the names."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("n", *"lpar")
        for end in ("without largesend ", " with largesend "):
            assert end in cockpit.text()


@BOTH_SIZES
async def test_japanese_names_are_in_the_list_and_leave_the_rates_in_line(
    world: Any, size: tuple[int, int]
) -> None:
    """Each of their characters takes two cells."""
    app = world.app()
    app.cockpit._language = "ja"
    async with world.cockpit(size, app=app) as cockpit:
        await cockpit.press("n")
        rows = [line for line in cockpit.text().splitlines() if "イーサネット、" in line and "二重" in line]
        assert len(rows) >= 6
        assert {cell_len(line) for line in rows} == {size[0]}


@pytest.mark.every
@pytest.mark.parametrize("text", ["", "100mb"])
async def test_the_decimal_points_of_rates_are_in_one_column(world: Any, text: str) -> None:
    """Rates have two decimals, one or none. The digits of the units are below each other, at any width."""
    async with world.cockpit((40, 20)) as cockpit:
        await cockpit.press("n", *text)
        table = cockpit.app.screen.query_one(PresetList)
        for width in (table.scrollable_content_region.width, 72, 112):
            columns: set[int] = set()
            for number, row in enumerate(table.rows):
                if not row.rate:
                    continue
                line = table.draw(number, width).plain
                assert cell_len(line) <= width
                assert row.rate in line
                columns.add(cell_len(line[: line.rindex(row.rate)]) + len(row.rate.partition(".")[0]))
            assert len(columns) == 1
