"""The list of presets: by family, each with the rate it expects."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from textual.content import Content

from ...engine.model.plan import Settings
from ...engine.model.workload import Workload
from ...presets.auto_select import AUTO
from ...presets.catalog import Catalog
from ...presets.expectation import find_expectation
from ...presets.preset import Preset
from ...presets.search import AUTO_SEARCH_TEXT, matches_query, search_text
from ..kit.drawing.styled_lines import shorten_middle
from ..kit.drawing.styles import MUTED, SHORT
from ..kit.widgets.scroll_views import CursorList
from ..words import numbers

_RATE_WIDTH: Final = 14  # a mark, a space, 1 600 000 Mb/s with its digits in groups, and a fraction
_FRACTION_WIDTH: Final = 3  # a point and two decimals: rates have four significant digits
_ROOMY: Final = 48  # in a narrower list, rates have only the room that they need
_PROBLEM: Final = "problem "
_AUTO_TEXT: Final = "auto: by the network interfaces of both ends"
_HEADING: Final = "bold $text-primary"


@dataclass(frozen=True, slots=True)
class PresetRow:
    """A row of the list: a preset, a problem with a person's own preset, or, without `id`, a heading."""

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
    """Shows the rows that match a filter, below their headings."""

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
    catalog: Catalog, settings: Settings, language: str, workload: Workload = Workload.STREAM
) -> list[tuple[str, Sequence[PresetRow]]]:
    """Return the sections of the list: `auto`, presets by family, problems of a person's own presets."""
    auto = PresetRow(_AUTO_TEXT, id=AUTO, search_text=AUTO_SEARCH_TEXT)
    sections: list[tuple[str, Sequence[PresetRow]]] = [
        ("Automatic", [auto]),
        *(
            (numbers.sanitize(family), [_row(preset, settings, language, workload) for preset in presets])
            for family, presets in by_family(catalog.presets).items()
        ),
    ]
    problems: list[PresetRow] = []
    for number, problem in enumerate(catalog.problems):
        text = numbers.sanitize(f"{Path(problem.path).name}: {problem.key or problem.expected}")
        problems.append(PresetRow(text, id=f"{_PROBLEM}{number}", search_text=text.casefold()))
    return [*sections, ("not usable", problems)] if problems else sections


def _row(preset: Preset, settings: Settings, language: str, workload: Workload) -> PresetRow:
    expected = find_expectation(preset, settings, workload)[settings.direction]
    return PresetRow(
        numbers.sanitize(preset.name_in(language)),
        numbers.UNKNOWN if expected is None else numbers.mbit(expected.bit_s),
        "≈ " if expected is not None and expected.basis == "computed" else "",
        preset.id,
        search_text(preset, language),
    )


def by_family(presets: Sequence[Preset]) -> dict[str, list[Preset]]:
    """Return presets by family, across documents; families in the order of their first preset."""
    families: dict[str, list[Preset]] = {}
    for preset in presets:
        families.setdefault(preset.family, []).append(preset)
    return families
