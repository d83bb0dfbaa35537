"""Choose a preset: type to filter, arrows, enter; beside the list, or in its place, the preset's sheet."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final
from unicodedata import normalize

from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ...engine.plan import Settings
from ...presets.catalog import Catalog
from ...presets.expect import expectation
from ...presets.model import Preset
from ...presets.sheet import sheet
from .. import format as words
from ..sheet_text import sheet_parts
from ..widgets.field import Field
from ..widgets.styles import MUTED, SHORT
from ..widgets.values import expected_of

_RATE_WIDTH: Final = 12  # a mark, a space, and 1 600 000 Mb/s with its digits in groups
_NARROWEST_NAME: Final = 20
_PROBLEM: Final = "problem "
_HEADING: Final = "bold $text-primary"


class PresetList(OptionList):
    """A list that tells how wide its lines may be."""

    @dataclass
    class Fitted(Message):
        """The list has a new size."""

        width: int

    def on_resize(self) -> None:
        """Tell the new width."""
        self.post_message(self.Fitted(self.scrollable_content_region.width))


class PresetScreen(ModalScreen[Preset | None]):
    """Answers the chosen preset; None where the person goes back.

    The filter always has the keyboard. Arrows move in the list, or scroll the sheet while that is being read.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("tab,shift+tab", "read", show=False, priority=True),
        Binding("up", "move('cursor_up', 'scroll_up')", show=False, priority=True),
        Binding("down", "move('cursor_down', 'scroll_down')", show=False, priority=True),
        Binding("pageup", "move('page_up', 'page_up')", show=False, priority=True),
        Binding("pagedown", "move('page_down', 'page_down')", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    PresetScreen {
        align: center middle;
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
        & OptionList { width: 63; height: 100%; border: none; background: $surface; padding: 0;
                       scrollbar-size-vertical: 1; scrollbar-gutter: stable; text-wrap: nowrap; }
        & #sheet { width: 1fr; height: 100%; padding: 0 0 0 1; border-left: solid $panel-lighten-2;
                   scrollbar-size-vertical: 1; }
        & #sheet Static { height: auto; }
        &.-huge OptionList { width: 76; }
        &.-reading #sheet { border-left: solid $primary; }
        &.-narrow OptionList { width: 1fr; }
        &.-narrow #sheet { display: none; border-left: none; padding: 0; }
        &.-narrow.-reading OptionList { display: none; }
        &.-narrow.-reading #sheet { display: block; }
    }
    """

    def __init__(self, catalog: Catalog, chosen: Preset, settings: Settings, language: str = "en") -> None:
        super().__init__()
        self._catalog = catalog
        self._families = by_family(catalog.presets)
        self._chosen = chosen.id
        self._settings = settings
        self._language = language
        self._name_width = _NARROWEST_NAME

    def compose(self) -> ComposeResult:
        """Lay out the filter, the list and the sheet."""
        with Vertical() as box:
            box.border_title = Content(f"presets, and what they expect: {words.settings(self._settings)}")
            yield Field(placeholder="filter: 10 gb 9000, atm, hp, vxlan …", compact=True)
            if self._catalog.problems:
                yield Static(self._problem_words(), id="problems", markup=False)
            yield Static(id="legend", markup=False)
            with Horizontal():
                yield PresetList(markup=False)
                with VerticalScroll(id="sheet", can_focus=False):
                    yield Static(markup=False)

    def on_mount(self) -> None:
        """Say what the keys do; the list is filled once it has a width."""
        self._set_reading(False)
        if self._catalog.problems:  # told here as well, and the notification would cover it
            self.app.clear_notifications()  # pyright: ignore[reportUnknownMemberType] (Textual: App of what)

    def on_preset_list_fitted(self, event: "PresetList.Fitted") -> None:
        """Give names what the list has room for; it has none while the sheet is in its place."""
        if event.width:
            self._name_width = max(_NARROWEST_NAME, event.width - _RATE_WIDTH - 4)
            self._fill()

    def on_input_changed(self) -> None:
        """Show what the filter leaves."""
        self._set_reading(False)
        self._fill()

    def on_input_submitted(self) -> None:
        """Choose what is highlighted."""
        self.query_one(PresetList).action_select()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer the chosen preset; of a problem there is only more to read."""
        if event.option_id is None:
            return
        if event.option_id.startswith(_PROBLEM):
            self._set_reading(True)
        else:
            self.dismiss(self._catalog.find(event.option_id))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show the sheet of the preset that the arrows stand on, from its beginning."""
        if event.option_id is None:
            return
        self._chosen = event.option_id
        shown = self.query_one("#sheet Static", Static)
        if event.option_id.startswith(_PROBLEM):
            shown.update(self._problem_sheet(int(event.option_id.removeprefix(_PROBLEM))))
        else:
            shown.update(Group(*sheet_parts(sheet(self._catalog.find(event.option_id), language=self._language))))
        self.query_one("#sheet", VerticalScroll).scroll_home(animate=False)

    def action_move(self, in_list: str, in_sheet: str) -> None:
        """Move in the list, or scroll the sheet, while the filter has the keyboard."""
        if self.has_class("-reading"):
            getattr(self.query_one("#sheet", VerticalScroll), f"action_{in_sheet}")()
        else:
            getattr(self.query_one(PresetList), f"action_{in_list}")()

    def action_read(self) -> None:
        """Go from the list to the sheet, or back; where there is no room for both, one is seen."""
        self._set_reading(not self.has_class("-reading"))

    def action_back(self) -> None:
        """Go back to the list, or leave the preset as it is."""
        if self.has_class("-reading"):
            self._set_reading(False)
        else:
            self.dismiss(None)

    def _set_reading(self, reading: bool) -> None:
        self.set_class(reading, "-reading")
        keys = "↑ ↓ scroll   tab list" if reading else "type to filter   ↑ ↓   tab details"
        self.query_one(Vertical).border_subtitle = Content(f"{keys}   enter choose   esc back")

    def _fill(self) -> None:
        """Put into the list what the filter leaves, families with their presets below them."""
        text = self.query_one(Input).value
        found: list[Option] = []
        for family, presets in self._families.items():
            rows = [
                Option(self._row(preset), id=preset.id)
                for preset in presets
                if matches(preset, text, self._language)
            ]
            if rows:
                found += [Option(Content.styled(words.plain(family), _HEADING), disabled=True), *rows]
        shown = sum(option.id is not None for option in found)
        found += self._problem_options(text)
        options = self.query_one(PresetList)
        wanted = self._chosen  # filling highlights, and highlighting chooses
        options.clear_options()
        options.add_options(found)
        ids = [option.id for option in found]
        first = next((number for number, name in enumerate(ids) if name), None)
        options.highlighted = ids.index(wanted) if wanted in ids else first
        of = "" if shown == len(self._catalog.presets) else f" of {len(self._catalog.presets)}"
        legend = f"{shown}{of} presets; payload rate in Mb/s as documented, or ≈ as computed"
        self.query_one("#legend", Static).update(Content(legend))
        if first is None:
            self.query_one("#sheet Static", Static).update(Content.styled("no preset has these words", MUTED))

    def _row(self, preset: Preset) -> Content:
        expected = expected_of(expectation(preset, self._settings), self._settings.direction)
        mark = "≈ " if expected is not None and expected.basis == "computed" else ""
        rate = words.UNKNOWN if expected is None else words.mbit(expected.bit_s)
        return Content.assemble(
            "  ",
            shortened(words.plain(preset.name_in(self._language)), self._name_width),
            (f" {mark:>{_RATE_WIDTH - len(rate)}}", MUTED),
            (f"{rate} ", "bold" if expected else MUTED),
        )

    def _problem_words(self) -> Content:
        many = words.many(len(self._catalog.problems), "problem")
        return Content(f"▲ {many} in your own presets: at the end of the list")

    def _problem_options(self, text: str) -> list[Option]:
        """Return a line for each problem; what is wrong is told in full in place of a sheet."""
        width = self._name_width + _RATE_WIDTH
        found = [
            Option(Content.styled(f"  ▲ {name}", SHORT).truncate(width, ellipsis=True), id=f"{_PROBLEM}{number}")
            for number, problem in enumerate(self._catalog.problems)
            if _has_words(
                name := words.plain(f"{Path(problem.path).name}: {problem.key or problem.expected}"), text
            )
        ]
        return [Option(Content.styled("not usable", _HEADING), disabled=True), *found] if found else []

    def _problem_sheet(self, number: int) -> Group:
        problem = self._catalog.problems[number]
        told = Table.grid(padding=(0, 2, 0, 0))
        told.add_column(style="dim", no_wrap=True)
        told.add_column(overflow="fold")
        for name, text in (("file", problem.path), ("key", problem.key), ("", problem.expected)):
            if text:
                told.add_row(name, words.plain(text))
        heading = Text("▲ not usable; nothing else is touched by it", "bold yellow")
        return Group(heading, Text(), told)


def by_family(presets: Sequence[Preset]) -> dict[str, list[Preset]]:
    """Return presets by family, whichever document they are of; families in the order of their first preset."""
    families: dict[str, list[Preset]] = {}
    for preset in presets:
        families.setdefault(preset.family, []).append(preset)
    return families


def shortened(name: str, width: int) -> str:
    """Return a name in just so many cells. Names differ at their ends, so it is the middle that goes."""
    if cell_len(name) <= width:
        return set_cell_size(name, width)
    end = name
    while cell_len(end) > width * 2 // 5:
        end = end[1:]
    return set_cell_size(name, width - 1 - cell_len(end)) + "…" + end


def matches(preset: Preset, text: str, language: str = "en") -> bool:
    """Tell whether every word of the filter is in what is shown of a preset, its id, English name or document."""
    names = (preset.id, preset.name, preset.name_in(language), preset.family, preset.source.title)
    return _has_words(" ".join(names), text)


def _has_words(haystack: str, text: str) -> bool:
    known = _folded(haystack)
    return all(word in known for word in _folded(text).split())


def _folded(text: str) -> str:
    """Return text as it is compared: `ＭＴＵ` is `mtu`."""
    return normalize("NFKC", text).casefold()
