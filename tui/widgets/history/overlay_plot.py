"""Several runs in one plot, from the same zero.

Each has its letter along its line, so that no colour is needed to tell them apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Final, cast

from rich.text import Text
from textual_plotext import PlotextPlot

from ...services.run_comparison import LETTERS
from ...text import numbers

_HEADROOM: Final = 1.08
_LETTER_EVERY: Final = 22  # cells
_MOST_SAME: Final = 1e-9

Rgb = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class OverlayLine:
    """One run: its letter, and its rate at each time, warm-up included."""

    letter: str
    at_s: Sequence[float]
    bit_s: Sequence[float]


class OverlayPlot(PlotextPlot):
    """Draws OverlayLines; both axes begin at nothing. `names` stand below the axis where it is not one of time."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"overlay--{letter}" for letter in LETTERS} | {"overlay--tick"}
    DEFAULT_CSS = """
    OverlayPlot {
        height: 1fr;
        padding: 0 1;
        & .overlay--tick { color: $foreground 60%; }
        & .overlay--A { color: $primary; }
        & .overlay--B { color: $warning; }
        & .overlay--C { color: $success; }
        & .overlay--D { color: $error; }
        & .overlay--E { color: $accent; }
        & .overlay--F { color: $secondary; }
        & .overlay--G { color: $foreground; }
        & .overlay--H { color: $foreground 60%; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="overlay")
        self._lines: Sequence[OverlayLine] = ()
        self._names: Sequence[str] = ()

    def show(self, lines: Sequence[OverlayLine], names: Sequence[str] = ()) -> None:
        """Show these lines from the next frame on."""
        self._lines = [line for line in lines if line.at_s]
        self._names = names
        self.refresh()

    def colour(self, letter: str) -> Rgb:
        """Return the colour of a run."""
        return self._rgb(letter)

    def render(self) -> Text:
        """Draw into the room there is."""
        width, height = self.size
        if width < 20 or height < 4 or not self._lines:
            return Text("")
        plt = cast("Any", self.plt)
        plt.clear_figure()
        plt.plotsize(width, height)
        plt._set_size(width, height)  # noqa: SLF001 (plotsize alone does not take after a resize; as PlotextPlot does)
        for colour in (plt.canvas_color, plt.axes_color):
            colour("default")
        plt.ticks_color(self._rgb("tick"))
        plt.xaxes(True, False)
        plt.yaxes(True, False)
        top = max(max(line.bit_s) for line in self._lines) / 1e6 * _HEADROOM or 1.0
        span_s = max(line.at_s[-1] for line in self._lines) if not self._names else max(1, len(self._names) - 1)
        plt.xlim(0, span_s)
        plt.ylim(0, top)
        ys, xs = _ticks(top, max(height // 4, 2)), _ticks(span_s, max(width // 14, 2))
        plt.yticks(ys, [f"{numbers.number(y, 0 if top >= 10 else 1):>7}" for y in ys])
        if self._names:
            every = ceil(len(self._names) * max(map(len, self._names)) / max(1, width - 12))
            plt.xticks(list(range(0, len(self._names), every)), list(self._names[::every]))
        else:
            plt.xticks(xs, [f"{x:g}" for x in xs])
        for line in self._lines:
            plt.plot(list(line.at_s), [b / 1e6 for b in line.bit_s], marker="braille", color=self._rgb(line.letter))
        for number, line in enumerate(self._lines):
            self._letters(plt, line, number, span_s, width)
        return Text.from_ansi(str(plt.build()))

    def _letters(self, plt: Any, line: OverlayLine, number: int, span_s: float, width: int) -> None:
        """Put the run's letter on its line here and there, each run at other places."""
        step_s = span_s * _LETTER_EVERY / max(width, 1)
        wanted_s = min(step_s * (0.3 + number / len(self._lines)), line.at_s[-1])
        for at_s, bit_s in zip(line.at_s, line.bit_s, strict=True):
            if at_s >= wanted_s:
                plt.text(line.letter, at_s, bit_s / 1e6, color=self._rgb(line.letter), style="bold")
                wanted_s += step_s

    def _rgb(self, name: str) -> Rgb:
        colour = self.get_component_styles(f"overlay--{name}").color
        return self.background_colors[1].blend(colour, colour.a, alpha=1.0).rgb


def _ticks(top: float, most: int) -> list[float]:
    """Return round numbers from 0 to `top`, about `most` of them."""
    power = 10.0 ** ceil(len(str(int(max(top, 1)))) - 3)
    step = next(s for k in range(12) for m in (1, 2, 5) if (s := m * power * 10**k / 100) * most >= top)
    return [n * step for n in range(int(top / step + _MOST_SAME) + 1)]
