"""The table of connections: columns that give way, and only rows in view."""

import pytest
from linkgauge.tui.app.app import ObserveApp
from linkgauge.tui.observe import connection_table
from linkgauge.tui.observe.connection_table import ConnectionTable

from ..app_driver import screen_text, until
from .example_observations import Source, connection, examples, observation

pytestmark = pytest.mark.usefixtures("world")


def titles(width: int) -> list[str]:
    """Return the titles of a table of a width, without the arrow of its order."""
    table = ConnectionTable()
    table._rows = [connection(1, 8e6)]
    return table.draw_header(width).plain.replace("▼", " ").split()


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (37, "Mb/s why"),
        (57, "Mb/s process why"),
        (77, "Mb/s process peer RTT why"),
        (117, "Mb/s process peer RTT min RTT cwnd in flight retx why"),
        (197, "Mb/s process user local peer % exp RTT min RTT cwnd in flight retx why"),
    ],
)
def test_the_least_important_columns_give_way(width: int, expected: str) -> None:
    """The rate and the reason are there at every width."""
    assert titles(width) == expected.split()


def test_every_row_fits_its_width_and_numbers_are_whole() -> None:
    """Long names lose their middle."""
    table = ConnectionTable()
    table._rows = [*examples(), connection(7, 27_690e6)]
    for width in range(32, 220, 7):
        for number in range(len(table._rows)):
            assert table.draw(number, width).cell_length <= width
    assert "27 690" in table.draw(6, 77).plain.replace("\u00a0", " ")


async def test_only_rows_in_view_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand connections cost no more lines than a screen has."""
    drawn: list[int] = []
    draw = ConnectionTable.draw

    def counted(self: ConnectionTable, number: int, width: int) -> object:
        drawn.append(number)
        return draw(self, number, width)

    monkeypatch.setattr(connection_table.ConnectionTable, "draw", counted)
    source = Source()
    source.put(observation([connection(number, 1e9 - number) for number in range(10_000)]))
    app = ObserveApp(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "10 000 shown" in screen_text(pilot.app))
        assert {*drawn} <= {*range(40)}
        await pilot.press("end")
        await until(pilot, lambda: 9_999 in drawn)
        assert len({*drawn}) <= 80
