"""`linkgauge sweep`: a run for each combination of settings, and what they say together."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ....engine.model.errors import UsageError
from ....engine.model.plan import Mode
from .. import options as given
from ..options import SshOptions

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
    app.command("sweep")(given.with_options(sweep))


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
    link: given.LinkOptions,
    access: given.AccessOptions,
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
    as_json: given.JsonOption = False,
) -> int:
    """Try all combinations of windows, sessions, message sizes and directions, in an order that is shuffled.

    Tells the fastest settings, the most modest that are as fast, and from where on more brings nothing: by the
    intervals of the rates, not by their noise. Ctrl-C keeps what was measured.
    """
    from ...services.sweeps import SweepRequest
    from ..preset_option import check_link_options, find_preset
    from ..sweep_runner import SweepJob, run_sweep
    from ..user_settings import load_catalog_with_warnings

    catalog, variant = load_catalog_with_warnings(), link.to_variant()
    page = None if report is None else _report_path(report)
    typed = (window, sessions, message_size, direction, figure, preset)
    if resume is not None:
        if any(one is not None for one in typed) or link != given.LinkOptions():
            raise UsageError("a sweep that is gone on with has its axes already: leave them away with --resume")
        asked, variant = _kept(resume, peer)
        found = find_preset(asked.preset, catalog)
    else:
        if peer is None:
            raise UsageError("name the PEER to sweep against, or --resume GROUP")
        asked, found = _begun(catalog, peer, preset, SweepRequest(*typed[:-1], seconds, congestion, mode))
        check_link_options(found, variant)
    wanted = ssh.apply_to(access.parse_peer(asked.peer))
    return run_sweep(SweepJob(asked, found, wanted, variant, csv=csv, report=page, as_json=as_json))


def _report_path(path: Path) -> Path:
    from ...report.html import check_report_path

    return check_report_path(path)


def _kept(group: str, peer: str | None) -> "tuple[Sweep, Variant]":
    """Return a sweep that was begun; a PEER that is named again is where it goes now."""
    from ...services.sweeps import find_sweep

    found, variant = find_sweep(group)
    return (found if peer is None else replace(found, peer=peer)), variant


def _begun(
    catalog: "Catalog", peer: str, preset: str | None, asked: "SweepRequest"
) -> "tuple[Sweep, Preset | Catalog | None]":
    """Return the definition of a new sweep, and its preset; for `auto` all of them, to pick from."""
    from ..preset_option import find_preset

    chosen = find_preset(preset, catalog)
    named = preset if chosen is not catalog else None
    sweep = asked.build_sweep(catalog, peer, named)
    return sweep, catalog if chosen is catalog else find_preset(sweep.preset, catalog)
