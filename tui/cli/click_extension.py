"""What Click lacks: options as dataclasses, plain help, default commands, and words for mistyped ones.

A command is a function of one dataclass, whose fields are its arguments and options. A field that is a dataclass
itself is a group of options, which several commands have. `make_command` makes the command of the function.
"""

import socket
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from inspect import getdoc, signature
from itertools import takewhile
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_args, get_origin

import click
from click.shell_completion import CompletionItem

from ...engine.model.errors import UsageError, make_printable
from ...engine.model.workload import Workload, workload_named
from ..session.setting_table import SETTINGS
from .usage_errors import join_choices, nearest_command

if TYPE_CHECKING:
    from ..session.settings_file import HeldValue

# A function that finds the values that begin with the text typed so far, each with its description.
Completer = Callable[[str], list[tuple[str, str]]]

_KEY: Final = "parameter"
_HELP_ALL_KEY: Final = "linkgauge.help_all"  # of a context: the whole help was asked for
_MOST_OPTIONS: Final = 20  # of a command without a short help: about a screen
_REMEDIES: Final[dict[Any, str]] = {int: "give a whole number", float: "give a number"}
_CONVERTERS: Final[dict[Any, Callable[[str], Any]]] = {Workload: workload_named}


class Option(click.Option):
    """An option with the section of the help that lists it, and its default as the help shows it.

    `brief` is its line in the short help of a command with many options; empty if only the whole help lists it.
    `setting` is the setting of the user that replaces its default, if any.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        panel: str = "",
        shown: str | None = None,
        brief: str = "",
        setting: str = "",
        **settings: Any,
    ) -> None:
        super().__init__(names, **settings)
        self.panel = panel
        self.shown = shown
        self.brief = brief
        self.setting = setting


class Argument(click.Argument):
    """An argument with its default as the help shows it."""

    panel = "Arguments"

    def __init__(self, names: Sequence[str], *, shown: str | None, **settings: Any) -> None:
        super().__init__(names, **settings)
        self.shown = shown


def option(
    panel: str,
    help_: str,
    *names: str,
    default: Any = None,
    shown: str | None = None,
    choices: Sequence[str] = (),
    complete: Completer | None = None,
    **settings: Any,
) -> Any:
    """Return a field of a dataclass that is an option.

    Args:
        panel: the section of the help that lists the option; "" for the first one.
        help_: the help text.
        names: the names, such as `-t`; without a long one, `--` and the field's name is added.
        default: the value if the option is absent.
        shown: the default as the help shows it; None for `default` itself, "" for nothing.
        choices: the values to choose from, if the field's type does not tell them.
        complete: finds the values for a shell.
        settings: as `click.Option` and `Option` have them, such as the placeholder `metavar`. `brief` is the line
            in the short help of a command with many options.
    """
    settings |= {"help": help_, "panel": panel, "shown": shown}
    return field(default=default, metadata={_KEY: (Option, names, choices, complete, settings)})


def setting_option(name: str, panel: str, **settings: Any) -> Any:
    """Return a field of a dataclass that is an option, as the row of a setting has it."""
    row = SETTINGS[name]
    names = (row.option, row.short) if row.short else (row.option,)
    of_row = {
        "default": row.default,
        "shown": row.shown,
        "metavar": row.metavar,
        "brief": row.brief,
        "setting": name,
    }
    settings = of_row | settings
    return option(panel, row.help, *names, **settings)


def flag(panel: str, help_: str, *names: str, **settings: Any) -> Any:
    """Return a field of a dataclass that is an option without a value."""
    return option(panel, help_, *names, default=False, **settings)


def argument(
    metavar: str, help_: str, *, default: Any = MISSING, shown: str | None = "", complete: Completer | None = None
) -> Any:
    """Return a field of a dataclass that is an argument; without a default it is required."""
    settings = {"metavar": metavar, "help": help_, "shown": shown, "required": default is MISSING}
    return field(default=default, kw_only=True, metadata={_KEY: (Argument, (), (), complete, settings)})


def group(kind: type[Any]) -> Any:
    """Return a field of a dataclass that is a group of options."""
    return field(default_factory=kind)


class _Value(click.ParamType[Any]):
    """A value of one kind: it converts the text, and says what would be right."""

    name = "value"

    def __init__(self, kind: Any, choices: Sequence[str]) -> None:
        self.choices = choices
        self._remedy = f"give {join_choices(choices)}" if choices else _REMEDIES.get(kind, "see the help")
        self._parse: Callable[[str], Any] = _CONVERTERS.get(kind) or kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of a text; raise BadParameter. A default is not a text, and stays as it is."""
        if type(value) is not str:
            return value
        with suppress(ValueError):
            if not self.choices or value in self.choices:
                return self._parse(value)
        raise click.BadParameter(f"'{make_printable(value)}' is invalid; {self._remedy}", ctx, param)


