"""`linkgauge check` and `linkgauge run`: one test of a link, with or without a preset."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ....engine.model.errors import UsageError
from ....engine.model.peer import LOOPBACK, Peer
from ....engine.results.run_log.labels import validate_label
from ...text import parsing
from ..completion import complete_test_preset
from ..latency_options import LatencyOptions
from ..options import TEST, LinkOptions, OutputOptions, TestOptions
from ..peer_options import PEER_HELP, AccessOptions, PeerArgument, SshOptions, check_supported
from ..turn_options import TurnOptions

if TYPE_CHECKING:
    from ..runners.run_test import TestJob


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
    if test_options.workload.is_datagram and test_options.sending_rate() not in {"search", "max"}:
        return _test_steps(
            test_options, turn, preset_id, link, ssh.apply_to(access.parse_peer(peer_text)), output, max_jitter
        )
    if max_jitter is not None:
        raise UsageError("--max-jitter is for steps of a rate; give --workload udp, without --rate search or max")
    return _test(test_options, turn, preset_id, link, ssh.apply_to(access.parse_peer(peer_text)), output, latency)


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
    return _test(test_options, turn, preset, link, ssh.apply_to(access.parse_peer(peer)), output, latency)


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


def _test(
    test_options: TestOptions,
    turn: TurnOptions,
    preset_id: str | None,
    link: LinkOptions,
    peer: Peer,
    output: OutputOptions,
    latency: LatencyOptions,
) -> int:
    """Check every option before anything starts, then run the test; return the exit status.

    Args:
        test_options: the options of the plan and of an early end.
        turn: whether the test has the endpoint alone, and how long it waits for it.
        preset_id: the preset's id, `auto`, or None for a test without one.
        link: the differences of the link from the preset's.
        peer: the far end, with its credentials.
        output: the pass mark, the label and the files of the results.
        latency: the pass marks of latency under load.
    """
    from ..runners.run_test import run_test

    job = _job(test_options, turn, preset_id, link, peer, output)
    return run_test(replace(job, plan=latency.apply_to(job.plan, peer), latency_limit=latency.limit()))


def _test_steps(
    test_options: TestOptions,
    turn: TurnOptions,
    preset_id: str | None,
    link: LinkOptions,
    peer: Peer,
    output: OutputOptions,
    max_jitter: str | None,
) -> int:
    """Check every option before anything starts, then run a test at each step of the rate; return the exit status.

    Args:
        test_options: the options of the plan of each step.
        turn: whether the test has the endpoint alone, and how long it waits for it.
        preset_id: the preset's id, `auto`, or None for steps of a rate of one's own.
        link: the differences of the link from the preset's.
        peer: the far end, with its credentials.
        output: the pass mark, the label and the files of the results.
        max_jitter: the largest mean jitter as typed; None for any.

    Raises:
        UsageError: a step would have no end, or another one than its duration.
    """
    from ....presets.rate_steps import StepGoals
    from ..runners.step_runner import run_steps

    jitter_ns = None if max_jitter is None else parsing.jitter_ns(max_jitter)
    job = _job(test_options, turn, preset_id, link, peer, output)
    if job.plan.duration_ns is None:
        raise UsageError("--seconds none has no next step; give the duration of each step")
    if job.confirm:
        raise UsageError("--confirm does not go with steps of a rate; leave it out, or give --rate max or search")
    if job.target_ci_percent is not None:
        raise UsageError("--until-ci does not go with steps of a rate; leave it out, or give --rate max or search")
    return run_steps(job, StepGoals(job.pass_percent, job.plan.loss_goal_ppm, jitter_ns))


def _job(
    test_options: TestOptions,
    turn: TurnOptions,
    preset_id: str | None,
    link: LinkOptions,
    peer: Peer,
    output: OutputOptions,
) -> "TestJob":
    from ..preset_option import find_preset, read_pass_mark
    from ..runners.run_test import TestJob

    plan, variant, pass_mark = turn.apply_to(test_options.to_plan()), link.to_variant(), output.pass_mark
    check_supported(plan, peer, test_options.sending_rate())
    return TestJob(
        plan,
        find_preset(preset_id),
        peer,
        read_pass_mark() if pass_mark is None else parsing.pass_percent(pass_mark),
        csv=output.csv,
        as_json=output.as_json,
        as_json_stream=output.as_json_stream,
        variant=variant,
        label=validate_label(output.label),
        target_ci_percent=test_options.target_ci_percent(),
        why=output.why,
        confirm=output.confirm,
        sending_rate=test_options.sending_rate(),
    )
