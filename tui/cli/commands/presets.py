"""`linkgauge presets`: list the known kinds of link, show one, make one from a run."""

from typing import TYPE_CHECKING, Annotated

import typer

from ....engine.model.errors import UsageError
from ...text.parsing import resolve_language
from ..completion import complete_preset
from ..options import JsonOption, LangOption, LinkOptions
from ..output import PROGRAM, emit_json, emit_line, emit_rich, print_stderr
from ..typer_extension import SearchGroup, add_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ....engine.model.events import ExpectedRate
    from ....presets.preset import Preset

app = typer.Typer(
    cls=SearchGroup,
    help="List, show and make presets: kinds of link and their rates.",
    subcommand_metavar="[COMMAND ...]",
)


def list_presets(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD ...]", show_default=False, help="Show only presets with these words: 10g, wireguard."
        ),
    ] = None,
    *,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> int:
    """List the presets with their expected rates (the default command)."""
    from ....presets.search import find_presets, unknown_link_hint
    from ..preset_option import load_catalog_with_warnings

    language, query = resolve_language(lang), " ".join(words or ())
    presets = find_presets(load_catalog_with_warnings().presets, query, language)
    if not presets:
        raise UsageError(
            f"no preset matches {query!r}; {unknown_link_hint(query) or f'{PROGRAM} presets lists all'}"
        )
    if as_json:
        from ....presets.expectation import preset_json

        emit_json([preset_json(preset) for preset in presets])
    else:
        emit_rich(_table(presets, language), is_wide=True)
    return 0


def show_preset(
    preset: Annotated[
        str,
        typer.Argument(metavar="ID", show_default=False, help="Id of the preset.", autocompletion=complete_preset),
    ],
    *,
    link: LinkOptions,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show a preset: its link, its expected rates, the numbers of its document."""
    from ....presets.expectation import check_wire_model
    from ..preset_option import load_catalog_with_warnings

    language, variant = resolve_language(lang), link.to_variant()
    catalog_preset = load_catalog_with_warnings().find(preset)
    check_wire_model(catalog_preset, variant)
    if as_json:
        from ....presets.expectation import preset_json

        emit_json(preset_json(catalog_preset, variant))
    else:
        from ....presets.sheet import build_sheet
        from ...rendering.preset_sheet import sheet_parts

        emit_rich(*sheet_parts(build_sheet(catalog_preset, variant, language)))
    return 0


def new_preset(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", show_default=False, help="Id of the new preset: lower-case letters, digits, - and dots."
        ),
    ],
    *,
    from_run: Annotated[
        str,
        typer.Option(
            "--from-run", metavar="ID", show_default=False, help="Id of the run, or its beginning; required."
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", "-f", metavar="", help="Replace your preset of this id.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Make a preset of your own from a run, to compare later runs with."""
    from ...services.user_presets import make_preset

    new = make_preset(name, from_run, force=force)
    for notice in new.notices:
        print_stderr(notice)
    if as_json:
        emit_json({"id": name, "path": str(new.path)})
    else:
        emit_line(str(new.path))
        print_stderr(f"compare the link with it: {PROGRAM} {new.check_command}")
    return 0


def _table(presets: "Sequence[Preset]", language: str) -> "Table":
    """Return the table of presets with the expected rates of one session, one way and duplex."""
    from rich.table import Table

    from ....engine.model.plan import Direction, Settings
    from ....presets.expectation import find_expectation
    from ...text import numbers

    def rate(expected: "ExpectedRate | None") -> str:
        return numbers.UNKNOWN if expected is None else numbers.mbit(expected.bit_s)

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("id", no_wrap=True, style="bold")
    table.add_column("link", overflow="fold")
    table.add_column("one way\nMb/s", justify="right", no_wrap=True)
    table.add_column("duplex\nMb/s", justify="right", no_wrap=True)
    table.add_column("from", no_wrap=True)
    for preset in presets:
        outward = find_expectation(preset, Settings(Direction.OUT)).out
        both = find_expectation(preset, Settings(Direction.DUPLEX)).total
        documented = outward or both
        table.add_row(
            preset.id,
            numbers.sanitize(preset.name_in(language)),
            rate(outward),
            rate(both),
            numbers.UNKNOWN if documented is None else documented.basis,
        )
    return table


for _name, _command in {"list": list_presets, "show": show_preset, "new": new_preset}.items():
    add_command(app, _name, _command)
