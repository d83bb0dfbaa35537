"""`linkgauge [PEER]`: the app, or without a terminal a short test over loopback."""

from typing import Annotated, Final

import typer

from ....engine.model.errors import UsageError
from ....engine.model.peer import LOOPBACK
from ...text.parsing import resolve_language
from ..completion import complete_preset
from ..options import JsonOption, LangOption, PlanOptions
from ..output import keep_log_off_screen
from ..peer_options import PEER_HELP, AccessOptions, SshOptions
from ..web.browser_page import end_with_server, has_screen

_APP_TEST_S: Final = "30"
_LOOPBACK_TEST_S: Final = "5"


def open_app(
    peer: Annotated[str | None, typer.Argument(metavar="[PEER]", show_default="loopback", help=PEER_HELP)] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="ID", show_default="auto", help="Preset to compare with.", autocompletion=complete_preset
        ),
    ] = None,
    lang: LangOption = None,
    *,
    plan_options: PlanOptions,
    access: AccessOptions,
    ssh: SshOptions,
    as_json: JsonOption = False,
) -> int:
    """Open the app: linkgauge [PEER].

    Its keys change everything that these options begin with. Without a terminal and without a PEER, it tests this
    machine's loopback for 5 s instead.
    """
    is_app = has_screen() and not as_json
    plan = plan_options.to_plan(_APP_TEST_S if is_app else _LOOPBACK_TEST_S)
    far_peer = ssh.apply_to(access.limit_ip(LOOPBACK) if peer is None else access.parse_peer(peer))
    language = resolve_language(lang)
    if is_app:
        from ..terminal_app import run_app

        keep_log_off_screen()
        end_with_server()
        return run_app(far_peer, preset, language, plan, plan_options.sending_rate())
    if peer is not None:
        from ....engine.model.shell_commands import shell_command

        check, run = (shell_command("linkgauge", command, peer) for command in ("check", "run"))
        raise UsageError(f"the app needs a terminal; without one: {check}, or {run}")
    from ...services.run_spec import Judging, Outputs, RunSpec
    from ..preset_option import find_preset
    from ..runners.run_test import run_test

    return run_test(
        RunSpec(
            plan,
            far_peer,
            Judging(preset=find_preset(preset or "loopback")),
            outputs=Outputs(as_json=as_json),
            sending_rate=plan_options.sending_rate(),
        )
    )
