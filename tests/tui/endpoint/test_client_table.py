"""The table of an endpoint's clients: columns for its width, and cells that follow the readings."""

import re
from dataclasses import replace
from itertools import product

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.endpoint.client_table import ClientTable
from linkgauge.tui.words.numbers import RateUnit

from .endpoint_examples import CLIENTS, WidgetApp


@pytest.mark.parametrize(("width", "columns"), [(80, 6), (120, 8), (200, 11)])
async def test_a_wider_table_has_more_columns(width: int, columns: int) -> None:
    """The rates are in each of them, and no line is wider than the screen."""
    app = WidgetApp(ClientTable())
    async with app.run_test(size=(width, 6)) as pilot:
        app.widget.show_clients(CLIENTS, RateUnit.MBIT)
        await pilot.pause()
        assert len(app.widget.columns) == columns
        head, client, visitor, *_ = app.lines()
        assert "receives" in head
        assert "941" in client
        assert "no test" in visitor
        assert not any("\x1b" in line for line in app.lines())


@pytest.mark.parametrize(("width", "columns"), [(80, 6), (120, 8), (130, 9), (200, 12)])
async def test_the_name_of_a_key_has_a_column_or_stands_behind_the_address(width: int, columns: int) -> None:
    """If any client has one; without names the table has no room to spare for them."""
    app = WidgetApp(ClientTable())
    async with app.run_test(size=(width, 6)) as pilot:
        app.widget.show_clients((replace(CLIENTS[0], key_name="alice"), CLIENTS[1]), RateUnit.MBIT)
        await pilot.pause()
        head, client, visitor, *_ = app.lines()
        assert len(app.widget.columns) == columns
        assert (" key " in head) == (width > 120)
        assert re.search(r"192\.0\.2\.7 +alice ", client)
        assert re.search(r"198\.51\.100\.4  ", visitor)


async def test_cells_follow_the_readings() -> None:
    """A new rate, another unit, and a client that has left."""
    app = WidgetApp(ClientTable())
    async with app.run_test(size=(100, 6)) as pilot:
        table = app.widget
        table.show_clients(CLIENTS, RateUnit.MBIT)
        table.show_clients((replace(CLIENTS[0], received_bit_s=500e6), CLIENTS[1]), RateUnit.MBIT)
        await pilot.pause()
        assert "500" in app.lines()[1]
        assert "941" not in app.lines()[1]
        table.show_clients(CLIENTS[1:], RateUnit.MIB)
        await pilot.pause()
        assert "198.51.100.4" in app.lines()[1]
        assert table.row_count == 1
        assert "MiB/s" in str(table.border_subtitle)


@pytest.mark.parametrize("width", [80, 120])
async def test_a_client_of_another_program_is_marked(width: int) -> None:
    """Also in a narrow table. The other end chose its name."""
    run = CLIENTS[0].run
    assert run is not None
    app = WidgetApp(ClientTable())
    async with app.run_test(size=(width, 6)) as pilot:
        for workload, direction in product((Workload.STREAM, Workload.UDP), Direction):
            its_run = replace(run, workload=workload, settings=replace(run.settings, direction=direction))
            client = replace(CLIENTS[0], hostname=None, software="iperf3 3.12\x1b[2J", run=its_run)
            app.widget.show_clients((client, CLIENTS[1]), RateUnit.MBIT)
            await pilot.pause()
            line = app.lines()[1]
            assert "iperf3" in line
            assert ("udp" in line) is workload.is_datagram
            assert ("3.12" in line) is (width > 100)
            assert "\x1b" not in line
