"""`linkgauge web`: the app in a browser on this host."""

from typing import Annotated, Any, Final

import typer

from ....engine.model.errors import UsageError, require_extra
from ...text import parsing

DEFAULT_PORT: Final = 5880
_MAX_SESSIONS: Final = 64


def web(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- PEER OPTIONS]",
            show_default=False,
            help="Arguments of the app, as for linkgauge app; or watch FILE.toml --follow.",
        ),
    ] = None,
    *,
    port: Annotated[str, typer.Option(metavar="N", help="TCP port; 0 takes a free one.")] = str(DEFAULT_PORT),
    sessions: Annotated[
        int, typer.Option(min=1, max=_MAX_SESSIONS, metavar="N", help="Most pages open at the same time.")
    ] = 4,
    public_url: Annotated[
        str | None,
        typer.Option(metavar="URL", show_default=False, help="Public address of the page behind a reverse proxy."),
    ] = None,
) -> int:
    """Serve the app to a browser on this host.

    It prints the address of the page, with a new token. The server listens on 127.0.0.1 only; from another host use
    `ssh -L`, or a reverse proxy with a login. Each page has an app of its own, which ends when the page is closed.
    Needs pip install 'linkgauge[web]'.
    """
    require_extra("linkgauge web needs textual-serve", "web", "textual_serve")
    from ..web.web_access import PublicUrl, WebAccess
    from ..web.web_server import WebConfig, serve_web

    given = tuple(words or ())
    arguments = given if given[:1] == ("watch",) else ("app", *given)
    _check_words(context.find_root().command, arguments)
    url = None if public_url is None else PublicUrl.parse(public_url)
    return serve_web(WebConfig(arguments, parsing.listening_port(port), sessions, WebAccess(url)))


def _check_words(program: Any, arguments: tuple[str, ...]) -> None:
    """Raise the error that every page would end with, before there is one."""
    from ..preset_option import load_catalog_with_warnings
    from .watch import read_target

    name, words = arguments[0], arguments[1:]
    if "--json" in words or "-J" in words:
        raise UsageError("linkgauge web shows a screen; --json has none")
    context = program.commands[name].make_context(name, list(words))
    if name != "watch":
        return
    given = {each for each in context.params if context.get_parameter_source(each).name == "COMMANDLINE"}
    if given != {"target", "follow"} or read_target(context.params["target"], load_catalog_with_warnings()) is None:
        raise UsageError(
            "a watch is shown here and carried out elsewhere: linkgauge web -- watch FILE.toml --follow"
        )
