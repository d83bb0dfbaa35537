"""The table of watched peers: the columns that have room, and the text of a row."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.tui.kit.screens.feature_app import StoredServices
from linkgauge.tui.watch.peer_table import _columns
from linkgauge.tui.watch.watch_screen import WatchScreen

from ..app_driver import screen_text
from ..example_watch import NOW_S, ScriptedWatch


def titles(width: int, longest: int = 5) -> list[str]:
    """Return the titles of the columns at a width, for names up to a length."""
    return [column.title for column, _ in _columns(width, longest)]


@given(width=st.integers(36, 300), longest=st.integers(1, 80))
def test_the_columns_fit_and_a_wider_table_has_no_fewer(width: int, longest: int) -> None:
    """Names and the last day share the rest."""
    assert sum(room for _, room in _columns(width, longest)) <= width
    assert all(room > 0 for _, room in _columns(width, longest))
    assert set(titles(width, longest)) <= set(titles(width + 1, longest)) or width + 1 == 110


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (30, ["% exp", "Mb/s", "latency", "last 24 h", "next test", "this month"]),
        (40, ["% exp", "latency", "last 24 h", "next test", "this month"]),
        (55, ["% exp", "latency", "last 24 h", "this month"]),
        (60, ["latency", "last 24 h", "this month"]),
        (70, ["last 24 h", "this month"]),
        (80, ["this month"]),
        (100, []),
    ],
)
def test_columns_give_way_in_the_order_of_their_turns(width: int, left_out: list[str]) -> None:
    """The name and the last test stay."""
    assert [title for title in titles(300) if title not in titles(width)] == left_out


async def test_rows_can_be_read_without_colours_and_long_names_told_apart(world: Any) -> None:
    """Each verdict has a mark and a word; a name loses the part that all names share."""
    app = world.app()
    services = StoredServices(catalog=world.catalog, export=world.export)
    watch = ScriptedWatch(4, long_names=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await app.push_screen(WatchScreen(watch, services, clock=lambda: NOW_S))
        await world.still(pilot)
        text = screen_text(app)
    assert all(f"db-0{number}" in text for number in range(1, 5))
    assert all(words in text for words in ("✓ PASS", "▼ SHORT", "! no result", "! lost"))
