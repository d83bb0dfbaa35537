"""Figures for programs: made of measured values, rounded, written as a JSON document, and read from one. Pure.

A dataclass of figures is the shape of an object: its fields are the members in their order, and `in_` is the member
`in`. The metadata of a field give the attribute that the figure is made of, and its unit. A document is read by the
same type. Reading never fails: members that an older linkgauge did not write, or that are damaged, are unknown.
"""

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from math import floor, log10
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints, overload

from ..model.directions import PerDirection
from ..model.plan import SECOND_NS

DOCUMENT_VERSION: Final = 1
_NUMBERS: Final = (int, float)
_TOO_MUCH: Final = 2.0**63  # no figure of a run; the run log's columns hold less
T = TypeVar("T")


@overload
def round_figure(value: float) -> float: ...
@overload
def round_figure(value: None) -> None: ...
def round_figure(value: float | None) -> float | None:
    """Round to 3 decimals, or to 3 significant digits if the value is small; None stays unknown."""
    return round(value, max(3, 2 - floor(log10(abs(value))))) if value else value


def figure(source: str | None = None, unit: Callable[[Any], Any] | None = None, **metadata: Any) -> Any:
    """Return a field of figures, which is None by default.

    Args:
        source: The attribute that the figure is made of, or `a.b` for an attribute of `a`; by default the field's
        name. unit: The function that makes the figure of the value; by default a number with decimals is rounded.
        metadata: `at` is the place of the member if that is not its name, or `a.b` in an inner object. An `omitted`
            member is there only if it is known. The members of an `inline` object are in the outer object. A
            `hidden` field is not a member.
    """
    return field(default=None, metadata={"source": source, "unit": unit, **metadata})


def part(shape: Callable[[], Any], source: str | None = None, **metadata: Any) -> Any:
    """Return a field with an object that each document has. A `source` of "" is the measured value itself."""
    return field(default_factory=shape, metadata={"source": source, **metadata})


def mbit(bit: float | None) -> float | None:
    """Return bits as megabits."""
    return None if bit is None else round_figure(bit / 1e6)


def percent(share: float | None) -> float | None:
    """Return a share of 0 to 1 in percent."""
    return None if share is None else round_figure(100 * share)


def us(ns: float | None) -> float | None:
    """Return nanoseconds as microseconds."""
    return None if ns is None else round_figure(ns / 1_000)


def ms(ns: float | None) -> float | None:
    """Return nanoseconds as milliseconds."""
    return None if ns is None else round_figure(ns / 1e6)


def rounded_seconds(ns: float | None) -> float | None:
    """Return nanoseconds as seconds."""
    return round_figure(seconds(ns))


def seconds(ns: float | None) -> float | None:
    """Return nanoseconds as seconds, with all digits."""
    return None if ns is None else ns / SECOND_NS


def exact(value: float) -> float:
    """Return a number as it is."""
    return value


@dataclass(frozen=True, slots=True)
class _Member:
    """A field of figures: its place in a document, its source, and how it is made and read."""

    name: str
    place: tuple[str, ...]
    source: tuple[str, ...]
    make: Callable[[Any], Any]
    read: Callable[[Any], Any]
    is_omitted: bool


def figures_of(shape: type[T], measured: object, /, **known: Any) -> T:
    """Return the figures of a measured value; `known` are the figures that its attributes do not give."""
    for member in _members(shape):
        if member.name not in known:
            value: Any = measured
            for name in member.source:
                value = None if value is None else getattr(value, name)
            known[member.name] = member.make(value)
    return shape(**known)


def encode(figures: object) -> Any:
    """Return figures as a JSON value."""
    if isinstance(figures, tuple | list):
        return [encode(item) for item in cast("tuple[object, ...]", figures)]
    if not is_dataclass(figures):
        return figures
    document: dict[str, Any] = {}
    for member in _members(type(figures)):
        value = encode(getattr(figures, member.name))
        if not member.place:
            document |= value or {}
        elif value is not None or not member.is_omitted:
            *outer, key = member.place
            inner = document
            for name in outer:
                inner = inner.setdefault(name, {})
            inner[key] = value
    return document


