"""The dialog to choose a preset: a filter, the list, and the data sheet of the highlighted preset."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ...engine.model.host_info import NicInfo
from ...engine.model.plan import Settings
from ...engine.model.workload import Workload
from ...presets.auto_select import AUTO, fitting_interfaces
from ...presets.catalog import Catalog, listed_presets
from ...presets.datasheet import build_sheet
from ...presets.expectation import find_expectation
from ...presets.preset import Preset
from ...presets.preset_search import AUTO_SEARCH_TEXT, matches_query, search_text, unknown_link_hint
from ..kit.drawing.preset_datasheet import sheet_parts
from ..kit.drawing.styled_lines import shorten_middle
from ..kit.drawing.styles import MUTED, SHORT
from ..kit.widgets.scroll_views import CursorList, TextPage
from ..kit.widgets.typed_input import Debounce, TextField
from ..words import numbers

_RATE_WIDTH: Final = 14  # a mark, a space, 1 600 000 Mb/s with its digits in groups, and a fraction
_FRACTION_WIDTH: Final = 3  # a point and two decimals: rates have four significant digits
_ROOMY: Final = 48  # a narrower list gives rates only the width that they need
_PROBLEM: Final = "problem "
_AUTO_TEXT: Final = "auto: by the network interfaces of both ends"
_HEADING: Final = "bold $text-primary"
# Typing and cursor moves are drawn first. The list and the sheet follow when the user pauses.
_FILTER_AFTER_S: Final = 0.04
_SHEET_AFTER_S: Final = 0.15
_AUTO_SHEET: Final = (
    "The preset is chosen when the remote end answers. The slower of the two network interfaces counts, with its "
    "line rate, MTU and duplex mode."
)


@dataclass(frozen=True, slots=True)
class PresetRow:
    """A row of the list: a preset, a problem with one of the user's own presets, or without `id` a heading."""

    text: str
    rate: str = ""
    mark: str = ""
    id: str = ""
    search_text: str = ""

    @property
    def problem(self) -> int | None:
        """The number of the problem, or None for other rows."""
        return int(self.id.removeprefix(_PROBLEM)) if self.id.startswith(_PROBLEM) else None


class PresetList(CursorList):
    """Shows the rows that match a filter, each section below its heading."""

    def __init__(self, sections: Sequence[tuple[str, Sequence[PresetRow]]]) -> None:
        super().__init__()
        self._sections = sections
        self.rows: Sequence[PresetRow] = ()
        self._widest_rate = 0

    @property
    def selected_row(self) -> PresetRow | None:
        """The row of the cursor."""
        return None if self.highlighted is None else self.rows[self.highlighted]

    def filter(self, text: str, preset_id: str) -> int:
        """Show the rows with all words of a text, the cursor on `preset_id`; return the number of presets."""
        self.rows = tuple(_matching_rows(self._sections, text))
        self._widest_rate = max((len(row.mark + align_point(row.rate)) for row in self.rows), default=0)
        at = next((number for number, row in enumerate(self.rows) if row.id == preset_id), None)
        self.set_rows(len(self.rows), at)
        return sum(bool(row.id) and row.id != AUTO and row.problem is None for row in self.rows)

    def is_selectable(self, number: int) -> bool:
        """Return whether a row is a preset or a problem: headings cannot be selected."""
        return bool(self.rows[number].id)

    def draw(self, number: int, width: int) -> Content:
        """Return a row: its name, and at the right the expected rate."""
        row = self.rows[number]
        if not row.id:
            return Content.styled(row.text, _HEADING)
        if row.problem is not None:
            return Content.styled(f"  ▲ {row.text}", SHORT).truncate(width, ellipsis=True)
        rate = align_point(row.rate)
        rate_width = _RATE_WIDTH if width >= _ROOMY else self._widest_rate
        return Content.assemble(
            "  ",
            shorten_middle(row.text, max(width - rate_width - 4, 1)),
            (f" {row.mark:>{rate_width - len(rate)}}", MUTED),
            (f"{rate} ", MUTED if row.rate == numbers.UNKNOWN else "bold"),
        )


def align_point(rate: str) -> str:
    """Return a rate with spaces behind it, so that the decimal points of right-aligned rates are in one column."""
    if not rate:
        return ""
    _, point, fraction = rate.partition(".")
    return rate + " " * (_FRACTION_WIDTH - len(point + fraction))


def _matching_rows(sections: Sequence[tuple[str, Sequence[PresetRow]]], text: str) -> Iterable[PresetRow]:
    for heading, rows in sections:
        matches = [row for row in rows if matches_query(row.search_text, text)]
        if matches:
            yield PresetRow(heading)
            yield from matches


