"""`linkgauge [PEER]`: the app, or without a terminal a short test over loopback."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ....engine.model.errors import UsageError, require_extra
from ....engine.model.peer import AWAITED_BROWSER, LOOPBACK
from ....engine.model.texts.shell_commands import shell_command
from ...words import parsing
from ...words.parsing import DEFAULT_HTTP_PORT, resolve_language
from ..click_extension.option_fields import argument, flag, group, option, setting_option
from ..completion import complete_preset
from ..link_options import lang_option
from ..output import keep_log_off_screen, print_stderr
from ..output_options import json_flag, redact_flag
from ..peer_options import PEER_HELP, PEER_VARIABLE, FarEndOptions, check_supported, named_peer
from ..plan_options import PlanOptions
from ..web.browser_page import end_with_server, has_screen, is_dumb_terminal

if TYPE_CHECKING:
    from ...endpoint.browser.browser_setup import RoomConfig

_APP_TEST_S: Final = "30"
_LOOPBACK_TEST_S: Final = "5"
_DEVICE: Final = "A device with a browser"


@dataclass(frozen=True, slots=True)
class AppOptions:
    """The options that the app opens with."""

    peer: str | None = argument("[PEER]", PEER_HELP, default=None, shown=f"{PEER_VARIABLE}, else loopback")
    preset: str | None = setting_option("preset", "", complete=complete_preset)
    lang: str | None = lang_option()
    plan: PlanOptions = group(PlanOptions)
    far_end: FarEndOptions = group(FarEndOptions)
    as_json: bool = json_flag()
    wait: bool = flag(
        _DEVICE,
        "Wait for a phone, tablet or laptop: it joins with its browser and a code, and is the remote end.",
        brief="Wait for a device with a browser.",
    )
    http: str | None = option(
        _DEVICE,
        "Where to serve the page for --wait. Port 0 takes a free one.",
        metavar="[ADDR:]PORT",
        shown=str(DEFAULT_HTTP_PORT),
    )
    tls_cert: Path | None = option(_DEVICE, "Certificate (PEM) for --wait: the page uses TLS.", metavar="FILE")
    tls_key: Path | None = option(
        _DEVICE, "Private key of the certificate (PEM); only you may read it.", metavar="FILE"
    )
    allow: tuple[str, ...] = option(
        _DEVICE,
        "Let only devices of this network join; may be repeated.",
        default=(),
        metavar="NETWORK",
        shown="all",
    )
    deny: tuple[str, ...] = option(
        _DEVICE, "Refuse this network, even if allowed; may be repeated.", default=(), metavar="NETWORK"
    )
    redact: bool = redact_flag()

    def room_config(self) -> "RoomConfig | None":
        """Return how to serve the page for devices; None without --wait. Raises UsageError or InvalidLimitError."""
        if not self.wait:
            values = {"http": self.http, "tls-cert": self.tls_cert, "tls-key": self.tls_key}
            values |= {"allow": self.allow or None, "deny": self.deny or None}
            for name, value in values.items():
                if value is not None:
                    raise UsageError(f"--{name} goes with --wait; give it, too")
            return None
        if self.peer is not None:
            raise UsageError("--wait makes a device that joins the remote end: give no PEER with it")
        require_extra("--wait needs a server and QR codes", "http", "aiohttp", "segno")
        from ...endpoint.browser.browser_setup import BrowserConfig, RoomConfig  # here: few starts need it
        from ...endpoint.endpoint_setup import LimitSources, check_pair

        page = BrowserConfig(*parsing.http_address(self.http or str(DEFAULT_HTTP_PORT)))
        cert, key = (None if path is None else str(path) for path in (self.tls_cert, self.tls_key))
        return RoomConfig(page, check_pair(cert, key), LimitSources(allow=self.allow, deny=self.deny).read())


def open_app(options: AppOptions) -> int:
    """Open the app: linkgauge [PEER].

    Its keys change everything that these options begin with. Without a terminal and without a PEER, it tests this
    machine's loopback for 5 s instead.
    """
    page = options.room_config()
    peer = None if page is not None else named_peer(options.peer)
    far_end, rate = options.far_end, options.plan.sending_rate()
    is_app = has_screen() and not options.as_json
    if is_dumb_terminal() and not options.as_json:
        instead = shell_command("linkgauge", "run", peer or LOOPBACK.host)
        raise UsageError(f"this terminal (TERM=dumb) cannot show the app; without it: {instead}")
    plan = options.plan.to_plan(_APP_TEST_S if is_app else _LOOPBACK_TEST_S)
    far_peer = far_end.ssh.apply_to(far_end.access.limit_ip(LOOPBACK)) if peer is None else far_end.find_peer(peer)
    if page is not None:
        far_peer = AWAITED_BROWSER
        check_supported(plan, far_peer, rate)
        from ....engine.browser.page_messages import with_page

        plan = with_page(plan)
    language = resolve_language(options.lang)
    if is_app:
        from ..terminal_app import run_app

        keep_log_off_screen()
        end_with_server()
        return run_app(far_peer, options.preset, language, plan, rate, page)
    if page is not None:
        raise UsageError(
            "--wait shows a code on a screen, and needs a terminal; without one: linkgauge endpoint --http"
        )
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
