"""The gauge of an endpoint's rate: its number, its past, and sizes with little room."""

import pytest
from linkgauge.tui.text.numbers import RateUnit
from linkgauge.tui.widgets.endpoint.endpoint_gauge import EndpointGauge

from ..instrument_bench import Bench, lines_of


async def test_the_past_ends_at_the_right_with_the_newest_second() -> None:
    """The highest second is as high as the plot; seconds for which there is no room are left out."""
    app = Bench(EndpointGauge("received"))
    async with app.run_test(size=(42, 8)) as pilot:
        app.instrument.show(2e9, [*[9e9] * 100, *[0.0] * 39, 4e9], RateUnit.MBIT)
        await pilot.pause()
        top, base = lines_of(app)[-2:]
        assert top == f"{' ' * 39}█"
        assert base == f"{'▁' * 39}█"
        assert "highest 4 000" in str(app.instrument.border_subtitle).replace("\u00a0", " ")


@pytest.mark.parametrize("size", [(20, 1), (20, 3), (80, 4), (80, 12)], ids=str)
async def test_the_number_and_its_unit_are_there_at_each_size(size: tuple[int, int]) -> None:
    """In plain digits where the large ones have no room."""
    app = Bench(EndpointGauge("sent"))
    async with app.run_test(size=size) as pilot:
        app.instrument.show(941e6, [941e6], RateUnit.MBIT)
        await pilot.pause()
        lines = lines_of(app)
        assert len(lines) == size[1]
        assert any("Mb/s" in line for line in lines)
        assert ("941" in lines[0]) == (size[0] == 20)
