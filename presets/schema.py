"""What a file of presets may say, and what of it makes no sense, told by key.

Pure. The shapes are model.py's dataclasses, read by the engine's strict decoder; what types cannot say is
checked here: that a rate names a number of its preset, that it is not marked as a slip, that it is a rate.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from ..engine.model.errors import DecodeError, PlanError
from ..engine.model.plan import MAX_BLOCK_BYTES, MAX_SESSIONS, MAX_WINDOW_BYTES, MIN_BLOCK_BYTES, MIN_WINDOW_BYTES
from ..engine.model.serialization import decode, encode
from .preset import DocumentSweep, Preset, Rate, Source, as_bit_s, as_transactions_s
from .wire import derive

T = TypeVar("T")

MIN_MTU_BYTES: Final = 68  # RFC 791
MAX_MTU_BYTES: Final = 65_536

_ID: Final = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*", re.ASCII)
_RESERVED: Final = ("auto",)  # `check auto` picks a preset by itself
_KEYS: Final = ("source", "preset", "sweep")
_MAX_ID: Final = 64
_MAX_BIT_S: Final = 10**15  # a thousand times the fastest link there is; more would not fit into 64 bits as a total


@dataclass(frozen=True, slots=True)
class PresetProblem:
    """Something in a file of presets that could not be used: the file, the key, and what was expected."""

    path: str
    key: str
    expected: str

    def __str__(self) -> str:
        """Return it as one line."""
        return ": ".join(part for part in (self.path, self.key, self.expected) if part)


@dataclass(frozen=True, slots=True)
class PresetFile:
    """The usable content of a preset file, and its problems."""

    presets: tuple[Preset, ...] = ()
    sweeps: tuple[DocumentSweep, ...] = ()


def check_id(preset_id: str) -> str:
    """Return the id; raise DecodeError where it could not be typed on a command line or stand in a CSV."""
    if not _ID.fullmatch(preset_id) or preset_id in _RESERVED or len(preset_id) > _MAX_ID:
        raise DecodeError("id", "small letters and digits, joined by - or ., and not auto", preset_id)
    return preset_id


def parse_preset_file(path: str, content: dict[str, Any], problems: list[PresetProblem]) -> PresetFile:
    """Return what of a file's content can be used; what cannot is added to `problems`."""
    problems.extend(
        PresetProblem(path, key, f"expected one of {', '.join(_KEYS)}") for key in content if key not in _KEYS
    )
    try:
        source = decode(Source, content.get("source"))
    except DecodeError as error:
        problems.append(_problem(path, "source", error))
        return PresetFile()
    presets = _read_each(path, content, "preset", lambda table: _read_preset(source, table), problems)
    sweeps = _read_each(path, content, "sweep", _read_sweep, problems) if "sweep" in content else []
    return PresetFile(tuple(presets), tuple(sweeps))


def _read_each(
    path: str, content: dict[str, Any], key: str, read: Callable[[object], T], problems: list[PresetProblem]
) -> list[T]:
    tables = content.get(key)
    if not isinstance(tables, list) or not tables:
        problems.append(PresetProblem(path, key, f"expected one [[{key}]] or more"))
        return []
    good: list[T] = []
    for number, table in enumerate(cast("list[object]", tables), start=1):
        try:
            good.append(read(table))
        except DecodeError as error:
            problems.append(_problem(path, _title_of(table, f"{key} {number}"), error))
    return good


def _problem(path: str, where: str, error: DecodeError) -> PresetProblem:
    inner = error.where.strip(".")
    text = str(error).removeprefix(error.where or "value").removeprefix(": ")
    return PresetProblem(path, f"{where}.{inner}" if inner else where, text)


def _title_of(table: object, place: str) -> str:
    """Name a preset in a problem: by its id where it has one, by its place in the file where not."""
    given = cast("dict[str, object]", table).get("id") if isinstance(table, dict) else None
    return given if isinstance(given, str) and _ID.fullmatch(given) else place


def _read_preset(source: Source, table: object) -> Preset:
    if not isinstance(table, dict):
        raise DecodeError("", "a table", table)
    if "source" in table:
        raise DecodeError("source", "it once, at the top of the file", "it in a preset")
    preset = decode(Preset, {**cast("dict[str, object]", table), "source": encode(source)})
    _check_preset(preset)
    _check_tables(preset)
    for number, mark in enumerate(preset.marks, start=1):
        if preset.value_of(mark) is None:
            raise DecodeError(f"marks[{number}]", "a table, row and column of this preset", mark.column)
    for number, rate in enumerate(preset.rates, start=1):
        _check_rate(preset, rate, f"rates[{number}]")
    _check_computed(preset)
    return preset


