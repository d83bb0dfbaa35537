"""`linkgauge sweep`: a run for each combination of settings, and the best of them."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ....engine.model.errors import UsageError
from ....engine.model.plan import Mode
from ..options import LinkOptions, SeriesOutputOptions
from ..peer_options import PEER_HELP, AccessOptions, SshOptions, check_supported
from ..turn_options import TurnOptions
from ..typer_extension import option

if TYPE_CHECKING:
    from ....engine.results.sweep import Sweep
    from ....presets.catalog import Catalog
    from ....presets.preset import Preset
    from ....presets.wire import Variant

_AXES: Final = "Settings to try"
_RUNS: Final = "Each run"


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The settings that a sweep tries, and those that all its runs have."""

    window: str | None = option(
        _AXES,
        str | None,
        "Windows: 16K..4M doubles, auto,64K,1M is a list.",
        "--window",
        "-w",
        metavar="SIZES",
        default_text="auto",
    )
    sessions: str | None = option(
        _AXES,
        str | None,
        "Sessions in each direction: 1,2,5,10 or 1..16.",
        "--sessions",
        "-P",
        metavar="NUMBERS",
        default_text="1",
    )
    message_size: str | None = option(
        _AXES,
        str | None,
        "Sizes of one send call: 512..10240/512 adds 512 each time.",
        metavar="SIZES",
        default_text="1M",
    )
    direction: str | None = option(
        _AXES, str | None, "Directions: out, in, duplex, with commas.", metavar="WORDS", default_text="out"
    )
    figure: str | None = option(_AXES, str | None, "Repeat a published test: hp-1.", metavar="ID")
    seconds: str = option(
        _RUNS, str, "Duration of each run.", "--seconds", "-t", default="3", metavar="TIME", default_text=True
    )
    preset: str | None = option(_RUNS, str | None, "Compare with this preset, or with auto.", metavar="ID")
    congestion: str | None = option(
        _RUNS, str | None, "Congestion control: cubic, reno, bbr.", metavar="NAME", default_text="the kernel's"
    )
    mode: Mode | None = option(_RUNS, Mode | None, "How payload moves.")
    resume: str | None = option(
        _RUNS, str | None, "Resume an interrupted sweep, or show a complete one.", metavar="GROUP"
    )

    @property
    def has_axes(self) -> bool:
        """Whether anything is given that a stored sweep has already."""
        axes = (self.window, self.sessions, self.message_size, self.direction, self.figure, self.preset)
        return any(value is not None for value in axes)

    def define(self, catalog: "Catalog", peer: str) -> "tuple[Sweep, Preset | Catalog | None]":
        """Return the definition of a new sweep and its preset; for `auto` the catalog to choose from."""
        from ...services.sweeps import SweepRequest
        from ..preset_option import find_preset

        request = SweepRequest(
            self.window,
            self.sessions,
            self.message_size,
            self.direction,
            self.figure,
            self.seconds,
            self.congestion,
            self.mode,
        )
        is_auto = find_preset(self.preset, catalog) is catalog
        definition = request.build_sweep(catalog, peer, None if is_auto else self.preset)
        return definition, catalog if is_auto else find_preset(definition.preset, catalog)


def sweep(
    peer: Annotated[
        str | None,
        typer.Argument(metavar="[PEER]", show_default=False, help=PEER_HELP),
    ] = None,
    *,
    options: SweepOptions,
    turn: TurnOptions,
    link: LinkOptions,
    access: AccessOptions,
    ssh: SshOptions,
    output: SeriesOutputOptions,
) -> int:
    """Run a test for each combination of settings, and find the best.

    Names the fastest settings, the smallest that are as fast, and the point from which more brings nothing;
    confidence intervals decide, not noise. Ctrl-C saves the results so far; --resume continues.
    """
    from ...services.run_spec import Judging, RunSpec
    from ..preset_option import check_link_options, find_preset, load_catalog_with_warnings
    from ..runners.sweep_runner import run_sweep

    catalog, variant = load_catalog_with_warnings(), link.to_variant()
    outputs = output.to_outputs()
    if options.resume is not None:
        if options.has_axes or link != LinkOptions():
            raise UsageError("--resume continues a sweep with its own settings; give no others with it")
        definition, variant = _find_stored(options.resume, peer)
        preset = find_preset(definition.preset, catalog)
    else:
        if peer is None:
            raise UsageError("PEER is missing; give a host, or --resume GROUP")
        definition, preset = options.define(catalog, peer)
        check_link_options(preset, variant)
    definition = replace(definition, base=turn.apply_to(definition.base))
    far_peer = ssh.apply_to(access.parse_peer(definition.peer))
    for point in definition.points:
        check_supported(point.to_plan(definition.base), far_peer)
    judging = Judging(preset=preset, variant=variant)
    return run_sweep(definition, RunSpec(definition.base, far_peer, judging, outputs=outputs))


def _find_stored(group: str, peer: str | None) -> "tuple[Sweep, Variant]":
    """Return the definition of an earlier sweep; a PEER on the command line replaces its own."""
    from ...services.sweeps import find_sweep

    definition, variant = find_sweep(group)
    return (definition if peer is None else replace(definition, peer=peer)), variant
