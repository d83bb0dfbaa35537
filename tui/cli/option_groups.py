"""Groups of options: a dataclass with a field for each option, and the decorator that gives them to a command."""

from collections.abc import Callable
from dataclasses import field, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer


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
