"""`linkgauge check` and `linkgauge run`: one test of a link, with or without a preset."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ....engine.model.errors import UsageError
from ...words import parsing
from ..click_extension.option_fields import group, is_typed, option
from ..latency_options import LatencyOptions, PathOptions
from ..link_options import LinkOptions
from ..output import print_stderr
from ..output_options import OutputOptions
from ..peer_options import AUTO, FarEndOptions, JudgedTargetOptions, Target, TargetOptions, check_supported
from ..plan_options import TEST, TestOptions, TurnOptions

if TYPE_CHECKING:
    from ...session.run_spec import RunSpec


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A test, its far end and its outputs."""

    test: TestOptions = group(TestOptions)
    turn: TurnOptions = group(TurnOptions)
    latency: LatencyOptions = group(LatencyOptions)
    path: PathOptions = group(PathOptions)
    link: LinkOptions = group(LinkOptions)
    far_end: FarEndOptions = group(FarEndOptions)
    output: OutputOptions = group(OutputOptions)

    def to_spec(self, target: Target) -> "RunSpec":
        """Return the test of a far end as it is asked for, with every option checked before anything starts."""
        from ...session.preferences import read_pass_mark
        from ...session.run_spec import Judging, RunSpec, find_preset
        from ...session.storage import config_dir
        from ...session.user_presets import load_presets

        peer, output = self.far_end.find_peer(target.peer), self.output
        plan, variant, rate = (
            self.path.apply_to(self.turn.apply_to(self.test.to_plan()), peer),
            self.link.to_variant(),
            self.test.sending_rate(),
        )
        check_supported(plan, peer, rate)
        judging = Judging(
            preset=None if target.preset is None else find_preset(target.preset, load_presets(print_stderr)),
            variant=variant,
            pass_percent=parsing.pass_percent(output.pass_mark)
            if is_typed("pass_mark")
            else read_pass_mark(config_dir(), print_stderr),
            why=output.why or output.confirm,
        )
        judging.check_link_options()
        return RunSpec(
            plan,
            peer,
            judging,
            output.to_record(),
            replace(output.to_outputs(), line_ns=output.line_ns(self.test.interval_ns)),
            sending_rate=rate,
            target_ci_percent=self.test.target_ci_percent(),
            confirm=output.confirm,
            names_routers=self.path.names,
        )


@dataclass(frozen=True, slots=True)
class CheckCommandOptions:
    """A test with a preset: `check [PRESET] PEER`."""

    target: JudgedTargetOptions = group(JudgedTargetOptions)
    max_jitter: str | None = option(TEST, "Largest mean jitter of a step, in milliseconds, with udp.", metavar="MS")
    run: RunOptions = group(RunOptions)


@dataclass(frozen=True, slots=True)
class RunCommandOptions:
    """A test with or without a preset."""

    target: TargetOptions = group(TargetOptions)
    run: RunOptions = group(RunOptions)


def check(options: CheckCommandOptions) -> int:
    """Run a test, compare it with a preset, and print a verdict.

    With auto, the network interfaces of both ends choose the preset; if they report no speed, name one, or give
    --line-rate. With udp there is a test for each of 50, 75, 90 and 100 % of the rate.
    """
    target = options.target.find("check", AUTO)
    test, latency, max_jitter = options.run.test, options.run.latency, options.max_jitter
    latency.check_workload(test.workload)
    has_steps = test.workload.is_datagram and test.sending_rate() not in {"search", "max", "flood"}
    if max_jitter is not None and not has_steps:
        raise UsageError("--max-jitter is for steps of a rate; give --workload udp, without --rate search or max")
    jitter_ns = None if max_jitter is None else parsing.jitter_ns(max_jitter)
    spec = options.run.to_spec(target)
    if has_steps:
        return _test_steps(spec, jitter_ns)
    _check_loss_goal(test)
    return _test(spec, latency)


def run(options: RunCommandOptions) -> int:
    """Run a test without an expected rate, or with a preset."""
    spec = options.run.to_spec(options.target.find("run"))
    _check_loss_goal(options.run.test)
    return _test(spec, options.run.latency)


def _check_loss_goal(test: TestOptions) -> None:
    """Raise UsageError for a loss goal that a single test of datagrams without a search would ignore."""
    if test.loss_goal is not None and test.workload.is_datagram and test.sending_rate() != "search":
        raise UsageError(
            "--loss-goal is for the steps of check and for a search; leave it out, or give --rate search"
        )


def _test(spec: "RunSpec", latency: LatencyOptions) -> int:
    """Run the test, with latency under load if it has a pass mark; return the exit status."""
    from ..runners.run_test import run_test

    judging = replace(spec.judging, latency_limit=latency.limit())
    return run_test(replace(spec, plan=latency.apply_to(spec.plan, spec.peer), judging=judging))


def _test_steps(spec: "RunSpec", max_jitter_ns: int | None) -> int:
    """Run a test at each step of the rate; return the exit status.

    Raises UsageError if a step would have no end, or another one than its duration.
    """
    from ....presets.rate_steps import StepGoals
    from ..runners.step_runner import run_steps

    if spec.plan.duration_ns is None:
        raise UsageError("--seconds none has no next step; give the duration of each step")
    if spec.confirm:
        raise UsageError("--confirm does not go with steps of a rate; leave it out, or give --rate max or search")
    if spec.target_ci_percent is not None:
        raise UsageError("--until-ci does not go with steps of a rate; leave it out, or give --rate max or search")
    return run_steps(spec, StepGoals(spec.judging.pass_percent, spec.plan.loss_goal_ppm, max_jitter_ns))
