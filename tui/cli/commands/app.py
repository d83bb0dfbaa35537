"""`linkgauge [PEER]`: the app, or without a terminal a short test over loopback."""

from dataclasses import dataclass
from typing import Final

from ....engine.model.errors import UsageError
from ....engine.model.peer import LOOPBACK
from ....engine.model.texts.shell_commands import shell_command
from ...words.parsing import resolve_language
from ..click_extension.option_fields import argument, group, setting_option
from ..completion import complete_preset
from ..link_options import lang_option
from ..output import keep_log_off_screen, print_stderr
from ..output_options import json_flag, redact_flag
from ..peer_options import PEER_HELP, PEER_VARIABLE, FarEndOptions, named_peer
from ..plan_options import PlanOptions
from ..web.browser_page import end_with_server, has_screen, is_dumb_terminal

_APP_TEST_S: Final = "30"
_LOOPBACK_TEST_S: Final = "5"


@dataclass(frozen=True, slots=True)
class AppOptions:
    """The options that the app opens with."""

    peer: str | None = argument("[PEER]", PEER_HELP, default=None, shown=f"{PEER_VARIABLE}, else loopback")
    preset: str | None = setting_option("preset", "", complete=complete_preset)
    lang: str | None = lang_option()
    plan: PlanOptions = group(PlanOptions)
    far_end: FarEndOptions = group(FarEndOptions)
    as_json: bool = json_flag()
    redact: bool = redact_flag()


def open_app(options: AppOptions) -> int:
    """Open the app: linkgauge [PEER].

    Its keys change everything that these options begin with. Without a terminal and without a PEER, it tests this
    machine's loopback for 5 s instead.
    """
    peer, far_end, rate = named_peer(options.peer), options.far_end, options.plan.sending_rate()
    is_app = has_screen() and not options.as_json
    if is_dumb_terminal() and not options.as_json:
        instead = shell_command("linkgauge", "run", peer or LOOPBACK.host)
        raise UsageError(f"this terminal (TERM=dumb) cannot show the app; without it: {instead}")
    plan = options.plan.to_plan(_APP_TEST_S if is_app else _LOOPBACK_TEST_S)
    far_peer = far_end.ssh.apply_to(far_end.access.limit_ip(LOOPBACK)) if peer is None else far_end.find_peer(peer)
    language = resolve_language(options.lang)
    if is_app:
        from ..terminal_app import run_app

        keep_log_off_screen()
        end_with_server()
        return run_app(far_peer, options.preset, language, plan, rate)
    if peer is not None:
        check, run = (shell_command("linkgauge", command, peer) for command in ("check", "run"))
        raise UsageError(f"the app needs a terminal; without one: {check}, or {run}")
    from ...session.run_spec import Judging, Outputs, RunSpec, find_preset
    from ...session.user_presets import load_presets
    from ..runners.run_test import run_test

    return run_test(
        RunSpec(
            plan,
            far_peer,
            Judging(preset=find_preset(options.preset or "loopback", load_presets(print_stderr))),
            outputs=Outputs(as_json=options.as_json),
            sending_rate=rate,
        )
    )
