"""The commands that measure: the app, the far end, a check, a run."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from ...engine.plan import DEFAULT_PORT, LOOPBACK, Peer
from ...engine.remarks import checked_label
from ..language import language
from . import options as given
from . import parse
from .ssh_options import SshOptions
from .status import UsageProblem

_LIMITS: Final = "What it allows"
_APP_TEST_S: Final = "30"
_LOOPBACK_TEST_S: Final = "5"


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module, in the order in which help lists them."""
    app.command("app")(given.with_options(open_app))
    app.command("check")(given.with_options(check))
    app.command("run")(given.with_options(run))
    app.command("endpoint")(endpoint)


def open_app(
    peer: Annotated[str | None, typer.Argument(metavar="[PEER]", show_default=False)] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="ID", show_default=False, help="The preset to begin with.")
    ] = None,
    lang: given.LangOption = None,
    *,
    asked: given.PlanOptions,
    access: given.AccessOptions,
    ssh: SshOptions,
    as_json: given.JsonOption = False,
) -> int:
    """Open the app. `linkgauge [PEER]` is short for it. Its keys change what it begins with.

    Without a terminal and without a PEER, a test of 5 s over this machine's loopback instead.
    """
    # stdin too: an app whose keys come from a file or from nowhere cannot be stopped.
    is_app = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    plan = asked.plan(_APP_TEST_S if is_app else _LOOPBACK_TEST_S)
    wanted = LOOPBACK if peer is None else access.peer(peer)
    wanted, named_in = ssh.of(wanted), language(lang)
    if is_app:
        from .terminal_app import run_app

        return run_app(wanted, preset, named_in, plan)
    if peer is not None:
        raise UsageProblem(
            f"the app needs a terminal; without one: linkgauge run {peer}, or linkgauge check PRESET {peer}"
        )
    from .chosen import find_preset
    from .headless import Test, run_test

    return run_test(Test(plan, find_preset(preset or "loopback"), wanted, as_json=as_json))


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


def endpoint(
    bind: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", show_default="every address", help="Where to listen."),
    ] = None,
    port: Annotated[str, typer.Option(metavar="N", help="The TCP port to listen on; 0 takes a free one.")] = str(
        DEFAULT_PORT
    ),
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            show_default="LINKGAUGE_KEY, or a new key that is printed",
            help="A file with the key that clients must have, which only you can read; SIGHUP has it read again.",
        ),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open", metavar="", show_default=False, help="Ask for no key: serve everybody.")
    ] = False,
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            "--tls-cert",
            metavar="FILE",
            show_default=False,
            help="A certificate (PEM): control connections are TLS.",
        ),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", show_default=False, help="Its private key (PEM).")
    ] = None,
    limits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            rich_help_panel=_LIMITS,
            help="A TOML file of limits, NAME = VALUE each; SIGHUP has it read again.",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", show_default=False, rich_help_panel=_LIMITS, help="One limit; may be repeated."
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NETWORK",
            show_default="all",
            rich_help_panel=_LIMITS,
            help="Serve this network; may be repeated.",
        ),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NETWORK",
            show_default=False,
            rich_help_panel=_LIMITS,
            help="Do not serve this network, whatever is allowed; may be repeated.",
        ),
    ] = None,
    show_limits: Annotated[
        bool,
        typer.Option(
            "--show-limits", metavar="", rich_help_panel=_LIMITS, help="Print all limits, and serve nobody."
        ),
    ] = False,
    ui: Annotated[
        bool, typer.Option("--ui", metavar="", help="Show on a screen who is served, what they carry, and the log.")
    ] = False,
    log_json: Annotated[
        bool, typer.Option("--log-json", metavar="", help="Log one JSON object a line, on stderr.")
    ] = False,
    stdio: Annotated[int | None, typer.Option(hidden=True)] = None,
    as_json: given.JsonOption = False,
) -> int:
    """Be the far end, for many clients at once, until Ctrl-C; after SIGTERM the runs that go on may end first.

    Clients must have the key, unless only this host's own can come: on a loopback address none is asked for.
    """
    if stdio is not None:
        return _serve_ssh(stdio)
    from .service import LimitChoice, Service

    if open_ and key_file is not None:
        raise UsageProblem("give --key-file or --open, not both")
    if (tls_cert is None) != (tls_key is None):
        raise UsageProblem("give --tls-cert and --tls-key together")
    choice = LimitChoice(
        None if limits is None else str(limits), tuple(limit or ()), tuple(allow or ()), tuple(deny or ())
    )
    if show_limits:
        from .far_end import show_limits as show

        return show(choice, as_json=as_json)
    service = Service(
        bind,
        parse.listening_port(port),
        None if key_file is None else str(key_file),
        is_open=open_,
        tls=None if tls_cert is None or tls_key is None else (str(tls_cert), str(tls_key)),
        limits=choice,
        as_json=as_json,
        log_as_json=log_json,
    )
    if not ui:
        return service.start_anew()
    if as_json or log_json:
        raise UsageProblem("--ui has the terminal for itself: it goes with neither --json nor --log-json")
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageProblem("--ui needs a terminal for its screen; without one: linkgauge endpoint")
    from .endpoint_screen import serve_on_screen

    return serve_on_screen(service)


def _serve_ssh(protocol: int) -> int:
    """Be the far end that a near one started through ssh, if both speak the same protocol."""
    from ...engine.first_bytes import PROTOCOL_VERSION
    from ...engine.stdio import main

    if protocol != PROTOCOL_VERSION:
        raise UsageProblem(f"this linkgauge speaks protocol {PROTOCOL_VERSION}, not {protocol}")
    main()
    return 0


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
    from .chosen import find_preset
    from .headless import Test, run_test
    from .told import kept_pass_mark

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
