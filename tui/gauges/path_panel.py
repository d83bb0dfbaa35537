"""The strip of a path in cells: both ends, the hops between them with their round trips, and the queue at its link.

A strip that is longer than the screen is wide goes on below, and no number is cut.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from textual.content import Content

from ...engine.results.path.path_result import PathResult, Way
from ..kit.drawing.styled_lines import LineWidget, first_fit
from ..kit.drawing.styles import BAD, MUTED, SHORT, TRACK
from ..words import numbers
from ..words.paths.hop_strip import StripLink, StripNode, way_strip

_LABELS: Final = 8  # cells of the names of the lines
_WIDEST: Final = 30  # cells of a link with its node: a longer line tells nothing more
_LEAST_LINK: Final = 2
_GAP: Final = 2
_CONTINUED: Final = "…"


@dataclass(frozen=True, slots=True)
class _Cell:
    """A node and the link before it; the first node of a row has none."""

    node: StripNode
    link: StripLink | None
    has_addresses: bool

    @property
    def texts(self) -> tuple[str, ...]:
        """The lines below the node."""
        hop = self.node.hop
        address = (hop.routers[0] if hop is not None and hop.routers else "",) if self.has_addresses else ()
        return (*address, self.node.idle, self.node.loaded)

    @property
    def width(self) -> int:
        """The fewest cells that the node, its link and its figures need."""
        figures = max(map(cell_len, self.texts))
        if self.link is None:
            return max(cell_len(self.node.name), figures)
        text = f" {self.link.text} " if self.link.text else ""
        link = max(_LEAST_LINK, cell_len(text) + _LEAST_LINK)
        return max(link + cell_len(self.node.name) + _GAP, figures + _GAP)

    def head(self, width: int) -> Content:
        """Return the link and the node in `width` cells, with the node at their end."""
        name = Content.styled(self.node.name, MUTED if self.node.is_silent else "bold")
        if self.link is None:
            return Content(" " * (width - name.cell_length)) + name
        line = _draw_link(self.link, width - name.cell_length - _GAP)
        return Content.assemble(" ", line, " ", name)

    def figures(self, width: int) -> Iterator[Content]:
        """Yield the lines below the node."""
        has_queue = self.link is not None and self.link.has_queue and bool(self.link.text)
        *before, idle, loaded = (f"{text:>{width}}" for text in self.texts)
        yield from (Content.styled(text, MUTED) for text in before)
        yield Content.styled(idle, MUTED if self.node.is_silent else "")
        yield Content.styled(loaded, MUTED if self.node.is_silent else f"bold {SHORT}" if has_queue else "bold")


def _draw_link(link: StripLink, width: int) -> Content:
    """Return a link in `width` cells: a line, or the marks of its place around the text."""
    if link.is_unanswered:
        return Content.styled("╌" * width, MUTED)
    if not link.mark:
        return Content.styled("━" * width, TRACK)
    style = f"bold {SHORT}" if link.has_queue else f"bold {BAD}"
    text = f" {link.text} " if link.text else ""
    before = (width - cell_len(text)) // 2
    return Content.styled(f"{link.mark * before}{text}{link.mark * (width - cell_len(text) - before)}", style)


def strip_rows(way: Way, width: int, *, has_addresses: bool = False) -> list[list[Content]]:
    """Return the strip of a direction in rows: a line of nodes, and below it their round trips, idle and loaded.

    Args:
        way: The direction.
        width: The cells of each line.
        has_addresses: Also has a line of addresses if the strip fits into one row with it.
    """
    strip = way_strip(way)
    links: tuple[StripLink | None, ...] = (None, *strip.links)
    room = width - _LABELS
    cells = [_Cell(*pair, has_addresses) for pair in zip(strip.nodes, links, strict=True)]
    rows = list(_rows(cells, room))
    if len(rows) > 1:
        room -= cell_len(_CONTINUED) + 1
        rows = list(_rows(cells, room))
    if has_addresses and len(rows) > 1:
        return strip_rows(way, width)
    lines = [list(_row_lines(row, room, _row_label(way, number))) for number, row in enumerate(rows)]
    for row in lines[:-1]:
        row[0] += Content.styled(f" {_CONTINUED}", MUTED)
    return lines


def _row_of_place(way: Way, width: int) -> list[Content]:
    """Return the row with the queue or the loss; the first without either."""
    rows = strip_rows(way, width)
    marks = {link.mark for link in way_strip(way).links} - {""}
    return next((row for row in rows if any(mark in row[0].plain for mark in marks)), rows[0])


def _rows(cells: Sequence[_Cell], room: int) -> Iterator[list[_Cell]]:
    """Yield as many cells as fit into each row."""
    row: list[_Cell] = []
    for cell in cells:
        if row and sum(each.width for each in row) + cell.width > room:
            yield row
            row = []
        row.append(cell)
    yield row


def _row_label(way: Way, number: int) -> Content:
    if number:
        return Content.styled(f"{_CONTINUED:>{_LABELS - 1}} ", MUTED)
    name = f"{way.direction.value} {numbers.arrow(way.direction)}"
    return Content.styled(f"{name:<{_LABELS}}", "bold $text-primary")


def _row_lines(row: Sequence[_Cell], room: int, label: Content) -> Iterator[Content]:
    """Yield the lines of a row, whose links are as long as each other if they have room."""
    widths = [cell.width for cell in row]
    for link_width in range(_WIDEST, 0, -1):
        wider = [max(cell.width, link_width if cell.link else 0) for cell in row]
        if sum(wider) <= room:
            widths = wider
            break
    yield label + Content("").join(cell.head(width) for cell, width in zip(row, widths, strict=True))
    names = ("", "idle", "loaded")[-len(row[0].texts) :]
    figures = zip(*(cell.figures(width) for cell, width in zip(row, widths, strict=True)), strict=True)
    for name, parts in zip(names, figures, strict=True):
        yield Content.styled(f"{name:<{_LABELS}}", MUTED) + Content("").join(parts)


def way_to_show(path: PathResult) -> Way:
    """Return the direction that has the longest queue, else a loss, else the first."""

    def order(way: Way) -> tuple[int, bool]:
        return max((queue.rise_ns for queue in way.queues), default=0), way.loss is not None

    return max(path.ways, key=order)


class PathPanel(LineWidget[PathResult]):
    """Shows a traced path: both directions if there is room, else the one that has the queue."""

    DEFAULT_CSS = """
    PathPanel { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(widget_id="path")

    def draw(self, value: PathResult, width: int, height: int) -> list[Content]:
        """Return the strips."""
        strips = [[line for row in strip_rows(way, width) for line in row] for way in value.ways]
        if sum(map(len, strips)) > height:
            strips = [_row_of_place(way_to_show(value), width)]
        self.set_titles(first_fit(width, Content("path, hop by hop"), Content("path")))
        return [line for strip in strips for line in strip]
