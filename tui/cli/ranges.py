"""Values of a sweep as a person types them: `16K..4M`, `1,2,5,10`, `512..10240/512`, `auto,64K`.

Pure. A range doubles from its first value up to its last; `/STEP` adds instead. Every function raises PlanError
with what was given and what is allowed.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from ...engine.errors import PlanError
from ...engine.plan import Direction
from ...engine.sweep import MAX_POINTS
from . import parse

T = TypeVar("T")
_ALLOWED: Final = "give values with commas, or ranges: 16K..1M doubles, 1..10/1 adds"


def direction_values(text: str) -> tuple[Direction, ...]:
    """Read directions: `out`, `in`, `duplex`, with commas."""
    known = {direction.value: direction for direction in Direction}
    found: list[Direction] = []
    for word in text.split(","):
        if word.strip().lower() not in known:
            raise PlanError("direction", repr(word), "give out, in or duplex, with commas for several")
        found.append(known[word.strip().lower()])
    return tuple(dict.fromkeys(found))


def window_values(text: str) -> tuple[int | None, ...]:
    """Read windows: sizes, ranges of them, and `auto`."""
    return _values(text, "window", parse.window_bytes)


def session_values(text: str) -> tuple[int, ...]:
    """Read numbers of sessions."""
    return _values(text, "sessions", parse.sessions)


def message_values(text: str) -> tuple[int, ...]:
    """Read what a session hands to its socket at once."""
    return _values(text, "message size", parse.block_bytes)


def _values(text: str, field: str, read: Callable[[str], T]) -> tuple[T, ...]:
    found: list[T] = []
    for part in text.split(","):
        first, dots, rest = part.partition("..")
        if not dots:
            found.append(read(part))
            continue
        last, slash, step = rest.partition("/")
        ends = read(first), read(last)
        gap = parse.message_bytes(step, field) if slash else None
        found += _range(field, part, ends, gap)
        if len(found) > MAX_POINTS:
            break
    if len(found) > MAX_POINTS:
        raise PlanError(field, repr(text), f"a sweep has at most {MAX_POINTS} runs")
    return tuple(dict.fromkeys(found))


def _range(field: str, part: str, ends: tuple[T, T], step: int | None) -> list[T]:
    """Return the values of a range, its last one included wherever doubling or the step end."""
    first, last = ends
    if not isinstance(first, int) or not isinstance(last, int) or first > last or first < 1 or step == 0:
        raise PlanError(field, repr(part), _ALLOWED)
    found = [first]
    while found[-1] < last and len(found) <= MAX_POINTS:
        found.append(min(last, found[-1] * 2 if step is None else found[-1] + step))
    return found
