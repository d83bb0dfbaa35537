"""The help of a command: plain sections, a short one and a whole one; and the user's defaults of its options."""

from collections import UserDict
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import click

from ...session.setting_table import SETTINGS
from .option_fields import Argument, Option, was_typed

if TYPE_CHECKING:
    from ...session.settings_file import HeldValue

_HELP_ALL_KEY: Final = "linkgauge.help_all"  # of a context: the whole help was asked for
_MOST_OPTIONS: Final = 20  # of a command without a short help: about a screen


class _UserDefaults(UserDict[str, Any]):
    """The defaults of a command's options in the user's settings.

    They are read when the first option asks, which none does for `--help`. Click asks after the typed options.
    """

    def __init__(self, context: click.Context) -> None:
        super().__init__()
        self._context = context
        self._rows = {
            each.name: SETTINGS[each.setting]
            for each in context.command.params
            if isinstance(each, Option) and each.setting
        }

    def __contains__(self, name: object) -> bool:
        row = self._rows.get(str(name))
        if row is None or any(was_typed(self._context, each) for each in row.yields_to):
            return False
        return self._held[row.name].text is not None

    def __getitem__(self, name: str) -> Any:
        row = self._rows[name]  # a KeyError, before any file is read
        return self._held[row.name].text

    @cached_property
    def _held(self) -> "Mapping[str, HeldValue]":
        from ...session.settings_file import read_settings
        from ...session.storage import config_dir

        return read_settings(config_dir()).values


class HelpCommand(click.Command):
    """The help of a command: plain sections that fit into 80 columns, the same on a terminal and in a pipe.

    A command with many options has a short help, of the common ones with a line each, and a whole one.
    """

    @property
    def is_long(self) -> bool:
        """Whether the command has a short help as well."""
        return len(self.params) > _MOST_OPTIONS

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the arguments and options, and those that print the help."""
        params = super().get_params(ctx)
        return [*params, _HELP_ALL] if self.is_long and ctx.help_option_names else params

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an option that is absent has its default in the user's settings, if any."""
        if not ctx.resilient_parsing:
            ctx.default_map = _UserDefaults(ctx)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (Click has it)
        """Return the words of the usage; those in brackets are optional."""
        if isinstance(self, click.Group):
            return ["[OPTIONS]", self.subcommand_metavar]
        return ["[OPTIONS]", *(str(each.metavar) for each in self.params if isinstance(each, Argument))]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage, the description, the arguments, the options by section, and the commands."""
        is_short = self.is_long and _HELP_ALL_KEY not in ctx.meta
        formatter.write_usage(ctx.command_path, " ".join(self.collect_usage_pieces(ctx)))
        formatter.write_paragraph()
        formatter.write_text((self.help or "").partition("\n\n" if is_short else "\0")[0])
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Commands": [], "Options": []}
        for each in self.get_params(ctx):
            text = _brief(each) if is_short else description(each)
            if text and not getattr(each, "hidden", False):
                sections.setdefault(section(each), []).append((spelling(each), text))
        for name, command in getattr(self, "commands", {}).items():
            sections["Commands"].append((name, (command.help or "").partition("\n")[0]))
        others = sections.pop("Options")
        for name in [
            name
            for name, rows in sections.items()
            if is_short and len(rows) == 1 and name not in {"Arguments", "Commands"}
        ]:
            others = [*sections.pop(name), *others]
        sections["Other options" if sections.keys() - {"Arguments", "Commands", "Output"} else "Options"] = others
        for name, rows in sections.items():
            if rows:
                with formatter.section(name):
                    formatter.write_dl(rows, col_max=26)
        for paragraph in filter(None, (self.epilog or "").split("\n\n")):
            formatter.write_paragraph()
            formatter.write_text(paragraph)


def _brief(parameter: click.Parameter) -> str:
    """Return the line of a parameter in the short help; empty if it has none."""
    return parameter.brief if isinstance(parameter, Option) else description(parameter)


def _show_whole_help(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_HELP_ALL_KEY] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_HELP_ALL: Final = Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_whole_help,
    help="Show all options and exit.",
    brief="Show all options and exit.",
    shown="",
)


def option_names(command: click.Command) -> set[str]:
    """Return the names of the options of a command, and of the commands in it."""
    commands = command.commands.values() if isinstance(command, click.Group) else ()
    own = {name for parameter in command.params for name in parameter.opts}
    return own.union(*map(option_names, commands))


def section(parameter: click.Parameter) -> str:
    """Return the section of the help that lists a parameter."""
    return getattr(parameter, "panel", "") or "Options"


def spelling(parameter: click.Parameter) -> str:
    """Return the names of an option with its placeholder, or the placeholder of an argument."""
    if isinstance(parameter, Argument):
        return str(parameter.metavar).strip("[]")
    names = " / ".join([", ".join(sorted(parameter.opts, key=len)), *parameter.secondary_opts])
    if getattr(parameter, "is_flag", False):
        return names
    return f"{names} {parameter.metavar or '|'.join(getattr(parameter.type, 'choices', ()))}"


def description(parameter: click.Parameter) -> str:
    """Return the help of an option or an argument, with its default."""
    shown = getattr(parameter, "shown", "")
    default = parameter.default if shown is None and not parameter.required else shown
    return f"{parameter.help} [default: {default}]" if default else str(parameter.help)
