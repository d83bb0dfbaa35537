"""`linkgauge check` and `linkgauge run`: one test, with a verdict or without."""

from pathlib import Path
from typing import Annotated

import typer

from ....engine.model.labels import checked_label
from ....engine.model.peer import Peer
from ...text import parsing as parse
from .. import options as given
from ..options import SshOptions


def check(
    preset: Annotated[str, typer.Argument(metavar="PRESET", show_default=False, help="A preset's id, or auto.")],
    peer: given.PeerArgument,
    *,
    asked: given.TestOptions,
    link: given.LinkOptions,
    access: given.AccessOptions,
    ssh: SshOptions,
    pass_mark: given.PassMarkOption = None,
    csv: given.CsvOption = None,
    label: given.LabelOption = None,
    as_json: given.JsonOption = False,
) -> int:
    """Hold a link against a preset, and say whether it delivers: one test, one verdict."""
    return _test(asked, preset, link, ssh.of(access.peer(peer)), pass_mark, csv, label=label, as_json=as_json)


def run(
    peer: given.PeerArgument,
    *,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="ID", show_default="nothing to expect", help="The preset to hold it against, or auto."
        ),
    ] = None,
    asked: given.TestOptions,
    link: given.LinkOptions,
    access: given.AccessOptions,
    ssh: SshOptions,
    pass_mark: given.PassMarkOption = None,
    csv: given.CsvOption = None,
    label: given.LabelOption = None,
    as_json: given.JsonOption = False,
) -> int:
    """Test a link without a preset, or with one."""
    return _test(asked, preset, link, ssh.of(access.peer(peer)), pass_mark, csv, label=label, as_json=as_json)


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
    from ..run_test import Test, run_test
    from ..user_settings import kept_pass_mark

    plan, variant = asked.plan(), link.variant()
    return run_test(
        Test(
            plan,
            find_preset(preset_id),
            peer,
            kept_pass_mark() if pass_mark is None else parse.pass_percent(pass_mark),
            csv=csv,
            as_json=as_json,
            variant=variant,
            label=checked_label(label),
            until_percent=asked.until_percent(),
        )
    )
