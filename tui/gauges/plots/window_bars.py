"""The bytes in flight of a session as a bar, above the windows that limit them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from textual.content import Content

from ...kit.drawing.canvas import bar
from ...kit.drawing.styled_lines import cut_words
from ...kit.drawing.styles import DIRECTION_STYLES, LOAD, MUTED
from ...words import numbers

if TYPE_CHECKING:
    from ....presets.diagnosis.window_bounds import FlowWindows

WINDOW_TITLES: Final = (
    "bytes in flight and windows in each session, last 3 s",
    "bytes in flight and windows",
    "windows",
)
_LABEL_CELLS: Final = 12
_VALUE_CELLS: Final = 12
_MEANINGS: Final = (
    ("in flight", "sent and not yet acknowledged"),
    ("window", "the smaller of the two ends' socket windows: in flight cannot exceed it"),
    ("cwnd", "congestion window of the sender's kernel: in flight cannot exceed it either"),
    ("needed", "bandwidth x delay: the bytes in flight that the expected rate needs"),
)
_NOTHING: Final = "no values from the kernel yet"


def window_lines(windows: "Sequence[FlowWindows]", width: int, height: int) -> list[Content]:
    """Return four bars for each direction: in flight, window, cwnd, and bandwidth x delay of the expected rate.

    All have one scale, so that the user sees which bar the bytes in flight have reached. If they fit, explanations
    of the words are below the bars.
    """
    values = [value for flow in windows for _, value in _bars(flow) if value is not None]
    room = width - _LABEL_CELLS - _VALUE_CELLS
    if room <= 0:
        return []
    if not values:
        return [Content.styled(_NOTHING, MUTED)]
    top = max(values)
    lines = [line for flow in windows for line in _flow_lines(flow, top, room, has_arrow=len(windows) > 1)]
    explanation = [Content(""), *_meanings(width)] if height > len(lines) + len(_MEANINGS) else []
    return [*lines[:height], *explanation]


def _meanings(width: int) -> Iterator[Content]:
    """Yield a line for each word, cut to the width at a word."""
    for name, meaning in _MEANINGS:
        yield Content.styled(cut_words(f"{name:<{_LABEL_CELLS}}{meaning}", width), MUTED)


def _flow_lines(flow: "FlowWindows", top: float, room: int, *, has_arrow: bool) -> Iterator[Content]:
    arrow = f"{numbers.arrow(flow.direction)} " if has_arrow else ""
    for name, value in _bars(flow):
        style = DIRECTION_STYLES[flow.direction] if name == "in flight" else LOAD
        text = numbers.UNKNOWN if value is None else numbers.number(value / numbers.KIB, 1 if value < 10_240 else 0)
        yield Content.assemble(
            (f"{arrow}{name:<{_LABEL_CELLS - len(arrow)}}", MUTED),
            bar(None if value is None else value / top, room, style),
            (f"{text:>{_VALUE_CELLS - 4}}{numbers.NBSP}KiB", "bold"),
        )


def _bars(flow: "FlowWindows") -> tuple[tuple[str, float | None], ...]:
    return ("in flight", flow.in_flight), ("window", flow.window), ("cwnd", flow.cwnd), ("needed", flow.needed)
