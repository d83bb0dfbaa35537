"""The table of the runs that are kept: one line for each, in columns that share the width there is."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.style import Style
from rich.text import Text
from textual.events import Resize
from textual.widgets import DataTable

from .. import format as words
from ..run_rows import RunLine

MARK: Final = "◆"
_ROOMY: Final = 110
_RIGHT: Final = frozenset({"rate", "%"})
_GAP: Final = 2


@dataclass(frozen=True, slots=True)
class RunList:
    """What the table shows: the lines in their order, which are marked, and what the order is."""

    lines: Sequence[RunLine] = ()
    marked: Collection[str] = ()
    sort: str = "when"
    falling: bool = True


class RunTable(DataTable[Text]):
    """Shows a RunList; a row's key is the run's id, a column's is what it sorts by."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"run-table--{name}" for name in ("pass", "short", "fail", "quiet", "mark")
    }
    DEFAULT_CSS = """
    RunTable {
        height: 1fr;
        background: $background;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & > .datatable--header { background: $background; color: $foreground 62%; text-style: bold; }
        &:focus { background-tint: $foreground 0%; }
        & .run-table--pass { color: $text-success; }
        & .run-table--short { color: $text-warning; }
        & .run-table--fail { color: $text-error; }
        & .run-table--quiet { color: $foreground 62%; }
        & .run-table--mark { color: $text-primary; text-style: bold; }
    }
    """

    def __init__(self) -> None:
        super().__init__(cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._list = RunList()

    @property
    def at(self) -> str | None:
        """The id of the run that the cursor stands on."""
        if not 0 <= self.cursor_row < len(self._list.lines):
            return None
        return self._list.lines[self.cursor_row].run_id

    def show(self, shown: RunList) -> None:
        """Show these lines; the cursor stays with its run where that is still there, else near its place."""
        at, row = self.at, self.cursor_row
        self._list = shown
        self.clear(columns=True)
        widths = _widths(max(self.size.width - 1, 40))
        for name, width in widths.items():
            self.add_column(self._head(name, width), width=width, key=name or "mark")
        for line in shown.lines:
            self.add_row(*(self._cell(line, name, width) for name, width in widths.items()), key=line.run_id)
        ids = [line.run_id for line in shown.lines]
        self.move_cursor(row=ids.index(at) if at in ids else min(row, max(len(ids) - 1, 0)), scroll=True)

    def on_resize(self, _event: Resize) -> None:
        """Share the new width."""
        self.show(self._list)

    def _head(self, name: str, width: int) -> Text:
        arrow = ("▼" if self._list.falling else "▲") if name == self._list.sort else ""
        titles = {"rate": "Mb/s", "%": "% exp"}
        text = f"{titles.get(name, name)}{arrow}"
        return Text(f"{text:>{width - _GAP}}" if name in _RIGHT else text, no_wrap=True)

    def _cell(self, line: RunLine, name: str, width: int) -> Text:
        room = width - _GAP
        text, style = self._content(line, name, room)
        cell = Text(text, style or "", no_wrap=True, overflow="ellipsis")
        cell.truncate(room if name else width, overflow="ellipsis")
        if name in _RIGHT:
            cell.align("right", room)
        return cell

    def _content(self, line: RunLine, name: str, room: int) -> tuple[str, Style | None]:
        match name:
            case "":
                marked = line.run_id in self._list.marked
                return (MARK if marked else " "), self._style("mark")
            case "when":
                return (line.when if room >= 16 else line.when[5:]) or words.UNKNOWN, self._style("quiet")
            case "rate":
                return line.rate, Style(bold=True)
            case "%":
                return words.number(line.percent, 1), self._style(line.verdict)
            case "verdict":
                return _verdict(line), self._style(line.verdict)
            case _:
                return getattr(line, name) or ("" if name == "label" else words.UNKNOWN), None

    def _style(self, name: str | None) -> Style | None:
        if name not in {"pass", "short", "fail", "quiet", "mark"}:
            return None
        return self.get_component_rich_style(f"run-table--{name}", partial=True)


def _verdict(line: RunLine) -> str:
    """Return the verdict in a few cells; of a run that was not judged, how it ended."""
    if line.verdict != "none":
        return line.verdict_words
    return "• none" if line.ended in {"completed", "stopped"} else line.ended


def _widths(width: int) -> dict[str, int]:
    """Return how wide each column is, its gap included; what is left over goes to the words."""
    roomy = width >= _ROOMY
    fixed = {"": 2, "when": 18, "test": 11, "rate": 11, "%": 8, "verdict": 14}
    if not roomy:
        fixed = {"": 2, "when": 13, "test": 7, "rate": 9, "%": 8, "verdict": 9}
    rest = max(width - sum(fixed.values()), 24)
    preset, peer = min(rest * 46 // 100, 20), min(rest * 30 // 100, 28)
    flexible = {"preset": preset, "peer": peer, "label": rest - preset - peer}
    order = ("", "when", "preset", "peer", "test", "rate", "%", "verdict", "label")
    return {name: (fixed | flexible)[name] for name in order}
