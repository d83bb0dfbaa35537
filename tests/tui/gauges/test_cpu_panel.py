"""The CPU panel: busy cores, unknown values, and both ends on one machine."""

import pytest
from linkgauge.engine.model.directions import End
from linkgauge.tui.gauges.cpu_panel import CpuPanel, CpuView
from linkgauge.tui.readings.cpu_reading import CpuReading

from .instrument_bench import Bench, lines_of


async def test_the_cpu_panel_marks_a_busy_core_and_keeps_unknown_apart_from_idle() -> None:
    """`!` is beside the colour, and a dash is not a zero."""
    app = Bench(CpuPanel(widget_id="cpu"))
    async with app.run_test(size=(46, 6)) as pilot:
        near = CpuReading(End.NEAR, 41.0, 3, 97.2, 61.0, 0.31, tuple([10.0] * 3 + [97.2]))
        app.instrument.show(CpuView(near, CpuReading(End.FAR, 0.0, 0, 0.0, 0.0, None, (0.0,)), is_shared_host=True))
        await pilot.pause()
        lines = lines_of(app)
        assert "97 %!" in lines[0]
        assert "0 %" in lines[2]
        assert "local  0.31 ms  remote     – ms" in lines[4]
        assert "both ends run on this machine" in lines[5]


@pytest.mark.parametrize(
    ("size", "core_line"),
    [
        ((46, 3), None),
        ((46, 5), "       ▁▁▁█"),
        ((46, 7), "       0123"),
        ((46, 16), "         3 ███"),
    ],
    ids=str,
)
async def test_more_rows_show_more_of_each_core(size: tuple[int, int], core_line: str | None) -> None:
    """First the loads alone, then a column for each core, then its number, then a bar with its percentage."""
    app = Bench(CpuPanel(widget_id="cpu"))
    async with app.run_test(size=size) as pilot:
        cores = (10.0, 10.0, 10.0, 97.2)
        near, far = (CpuReading(end, 41.0, 3, 97.2, 61.0, 0.31, cores) for end in End)
        app.instrument.show(CpuView(near, far))
        await pilot.pause()
        lines = lines_of(app)
    assert len(lines) <= size[1]
    assert [line.split()[0] for line in lines if line[:1] != " "] == [
        "local",
        "remote",
        "CPU" if size[0] >= 46 else "cost",
    ]
    assert sum(line.startswith(core_line) for line in lines if core_line) == (2 if core_line else 0)


@pytest.mark.parametrize(("count", "numbers_line"), [(10, "0123456789"), (16, "0    5    10   15"), (128, "0")])
async def test_core_numbers_are_below_their_columns(count: int, numbers_line: str) -> None:
    """Each of up to ten cores, and every fifth of more. A shared column has its first number."""
    app = Bench(CpuPanel(widget_id="cpu"))
    async with app.run_test(size=(38, 7)) as pilot:
        readings = (CpuReading(end, 41.0, 3, 97.2, 61.0, 0.31, (10.0,) * count) for end in End)
        app.instrument.show(CpuView(*readings))
        await pilot.pause()
        lines = lines_of(app)
    assert lines[2][7:].startswith(numbers_line)
    assert all(len(line) <= 36 for line in lines)