def preset_sections(
    catalog: Catalog,
    settings: Settings,
    language: str,
    workload: Workload = Workload.STREAM,
    nics: Sequence[NicInfo] = (),
) -> list[tuple[str, Sequence[PresetRow]]]:
    """Return the sections of the list: `auto`, presets by family, problems of the user's own presets.

    The presets of this host's interfaces, `nics`, are marked.
    """
    own = fitting_interfaces(catalog, nics)
    auto = PresetRow(_AUTO_TEXT, id=AUTO, search_text=AUTO_SEARCH_TEXT)
    sections: list[tuple[str, Sequence[PresetRow]]] = [
        ("Automatic", [auto]),
        *(
            (numbers.sanitize(heading), [_row(preset, settings, language, workload, own) for preset in presets])
            for heading, presets in listed_presets(catalog.presets).items()
        ),
    ]
    problems: list[PresetRow] = []
    for number, problem in enumerate(catalog.problems):
        text = numbers.sanitize(f"{Path(problem.path).name}: {problem.key or problem.expected}")
        problems.append(PresetRow(text, id=f"{_PROBLEM}{number}", search_text=text.casefold()))
    return [*sections, ("not usable", problems)] if problems else sections


def _row(
    preset: Preset, settings: Settings, language: str, workload: Workload, own: Mapping[str, Sequence[str]]
) -> PresetRow:
    names = ", ".join(map(numbers.sanitize, own.get(preset.id, ())))
    expected = find_expectation(preset, settings, workload)[settings.direction]
    return PresetRow(
        numbers.sanitize(preset.name_in(language)) + (f"  ← {names}" if names else ""),
        numbers.UNKNOWN if expected is None else numbers.mbit(expected.bit_s),
        "≈ " if expected is not None and expected.basis == "computed" else "",
        preset.id,
        search_text(preset, language),
    )


