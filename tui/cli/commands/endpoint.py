"""`linkgauge endpoint`: the far end."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from ....engine.model.errors import UsageError
from ....engine.model.peer import DEFAULT_PORT
from ...text import parsing
from ..options import JsonOption

_LIMITS: Final = "What it allows"


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
    as_json: JsonOption = False,
) -> int:
    """Be the far end, for many clients at once, until Ctrl-C; after SIGTERM the runs that go on may end first.

    Clients must have the key, unless only this host's own can come: on a loopback address none is asked for.
    """
    if stdio is not None:
        return _serve_ssh(stdio)
    from ..endpoint_service import EndpointConfig, LimitSources

    if open_ and key_file is not None:
        raise UsageError("give --key-file or --open, not both")
    if (tls_cert is None) != (tls_key is None):
        raise UsageError("give --tls-cert and --tls-key together")
    limit_sources = LimitSources(
        None if limits is None else str(limits), tuple(limit or ()), tuple(allow or ()), tuple(deny or ())
    )
    if show_limits:
        from ..endpoint_service import print_limits

        return print_limits(limit_sources, as_json=as_json)
    config = EndpointConfig(
        bind,
        parsing.listening_port(port),
        None if key_file is None else str(key_file),
        is_open=open_,
        tls=None if tls_cert is None or tls_key is None else (str(tls_cert), str(tls_key)),
        limits=limit_sources,
        as_json=as_json,
        log_as_json=log_json,
    )
    if not ui:
        return config.exec_endpoint()
    if as_json or log_json:
        raise UsageError("--ui has the terminal for itself: it goes with neither --json nor --log-json")
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("--ui needs a terminal for its screen; without one: linkgauge endpoint")
    from ..endpoint_screen import serve_on_screen
    from ..output import keep_log_off_screen

    keep_log_off_screen()
    return serve_on_screen(config)


def _serve_ssh(protocol: int) -> int:
    """Serve the near end that started this process through ssh; refuse another protocol version."""
    from ....engine.protocol.preamble import PROTOCOL_VERSION
    from ....engine.ssh.remote_main import main

    if protocol != PROTOCOL_VERSION:
        raise UsageError(f"this linkgauge speaks protocol {PROTOCOL_VERSION}, not {protocol}")
    main()
    return 0
