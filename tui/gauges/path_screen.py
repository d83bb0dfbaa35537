"""The path of a run, hop by hop: both directions as strips with their tables, and what was found."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ...engine.results.path.path_result import PathResult
from ..kit.actions import ScreenKind, bindings
from ..kit.drawing.printed_table import PrintedTable
from ..kit.drawing.styles import MUTED, SHORT
from ..kit.screens.base_screen import ActionScreen
from ..kit.screens.export import prompt_export
from ..kit.screens.feature_app import app_of
from ..readings.cockpit_snapshot import CockpitSnapshot
from ..words import numbers
from ..words.paths.path_hops import path_sentences, place_sentences, way_name, way_table
from .path_panel import strip_rows
from .run_header import TitleBar

_MARGIN: Final = 4  # cells of the panel's frame, margin and scroll bar


class PathScreen(ActionScreen):
    """The path of one run, until the user goes back.

    Args:
        view: The run that is shown.
        path: Its path.
    """

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.PATH
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.PATH)
    DEFAULT_CSS = """
    PathScreen {
        & > VerticalScroll { height: 1fr; }
        & Static { height: auto; }
        & #found { padding: 0 1 0 0; }
        & .strip { margin: 1 0; }
    }
    """

    def __init__(self, view: CockpitSnapshot, path: PathResult) -> None:
        super().__init__()
        self._view = view
        self._path = path

    def compose(self) -> ComposeResult:
        """Compose what was found, and a strip and a table for each direction."""
        yield TitleBar()
        with VerticalScroll(classes="panel") as page:
            page.border_title = "path, hop by hop, so far" if self._view.phase.is_busy else "path, hop by hop"
            yield Static(id="found", markup=False)
            for number, _way in enumerate(self._path.ways):
                yield Static(id=f"strip-{number}", classes="strip", markup=False)
                yield Static(id=f"hops-{number}", markup=False)
        yield self.footer()

    def on_mount(self) -> None:
        """Draw the path."""
        self.query_one(TitleBar).show(self._view)
        self.query_one("#found", Static).update(_found(self._path))
        self.query_one(VerticalScroll).focus()
        self.draw()

    def on_resize(self) -> None:
        """Fill the new width."""
        self.draw()

    def draw(self) -> None:
        """Draw strips and tables in the width of the screen."""
        for number, way in enumerate(self._path.ways):
            rows = strip_rows(way, self.size.width - _MARGIN, has_addresses=True)
            lines = [Content.styled(way_name(way), MUTED), *(line for row in rows for line in row)]
            self.query_one(f"#strip-{number}", Static).update(Content("\n").join(lines))
            self.query_one(f"#hops-{number}", Static).update(PrintedTable(way_table(way)))

    # Actions of the registry.

    def action_export(self) -> None:
        """Export a picture of the screen."""
        prompt_export(self)

    def action_back(self) -> None:
        """Go back to the run."""
        app_of(self).pop_screen()


def _found(path: PathResult) -> Content:
    """Return a line for each thing that was found, with a mark at those to be mended."""
    places = set(place_sentences(path))
    marks = {True: ("◆ ", f"bold {SHORT}"), False: ("● ", MUTED)}
    return Content("\n").join(
        Content.assemble(marks[text in places], (numbers.sanitize(text), "bold" if text in places else ""))
        for text in path_sentences(path)
    )