def _make_parameters(group: Any) -> Iterator[click.Parameter]:
    """Yield the parameter of every field of a group, those of nested groups included."""
    for each in fields(group):
        if is_dataclass(each.type):
            yield from _make_parameters(each.type)
        else:
            yield _make_parameter(each)


def _make_parameter(each: Field[Any]) -> click.Parameter:
    make, names, choices, complete, given = each.metadata[_KEY]
    settings: dict[str, Any] = {**given}
    kind: Any = next(iter(get_args(each.type))) if isinstance(each.type, UnionType) else each.type
    if not settings.get("required"):
        settings["default"] = each.default
    if get_origin(kind) is tuple:
        settings |= {"nargs": -1} if make is Argument else {"multiple": True}
        kind = str
    if kind is bool:
        settings["is_flag"] = True
    elif kind is not str:
        choices = choices or tuple(getattr(kind, "__members__", {}).values())
        settings["type"] = _Value(kind, choices)
    settings["shell_complete"] = _shell_complete(complete or _complete_choice(choices))
    if make is Option and not any(name.startswith("--") for name in names):
        names = (f"--{each.name.strip('_').replace('_', '-')}", *names)
    parameter: click.Parameter = make([each.name, *names], **settings)
    return parameter


def _complete_choice(choices: Sequence[str]) -> Completer:
    return lambda beginning: [(each, "") for each in choices if each.startswith(beginning)]


def _shell_complete(complete: Completer) -> Callable[..., list[CompletionItem]]:
    def find(_context: click.Context, _parameter: click.Parameter, beginning: str) -> list[CompletionItem]:
        return [CompletionItem(value, help=text) for value, text in complete(beginning)]

    return find


def _fill(group: Any, values: dict[str, Any]) -> Any:
    """Return a group of options with their values, and the groups in it."""
    return group(
        **{
            each.name: _fill(each.type, values) if is_dataclass(each.type) else values[each.name]
            for each in fields(group)
        }
    )


def make_command(name: str, function: Callable[[Any], int]) -> "HelpCommand":
    """Return the command that carries out a function of one group of options; its docstring is the help."""
    (parameter,) = signature(function).parameters.values()
    group = parameter.annotation

    def call(**values: Any) -> int:
        return function(_fill(group, values))

    return HelpCommand(name, callback=call, params=list(_make_parameters(group)), help=getdoc(function))


def is_typed(*names: str) -> bool:
    """Return whether any of these parameters was typed; true without a command line.

    Otherwise a value is a default: of the program or of the user's settings. A default excludes nothing.
    """
    context = click.get_current_context(silent=True)
    return context is None or any(_is_typed(context, name) for name in names)


def is_group_typed(group: Any) -> bool:
    """Return whether any option of a group was typed, those of nested groups included."""
    return is_typed(*(parameter.name or "" for parameter in _make_parameters(group)))