def _check_preset(preset: Preset) -> None:
    check_id(preset.id)
    for key in ("name", "family"):
        if not getattr(preset, key).strip():
            raise DecodeError(key, "some text", getattr(preset, key))
    link = preset.link
    if link.line_rate_bit_s is not None and not 1 <= link.line_rate_bit_s <= _MAX_BIT_S:
        raise DecodeError("link.line_rate_bit_s", f"1 to {_MAX_BIT_S}", link.line_rate_bit_s)
    if link.mtu_bytes is not None and not MIN_MTU_BYTES <= link.mtu_bytes <= MAX_MTU_BYTES:
        raise DecodeError("link.mtu_bytes", f"{MIN_MTU_BYTES} to {MAX_MTU_BYTES}", link.mtu_bytes)
    if preset.suggested_window_bytes is not None:
        _check_window(preset.suggested_window_bytes, "suggested_window_bytes")


def _check_window(window: int, where: str) -> None:
    if not MIN_WINDOW_BYTES <= window <= MAX_WINDOW_BYTES:
        raise DecodeError(where, f"{MIN_WINDOW_BYTES} to {MAX_WINDOW_BYTES}", window)


def _check_tables(preset: Preset) -> None:
    for table in preset.tables:
        for row in table.rows:
            if len(row.values) != len(table.columns):
                key = f"tables.{table.table}.{row.row}"
                raise DecodeError(key, f"{len(table.columns)} values", len(row.values))
    names = Counter((fact.table, fact.row, fact.column) for fact in preset.document_values)
    for name, times in names.items():
        if times > 1:
            raise DecodeError("tables." + ".".join(name), "it once", f"it {times} times")


def _check_rate(preset: Preset, rate: Rate, where: str) -> None:
    fact = preset.value_of(rate)
    if fact is None:
        given = ", ".join(filter(None, (rate.table, rate.row, rate.column)))
        raise DecodeError(where, "the table, row and column of one number of this preset", given)
    bit_s = as_bit_s(fact)
    amount = as_transactions_s(fact) if bit_s is None else bit_s
    if amount is None:
        raise DecodeError(f"{where}.column", "a column in mbit_s, gbit_s, mib_s or transactions_s", rate.column)
    if not 0 < amount <= _MAX_BIT_S:
        raise DecodeError(where, f"a rate above 0 and up to {_MAX_BIT_S:.0e} bit/s", fact.value)
    if preset.erratum_of(fact) is not None:
        raise DecodeError(where, "a number that is not marked as a slip", rate.column)
    if not 1 <= rate.sessions <= MAX_SESSIONS:
        raise DecodeError(f"{where}.sessions", f"1 to {MAX_SESSIONS}", rate.sessions)
    for key in ("cpu_column", "cost_column"):
        column = getattr(rate, key)
        if column is not None and preset.find_value(rate.table, rate.row, column) is None:
            raise DecodeError(f"{where}.{key}", "a column of the same row", column)
    base = rate.baseline_row
    if base is not None and preset.find_value(rate.table, base, rate.column) is None:
        raise DecodeError(f"{where}.baseline_row", "a row with the same column", base)


def _check_computed(preset: Preset) -> None:
    for flow in preset.computed:
        try:
            derived = derive(preset.link, flow)
        except PlanError as error:
            raise DecodeError("link", "a link that packets fit", error) from error
        if derived is None or preset.link.duplex != "full":
            raise DecodeError("computed", "a full duplex link with framing, line_rate_bit_s and mtu_bytes", flow)


def _read_sweep(table: object) -> DocumentSweep:
    sweep = decode(DocumentSweep, table)
    check_id(sweep.id)
    if not sweep.message_bytes or not sweep.window_bytes:
        raise DecodeError("", "message_bytes and window_bytes, one or more of each", "none")
    for size in sweep.message_bytes:
        if not MIN_BLOCK_BYTES <= size <= MAX_BLOCK_BYTES:
            raise DecodeError("message_bytes", f"{MIN_BLOCK_BYTES} to {MAX_BLOCK_BYTES}", size)
    for window in sweep.window_bytes:
        _check_window(window, "window_bytes")
    return sweep
