"""Blocks of events: many events of a run, as JSON texts, in one small binary value.

The samples of a run differ only in their numbers. A block has each text once, without its numbers (a template), and
the numbers column by column: the values of one column are alike, so that they compress well. Any JSON text comes
back unchanged, so that a new field of an event needs no change here.

A block of few events has the compressed texts themselves: columns of a few values save little.
"""

import json
import re
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from math import gcd
from operator import sub
from typing import Any, Final

_COLUMNS: Final = b"\x01"
_TEXTS: Final = b"\x02"
# A mesh stores a run of 16 events for each cell: columns would take 0.5 ms instead of 0.06, and 10 bytes more.
_FEW: Final = 24
# The limits for a block that a stranger sent. The writer's own blocks have at most 1,024 events, of 8 MiB in all.
MAX_CHARACTERS: Final = 32 << 20
_MAX_HEADER: Final = 8 << 20
_MAX_EVENTS: Final = 1 << 16
_MAX_NUMBERS: Final = 1 << 22
_NUMBER: Final = "\0"  # a place in a template; JSON texts have no control characters
_LIST: Final = "\1"
# No leading zero, sign, fraction or exponent: str() gives the same digits again. Differences need 64 bits at most.
_DIGITS: Final = r"(?:0|[1-9][0-9]{0,17})"
# Each begins with a character of its own, so that the search is fast.
_LISTS: Final = re.compile(rf"\[({_DIGITS}(?:,{_DIGITS})*)\](?=[,}}\]])")
_NUMBERS: Final = re.compile(rf":({_DIGITS})(?=[,}}])")
_PLACES: Final = re.compile(f"([{_NUMBER}{_LIST}])")
_MIN_COMPARED: Final = 64  # values of a column; a block of many sessions has thousands of short columns
_WORD: Final = 8  # bytes of a number in memory
_DAMAGES: Final = (
    *(ValueError, TypeError, AttributeError, LookupError, ArithmeticError),
    *(StopIteration, MemoryError, RecursionError, zlib.error),
)

_Row = list[str]  # the digits of each number, or of each list with its commas
# Offset, scale, bytes a number, and the first value if the others are differences.
_ColumnHead = tuple[int, int, int, int | None]


def pack_events(texts: Sequence[str]) -> bytes:
    """Return a block of JSON texts, in their order."""
    if 0 < len(texts) <= _FEW:
        if any("\n" in text for text in texts):
            raise ValueError("an event with control characters")
        return _TEXTS + zlib.compress("\n".join(texts).encode())
    tables: dict[str, tuple[list[_Row], list[_Row]]] = {}
    order: list[int] = []
    places: dict[str, int] = {}
    for text in texts:
        template, numbers, lists = _split(text)
        order.append(places.setdefault(template, len(places)))
        table = tables.setdefault(template, ([], []))
        table[0].append(numbers)
        table[1].append(lists)
    columns = [_pack_column(column) for table in tables.values() for column in _columns(*table)]
    header = json.dumps([list(tables), order, [head for head, _ in columns]], separators=(",", ":")).encode()
    parts = (len(header).to_bytes(4, "big"), header, *(data for _, data in columns))
    return _COLUMNS + zlib.compress(b"".join(parts), 9)


def unpack_events(block: bytes) -> list[str]:
    """Return the JSON texts of a block. Raises ValueError for a damaged one."""
    try:
        return _unpack(block)
    except _DAMAGES as error:
        raise ValueError(f"a damaged block of events: {error}") from error


def _split(text: str) -> tuple[str, _Row, _Row]:
    """Return the template of a text, its numbers, and its lists."""
    if _NUMBER in text or _LIST in text:
        raise ValueError("an event with control characters")
    lists: _Row = _LISTS.findall(text)
    if lists:
        text = _LISTS.sub(f"[{_LIST}]", text)
    parts = _NUMBERS.split(text)
    return f":{_NUMBER}".join(parts[::2]), parts[1::2], lists


def _columns(numbers: list[_Row], lists: list[_Row]) -> Iterator[list[int]]:
    """Yield the columns of a table: first of the numbers; then two for each list, its lengths and all items."""
    for column in zip(*numbers, strict=True):
        yield list(map(int, column))
    for column in zip(*lists, strict=True):
        yield [items.count(",") + 1 for items in column]
        yield list(map(int, ",".join(column).split(",")))


