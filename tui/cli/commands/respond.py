"""`linkgauge respond`: latency under load, its grade, and where the queue is."""

from dataclasses import dataclass

from ..click_extension.option_fields import group
from ..latency_options import LatencyOptions, LoadOptions, check_measurable
from ..options import LinkOptions, ResultOptions
from ..output import print_stderr
from ..peer_options import FarEndOptions, TargetOptions
from ..turn_options import TurnOptions


@dataclass(frozen=True, slots=True)
class RespondOptions:
    """A responsiveness test, and where its results go."""

    target: TargetOptions = group(TargetOptions)
    load: LoadOptions = group(LoadOptions)
    turn: TurnOptions = group(TurnOptions)
    latency: LatencyOptions = group(LatencyOptions)
    link: LinkOptions = group(LinkOptions)
    far_end: FarEndOptions = group(FarEndOptions)
    output: ResultOptions = group(ResultOptions)


def respond(options: RespondOptions) -> int:
    """Measure latency under load, grade it, and find the queue that causes it.

    Latency is measured without load, then with the link loaded out, in, and both ways, each until rate and latency
    are steady: 25 s at most. Without --max-rise or --grade nothing is judged.
    """
    from ...session.run_spec import Judging, RunSpec, find_preset
    from ...session.user_presets import load_presets
    from ..runners.run_test import run_test

    target, variant = options.target.find("respond"), options.link.to_variant()
    plan, limit = options.turn.apply_to(options.load.to_plan()), options.latency.limit()
    peer, output = options.far_end.find_peer(target.peer), options.output
    check_measurable(peer, "latency under load")
    preset = None if target.preset is None else find_preset(target.preset, load_presets(print_stderr))
    judging = Judging(preset, variant, latency_limit=limit)
    judging.check_link_options()
    return run_test(RunSpec(plan, peer, judging, output.to_record(), output.to_outputs()))
