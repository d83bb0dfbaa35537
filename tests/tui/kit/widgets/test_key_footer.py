"""The footer: whole entries only, the most important first, and a click that presses."""

from typing import Any

import pytest
from linkgauge.tui.kit.actions import ScreenKind, actions_of
from linkgauge.tui.kit.widgets.key_footer import KeyFooter

from ...gauges.instrument_bench import Bench, lines_of

_MAIN = {ScreenKind.COCKPIT, ScreenKind.HISTORY}
SCREENS = [pytest.param(each, marks=[] if each in _MAIN else pytest.mark.every) for each in ScreenKind]


async def footer_text(screen: ScreenKind, width: int) -> str:
    """Return the footer of a kind of screen in a terminal of a width."""
    app = Bench(KeyFooter(screen, actions_of(screen)))
    async with app.run_test(size=(width, 3)) as pilot:
        await pilot.pause()
        return lines_of(app)[0]


@pytest.mark.parametrize("screen", SCREENS)
async def test_a_wider_footer_has_more_keys_and_none_is_cut(screen: ScreenKind) -> None:
    """Every entry of a narrow footer is in a wider one; help and the way out are in each."""
    whole = {entry for entry in (await footer_text(screen, 400)).split("  ") if entry}
    before: set[str] = set()
    for width in (40, 60, 80, 120, 200):
        text = await footer_text(screen, width)
        entries = {entry for entry in text.split("  ") if entry}
        assert len(text) <= width
        assert entries <= whole
        assert len(before) <= len(entries)
        assert "? help" in entries
        assert any(entry.startswith(("q ", "esc ")) for entry in entries)
        before = entries


async def test_keys_of_one_label_share_an_entry() -> None:
    """There is one word for more and fewer sessions."""
    text = await footer_text(ScreenKind.COCKPIT, 400)
    assert "+- sessions" in text
    assert "[] window" in text


@pytest.mark.parametrize("screen", SCREENS)
async def test_what_a_screen_has_no_room_for_gives_way_to_the_other_keys(screen: ScreenKind) -> None:
    """In each width such an entry is there only if every entry of the footer is."""
    wanted = {each.label for each in actions_of(screen) if each.in_footer and screen not in each.footer_hidden_on}
    hidden = {each.label for each in actions_of(screen) if screen in each.footer_hidden_on} - wanted
    for width in (60, 80, 100, 120, 160):
        shown = {entry.split(" ", 1)[1] for entry in (await footer_text(screen, width)).split("  ") if " " in entry}
        assert not shown & hidden or wanted <= shown


async def test_a_click_presses_the_key_below_it(world: Any) -> None:
    """The entry under the mouse, not its neighbour."""
    async with world.cockpit((120, 40)) as cockpit:
        footer = cockpit.app.cockpit.query_one(KeyFooter)
        await cockpit.pilot.click(footer, offset=(cockpit.line(39).index("help"), 0))
        await cockpit.settle()
        assert type(cockpit.app.screen).__name__ == "HelpScreen"