def _pack_column(values: list[int]) -> tuple[_ColumnHead, bytes]:
    """Return the shorter of two forms: the values, or their differences."""
    form = _pack_numbers(values, None)
    if not form[1] or len(values) < _MIN_COMPARED:  # all values are equal, or there is little to gain
        return form
    other = _pack_numbers(list(map(sub, values[1:], values)), values[0])
    return min(form, other, key=lambda form: len(zlib.compress(form[1], 1)))


def _pack_numbers(values: list[int], first: int | None) -> tuple[_ColumnHead, bytes]:
    """Return numbers as bytes: all first bytes, then all second bytes, many of which are equal."""
    offset, top = min(values), max(values)
    if offset == top:
        return (offset, 1, 0, first), b""
    values = [value - offset for value in values]
    scale = gcd(*values)
    words = array("Q", values if scale == 1 else [value // scale for value in values])
    width = ((top - offset) // scale).bit_length() + 7 >> 3
    if sys.byteorder == "big":
        words.byteswap()
    data = words.tobytes()
    return (offset, scale, width, first), b"".join([data[place::_WORD] for place in range(width)])


def _unpack(block: bytes) -> list[str]:
    if block[:1] not in {_COLUMNS, _TEXTS}:
        raise ValueError("unknown format")
    inflater = zlib.decompressobj()
    data = inflater.decompress(block[1:], MAX_CHARACTERS)
    if not inflater.eof:
        raise ValueError("cut off, or too long")
    if block[:1] == _TEXTS:
        if data.count(b"\n") >= _MAX_EVENTS:
            raise ValueError("too many events")
        return data.decode().split("\n")
    end = 4 + int.from_bytes(data[:4], "big")
    if end > _MAX_HEADER:
        raise ValueError("a long header")
    header: Any = json.loads(data[4:end])
    templates: list[str]
    order: list[int]
    templates, order, heads = header
    counts = Counter(order)
    characters = sum(len(template) * counts[number] for number, template in enumerate(templates))
    if len(order) > _MAX_EVENTS or characters > MAX_CHARACTERS:
        raise ValueError("too many events")
    source = _ColumnSource(heads, data[end:])
    texts = [_texts(template, counts[number], source) for number, template in enumerate(templates)]
    return [next(texts[number]) for number in order]


def _texts(template: str, count: int, source: "_ColumnSource") -> Iterator[str]:
    """Return an iterator over the texts of a template, with their numbers and lists."""
    first, *parts = _PLACES.split(template)
    columns: list[list[str]] = [[]] * (len(parts) // 2)
    for kind in (_NUMBER, _LIST):
        for place in (place for place, mark in enumerate(parts[::2]) if mark == kind):
            numbers = source.read(count)
            text = parts[2 * place + 1]
            if kind == _NUMBER:
                columns[place] = [f"{number}{text}" for number in numbers]
            else:
                items = iter(source.read(sum(numbers)))
                columns[place] = [",".join(map(str, islice(items, number))) + text for number in numbers]
    if not columns:
        return iter([first] * count)
    return (first + "".join(row) for row in zip(*columns, strict=True))


def _check_head(offset: object, scale: object, width: object, first: object) -> None:
    """Raise ValueError if no column can have this head: its numbers would be endless, or not whole."""
    values = (offset, scale, width, 0 if first is None else first)
    if not all(type(value) is int and value.bit_length() <= 8 * _WORD for value in values):
        raise ValueError("a column of other numbers")
    if not isinstance(width, int) or not 0 <= width <= _WORD:
        raise ValueError("a column of other widths")


class _ColumnSource:
    """Reads the columns of a block, one after another."""

    def __init__(self, heads: list[Any], data: bytes) -> None:
        self._heads = iter(heads)
        self._data = data
        self._at = 0
        self._count = 0

    def read(self, count: int) -> list[int]:
        """Return the next column, which has `count` values."""
        self._count += count
        if count < 0 or self._count > _MAX_NUMBERS:
            raise ValueError("too many values")
        offset, scale, width, first = next(self._heads)
        if count == 0:
            return []
        _check_head(offset, scale, width, first)
        numbers = count if first is None else count - 1
        size = numbers * width
        if self._at + size > len(self._data):
            raise ValueError("a short column")
        spread = bytearray(numbers * _WORD)
        for place in range(width):
            spread[place::_WORD] = self._data[self._at + place * numbers : self._at + (place + 1) * numbers]
        self._at += size
        words = array("Q", bytes(spread))
        if sys.byteorder == "big":
            words.byteswap()
        values = [offset + scale * word for word in words]
        return values if first is None else list(accumulate(values, initial=first))
