"""A measured policer or shaper, printed: a sentence for each direction, and its numbers below it."""

from collections.abc import Iterator
from typing import Final

from ....engine.results.shape.shape_result import ShapeResult
from ...words.numbers import arrow
from ...words.shape_words import heading, shape_numbers, shape_sentence

_NAMES_WIDTH: Final = 6


def shape_lines(result: ShapeResult) -> Iterator[str]:
    """Yield a line about the path, and for each direction its sentence and its numbers."""
    yield heading(result.peer, result.ip_version, result.round_trip_ns)
    for each in result.directions:
        yield f"{arrow(each.direction)} {each.direction:3} {shape_sentence(each)}"
        for name, value in shape_numbers(each, result.round_trip_ns, result.peer):
            yield f"      {name:<{_NAMES_WIDTH}} {value}"
