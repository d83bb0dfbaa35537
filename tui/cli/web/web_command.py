"""`linkgauge web`: the app in a browser on this host."""

from dataclasses import dataclass
from typing import Any, Final

import click

from ....engine.model.errors import PlanError, UsageError, require_extra
from ...words import parsing
from ..click_extension.option_fields import argument, option
from ..output import print_stderr

DEFAULT_PORT: Final = 5880
_MAX_SESSIONS: Final = 64


@dataclass(frozen=True, slots=True)
class WebOptions:
    """What a page shows, and who may open one."""

    words: tuple[str, ...] = argument(
        "[-- PEER OPTIONS]", "Arguments of the app, as for linkgauge app; or watch FILE.toml --follow.", default=()
    )
    port: str = option("", "TCP port; 0 takes a free one.", default=str(DEFAULT_PORT), metavar="N")
    sessions: int = option("", "Most pages open at the same time.", default=4, metavar="N")
    public_url: str | None = option("", "Public address of the page behind a reverse proxy.", metavar="URL")


def web(options: WebOptions) -> int:
    """Serve the app to a browser on this host.

    It prints the address of the page, with a new token. The server listens on 127.0.0.1 only; from another host use
    `ssh -L`, or a reverse proxy with a login. Each page has an app of its own, which ends when the page is closed.
    Needs pip install 'linkgauge[web]'.
    """
    if not 1 <= options.sessions <= _MAX_SESSIONS:
        raise PlanError("--sessions", options.sessions, f"give 1 to {_MAX_SESSIONS}")
    require_extra("linkgauge web needs textual-serve", "web", "textual_serve")
    from .web_access import PublicUrl, WebAccess
    from .web_server import WebConfig, serve_web

    given, url = options.words, options.public_url
    arguments = given if given[:1] == ("watch",) else ("app", *given)
    _check_words(click.get_current_context().find_root().command, arguments)
    access = WebAccess(None if url is None else PublicUrl.parse(url))
    return serve_web(WebConfig(arguments, parsing.listening_port(options.port), options.sessions, access))


def _check_words(program: Any, arguments: tuple[str, ...]) -> None:
    """Raise the error that every page would end with, before there is one."""
    from ...session.user_presets import load_presets
    from ..commands.watch import read_target

    name, words = arguments[0], arguments[1:]
    if "--json" in words or "-J" in words:
        raise UsageError("linkgauge web shows a screen; --json has none")
    context = program.commands[name].make_context(name, list(words))
    if name != "watch":
        return
    given = {each for each in context.params if context.get_parameter_source(each).name == "COMMANDLINE"}
    if given != {"first", "follow"} or read_target(context.params["first"], load_presets(print_stderr)) is None:
        raise UsageError(
            "a watch is shown here and carried out elsewhere: linkgauge web -- watch FILE.toml --follow"
        )