class PresetPicker(ModalScreen[str | None]):
    """A searchable list of presets. It answers the id of the chosen one, `auto`, or None.

    The filter always has the focus. The arrows move in the list, or scroll the sheet in reading mode.
    On a narrow screen the sheet takes the place of the list.

    Args:
        catalog: The presets, and the problems of the user's own ones.
        chosen: The id that is highlighted at first, or `auto`.
        settings: The settings that the rates in the list are expected under.
        language: The language of preset names.
        workload: The workload that the rates are expected for.
        nics: The interfaces of this host; their presets are marked.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("tab,shift+tab", "read", show=False, priority=True),
        Binding("up", "move('cursor_up', 'scroll_up')", show=False, priority=True),
        Binding("down", "move('cursor_down', 'scroll_down')", show=False, priority=True),
        Binding("pageup", "move('page_up', 'page_up')", show=False, priority=True),
        Binding("pagedown", "move('page_down', 'page_down')", show=False, priority=True),
        Binding("home", "go_to_end('home')", show=False, priority=True),
        Binding("end", "go_to_end('end')", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    PresetPicker {
        align: center middle;
        background: $background;
        & > Vertical {
            width: 190;
            max-width: 96%;
            height: 92%;
            border: round $primary;
            background: $surface;
            padding: 0 1;
        }
        & Input { border: none; height: 1; padding: 0 1; background: $panel; }
        & #legend, & #problems { height: 1; color: $foreground 62%; text-wrap: nowrap; text-overflow: ellipsis; }
        & #problems { color: $text-warning; }
        & Horizontal { height: 1fr; }
        & PresetList { width: 65; height: 100%; background: $surface; scrollbar-background: $surface; }
        & #sheet { width: 1fr; height: 100%; padding: 0 0 0 1; background: $surface;
                   border-left: solid $panel-lighten-2; }
        &.-huge PresetList { width: 76; }
        &.-reading #sheet { border-left: solid $primary; }
        &.-narrow PresetList { width: 1fr; }
        &.-narrow #sheet { display: none; border-left: none; padding: 0; }
        &.-narrow.-reading PresetList { display: none; }
        &.-narrow.-reading #sheet { display: block; }
    }
    """

    def __init__(
        self,
        catalog: Catalog,
        chosen: str,
        settings: Settings,
        language: str = "en",
        workload: Workload = Workload.STREAM,
        *,
        nics: Sequence[NicInfo] = (),
    ) -> None:
        super().__init__()
        self._catalog = catalog
        self._chosen = chosen
        self._workload = workload
        # Datagrams are compared with the link's rate, not with the rate at which they are sent.
        self._settings = replace(settings, rate_bit_s=None, searches_rate=False)
        self._language = language
        self._list = PresetList(preset_sections(catalog, self._settings, language, workload, nics))
        self._sheet = TextPage(widget_id="sheet")
        self._filter_soon = Debounce(self, _FILTER_AFTER_S, self._filter)
        self._sheet_soon = Debounce(self, _SHEET_AFTER_S, self._show_sheet)

    def _test_words(self) -> str:
        settings = self._settings
        if not self._workload.is_datagram:
            return numbers.settings(settings)
        return f"{self._workload}, {settings.direction}, {numbers.datagrams(settings.datagram_bytes)}"

    def compose(self) -> ComposeResult:
        """Compose the filter, the list and the sheet."""
        with Vertical() as box:
            box.border_title = Content(f"presets, with rates for {self._test_words()}")
            yield TextField(placeholder="filter: 10 gb 9000, atm, hp, vxlan …", compact=True)
            if self._catalog.problems:
                problems = numbers.quantity(len(self._catalog.problems), "problem")
                text = f"▲ {problems} in your own presets, shown at the end"
                yield Static(Content(text), id="problems", markup=False)
            yield Static(id="legend", markup=False)
            with Horizontal():
                yield self._list
                yield self._sheet

    def on_mount(self) -> None:
        """Fill the list and the sheet."""
        for widget in (self._list, self._sheet):
            widget.can_focus = False
        self._set_reading(False)
        self._filter()
        self._sheet_soon.run_now()

    @on(Input.Changed)
    def _schedule_filter(self) -> None:
        self._set_reading(False)
        self._filter_soon.schedule()

    @on(Input.Submitted)
    @on(PresetList.Selected)
    def _choose(self) -> None:
        """Answer the highlighted preset, or show the sheet of a problem."""
        self._filter_soon.flush()
        row = self._list.selected_row
        if row is None:
            return
        if row.problem is not None:
            self._set_reading(True)
        else:
            self.dismiss(row.id)

    @on(PresetList.Moved)
    def _follow_cursor(self) -> None:
        self._remember_choice()
        self._sheet_soon.schedule()

    def action_move(self, in_list: str, in_sheet: str) -> None:
        """Move in the list, or scroll the sheet in reading mode."""
        if self.has_class("-reading"):
            getattr(self._sheet, f"action_{in_sheet}")()
        else:
            self._filter_soon.flush()
            getattr(self._list, f"action_{in_list}")()

    def action_go_to_end(self, end: str) -> None:
        """Scroll the sheet to its home or end in reading mode; else move in the filter."""
        if self.has_class("-reading"):
            getattr(self._sheet, f"action_scroll_{end}")()
        else:
            getattr(self.query_one(Input), f"action_{end}")()

    def action_read(self) -> None:
        """Switch between the list and the sheet."""
        self._set_reading(not self.has_class("-reading"))

    def action_back(self) -> None:
        """Go back to the list, or close the dialog without an answer."""
        if self.has_class("-reading"):
            self._set_reading(False)
        else:
            self.dismiss(None)

    def _set_reading(self, is_reading: bool) -> None:
        if is_reading:
            self._filter_soon.flush()
            self._sheet_soon.flush()
        box = self.query_one(Vertical)
        if box.border_subtitle and is_reading == self.has_class("-reading"):
            return
        self.set_class(is_reading, "-reading")
        keys = "↑ ↓ scroll   tab list" if is_reading else "type to filter   ↑ ↓   tab details"
        box.border_subtitle = Content(f"{keys}   enter choose   esc back")

    def _filter(self) -> None:
        """List the presets that match the filter."""
        matches = self._list.filter(self.query_one(Input).value, self._chosen)
        total = "" if matches == len(self._catalog.presets) else f" of {len(self._catalog.presets)}"
        legend = f"{matches}{total} presets; expected payload rate in Mb/s, ≈ if computed"
        self.query_one("#legend", Static).update(Content(legend), layout=False)
        self._remember_choice()
        self._sheet_soon.schedule()

    def _remember_choice(self) -> None:
        row = self._list.selected_row
        if row is not None:
            self._chosen = row.id

    def _show_sheet(self) -> None:
        """Show the sheet of the highlighted row from its top."""
        row = self._list.selected_row
        if row is None:
            hint = unknown_link_hint(self.query_one(Input).value)
            self._sheet.show_text(Text(f"No preset matches. {hint}".rstrip(), "dim"))
        elif row.id == AUTO:
            self._sheet.show_text(Text(_AUTO_SHEET))
        elif row.problem is not None:
            self._sheet.show_text(self._problem_sheet(row.problem))
        else:
            self._sheet.show_text(
                Group(*sheet_parts(build_sheet(self._catalog.find(row.id), language=self._language)))
            )

    def _problem_sheet(self, index: int) -> Group:
        problem = self._catalog.problems[index]
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, text in (("file", problem.path), ("key", problem.key), ("", problem.expected)):
            if text:
                table.add_row(name, numbers.sanitize(text))
        heading = Text("▲ not usable; all other presets work", "bold yellow")
        return Group(heading, Text(), table)
