"""Groups of commands: made of functions, imported late, with a default command and words for mistyped ones."""

import socket
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import getdoc, signature
from itertools import takewhile
from typing import Any, ClassVar

import click

from ....engine.model.errors import UsageError, make_printable
from ..usage_errors import nearest_command
from .command_help import HelpCommand
from .option_fields import fill_group, make_parameters, was_typed


def make_command(name: str, function: Callable[[Any], int]) -> "HelpCommand":
    """Return the command that carries out a function of one group of options; its docstring is the help."""
    (parameter,) = signature(function).parameters.values()
    group = parameter.annotation

    def call(**values: Any) -> int:
        return function(fill_group(group, values))

    return HelpCommand(name, callback=call, params=list(make_parameters(group)), help=getdoc(function))


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
            if was_typed(context, each.name or ""):
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
