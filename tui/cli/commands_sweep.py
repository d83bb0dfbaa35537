"""`linkgauge sweep`: a run for each combination of settings, and what they say together."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ...engine.plan import Mode
from . import options as given
from . import parse
from .ssh_options import SshOptions
from .status import UsageProblem

if TYPE_CHECKING:
    from ...engine.sweep import Sweep
    from ...presets.catalog import Catalog
    from ...presets.model import Sweep as Figure

_SECONDS: Final = "3"
_INTERVAL_NS: Final = 100_000_000  # 24 intervals of a run of 3 s: enough to tell how sure its mean is
_AXES: Final = "What is tried"


def add_to(app: typer.Typer) -> None:
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
        str | None, typer.Option(metavar="ID", show_default="nothing to expect", help="The preset of the link.")
    ] = None,
    congestion: Annotated[
        str | None, typer.Option(metavar="NAME", show_default="the machine's own", help="Congestion control.")
    ] = None,
    mode: Annotated[Mode | None, typer.Option(show_default=False, help="How payload moves.")] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="GROUP", show_default=False, help="Go on with a sweep that was cut off, or show one."),
    ] = None,
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
    from .told import told_catalog

    catalog = told_catalog()
    page = None if report is None else _report_path(report)
    if resume is not None:
        if any(one is not None for one in (window, sessions, message_size, direction, figure, preset)):
            raise UsageProblem("a sweep that is gone on with has its axes already: leave them away with --resume")
        asked = _kept(resume, peer)
    else:
        if peer is None:
            raise UsageProblem("name the PEER to sweep against, or --resume GROUP")
        axes = _Axes(catalog, figure, window, sessions, message_size, direction, preset)
        asked = axes.sweep(peer, seconds, congestion, mode)
    found = None if asked.preset is None else catalog.find(asked.preset)
    from .sweep_run import Asked, run_sweep

    return run_sweep(Asked(asked, found, ssh.of(access.peer(asked.peer)), csv=csv, report=page, as_json=as_json))


def _report_path(path: Path) -> Path:
    from ..sweep_report import check_report_path

    return check_report_path(path)


def _kept(group: str, peer: str | None) -> "Sweep":
    """Return a sweep that was begun; a PEER that is named again is where it goes now."""
    from dataclasses import replace

    from ..sweeping import find_sweep

    found = find_sweep(group)
    return found if peer is None else replace(found, peer=peer)


class _Axes:
    """The axes as typed; those of a document's figure where they are not."""

    def __init__(
        self,
        catalog: "Catalog",
        figure: str | None,
        window: str | None,
        sessions: str | None,
        message_size: str | None,
        direction: str | None,
        preset: str | None,
    ) -> None:
        self.figure = None if figure is None else _figure(catalog, figure)
        self.window = window
        self.sessions = sessions
        self.message_size = message_size
        self.direction = direction
        self.preset = preset or (None if self.figure is None else self.figure.preset)

    def sweep(self, peer: str, seconds: str, congestion: str | None, mode: Mode | None) -> "Sweep":
        """Return the definition; raise PlanError for the first thing in it that cannot be."""
        from datetime import UTC, datetime
        from random import SystemRandom

        from ...engine.plan import Direction, Plan, SocketOptions
        from ...engine.runlog import new_run_id
        from ...engine.sweep import Sweep
        from . import ranges

        base = Plan(
            duration_ns=parse.duration_ns(seconds),
            interval_ns=_INTERVAL_NS,
            mode=mode,
            socket=SocketOptions(congestion=congestion),
        )
        figure = self.figure
        own = (None,) if figure is None else figure.window_bytes
        messages = (base.block_bytes,) if figure is None else figure.message_bytes
        directions = (Direction.OUT,) if figure is None else (Direction(figure.direction),)
        return Sweep(
            group=f"sweep-{new_run_id(datetime.now(UTC), SystemRandom())}",
            peer=peer,
            base=base,
            directions=directions if self.direction is None else ranges.directions(self.direction),
            sessions=(1,) if self.sessions is None else ranges.sessions(self.sessions),
            windows=own if self.window is None else ranges.windows(self.window),
            messages=messages if self.message_size is None else ranges.messages(self.message_size),
            preset=self.preset,
            figure=None if figure is None else figure.id,
        )


def _figure(catalog: "Catalog", text: str) -> "Figure":
    """Return a document's experiment by its id, with or without the word figure in it."""
    for figure in catalog.sweeps:
        if text.strip().lower() in {figure.id, figure.id.replace("-figure-", "-")}:
            return figure
    known = ", ".join(figure.id.replace("-figure-", "-") for figure in catalog.sweeps)
    raise UsageProblem(f"there is no figure {text!r}; there is {known}")