def _is_typed(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


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
        if row is None or any(_is_typed(self._context, each) for each in row.yields_to):
            return False
        return self._held[row.name].text is not None

    def __getitem__(self, name: str) -> Any:
        row = self._rows[name]  # a KeyError, before any file is read
        return self._held[row.name].text

    @cached_property
    def _held(self) -> "Mapping[str, HeldValue]":
        from ..session.settings_file import read_settings
        from ..session.storage import config_dir

        return read_settings(config_dir()).values


class LateCommands(dict[str, click.Command]):
    """The commands of a group by name, each imported when it is asked for.

    Args:
        package: the package that the places are relative to.
        places: the module and the name of each command's function, or of its group: `.commands.run:check`.
    """

    def __init__(self, package: str, places: dict[str, str]) -> None:
        super().__init__(dict.fromkeys(places, click.Command(None)))
        self._package = package
        self._places = {**places}

    def __getitem__(self, name: str) -> click.Command:
        """Return a command; raise KeyError if there is none of this name."""
        place = self._places.pop(name, None)
        if place is not None:
            module, _, attribute = place.partition(":")
            found: Any = getattr(import_module(module, self._package), attribute)
            self[name] = found if isinstance(found, click.Command) else make_command(name, found)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a command, or `default` if there is none of this name."""
        try:
            return self[name]
        except KeyError:
            return default

    def values(self) -> Any:
        """Return all commands."""
        return [self[name] for name in self]

    def items(self) -> Any:
        """Return all commands with their names."""
        return [(name, self[name]) for name in self]


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


class DefaultGroup(HelpCommand, click.Group):
    """A group that runs its default command without one: `linkgauge runs` is `linkgauge runs list`."""

    default: ClassVar[str] = "list"
    own_flags: ClassVar[frozenset[str]] = frozenset({"-h", "--help"})

    def __init__(
        self, name: str, help_: str, commands: "dict[str, Callable[[Any], int]] | LateCommands", **settings: Any
    ) -> None:
        """Make the group with a command for each function."""
        made: dict[str, click.Command] = (
            commands
            if isinstance(commands, LateCommands)
            else {each: make_command(each, function) for each, function in commands.items()}
        )
        settings.setdefault("subcommand_metavar", "[COMMAND ...]")
        super().__init__(name, made, help=help_, **settings)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (Click has it)
        """Return the commands in the order of the help."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command if the first argument after the group's own flags is not a command."""
        own = list(takewhile(self.own_flags.__contains__, args))
        rest = args[len(own) :]
        completes_a_command = ctx.resilient_parsing and not rest
        if not completes_a_command and (not rest or rest[0] not in self.commands):
            if rest and not rest[0].startswith("-") and not ctx.resilient_parsing:
                self.check_word(ctx.command_path, rest[0])
            rest = [self.default, *rest]
        return super().parse_args(ctx, [*own, *rest])

    def check_word(self, path: str, word: str) -> None:
        """Raise UsageError for a word that is not a command: the default command takes none."""
        raise UsageError(self.unknown_command(path, word))

    def unknown_command(self, path: str, word: str) -> str:
        """Return the text about a word that is not a command, with the nearest one."""
        return _unknown_command(path, word, list(self.commands))


class CommandWithMore(HelpCommand, click.Group):
    """A command that acts by itself and has others below it: `linkgauge endpoint`, and `linkgauge endpoint key`."""

    def __init__(self, name: str, function: Callable[[Any], int], commands: dict[str, click.Command]) -> None:
        alone = make_command(name, function)
        super().__init__(
            name,
            commands,
            callback=self._act_alone,
            params=alone.params,
            help=alone.help,
            invoke_without_command=True,
            subcommand_metavar=f"[{'|'.join(commands)} ...]",
        )
        self._alone = alone.callback

    def _act_alone(self, **values: Any) -> Any:
        """Carry out the command itself; before one below it, refuse its own options."""
        context = click.get_current_context()
        if context.invoked_subcommand is None:
            return None if self._alone is None else self._alone(**values)
        for each in self.params:
            if context.get_parameter_source(each.name or "") is click.core.ParameterSource.COMMANDLINE:
                name, below = max(each.opts, key=len), f"{context.command_path} {context.invoked_subcommand}"
                raise UsageError(f"{name} is in front of a command; give options behind it: {below} --help")
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names; raise UsageError for any other word."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            raise UsageError(_unknown_command(ctx.command_path, args[0], list(self.commands)))
        return super().resolve_command(ctx, args)


def _unknown_command(path: str, word: str, commands: Sequence[str]) -> str:
    nearest = nearest_command(word, commands)
    hint = f"did you mean {path} {nearest}?" if nearest else f"see {path} --help"
    return f"there is no command '{make_printable(word)}'; {hint}"


class SearchGroup(DefaultGroup):
    """A group whose default command searches for words: `linkgauge presets 10g` is `presets list 10g`."""

    def check_word(self, path: str, word: str) -> None:
        """Raise UsageError for a word that is nearly a command: it is mistyped."""
        if nearest_command(word, list(self.commands)):
            super().check_word(path, word)


class AppGroup(DefaultGroup):
    """`linkgauge [PEER]` is `linkgauge app [PEER]`, and `linkgauge help COMMAND` is `linkgauge COMMAND --help`."""

    default = "app"
    own_flags = frozenset({"-h", "--help", "--version", "-v", "--verbose"})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Turn `help` into the option; otherwise see `DefaultGroup`."""
        if args[:1] != ["help"]:
            return super().parse_args(ctx, args)
        if args[1:] and args[1] not in self.commands:
            raise UsageError(self.unknown_command(ctx.command_path, args[1]))
        return super().parse_args(ctx, [*args[1:], "--help"])

    def check_word(self, path: str, word: str) -> None:
        """Raise UsageError for a word that is like a command and names no host. Any other word is a peer."""
        if nearest_command(word, list(self.commands)) is not None and not _is_host(word):
            raise UsageError(self.unknown_command(path, word))


def _is_host(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True
