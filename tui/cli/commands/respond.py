"""`linkgauge respond` and `linkgauge path`: latency under load, where the queue is, and which hop has it."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..click_extension.option_fields import group
from ..latency_options import LatencyOptions, LoadOptions, PathOptions, check_measurable, names_flag, with_path
from ..link_options import LinkOptions
from ..output import print_stderr
from ..output_options import ResultOptions
from ..peer_options import FarEndOptions, TargetOptions
from ..plan_options import TurnOptions

if TYPE_CHECKING:
    from ...session.run_spec import RunSpec


@dataclass(frozen=True, slots=True)
class LoadTestOptions:
    """A responsiveness test, and where its results go."""

    target: TargetOptions = group(TargetOptions)
    load: LoadOptions = group(LoadOptions)
    turn: TurnOptions = group(TurnOptions)
    latency: LatencyOptions = group(LatencyOptions)
    link: LinkOptions = group(LinkOptions)
    far_end: FarEndOptions = group(FarEndOptions)
    output: ResultOptions = group(ResultOptions)

    def to_spec(self, command: str) -> "RunSpec":
        """Return the test; raise UsageError or PlanError for a bad option of this command."""
        from ...session.run_spec import Judging, RunSpec, find_preset
        from ...session.user_presets import load_presets

        target, variant = self.target.find(command), self.link.to_variant()
        plan, limit = self.turn.apply_to(self.load.to_plan()), self.latency.limit()
        peer, output = self.far_end.find_peer(target.peer), self.output
        check_measurable(peer, "latency under load")
        preset = None if target.preset is None else find_preset(target.preset, load_presets(print_stderr))
        judging = Judging(preset, variant, latency_limit=limit)
        judging.check_link_options()
        return RunSpec(plan, peer, judging, output.to_record(), output.to_outputs())


@dataclass(frozen=True, slots=True)
class RespondOptions:
    """A responsiveness test, with the path or without it."""

    test: LoadTestOptions = group(LoadTestOptions)
    path: PathOptions = group(PathOptions)


def respond(options: RespondOptions) -> int:
    """Measure latency under load, grade it, and find the queue that causes it.

    Latency is measured without load, then with the link loaded out, in, and both ways, each until rate and latency
    are steady: 25 s at most. Without --max-rise or --grade nothing is judged.
    """
    from ..runners.run_test import run_test

    spec = options.test.to_spec("respond")
    plan = options.path.apply_to(spec.plan, spec.peer)
    return run_test(replace(spec, plan=plan, names_routers=options.path.names))


@dataclass(frozen=True, slots=True)
class PathCommandOptions:
    """A responsiveness test that traces the path."""

    test: LoadTestOptions = group(LoadTestOptions)
    names: bool = names_flag()


def path(options: PathCommandOptions) -> int:
    """Find the hop that has the queue or the loss, in each direction.

    Both ends trace the hops between them without load, then with the link loaded out, in, and both ways, as respond
    loads it: 25 s at most. No privilege is needed. Routers that do not answer are shown as silent.
    """
    from ..runners.run_test import run_test

    spec = options.test.to_spec("path")
    return run_test(replace(spec, plan=with_path(spec.plan, spec.peer, "path"), names_routers=options.names))
