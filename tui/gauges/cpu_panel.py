"""The CPU of both ends: the load of the host and its cores, and the CPU time per MiB."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual.content import Content

from ...engine.model.directions import End
from ..kit.drawing.canvas import bar
from ..kit.drawing.styled_lines import LineWidget, first_fit
from ..kit.drawing.styles import LOAD, MUTED
from ..readings.cpu_reading import CpuReading, cpu_reading
from ..words import numbers

if TYPE_CHECKING:
    from ..readings.cockpit_snapshot import CockpitSnapshot

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_BUSY: Final = 90.0
_LABEL_CELLS: Final = 7
_CORE_CELLS: Final = 20  # the minimum width of a bar with its number
_ROOMY, _WIDE = 44, 60


@dataclass(frozen=True, slots=True)
class CpuView:
    """The CPU of both ends, which may be one machine. Before the first run, nothing is known yet: `is_idle`."""

    near: CpuReading
    far: CpuReading
    is_shared_host: bool = False
    is_idle: bool = False


class CpuPanel(LineWidget[CpuView]):
    """Shows a CpuView. A larger panel shows more of each core."""

    DEFAULT_CSS = """
    CpuPanel { padding: 0 1; }
    """

    def __init__(self, *, widget_id: str) -> None:
        super().__init__(CpuView(CpuReading(End.NEAR), CpuReading(End.FAR)), widget_id=widget_id)
        self.set_titles("cpu")

    def show_run(self, view: "CockpitSnapshot") -> None:
        """Show the ends of a run."""
        is_shared = view.near is not None and view.far is not None and view.near.hostname == view.far.hostname
        ends = cpu_reading(view, End.NEAR), cpu_reading(view, End.FAR)
        self.show(CpuView(*ends, is_shared, is_idle=view.readings is None))

    def draw(self, value: CpuView, width: int, height: int) -> list[Content]:
        """Return the lines of both ends and their cost; with more room, more about each core."""
        if value.is_idle:
            texts = ("of both ends, during a test", "during a test")
            return [first_fit(width, *(Content.styled(text, MUTED) for text in texts))]
        readings = (value.near, value.far)
        unit = f"{numbers.NBSP}ms" if width >= _ROOMY else ""
        costs = (
            ((f"  {reading.end.label} ", MUTED), f"{numbers.number(reading.msec_per_mib, 2):>5}{unit}")
            for reading in readings
        )
        cost = Content.assemble(
            ("CPU per MiB" if unit else "CPU ms/MiB", MUTED), *(part for pair in costs for part in pair)
        )
        notes = [cost]
        if value.is_shared_host:
            notes.append(Content.styled("both ends run on this machine", MUTED))
        lines = _core_bars(readings, width)
        for parts in ((_load_line, _columns_line, _numbers_line), (_load_line, _columns_line), (_load_line,)):
            if len(lines) < height:  # they fit, with the cost below them
                break
            lines = [part(reading, width) for reading in readings for part in parts]
        return [first_fit(width, line) for line in (*lines, *notes)]


def _core_bars(readings: Sequence[CpuReading], width: int) -> list[Content]:
    """Return the load of each end, and below it a bar for each core with its number and its percentage."""
    lines: list[Content] = []
    for reading in readings:
        lines.append(_load_line(reading, width))
        across = max((width - _LABEL_CELLS) // _CORE_CELLS, 1)
        rows = -(-len(reading.cores) // across)
        cells = (width - _LABEL_CELLS) // across
        for row in range(rows):
            cores = range(row, len(reading.cores), rows)  # numbers run down each column
            parts = [_core_bar(core, reading.cores[core], cells) for core in cores]
            lines.append(Content.assemble(" " * _LABEL_CELLS, *parts))
    return lines


def _core_bar(core: int, percent: float, cells: int) -> Content:
    """Return `  3 ███████░░░  97 %! `."""
    is_busy = percent >= _BUSY
    style = "bold $text-warning" if is_busy else LOAD
    return Content.assemble(
        (f"{core:>3} ", MUTED),
        bar(percent / 100, max(cells - 12, 0), style),
        (f" {numbers.percent(percent, 0, 3)}{'!' if is_busy else ' '} ", "bold" if is_busy else ""),
    )


def _load_line(reading: CpuReading, width: int) -> Content:
    """Return `local  ████░░░  41 %  busiest core 3  97 %!`. In a narrow panel, the bar is shortened first."""
    busy = reading.hottest_percent is not None and reading.hottest_percent >= _BUSY
    core = numbers.UNKNOWN if reading.hottest_core is None else str(reading.hottest_core)
    kernel = ""
    if width >= _WIDE and reading.hottest_kernel_percent is not None:
        kernel = f" (kernel {numbers.percent(reading.hottest_kernel_percent, 0)})"
    load = f" {numbers.percent(reading.host_percent, 0, 3)}"
    busiest = Content.assemble(
        ("  busiest core " if width >= _ROOMY else "  core ", MUTED),
        (f"{core:>2}", MUTED),
        (f" {numbers.percent(reading.hottest_percent, 0, 3)}", "bold $text-warning" if busy else "bold"),
        ("!" if busy else " ", "bold $text-warning"),
        (kernel, MUTED),
    )
    right = Content.assemble(load, first_fit(width - _LABEL_CELLS - len(load), busiest))
    fraction = None if reading.host_percent is None else reading.host_percent / 100
    room = max(width - right.cell_length - _LABEL_CELLS, 0)
    return Content.assemble((f"{reading.end.label:<{_LABEL_CELLS}}", MUTED), bar(fraction, room, LOAD), right)


def _cores_each(reading: CpuReading, width: int) -> int:
    """Return the number of cores that share a column."""
    return -(-len(reading.cores) // max(width - _LABEL_CELLS, 1)) or 1


def _columns_line(reading: CpuReading, width: int) -> Content:
    """Return one column for each core. In a narrow panel, a column is the busiest of several cores."""
    each = _cores_each(reading, width)
    columns = [max(reading.cores[at : at + each]) for at in range(0, len(reading.cores), each)]
    parts: list[str | Content | tuple[str, str]] = [" " * _LABEL_CELLS]
    for percent in columns:
        level = _LEVELS[min(int(percent / 100 * len(_LEVELS)), len(_LEVELS) - 1)]
        parts.append((level, "bold $text-warning" if percent >= _BUSY else LOAD))
    return Content.assemble(*parts)


def _numbers_line(reading: CpuReading, width: int) -> Content:
    """Return the numbers of the cores below their columns: each of up to ten cores, or every fifth or tenth."""
    each, count = _cores_each(reading, width), len(reading.cores)
    step = 1 if count <= 10 else 5 if count <= 60 else 10
    line = ""
    for number in range(0, -(-count // each), step):
        line = f"{line:<{number}}{number * each}"
    room = max(width - _LABEL_CELLS, 0)
    return Content.styled(" " * _LABEL_CELLS + (line if len(line) <= room else ""), MUTED)
