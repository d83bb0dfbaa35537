"""Dataclasses to JSON values and back, strict about every type; TOML text to values, bounded.

Pure. Messages of the control connection and records of the run log go through here: a wrong type, an unknown key
or an absurd number of a peer or a file is one clear error, never an invalid object. A `type` key distinguishes the
members of a union of dataclasses. The standard library has no such decoder, and the engine travels to far ends
without packages.
"""

import re
import tomllib
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from sys import float_info
from typing import Any, Final, Literal, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from .errors import DecodeError, make_printable
from .workload import Workload, workload_named

T = TypeVar("T")

# Counters are 64 bits wide; JSON numbers of any length would let a peer make us compute with huge integers.
# Counts are never negative: shares, medians and sums are computed from them.
_MAX_INT = 2**63 - 1
_MAX_TEXT = 4_096

# The time of tomllib grows with the square of a key's parts: 5 s for a line of 40 KB. Nobody means so many.
_MAX_KEY_PARTS: Final = 64
# TOML asks for 64 bits. tomllib reads any number, but Python prints none of over 4,300 digits.
_MAX_NUMBER_BITS: Final = 14_000
_KEY_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
_TOO_LONG: Final = "A number has over 4,200 digits"
_LONG_KEY: Final = re.compile(
    rf"(?:^|(?<=[\s\[{{,])){_KEY_PART}(?:\.[ \t]*+{_KEY_PART}){{{_MAX_KEY_PARTS}}}", re.MULTILINE
)

_PLAIN: Final = frozenset({int, float, bool, type(None)})

OMITTED_AT_DEFAULT: Final[dict[str, object]] = {"omitted_at_default": True}
"""The metadata of a field that is written only if it has another value: earlier versions do not know its key."""

_Reader = Callable[[Any], Any]


class _Misfit(Exception):
    """A value that does not fit. Each reader that it passes adds the key of the value.

    Naming the place of every value, for the few that do not fit, would take an eighth more time.
    """

    def __init__(self, expected: str, value: object) -> None:
        super().__init__(expected)
        self.expected, self.value = expected, value
        self._keys: list[str] = []

    def inside(self, key: str) -> Self:
        """Note that this is the value of a key, and return it."""
        self._keys.append(key)
        return self

    def at(self, where: str) -> DecodeError:
        """Return it as the error of a value at this place."""
        return DecodeError(".".join([where, *reversed(self._keys)]), self.expected, self.value)


def read_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML file, in time that grows with its length.

    Raises ValueError, which is a TOMLDecodeError with the place unless a number has too many digits, and
    RecursionError for a nesting without end. Every integer can be printed.
    """
    # A key stays on its line: counting dots first takes a tenth of the time of the search.
    may_be_long = any(line.count(".") >= _MAX_KEY_PARTS for line in text.split("\n"))
    if may_be_long and (long_key := _LONG_KEY.search(text)):
        line = text.count("\n", 0, long_key.start()) + 1
        column = long_key.start() - text.rfind("\n", 0, long_key.start())
        raise tomllib.TOMLDecodeError(f"A key has over {_MAX_KEY_PARTS} parts (at line {line}, column {column})")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python's limit of decimal digits; its text names a function of Python
        raise ValueError(_TOO_LONG) from None
    _check_numbers(content)
    return content


def _check_numbers(content: dict[str, Any]) -> None:
    """Raise ValueError for an integer that is too long; hexadecimal ones may have any number of digits."""
    remaining: list[object] = [content]
    while remaining:
        value = remaining.pop()
        if isinstance(value, dict):
            remaining.extend(cast("dict[str, object]", value).values())
        elif isinstance(value, list):
            remaining.extend(cast("list[object]", value))
        elif isinstance(value, int) and value.bit_length() > _MAX_NUMBER_BITS:
            raise ValueError(_TOO_LONG)


def encode(value: object) -> Any:
    """Return a dataclass, enum, tuple or plain value as JSON values; a field `in_` is written `in`."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if (keys := _keys(kind)) is not None:
        members = {key: getattr(value, name) for name, key in keys}
        for key, default in _omitted(kind):
            if members[key] == default:
                del members[key]
        # Most members are numbers, which need no call.
        return {key: item if type(item) in _PLAIN else encode(item) for key, item in members.items()}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | list):
        return [encode(item) for item in cast("tuple[object, ...]", value)]
    # The limits of reading apply to writing too: a worker's error or a host's name may be any text.
    return make_printable(value[:_MAX_TEXT]) if isinstance(value, str) else value


@cache
def _keys(kind: type[Any]) -> tuple[tuple[str, str], ...] | None:
    """Return the fields of a dataclass with their keys; None for another type."""
    if not is_dataclass(kind):
        return None
    return tuple((f.name, f.name.rstrip("_")) for f in fields(kind))


@cache
def _omitted(kind: type[Any]) -> tuple[tuple[str, object], ...]:
    """Return the keys that are left out, each with the value at which it is."""
    return tuple((f.name.rstrip("_"), f.default) for f in fields(kind) if "omitted_at_default" in f.metadata)


def encode_tagged(value: object) -> dict[str, Any]:
    """Return a member of a union of dataclasses as JSON values, its class named under `type`."""
    return {"type": type(value).__name__, **encode(value)}


def reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object's pairs as a dict, for `json.loads`; ValueError for a repeated key.

    Parsers differ in the value that counts, so such a message has no definite meaning.
    """
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key that comes more than once")
    return members


def decode(kind: type[T], value: object) -> T:
    """Return the JSON value as `kind`, a dataclass; raise DecodeError if any part does not fit.

    Unknown keys are errors, and so are missing ones that have no default. A PlanError of a dataclass's
    own checks passes through unchanged; a ValueError becomes DecodeError.
    """
    return _read(kind, value, "")


def decode_tagged(kinds: tuple[type[T], ...], value: object) -> T:
    """Return the JSON object as the member of `kinds` named by its `type` key."""
    if not isinstance(value, dict):
        raise DecodeError("", "an object", value)
    body = dict(cast("dict[str, object]", value))
    name = body.pop("type", None)
    for kind in kinds:
        if kind.__name__ == name:
            return _read(kind, body, kind.__name__)
    raise DecodeError("type", "one of " + ", ".join(k.__name__ for k in kinds), name)


def _read(kind: type[T], value: object, where: str) -> T:
    try:
        return cast("T", _reader(kind)(value))
    except _Misfit as misfit:
        raise misfit.at(where) from misfit.__cause__


@cache
def _reader(kind: Any) -> _Reader:
    """Return the function to read a kind of value, cached for each kind."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(origin or kind):  # such as PerDirection[int]
        return _object_reader(cast("type[Any]", origin or kind), arguments)
    if origin in {Union, types.UnionType}:
        return _optional_reader(arguments)
    if origin is tuple:
        return _tuple_reader(arguments)
    if origin is Literal:
        return _choice_reader(arguments)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _choice_reader(tuple(kind), kind)
    plain: dict[Any, _Reader] = {int: _read_int, str: _read_text, bool: _read_bool, float: _read_float}
    plain[Workload] = _read_workload
    return plain[kind]


def _object_reader(kind: type[Any], arguments: tuple[Any, ...] = ()) -> _Reader:
    """Return the reader of a dataclass; `arguments` are the parameters of a generic one."""
    actual: dict[Any, Any] = dict(zip(getattr(kind, "__parameters__", ()), arguments, strict=False))
    hints = {name: actual.get(hint, hint) for name, hint in get_type_hints(kind).items()}
    known = {f.name.rstrip("_"): (f.name, _reader(hints[f.name])) for f in fields(kind) if f.init}

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _Misfit("an object", value)
        members = cast("dict[str, object]", value)
        values: dict[str, Any] = {}
        for key, item in members.items():
            if key not in known:
                raise _Misfit(f"one of {', '.join(known)}", "an unknown key").inside(make_printable(key[:40]))
            name, reader = known[key]
            try:
                values[name] = reader(item)
            except _Misfit as misfit:
                misfit.inside(key)
                raise
        try:
            return kind(**values)
        except TypeError as error:
            missing = ", ".join(key for key in known if key not in members)
            raise _Misfit(f"an object with {missing}", "without") from error
        except ValueError as error:
            raise _Misfit("what can be", str(error)) from error

    return read


def _optional_reader(arguments: tuple[Any, ...]) -> _Reader:
    present = [a for a in arguments if a is not type(None)]
    if len(present) != 1 or len(present) == len(arguments):
        raise TypeError(f"only X | None is read, not {arguments}")
    reader = _reader(present[0])
    return lambda value: None if value is None else reader(value)


def _tuple_reader(arguments: tuple[Any, ...]) -> _Reader:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        each = _reader(arguments[0])

        def read(value: Any) -> Any:
            if not isinstance(value, list):
                raise _Misfit("a list", value)
            return tuple(each(item) for item in cast("list[object]", value))

        return read
    readers = tuple(map(_reader, arguments))

    def read_fixed(value: Any) -> Any:
        items = cast("list[object]", value) if isinstance(value, list) else []
        if len(items) != len(readers):
            raise _Misfit(f"a list of {len(readers)}", cast("object", value))
        return tuple(reader(item) for reader, item in zip(readers, items, strict=True))

    return read_fixed


def _choice_reader(choices: tuple[Any, ...], make: Callable[[Any], Any] = lambda value: value) -> _Reader:
    def read(value: Any) -> Any:
        # To Python true is 1, and so is 1.0: a number must be whole.
        if not (isinstance(value, str) or type(value) is int) or value not in choices:
            raise _Misfit("one of " + ", ".join(map(str, choices)), value)
        return make(value)

    return read


def _read_workload(value: Any) -> Workload:
    try:
        return workload_named(value if isinstance(value, str) else "")
    except ValueError as error:
        raise _Misfit(str(error), value) from None


def _read_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_INT:
        raise _Misfit("a whole number of 64 bits", value)
    return value


def _read_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Misfit("a number", value)
    if not -float_info.max <= value <= float_info.max:  # no number, infinite, or a whole number beyond it
        raise _Misfit("a finite number", value)
    return float(value)


def _read_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Misfit("true or false", value)
    return value


def _read_text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise _Misfit(f"text of at most {_MAX_TEXT} characters", value)
    return make_printable(value)
