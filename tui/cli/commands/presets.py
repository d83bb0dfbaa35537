"""`linkgauge presets`: list the known kinds of link, show one, make one from a run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ....engine.model.errors import UsageError
from ...words.parsing import resolve_language
from ..click_extension.command_groups import SearchGroup
from ..click_extension.option_fields import argument, flag, group, option
from ..completion import complete_preset
from ..link_options import LinkOptions, lang_option
from ..output import PROGRAM, emit_json, emit_line, emit_rich, print_stderr
from ..output_options import json_flag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ....engine.model.expected_rate import ExpectedRate
    from ....presets.preset import Preset
    from ..render.table import PrintedTable


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which presets are listed, and how."""

    words: tuple[str, ...] = argument(
        "[WORD ...]", "Show only presets with these words: 10g, wireguard.", default=()
    )
    lang: str | None = lang_option()
    as_json: bool = json_flag()


def list_presets(options: ListOptions) -> int:
    """List the presets with their expected rates (the default command)."""
    from ....presets.preset_search import find_presets, unknown_link_hint
    from ...session.user_presets import load_presets

    language, query = resolve_language(options.lang), " ".join(options.words)
    catalog = load_presets(print_stderr)
    presets = find_presets(catalog.presets, query, language)
    if not presets:
        raise UsageError(
            f"no preset matches {query!r}; {unknown_link_hint(query) or f'{PROGRAM} presets lists all'}"
        )
    if options.as_json:
        from ....presets.expectation import preset_json

        emit_json([preset_json(preset) for preset in presets])
    else:
        from ....engine.host.nics.nic import read_own_nics
        from ....presets.auto_select import fitting_interfaces

        own = fitting_interfaces(catalog, read_own_nics())
        emit_rich(_table(presets, language, own), is_wide=True)
    return 0


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """Which preset is shown, with which link, and how."""

    preset: str = argument("ID", "Id of the preset.", complete=complete_preset)
    link: LinkOptions = group(LinkOptions)
    lang: str | None = lang_option()
    as_json: bool = json_flag()


def show_preset(options: ShowOptions) -> int:
    """Show a preset: its link, its expected rates, the numbers of its document."""
    from ....presets.expectation import check_wire_model
    from ...session.user_presets import load_presets

    language, variant = resolve_language(options.lang), options.link.to_variant()
    catalog_preset = load_presets(print_stderr).find(options.preset)
    check_wire_model(catalog_preset, variant)
    if options.as_json:
        from ....presets.expectation import preset_json

        emit_json(preset_json(catalog_preset, variant))
    else:
        from ....presets.datasheet import build_sheet
        from ...kit.drawing.preset_datasheet import sheet_parts

        emit_rich(*sheet_parts(build_sheet(catalog_preset, variant, language)))
    return 0


@dataclass(frozen=True, slots=True)
class NewOptions:
    """The new preset, and the run that it is made from."""

    name: str = argument("NAME", "Id of the new preset: lower-case letters, digits, - and dots.")
    from_run: str = option("", "Id of the run or its beginning, or last; required.", metavar="ID", required=True)
    force: bool = flag("", "Replace your preset of this id.", "-f")
    as_json: bool = json_flag()


def new_preset(options: NewOptions) -> int:
    """Make a preset of your own from a run, to compare later runs with."""
    from ...session.user_presets import make_preset

    new = make_preset(options.name, options.from_run, force=options.force)
    for notice in new.notices:
        print_stderr(notice)
    if options.as_json:
        emit_json({"id": options.name, "path": str(new.path)})
    else:
        emit_line(str(new.path))
        print_stderr(f"compare the link with it: {PROGRAM} {new.check_command}")
    return 0


def _table(presets: "Sequence[Preset]", language: str, own: "Mapping[str, Sequence[str]]") -> "PrintedTable":
    """Return the table of presets, below headings, with the expected rates of one session, one way and duplex.

    `own` has the names of this host's interfaces below the id of the preset that each has.
    """
    from ....engine.model.directions import Direction
    from ....engine.model.plan import Settings
    from ....presets.catalog import listed_presets
    from ....presets.expectation import find_expectation
    from ...words import numbers
    from ...words.table import Column, Strong, Table
    from ..render.table import PrintedTable

    def rate(expected: "ExpectedRate | None") -> str:
        return numbers.UNKNOWN if expected is None else numbers.mbit(expected.bit_s)

    columns = (
        Column("id", is_text=True, is_key=True),
        Column("link", is_text=True, wraps=True),
        Column("one way\nMb/s"),
        Column("duplex\nMb/s"),
        Column("from", is_text=True),
        Column("", is_text=True, is_key=True),
    )
    rows: list[tuple[str, ...]] = []
    for heading, below in listed_presets(presets).items():
        rows.append(("", Strong(numbers.sanitize(heading)), "", "", "", ""))
        for preset in below:
            outward = find_expectation(preset, Settings(Direction.OUT)).out
            both = find_expectation(preset, Settings(Direction.DUPLEX)).total
            expected = outward or both
            basis = numbers.UNKNOWN if expected is None else expected.basis
            name = numbers.sanitize(preset.name_in(language))
            names = ", ".join(map(numbers.sanitize, own.get(preset.id, ())))
            rows.append((preset.id, name, rate(outward), rate(both), basis, names and f"← {names}"))
    return PrintedTable(Table(columns, rows))


PRESETS: Final = SearchGroup(
    "presets",
    "List, show and make presets: kinds of link and their rates.",
    {"list": list_presets, "show": show_preset, "new": new_preset},
)
