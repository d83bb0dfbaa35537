"""Sums that are dataclasses: two times combine field by field, each by the rule in its metadata."""

from dataclasses import fields
from functools import cache
from typing import Any, Final, Self, TypeVar, cast

from ...model.counters.latency_histogram import merge_counts
from ...model.counters.samples import COMBINING

T = TypeVar("T")

OWN: Final[dict[str, object]] = {"combines": None}
"""The metadata of a field that its class combines itself, or that has no meaning over several times."""


class Sums:
    """Sums over samples, in a dataclass: the sums of two times combine field by field, as samples do."""

    __slots__ = ()

    def extend(self, other: Self) -> None:
        """Add the sums of a time that followed, or of another direction."""
        extend_fields(self, other)

    def empty(self) -> Self:
        """Return sums of the same kind without samples."""
        return type(self)()


def extend_fields(sums: T, other: T) -> None:
    """Add the fields of `other` to those of `sums`, without the fields that the class combines itself."""
    for name, kind in _kinds(type(sums)):
        setattr(sums, name, _join(getattr(sums, name), getattr(other, name), kind))


@cache
def _kinds(sums: type[Any]) -> tuple[tuple[str, str], ...]:
    kinds = ((each.name, each.metadata.get("combines", "cumulative")) for each in fields(sums))
    return tuple((name, kind) for name, kind in kinds if kind is not None)


def _join(mine: Any, theirs: Any, kind: str) -> Any:
    """Return two values of a field as one. A value with `extend` is extended; it never shares parts with theirs."""
    if isinstance(theirs, dict):
        parts = cast("dict[Any, Any]", theirs)
        if kind == "cumulative" and isinstance(next(iter(parts.values()), None), int | float):
            merge_counts(mine, parts.items())  # the fast way for counts by bucket, which are many
        else:
            mine.update({key: _join(mine.get(key), part, kind) for key, part in parts.items()})
        return mine
    if isinstance(theirs, set | tuple):
        values = cast("set[Any] | tuple[Any, ...]", theirs)
        return type(values)([*(mine or ()), *values])
    if mine is None and hasattr(theirs, "empty"):
        mine = theirs.empty()
    if mine is None or not hasattr(mine, "extend"):
        return COMBINING[kind]((mine, theirs))
    if theirs is not None:
        mine.extend(theirs)
    return mine
