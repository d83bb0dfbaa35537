"""`linkgauge check` and `linkgauge run`: one test of a link, with or without a preset."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ....engine.model.errors import UsageError
from ....engine.model.peer import LOOPBACK, Peer
from ...text import parsing
from ..completion import complete_test_preset
from ..latency_options import LatencyOptions
from ..options import TEST, LinkOptions, OutputOptions, TestOptions
from ..peer_options import PEER_HELP, AccessOptions, PeerArgument, SshOptions, check_supported
from ..turn_options import TurnOptions

if TYPE_CHECKING:
    from ...services.run_spec import RunSpec


def check(
    preset: Annotated[
        str | None,
        typer.Argument(
            metavar="[PRESET]",
            show_default="auto",
            help="Preset to compare with; see linkgauge presets list.",
            autocompletion=complete_test_preset,
        ),
    ] = None,
    peer: Annotated[str | None, typer.Argument(metavar="PEER", show_default=False, help=PEER_HELP)] = None,
    *,
    max_jitter: Annotated[
        str | None,
        typer.Option(
            "--max-jitter",
            metavar="MS",
            show_default=False,
            help="Largest mean jitter of a step, in milliseconds, with udp.",
            rich_help_panel=TEST,
        ),
    ] = None,
    test_options: TestOptions,
    turn: TurnOptions,
    latency: LatencyOptions,
    link: LinkOptions,
    access: AccessOptions,
    ssh: SshOptions,
    output: OutputOptions,
) -> int:
    """Run a test, compare it with a preset, and print a verdict.

    With auto, the network interfaces of both ends choose the preset. With udp there is a test for each of 50, 75,
    90 and 100 % of the rate.
    """
    preset_id, peer_text = _preset_and_peer(preset, peer)
    latency.check_workload(test_options.workload)
    has_steps = test_options.workload.is_datagram and test_options.sending_rate() not in {"search", "max"}
    if max_jitter is not None and not has_steps:
        raise UsageError("--max-jitter is for steps of a rate; give --workload udp, without --rate search or max")
    jitter_ns = None if max_jitter is None else parsing.jitter_ns(max_jitter)
    spec = _spec(test_options, turn, preset_id, link, ssh.apply_to(access.parse_peer(peer_text)), output)
    return _test_steps(spec, jitter_ns) if has_steps else _test(spec, latency)


def run(
    peer: PeerArgument,
    *,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            show_default=False,
            help="Compare with this preset, or with auto.",
            autocompletion=complete_test_preset,
            rich_help_panel=TEST,
        ),
    ] = None,
    test_options: TestOptions,
    turn: TurnOptions,
    latency: LatencyOptions,
    link: LinkOptions,
    access: AccessOptions,
    ssh: SshOptions,
    output: OutputOptions,
) -> int:
    """Run a test without an expected rate, or with a preset."""
    return _test(_spec(test_options, turn, preset, link, ssh.apply_to(access.parse_peer(peer)), output), latency)


def _preset_and_peer(first: str | None, second: str | None) -> tuple[str, str]:
    """Return the preset and the peer of `check [PRESET] PEER`; raise UsageError without a peer."""
    if first is None:
        raise UsageError("PEER is missing; give a host: linkgauge check HOST")
    if second is not None:
        return first, second
    from ....presets.auto_select import AUTO
    from ...services.user_presets import load_presets

    ids = {AUTO, *(preset.id for preset in load_presets().presets)} - {LOOPBACK.host}
    if first in ids:
        from ....engine.model.shell_commands import shell_command

        raise UsageError(f"PEER is missing; give a host: {shell_command('linkgauge', 'check', first, 'HOST')}")
    return AUTO, first


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


def _spec(
    test_options: TestOptions,
    turn: TurnOptions,
    preset_id: str | None,
    link: LinkOptions,
    peer: Peer,
    output: OutputOptions,
) -> "RunSpec":
    """Return the test as it is asked for, with every option checked before anything starts.

    Args:
        test_options: the options of the plan and of an early end.
        turn: whether the test has the endpoint alone, and how long it waits for it.
        preset_id: the preset's id, `auto`, or None for a test without one.
        link: the differences of the link from the preset's.
        peer: the far end, with its credentials.
        output: the pass mark, the label and the files of the results.
    """
    from ...services.run_spec import Judging, Record, RunSpec
    from ..preset_option import check_link_options, find_preset, read_pass_mark

    plan, variant, pass_mark = turn.apply_to(test_options.to_plan()), link.to_variant(), output.pass_mark
    check_supported(plan, peer, test_options.sending_rate())
    judging = Judging(
        preset=find_preset(preset_id),
        variant=variant,
        pass_percent=read_pass_mark() if pass_mark is None else parsing.pass_percent(pass_mark),
        why=output.why or output.confirm,
    )
    check_link_options(judging.preset, variant)
    from ....engine.results.run_log.labels import validate_label  # here: it loads SQLite

    return RunSpec(
        plan,
        peer,
        judging,
        Record(label=validate_label(output.label)),
        output.to_outputs(),
        sending_rate=test_options.sending_rate(),
        target_ci_percent=test_options.target_ci_percent(),
        confirm=output.confirm,
    )
