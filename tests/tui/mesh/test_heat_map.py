"""The heat map: its cells, its cursor, and the part in view."""

import pytest
from linkgauge.mesh.plan import Cell
from linkgauge.tui.mesh.heat_map import HeatMap, percent_text
from linkgauge.tui.mesh.map_layout import Density
from linkgauge.tui.mesh.mesh_state import MeshState
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from ..example_mesh import matrix


class MapApp(App[None]):
    """A map alone on a screen."""

    def __init__(self) -> None:
        super().__init__()
        self.moves: list[Cell] = []
        self.selected: list[Cell] = []

    def compose(self) -> ComposeResult:
        """Show the map."""
        yield HeatMap()

    def on_heat_map_moved(self, message: HeatMap.Moved) -> None:
        """Note where the cursor goes."""
        self.moves.append(message.cell)

    def on_heat_map_selected(self, message: HeatMap.Selected) -> None:
        """Note which cell is opened."""
        self.selected.append(message.cell)


def state_of(count: int) -> MeshState:
    """Return the state of a complete mesh."""
    state = MeshState(lambda: 0)
    state.load(matrix(count), ())
    return state


async def shown(pilot: Pilot[None], count: int) -> HeatMap:
    """Show a mesh of `count` hosts."""
    heat_map = pilot.app.query_one(HeatMap)
    heat_map.styles.margin = 0
    heat_map.show_mesh(state_of(count).map())
    heat_map.focus()
    await pilot.pause()
    return heat_map


def lines(heat_map: HeatMap) -> list[str]:
    """Return the lines of the map as they are on the screen, with plain spaces."""
    return [heat_map.render_line(y).text.replace("\u00a0", " ").rstrip() for y in range(heat_map.size.height)]


async def test_cells_have_percents_and_marks_for_what_is_slow_or_has_no_result() -> None:
    """Rows send, columns receive."""
    async with MapApp().run_test(size=(78, 14)) as pilot:
        heat_map = await shown(pilot, 12)
        assert heat_map.density is Density.VALUES
        head, first, second, _, fourth = lines(heat_map)[:5]
        assert head.split() == ["from\\to", *(f"{number:02}" for number in range(1, 13))]
        assert first.split()[:5] == ["db-01", "╲", "98", "▼", "58"]
        assert second.split()[:4] == ["db-02", "✗", "31", "╲"]
        assert fourth.split()[:3] == ["db-04", "!", "98"]


async def test_large_cells_have_the_rate_below_the_percents() -> None:
    """In the unit that the legend names."""
    async with MapApp().run_test(size=(118, 26)) as pilot:
        heat_map = await shown(pilot, 4)
        text = "\n".join(lines(heat_map))
        assert heat_map.density is Density.RATES
        assert "31 %" in text
        assert "291.9" in text


async def test_the_cursor_stays_on_the_map_and_in_view() -> None:
    """At the edges it stops; each move is posted."""
    app = MapApp()
    async with app.run_test(size=(60, 12)) as pilot:
        heat_map = await shown(pilot, 64)
        assert heat_map.density is Density.MARKS
        for keys in (["up"], ["end"], ["pagedown"] * 9, ["right", "down"], ["home"], ["ctrl+end"]):
            await pilot.press(*keys)
            await pilot.pause()
            assert heat_map.cell is not None
            row = int(heat_map.cell.sender[3:])
            assert any(line.split()[:1] == [str(row)] for line in lines(heat_map)[1:])
            column = int(heat_map.cell.receiver[3:])
            assert str(column) in lines(heat_map)[0].split()
        assert app.moves[-1] == ("db-64", "db-64")
        await pilot.press("ctrl+home")
        assert heat_map.cell == ("db-01", "db-01")


async def test_the_cursor_stays_on_its_hosts_in_another_order() -> None:
    """The map is ordered when a mesh is complete."""
    async with MapApp().run_test(size=(78, 14)) as pilot:
        heat_map = await shown(pilot, 4)
        heat_map.move_to(Cell("db-02", "db-01"))
        state = state_of(4)
        state.order = ("db-03", "db-02", "db-04", "db-01")
        heat_map.show_mesh(state.map())
        assert heat_map.cell == ("db-02", "db-01")
        assert lines(heat_map)[0].split() == ["from\\to", "db-03", "db-02", "db-04", "db-01"]


async def test_a_click_moves_the_cursor_and_one_on_the_cursor_selects() -> None:
    """The heads of rows and columns have no cells."""
    app = MapApp()
    async with app.run_test(size=(78, 14)) as pilot:
        await shown(pilot, 12)
        for offset in ((1, 1), (20, 0), (10, 2), (10, 2)):
            await pilot.click(HeatMap, offset=offset)
        assert app.moves == [("db-02", "db-01")]
        assert app.selected == [("db-02", "db-01")]


@pytest.mark.parametrize("density", Density)
async def test_each_density_draws_every_line_in_the_width(density: Density) -> None:
    """Also beyond the last row, and before there are hosts."""
    async with MapApp().run_test(size=(50, 12)) as pilot:
        heat_map = pilot.app.query_one(HeatMap)
        assert {heat_map.render_line(y).cell_length for y in range(12)} == {50}
        await shown(pilot, 7)
        heat_map.set_density(density)
        await pilot.press("ctrl+end")
        await pilot.pause()
        width = heat_map.scrollable_content_region.width
        assert {heat_map.render_line(y).cell_length for y in range(12)} == {width}


def test_percents_short_of_the_pass_mark_do_not_read_as_it() -> None:
    """94.96 is not shown as 95. A value far above has three digits."""
    assert percent_text(94.96, 95) == "94"
    assert percent_text(95.0, 95) == "95"
    assert percent_text(99.6, 95) == "100"
    assert percent_text(12_345, 95) == "999"
