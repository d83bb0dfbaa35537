"""`linkgauge [PEER]`: the app, or without a terminal a short test over loopback."""

import sys
from typing import Annotated, Final

import typer

from ....engine.model.errors import UsageError
from ....engine.model.peer import LOOPBACK
from ...text.parsing import resolve_language
from ..completion import complete_preset
from ..options import AccessOptions, JsonOption, LangOption, PlanOptions, SshOptions
from ..output import keep_log_off_screen

_APP_TEST_S: Final = "30"
_LOOPBACK_TEST_S: Final = "5"


def open_app(
    peer: Annotated[str | None, typer.Argument(metavar="[PEER]", show_default=False)] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="ID", show_default=False, help="The preset to begin with.", autocompletion=complete_preset
        ),
    ] = None,
    lang: LangOption = None,
    *,
    plan_options: PlanOptions,
    access: AccessOptions,
    ssh: SshOptions,
    as_json: JsonOption = False,
) -> int:
    """Open the app. `linkgauge [PEER]` is short for it. Its keys change what it begins with.

    Without a terminal and without a PEER, a test of 5 s over this machine's loopback instead.
    """
    # stdin too: without keys from a terminal nobody could leave the app.
    is_app = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    plan = plan_options.to_plan(_APP_TEST_S if is_app else _LOOPBACK_TEST_S)
    far_peer = ssh.apply_to(LOOPBACK if peer is None else access.parse_peer(peer))
    language = resolve_language(lang)
    if is_app:
        from ..terminal_app import run_app

        keep_log_off_screen()
        return run_app(far_peer, preset, language, plan)
    if peer is not None:
        raise UsageError(
            f"the app needs a terminal; without one: linkgauge run {peer}, or linkgauge check PRESET {peer}"
        )
    from ..preset_option import find_preset
    from ..run_test import TestJob, run_test

    return run_test(TestJob(plan, find_preset(preset or "loopback"), far_peer, as_json=as_json))