def decode(shape: type[T], document: object) -> T:
    """Return the figures of a document, as far as they are known."""
    return shape(*[read(_at(document, place)) for place, read in _readers(shape)])


def _at(document: object, place: tuple[str, ...]) -> Any:
    for key in place:
        if not isinstance(document, dict):
            return None
        document = cast("dict[str, Any]", document).get(key)
    return document


@cache
def _readers(shape: type[Any]) -> tuple[tuple[tuple[str, ...], Callable[[Any], Any]], ...]:
    return tuple((member.place, member.read) for member in _members(shape))


@cache
def _members(shape: type[Any]) -> tuple[_Member, ...]:
    hints = get_type_hints(shape)
    shown = [each for each in fields(shape) if not each.metadata.get("hidden")]
    return tuple(_member(each.name, hints[each.name], each.metadata) for each in shown)


def _member(name: str, hint: Any, metadata: Mapping[str, Any]) -> _Member:
    source, at = metadata.get("source"), metadata.get("at", name.rstrip("_"))
    return _Member(
        name,
        place=() if metadata.get("inline") else tuple(at.split(".")),
        source=(name,) if source is None else tuple(filter(None, source.split("."))),
        make=_maker(hint, metadata.get("unit")),
        read=_reader(hint),
        is_omitted=bool(metadata.get("omitted")),
    )


def _kind(hint: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether it can be None."""
    if get_origin(hint) not in {Union, types.UnionType}:
        return hint, False
    (kind,) = (each for each in get_args(hint) if each is not type(None))
    return kind, True


def _maker(hint: Any, unit: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """Return the function that makes a figure of a value."""
    kind, is_optional = _kind(hint)
    if is_dataclass(kind):
        shape = cast("type[Any]", kind)
        return lambda value: (None if is_optional else shape()) if value is None else figures_of(shape, value)
    if get_origin(kind) is tuple:
        make = _maker(get_args(kind)[0], None)
        return lambda values: tuple(map(make, values))
    convert = cast("Callable[[Any], Any]", unit or {float: round_figure, str: str}.get(kind, exact))
    return lambda value: None if value is None else convert(value)


def _reader(hint: Any) -> Callable[[Any], Any]:
    """Return the function that reads a value of a document."""
    kind, is_optional = _kind(hint)
    if get_origin(kind) is PerDirection:
        each = _reader(get_args(kind)[0])
        return lambda value: PerDirection(*(each(_at(value, (key,))) for key in ("out", "in", "total")))
    if is_dataclass(kind):
        shape = cast("type[Any]", kind)
        keys = {key for member in _members(shape) for key in member.place[:1]}
        return lambda value: None if is_optional and not _has_any(value, keys) else decode(shape, value)
    if get_origin(kind) is tuple:
        read = _reader(get_args(kind)[0])
        missing = None if is_optional else ()
        return lambda value: tuple(map(read, cast("list[Any]", value))) if isinstance(value, list) else missing
    return _plain_reader(get_origin(kind) or kind)


def _plain_reader(kind: Any) -> Callable[[Any], Any]:
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        words = {word.value: word for word in kind}
        return lambda value: words.get(value) if isinstance(value, str) else None
    if kind is float:
        return lambda value: value if is_number(value) else None
    if kind is int:
        return lambda value: int(value) if is_number(value) else None
    return lambda value: value if isinstance(value, kind) else None


def _has_any(value: object, keys: set[str]) -> bool:
    return isinstance(value, dict) and not keys.isdisjoint(cast("dict[str, Any]", value))


def is_number(value: object) -> bool:
    """Return whether a value of a document is a finite number."""
    return type(value) in _NUMBERS and abs(cast("float", value)) < _TOO_MUCH
