"""Groups of commands with a command that is meant where none is named."""

from typing import Any, ClassVar

from typer.core import TyperGroup


class DefaultGroup(TyperGroup):
    """`linkgauge runs` is `linkgauge runs list`: what names no command belongs to the default one."""

    default: ClassVar[str] = "list"
    own_options: ClassVar[frozenset[str]] = frozenset({"-h", "--help"})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command in front of arguments that start with no command."""
        if not args or (args[0] not in self.commands and args[0] not in self.own_options):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


class AppGroup(DefaultGroup):
    """`linkgauge [PEER]` is `linkgauge app [PEER]`."""

    default = "app"
    own_options = frozenset({"-h", "--help", "--version"})
