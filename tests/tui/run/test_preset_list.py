"""The list of presets: families, search texts, and rows that fit."""

from typing import Any

import pytest
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.run.preset_list import PresetList, by_family
from rich.cells import cell_len

from ..app_driver import BOTH_SIZES


def test_presets_of_a_family_are_grouped_across_documents() -> None:
    """ATM is in two documents."""
    families = by_family(load_catalog().presets)
    assert [preset.id for preset in families["ATM"]][3:6] == [
        "atm622-9180",
        "hp-atm155-clip-9180",
        "hp-atm155-lane-9218",
    ]
    assert sum(map(len, families.values())) == len(load_catalog().presets)


@BOTH_SIZES
async def test_no_line_of_the_list_wraps(world: Any, size: tuple[int, int]) -> None:
    """Each preset takes one row, and its rate is whole; also after the window has changed its size."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("n")
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
    """With and without largesend, even where the list has no room for the names."""
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


@pytest.mark.parametrize("size", [(40, 20), (80, 24), (120, 40)], ids=["40x20", "80x24", "120x40"])
@pytest.mark.parametrize("text", ["", "100mb", "lpar"])
async def test_the_decimal_points_of_rates_are_in_one_column(world: Any, size: tuple[int, int], text: str) -> None:
    """Rates have two decimals, one or none; the digits of the units stand below each other."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("n", *text)
        table = cockpit.app.screen.query_one(PresetList)
        width = table.scrollable_content_region.width
        columns: set[int] = set()
        for number, row in enumerate(table.rows):
            if not row.rate:
                continue
            line = table.draw(number, width).plain
            assert cell_len(line) <= width
            assert row.rate in line
            columns.add(cell_len(line[: line.rindex(row.rate)]) + len(row.rate.partition(".")[0]))
        assert len(columns) == 1
