"""What Typer lacks: options as dataclasses, and commands with a default.

A group of options is a dataclass with a field for each option, made by `option`. A command takes the groups that it
needs as parameters, and `with_options` turns their fields into options of the command.
"""

from collections.abc import Callable
from dataclasses import field, fields, is_dataclass
from inspect import Parameter, Signature, signature
from itertools import takewhile
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup


def option(
    panel: str,
    kind: Any,
    help_: str,
    *names: str,
    default: Any = None,
    metavar: str | None = None,
    shown: str | bool = False,
    parser: Callable[[str], Any] | None = None,
) -> Any:
    """Return a dataclass field that `with_options` turns into an option.

    Args:
        panel: the panel of the help that lists the option.
        kind: the type of the value.
        help_: the help text.
        names: the names, such as `--mtu`; without any, Typer derives one from the field's name.
        default: the value where the option is absent.
        metavar: the placeholder of the value in the help; "" for none, None for Typer's own.
        shown: the default as help shows it; True for `default` itself, False for nothing.
        parser: converts the text, where Typer cannot.
    """
    option = typer.Option(
        *names, metavar=metavar, show_default=shown, help=help_, rich_help_panel=panel, parser=parser
    )
    return field(default=default, metadata={"option": Annotated[kind, option]})


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


class DefaultGroup(TyperGroup):
    """A group that runs its default command without one: `linkgauge runs` is `linkgauge runs list`."""

    default: ClassVar[str] = "list"
    own_flags: ClassVar[frozenset[str]] = frozenset({"-h", "--help"})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command where the first argument after the group's own flags is not a command."""
        own = list(takewhile(self.own_flags.__contains__, args))
        rest = args[len(own) :]
        completes_a_command = ctx.resilient_parsing and not rest
        if not completes_a_command and (not rest or rest[0] not in self.commands):
            rest = [self.default, *rest]
        return super().parse_args(ctx, [*own, *rest])


class AppGroup(DefaultGroup):
    """`linkgauge [PEER]` is `linkgauge app [PEER]`."""

    default = "app"
    own_flags = frozenset({"-h", "--help", "--version", "-v", "--verbose"})
