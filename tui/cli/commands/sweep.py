"""`linkgauge sweep`: a run for each combination of settings, and the best of them."""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

from ....engine.model.errors import UsageError
from ....engine.model.plan import Mode
from ..click_extension.option_fields import group, option
from ..link_options import LinkOptions
from ..output import print_stderr
from ..output_options import SeriesOutputOptions
from ..peer_options import FarEndOptions, Target, TargetOptions, check_supported
from ..plan_options import TurnOptions, congestion_option

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
        "Windows: 16K..4M doubles, auto,64K,1M is a list.",
        "-w",
        brief="Windows: 16K..4M doubles, auto,64K,1M is a list.",
        metavar="SIZES",
        shown="auto",
    )
    sessions: str | None = option(
        _AXES,
        "Sessions in each direction: 1,2,5,10 or 1..16.",
        "-P",
        brief="Sessions: 1,2,5,10 or 1..16. [1]",
        metavar="NUMBERS",
        shown="1",
    )
    message_size: str | None = option(
        _AXES,
        "Sizes of one send call: 512..10240/512 adds 512 each time.",
        brief="Sizes of one send call: 4K..1M doubles. [1M]",
        metavar="SIZES",
        shown="1M",
    )
    direction: str | None = option(
        _AXES,
        "Directions: out, in, duplex, with commas.",
        brief="Directions: out, in, duplex, with commas. [out]",
        metavar="WORDS",
        shown="out",
    )
    figure: str | None = option(
        _AXES, "Repeat a published test: hp-1.", brief="Repeat a published test: hp-1.", metavar="ID"
    )
    seconds: str = option(
        _RUNS, "Duration of each run.", "-t", brief="Duration of each run. [3]", default="3", metavar="TIME"
    )
    congestion: str | None = congestion_option(_RUNS)
    mode: Mode | None = option(_RUNS, "How payload moves.")
    resume: str | None = option(
        _RUNS,
        "Resume an interrupted sweep, or show a complete one.",
        brief="Resume an interrupted sweep, or show a complete one.",
        metavar="GROUP",
    )

    @property
    def has_axes(self) -> bool:
        """Whether anything is given that a stored sweep has already."""
        axes = (self.window, self.sessions, self.message_size, self.direction, self.figure)
        return any(value is not None for value in axes)

    def define(self, catalog: "Catalog", target: Target) -> "tuple[Sweep, Preset | Catalog | None]":
        """Return the definition of a new sweep and its preset; for `auto` the catalog to choose from."""
        from ...session.run_spec import find_preset
        from ...sweep.sweep_session import SweepRequest

        request = SweepRequest(**{each.name: getattr(self, each.name) for each in fields(SweepRequest)})
        is_auto = find_preset(target.preset, catalog) is catalog
        definition = request.build_sweep(catalog, target.peer, None if is_auto else target.preset)
        return definition, catalog if is_auto else find_preset(definition.preset, catalog)


@dataclass(frozen=True, slots=True)
class SweepCommandOptions:
    """A sweep with its link, its far end and its outputs."""

    target: TargetOptions = group(TargetOptions)
    sweep: SweepOptions = group(SweepOptions)
    turn: TurnOptions = group(TurnOptions)
    link: LinkOptions = group(LinkOptions)
    far_end: FarEndOptions = group(FarEndOptions)
    output: SeriesOutputOptions = group(SeriesOutputOptions)


def sweep(options: SweepCommandOptions) -> int:
    """Run a test for each combination of settings, and find the best.

    Names the fastest settings, the smallest that are as fast, and the point beyond which larger values do not
    help; confidence intervals decide, not noise. Ctrl-C saves the results so far; --resume continues.
    """
    from ...session.run_spec import Judging, RunSpec, find_preset
    from ...session.user_presets import load_presets
    from ..runners.sweep_runner import run_sweep

    catalog, variant = load_presets(print_stderr), options.link.to_variant()
    outputs, resume = options.output.to_outputs(), options.sweep.resume
    if resume is not None:
        given_preset, peer = options.target.read_words()
        if options.sweep.has_axes or given_preset is not None or options.link != LinkOptions():
            raise UsageError("--resume continues a sweep with its own settings; give no others with it")
        definition, variant = _find_stored(resume, peer)
        preset = find_preset(definition.preset, catalog)
    else:
        definition, preset = options.sweep.define(catalog, options.target.find("sweep"))
        Judging(preset, variant).check_link_options()
    definition = replace(definition, base=options.turn.apply_to(definition.base))
    far_peer = options.far_end.find_peer(definition.peer)
    for point in definition.points:
        check_supported(point.to_plan(definition.base), far_peer)
    judging = Judging(preset=preset, variant=variant)
    return run_sweep(definition, RunSpec(definition.base, far_peer, judging, outputs=outputs))


def _find_stored(group: str, peer: str | None) -> "tuple[Sweep, Variant]":
    """Return the definition of an earlier sweep; a PEER on the command line replaces its own."""
    from ...sweep.sweep_session import find_sweep

    definition, variant = find_sweep(group)
    return (definition if peer is None else replace(definition, peer=peer)), variant
