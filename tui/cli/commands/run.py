"""`linkgauge check` and `linkgauge run`: one test, with a verdict or without."""

from pathlib import Path
from typing import Annotated

import typer

from ....engine.model.labels import validate_label
from ....engine.model.peer import Peer
from ...text import parsing
from .. import options as given
from ..options import SshOptions


def check(
    preset: Annotated[str, typer.Argument(metavar="PRESET", show_default=False, help="A preset's id, or auto.")],
    peer: given.PeerArgument,
    *,
    test_options: given.TestOptions,
    link: given.LinkOptions,
    access: given.AccessOptions,
    ssh: SshOptions,
    pass_mark: given.PassMarkOption = None,
    csv: given.CsvOption = None,
    label: given.LabelOption = None,
    as_json: given.JsonOption = False,
) -> int:
    """Hold a link against a preset, and say whether it delivers: one test, one verdict."""
    return _test(
        test_options,
        preset,
        link,
        ssh.apply_to(access.parse_peer(peer)),
        pass_mark,
        csv,
        label=label,
        as_json=as_json,
    )


def run(
    peer: given.PeerArgument,
    *,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="ID", show_default="nothing to expect", help="The preset to hold it against, or auto."
        ),
    ] = None,
    test_options: given.TestOptions,
    link: given.LinkOptions,
    access: given.AccessOptions,
    ssh: SshOptions,
    pass_mark: given.PassMarkOption = None,
    csv: given.CsvOption = None,
    label: given.LabelOption = None,
    as_json: given.JsonOption = False,
) -> int:
    """Test a link without a preset, or with one."""
    return _test(
        test_options,
        preset,
        link,
        ssh.apply_to(access.parse_peer(peer)),
        pass_mark,
        csv,
        label=label,
        as_json=as_json,
    )


def _test(
    asked: given.TestOptions,
    preset_id: str | None,
    link: given.LinkOptions,
    peer: Peer,
    pass_mark: str | None,
    csv: Path | None,
    *,
    label: str | None,
    as_json: bool,
) -> int:
    """Look at everything that was asked for before anything is begun, then test."""
    from ..preset_option import find_preset
    from ..run_test import TestJob, run_test
    from ..user_settings import read_pass_mark

    plan, variant = asked.to_plan(), link.to_variant()
    return run_test(
        TestJob(
            plan,
            find_preset(preset_id),
            peer,
            read_pass_mark() if pass_mark is None else parsing.pass_percent(pass_mark),
            csv=csv,
            as_json=as_json,
            variant=variant,
            label=validate_label(label),
            target_ci_percent=asked.target_ci_percent(),
        )
    )
