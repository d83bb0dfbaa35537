"""CPU of both ends: the load of the host and of its hottest core, and the CPU time for a MiB."""

from typing import Final

from textual.content import Content

from ....engine.model.plan import End
from ...rendering.canvas import bar
from ...rendering.styled_lines import LineWidget
from ...rendering.styles import LOAD, MUTED
from ...state.instrument_values import CpuReading
from ...text import numbers

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_BUSY: Final = 90.0


class CpuPanel(LineWidget):
    """Shows the CpuReading of both ends; from five rows on, also one column for each core."""

    DEFAULT_CSS = """
    CpuPanel { padding: 0 1; }
    """

    def __init__(self, *, widget_id: str) -> None:
        super().__init__(widget_id=widget_id)
        self._readings: tuple[CpuReading, ...] = (CpuReading(End.NEAR), CpuReading(End.FAR))
        self._shared_host = False
        self.set_titles("cpu")

    def show(self, near: CpuReading, far: CpuReading, *, shared_host: bool) -> None:
        """Show these values; with `shared_host`, both ends are one machine."""
        self._readings = (near, far)
        self._shared_host = shared_host
        self.redraw()

    def draw(self, width: int, height: int) -> list[Content]:
        """Return the lines of both ends and their cost, cut to the width."""
        lines = [_load_line(reading, width) for reading in self._readings]
        if height >= 5:
            lines = [line(reading, width) for reading in self._readings for line in (_load_line, _cores_line)]
        near, far = self._readings
        lines.append(
            Content.assemble(
                ("cost  ", MUTED),
                ("near ", MUTED),
                f"{numbers.number(near.msec_per_mib, 2):>5}",
                ("  far ", MUTED),
                f"{numbers.number(far.msec_per_mib, 2):>5}",
                (f"{numbers.NBSP}ms/MiB", MUTED),
            )
        )
        if self._shared_host and height > len(lines):
            lines.append(Content.styled("both ends share this machine's cores", MUTED))
        return [line.truncate(width, ellipsis=True) for line in lines]


def _load_line(reading: CpuReading, width: int) -> Content:
    """Return `near ████░░░  41 %  hottest 97 % core 3`."""
    hot = reading.hottest_percent is not None and reading.hottest_percent >= _BUSY
    core = numbers.UNKNOWN if reading.hottest_core is None else str(reading.hottest_core)
    kernel = f" (kernel {numbers.percent(reading.hottest_kernel_percent, 0)})"
    if width < 58 or reading.hottest_kernel_percent is None:
        kernel = ""
    right = Content.assemble(
        f" {numbers.percent(reading.host_percent, 0, 3)}",
        ("  hottest core " if width >= 41 else "  hottest #", MUTED),
        (f"{core:<2}" if width < 41 else f"{core:>2}", MUTED),
        (
            f" {numbers.percent(reading.hottest_percent, 0, 3)}{'!' if hot else ' '}",
            "bold $text-warning" if hot else "bold",
        ),
        (kernel, MUTED),
    )
    fraction = None if reading.host_percent is None else reading.host_percent / 100
    load = bar(fraction, max(width - right.cell_length - 5, 0), LOAD)
    return Content.assemble((f"{reading.end:<5}", MUTED), load, right)


def _cores_line(reading: CpuReading, width: int) -> Content:
    """Return one column for each core. If there is no room, a column is the busiest of several cores."""
    room = max(width - 5, 1)
    each = -(-len(reading.cores) // room) or 1
    columns = [max(reading.cores[at : at + each]) for at in range(0, len(reading.cores), each)]
    parts: list[str | Content | tuple[str, str]] = ["     "]
    for percent in columns:
        level = _LEVELS[min(int(percent / 100 * len(_LEVELS)), len(_LEVELS) - 1)]
        parts.append((level, "bold $text-warning" if percent >= _BUSY else LOAD))
    return Content.assemble(*parts)
