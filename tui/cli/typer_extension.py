"""What Typer lacks: options as dataclasses, plain help, default commands, and words for mistyped ones.

A group of options is a dataclass with a field for each option, made by `option`. A command takes the groups that it
needs as parameters, and `with_options` turns their fields into options of the command.
"""

import socket
from collections.abc import Callable
from dataclasses import field, fields, is_dataclass
from inspect import Parameter, Signature, signature
from itertools import pairwise, takewhile
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from ...engine.model.errors import UsageError
from .usage_errors import nearest_command


def option(
    panel: str,
    kind: Any,
    help_: str,
    *names: str,
    default: Any = None,
    metavar: str | None = None,
    default_text: str | bool = False,
    parser: Callable[[str], Any] | None = None,
    bare_value: str | None = None,
    is_hidden: bool = False,
) -> Any:
    """Return a dataclass field that `with_options` turns into an option.

    Args:
        panel: the panel of the help that lists the option.
        kind: the type of the value.
        help_: the help text.
        names: the names, such as `--mtu`; without any, Typer derives one from the field's name.
        default: the value where the option is absent.
        metavar: the placeholder of the value in the help; "" for none, None for Typer's own.
        default_text: the default as help shows it; True for `default` itself, False for nothing.
        parser: converts the text, where Typer cannot.
        bare_value: the value of the option without one, which must be a number otherwise; the command takes no
            arguments then.
        is_hidden: whether help leaves it out: an option that the program gives to itself.
    """
    option = typer.Option(
        *names,
        metavar=metavar,
        show_default=default_text,
        help=help_,
        rich_help_panel=panel,
        parser=parser,
        hidden=is_hidden,
    )
    bare = {} if bare_value is None else {"bare_values": dict.fromkeys(names, bare_value)}
    return field(default=default, metadata={"option": Annotated[kind, option], **bare})


def with_options(command: Callable[..., int]) -> Callable[..., int]:
    """Return the command with an option for every field of its groups of options.

    The options take the place of the parameter that has the group as its annotation. Typer reads the signature of a
    function, so the returned function has one that is built here.
    """
    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if is_dataclass(group):
            groups[parameter.name] = group
            parameters += [
                Parameter(
                    option.name,
                    Parameter.KEYWORD_ONLY,
                    default=option.default,
                    annotation=option.metadata["option"],
                )
                for option in fields(group)
            ]
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    def with_groups(**values: Any) -> int:
        options = {
            name: group(**{option.name: values.pop(option.name) for option in fields(group)})
            for name, group in groups.items()
        }
        return command(**options, **values)

    # Typer reads these as well. Without annotations, the function has only its signature.
    with_groups.__signature__ = Signature(parameters, return_annotation=int)  # pyright: ignore[reportFunctionMemberAccess]
    with_groups.__annotations__ = {}
    with_groups.__doc__ = command.__doc__
    with_groups.__name__ = command.__name__
    return with_groups


class HelpPage:
    """The help of a command: plain sections that fit into 80 columns, the same on a terminal and in a pipe."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage; those in brackets are optional."""
        command: Any = self
        if isinstance(command, TyperGroup):
            return ["[OPTIONS]", command.subcommand_metavar]
        arguments = [each for each in command.get_params(ctx) if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(each.metavar or each.name.upper() for each in arguments)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the usage, the description, the arguments, the options by section, and the commands."""
        command: Any = self
        parameters = [each for each in command.get_params(ctx) if not getattr(each, "hidden", False)]
        arguments = [each for each in parameters if each.param_type_name == "argument"]
        formatter.write_usage(ctx.command_path, " ".join(self.collect_usage_pieces(ctx)))
        formatter.write_paragraph()
        formatter.write_text(command.help or "")
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Commands": [], "Options": []}
        for each in sorted(parameters, key=lambda each: each.name == "help"):
            name = "Arguments" if each in arguments else each.rich_help_panel or "Options"
            sections.setdefault(name, []).append((spelling(each), description(each)))
        for name, subcommand in getattr(command, "commands", {}).items():
            if not subcommand.hidden:
                sections["Commands"].append((name, (subcommand.help or "").partition("\n")[0]))
        if sections.keys() - {"Arguments", "Commands", "Options", "Output"}:
            sections["Other options"] = sections.pop("Options")
        for name, rows in sections.items():
            if rows:
                with formatter.section(name):
                    formatter.write_dl(rows, col_max=26)
        for paragraph in filter(None, (command.epilog or "").split("\n\n")):
            formatter.write_paragraph()
            formatter.write_text(paragraph)


def spelling(parameter: Any) -> str:
    """Return the names of an option with its placeholder, or the placeholder of an argument."""
    if parameter.param_type_name == "argument":
        return (parameter.metavar or parameter.name.upper()).strip("[]")
    names = ", ".join(sorted(parameter.opts, key=len))
    names = " / ".join([names, *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    choices = parameter.type_descriptor.choices
    return f"{names} {'|'.join(choices) if choices and not parameter.metavar else parameter.metavar}"


def description(parameter: Any) -> str:
    """Return the help of an option or an argument, with its default."""
    default_text = parameter.show_default
    default = default_text if isinstance(default_text, str) else parameter.default
    has_default = default_text and default not in {None, False, ""}
    return f"{parameter.help} [default: {default}]" if has_default else parameter.help


class HelpCommand(HelpPage, TyperCommand):
    """A command with our help, whose `bare_values` stand for the values that options may go without."""

    bare_values: ClassVar[dict[str, str]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give the options without a value theirs; a number that follows is the value."""
        whole = [
            f"{word}={self.bare_values[word]}" if word in self.bare_values and not after.isdecimal() else word
            for word, after in pairwise([*args, ""])
        ]
        return super().parse_args(ctx, whole)


def add_command(app: typer.Typer, name: str, command: Callable[..., int]) -> None:
    """Add a function with groups of options as a command."""
    bare_values: dict[str, str] = {}
    for parameter in signature(command, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            for option in fields(parameter.annotation):
                bare_values |= option.metadata.get("bare_values", {})
    kind = type("HelpCommand", (HelpCommand,), {"bare_values": bare_values}) if bare_values else HelpCommand
    app.command(name, cls=kind)(with_options(command))


class DefaultGroup(HelpPage, TyperGroup):
    """A group that runs its default command without one: `linkgauge runs` is `linkgauge runs list`."""

    default: ClassVar[str] = "list"
    own_flags: ClassVar[frozenset[str]] = frozenset({"-h", "--help"})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command where the first argument after the group's own flags is not a command."""
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
        """Return the text about a word that is no command, with the nearest one."""
        nearest = nearest_command(word, list(self.commands))
        hint = f"did you mean {path} {nearest}?" if nearest else f"see {path} --help"
        return f"there is no command '{word}'; {hint}"


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

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
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
