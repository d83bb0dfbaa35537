"""The arguments and options of a command as the fields of a dataclass.

A command is a function of one dataclass. A field that is a dataclass itself is a group of options, which several
commands have. `command_groups.make_command` makes the command of the function.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, field, fields, is_dataclass
from types import UnionType
from typing import Any, Final, get_args, get_origin

import click
from click.shell_completion import CompletionItem

from ....engine.model.errors import make_printable
from ....engine.model.workload import Workload, workload_named
from ...session.setting_table import SETTINGS
from ..usage_errors import join_choices

# A function that finds the values that begin with the text typed so far, each with its description.
Completer = Callable[[str], list[tuple[str, str]]]

_KEY: Final = "parameter"
_REMEDIES: Final[dict[Any, str]] = {int: "give a whole number", float: "give a number"}
_UNITS: Final = {"MS": "ms", "PERCENT": "%"}  # by placeholder; a number may have its unit
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
                unit = "" if param is None else _UNITS.get(str(param.metavar), "")
                return self._parse(value.removesuffix(unit))
        raise click.BadParameter(f"'{make_printable(value)}' is invalid; {self._remedy}", ctx, param)


def make_parameters(group: Any) -> Iterator[click.Parameter]:
    """Yield the parameter of every field of a group, those of nested groups included."""
    for each in fields(group):
        if is_dataclass(each.type):
            yield from make_parameters(each.type)
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


def fill_group(group: Any, values: dict[str, Any]) -> Any:
    """Return a group of options with their values, and the groups in it."""
    return group(
        **{
            each.name: fill_group(each.type, values) if is_dataclass(each.type) else values[each.name]
            for each in fields(group)
        }
    )


def is_typed(*names: str) -> bool:
    """Return whether any of these parameters was typed; true without a command line.

    Otherwise a value is a default: of the program or of the user's settings. A default excludes nothing.
    """
    context = click.get_current_context(silent=True)
    return context is None or any(was_typed(context, name) for name in names)


def is_group_typed(group: Any) -> bool:
    """Return whether any option of a group was typed, those of nested groups included."""
    return is_typed(*(parameter.name or "" for parameter in make_parameters(group)))


def was_typed(context: click.Context, name: str) -> bool:
    """Return whether a parameter was typed on this command line."""
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
