"""Groups of commands with a default command, used where none is named."""

from itertools import takewhile
from typing import Any, ClassVar

from typer.core import TyperGroup


class DefaultGroup(TyperGroup):
    """A group that runs its default command without one: `linkgauge runs` is `linkgauge runs list`."""

    default: ClassVar[str] = "list"
    own_flags: ClassVar[frozenset[str]] = frozenset({"-h", "--help"})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command where the first argument after the group's own flags is not a command."""
        own = list(takewhile(self.own_flags.__contains__, args))
        rest = args[len(own) :]
        if not rest or rest[0] not in self.commands:
            rest = [self.default, *rest]
        return super().parse_args(ctx, [*own, *rest])


class AppGroup(DefaultGroup):
    """`linkgauge [PEER]` is `linkgauge app [PEER]`."""

    default = "app"
    own_flags = frozenset({"-h", "--help", "--version", "-v", "--verbose"})
