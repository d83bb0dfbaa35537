"""The first lines of the endpoint's screen: its state is whole at each width."""

import pytest
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.tui.state.endpoint import EndpointInfo, EndpointSnapshot, Totals
from linkgauge.tui.widgets.endpoint.endpoint_header import EndpointHeader

from ..instrument_bench import Bench, lines_of

INFO = EndpointInfo("db-\x1b[2J02", "port 5820, every address", "asks for its key", "linkgauge check auto db-02")
BUSY = EndpointSnapshot(INFO, 65 * SECOND_NS, totals=Totals(clients=3, refused=2, runs=7, bytes=2**30))


async def header_lines(snapshot: EndpointSnapshot, width: int) -> list[str]:
    """Return the lines of a header in a terminal of a width."""
    app = Bench(EndpointHeader())
    async with app.run_test(size=(width, 4)) as pilot:
        app.instrument.show(snapshot)
        await pilot.pause()
        return lines_of(app)


@pytest.mark.parametrize("width", [60, 80, 140])
async def test_the_right_side_is_whole_at_each_width(width: int) -> None:
    """The left side is cut, and cannot drive the terminal."""
    first, second = await header_lines(BUSY, width)
    assert first.endswith("● SERVING 01:05")
    assert "7 runs" in second
    assert second.endswith(("2 refused", "2 turned away"))
    assert {len(first), len(second)} == {width - 2}
    assert "\x1b" not in first


async def test_a_draining_endpoint_shows_the_time_that_is_left() -> None:
    """In place of its uptime."""
    first, _ = await header_lines(EndpointSnapshot(INFO, SECOND_NS, drain_left_ns=28 * SECOND_NS), 80)
    assert first.endswith("◌ DRAINING 00:28 left")


async def test_an_endpoint_without_clients_has_no_totals() -> None:
    """Zeros would be noise."""
    _, second = await header_lines(EndpointSnapshot(INFO), 80)
    assert second.strip() == "asks for its key"
