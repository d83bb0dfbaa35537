"""`linkgauge sweep`: a run for each combination of settings, and the best of them."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ....engine.model.errors import UsageError
from ....engine.model.plan import Mode
from ..options import AccessOptions, JsonOption, LinkOptions, SshOptions, with_options

if TYPE_CHECKING:
    from ....engine.results.sweep import Sweep
    from ....presets.catalog import Catalog
    from ....presets.preset import Preset
    from ....presets.wire import Variant
    from ...services.sweeps import SweepRequest

_SECONDS: Final = "3"
_AXES: Final = "What is tried"


def add_commands(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("sweep")(with_options(sweep))


def _axis(name: str, metavar: str, help_: str, shown: str) -> Any:
    return typer.Option(name, metavar=metavar, show_default=shown, help=help_, rich_help_panel=_AXES)


def sweep(
    peer: Annotated[
        str | None,
        typer.Argument(metavar="PEER", show_default=False, help="HOST[:PORT], [IPv6]:PORT, or loopback."),
    ] = None,
    *,
    window: Annotated[
        str | None, _axis("--window", "SIZES", "Windows: 16K..4M doubles, auto,64K,1M names them.", "auto")
    ] = None,
    sessions: Annotated[
        str | None, _axis("--sessions", "NUMBERS", "Sessions in each direction: 1,2,5,10 or 1..16.", "1")
    ] = None,
    message_size: Annotated[
        str | None,
        _axis("--message-size", "SIZES", "What a session sends at once: 512..10240/512 adds 512 each time.", "1M"),
    ] = None,
    direction: Annotated[str | None, _axis("--direction", "WORDS", "out, in, duplex, with commas.", "out")] = None,
    figure: Annotated[
        str | None,
        _axis("--figure", "ID", "Repeat an experiment of a document: hp-1.", "none"),
    ] = None,
    seconds: Annotated[str, typer.Option(metavar="TIME", help="How long each run lasts.")] = _SECONDS,
    preset: Annotated[
        str | None,
        typer.Option(metavar="ID", show_default="nothing to expect", help="The preset of the link, or auto."),
    ] = None,
    congestion: Annotated[
        str | None, typer.Option(metavar="NAME", show_default="the machine's own", help="Congestion control.")
    ] = None,
    mode: Annotated[Mode | None, typer.Option(show_default=False, help="How payload moves.")] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="GROUP", show_default=False, help="Go on with a sweep that was cut off, or show one."),
    ] = None,
    link: LinkOptions,
    access: AccessOptions,
    ssh: SshOptions,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", show_default=False, help="Write a row for each run.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Write a page with plots, .html, that needs nothing else."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Try all combinations of windows, sessions, message sizes and directions, in an order that is shuffled.

    Tells the fastest settings, the most modest that are as fast, and from where on more brings nothing: by the
    intervals of the rates, not by their noise. Ctrl-C keeps what was measured.
    """
    from ...services.sweeps import SweepRequest
    from ..preset_option import check_link_options, find_preset, load_catalog_with_warnings
    from ..sweep_runner import SweepJob, run_sweep

    catalog, variant = load_catalog_with_warnings(), link.to_variant()
    page = None if report is None else _report_path(report)
    choices = (window, sessions, message_size, direction, figure, preset)
    if resume is not None:
        if any(value is not None for value in choices) or link != LinkOptions():
            raise UsageError("a sweep that is gone on with has its axes already: leave them away with --resume")
        definition, variant = _find_stored(resume, peer)
        link_preset = find_preset(definition.preset, catalog)
    else:
        if peer is None:
            raise UsageError("name the PEER to sweep against, or --resume GROUP")
        definition, link_preset = _define(
            catalog, peer, preset, SweepRequest(*choices[:-1], seconds, congestion, mode)
        )
        check_link_options(link_preset, variant)
    far_peer = ssh.apply_to(access.parse_peer(definition.peer))
    return run_sweep(SweepJob(definition, link_preset, far_peer, variant, csv=csv, report=page, as_json=as_json))


def _report_path(path: Path) -> Path:
    from ...report.html import check_report_path

    return check_report_path(path)


def _find_stored(group: str, peer: str | None) -> "tuple[Sweep, Variant]":
    """Return the definition of an earlier sweep; a PEER on the command line replaces its own."""
    from ...services.sweeps import find_sweep

    definition, variant = find_sweep(group)
    return (definition if peer is None else replace(definition, peer=peer)), variant


def _define(
    catalog: "Catalog", peer: str, preset: str | None, request: "SweepRequest"
) -> "tuple[Sweep, Preset | Catalog | None]":
    """Return the definition of a new sweep and its preset; for `auto` the catalog to choose from."""
    from ..preset_option import find_preset

    is_auto = find_preset(preset, catalog) is catalog
    definition = request.build_sweep(catalog, peer, None if is_auto else preset)
    return definition, catalog if is_auto else find_preset(definition.preset, catalog)
