"""`linkgauge check` and `linkgauge run`: one test of a link, with or without a preset."""

from typing import Annotated

import typer

from ....engine.model.labels import validate_label
from ....engine.model.peer import Peer
from ...text import parsing
from ..completion import complete_test_preset
from ..options import AccessOptions, LinkOptions, OutputOptions, PeerArgument, SshOptions, TestOptions


def check(
    preset: Annotated[
        str,
        typer.Argument(
            metavar="PRESET",
            show_default=False,
            help="A preset's id, or auto.",
            autocompletion=complete_test_preset,
        ),
    ],
    peer: PeerArgument,
    *,
    test_options: TestOptions,
    link: LinkOptions,
    access: AccessOptions,
    ssh: SshOptions,
    output: OutputOptions,
) -> int:
    """Hold a link against a preset, and say whether it delivers: one test, one verdict."""
    return _test(test_options, preset, link, ssh.apply_to(access.parse_peer(peer)), output)


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
        ),
    ] = None,
    test_options: TestOptions,
    link: LinkOptions,
    access: AccessOptions,
    ssh: SshOptions,
    output: OutputOptions,
) -> int:
    """Test a link without a preset, or with one."""
    return _test(test_options, preset, link, ssh.apply_to(access.parse_peer(peer)), output)


def _test(
    test_options: TestOptions, preset_id: str | None, link: LinkOptions, peer: Peer, output: OutputOptions
) -> int:
    """Check every option before anything starts, then run the test; return the exit status.

    Args:
        test_options: the options of the plan and of an early end.
        preset_id: the preset's id, `auto`, or None for a test without one.
        link: the differences of the link from the preset's.
        peer: the far end, with its credentials.
        output: the pass mark, the label and the files of the results.
    """
    from ..preset_option import find_preset, read_pass_mark
    from ..run_test import TestJob, run_test

    plan, variant, pass_mark = test_options.to_plan(), link.to_variant(), output.pass_mark
    return run_test(
        TestJob(
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
        )
    )
