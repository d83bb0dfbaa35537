"""One instrument alone on a screen."""

# pyright: reportPrivateUsage=false

from typing import Any, Generic, TypeVar

from linkgauge.tui.kit.drawing.styled_lines import LineWidget
from textual.app import App, ComposeResult

W = TypeVar("W", bound=LineWidget)


class Bench(App[None], Generic[W]):
    """An app with a single instrument."""

    def __init__(self, instrument: W) -> None:
        super().__init__()
        self.instrument = instrument

    def compose(self) -> ComposeResult:
        """Show the instrument."""
        yield self.instrument


def lines_of(app: Bench[Any]) -> list[str]:
    """Return the lines of the instrument, with plain spaces."""
    return [line.plain.replace("\u00a0", " ") for line in app.instrument._lines]
