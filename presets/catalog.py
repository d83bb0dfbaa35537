"""The catalog: every preset file is read and checked, and each preset can be found by its id.

The dataclasses of preset.py are the schema, and the engine's strict decoder reads them. This module checks what
types cannot express: a rate refers to one number of its preset, that number is no slip, and its unit is a rate's.
A fault costs only the preset or the file that has it. It is reported with its file, its key and the expected value.
"""

import re
import stat
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from ..engine.model.errors import DecodeError, PlanError, UnknownPreset
from ..engine.model.plan import MAX_BLOCK_BYTES, MAX_SESSIONS, MAX_WINDOW_BYTES, MIN_BLOCK_BYTES, MIN_WINDOW_BYTES
from ..engine.model.serialization import decode, encode
from .number_text import format_bytes
from .preset import (
    MAX_MTU_BYTES,
    MIN_MTU_BYTES,
    DocumentSweep,
    Preset,
    Rate,
    Source,
    as_bit_s,
    as_transactions_s,
)
from .search import find_presets
from .wire import derive

T = TypeVar("T")
Item = TypeVar("Item", Preset, DocumentSweep)

_OWN: Final = Path(__file__).with_name("catalog")
_ORDER: Final = ("aix", "loopback", "modern", "hp", "lpar", "zvm")  # the most common links come first
_MAX_FILE_BYTES: Final = 4_194_304
_ID: Final = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*", re.ASCII)
_RESERVED: Final = ("auto",)  # `check auto` picks a preset by itself
_KEYS: Final = ("source", "preset", "sweep")
_MAX_ID: Final = 64
_MAX_SUGGESTIONS: Final = 4
_MAX_BIT_S: Final = 10**15  # a thousand times the fastest link there is; more would not fit into 64 bits as a total


@dataclass(frozen=True, slots=True)
class PresetProblem:
    """A fault in a preset file: the file, the key, and the expected value."""

    path: str
    key: str
    expected: str

    def __str__(self) -> str:
        """Return the fault as one line."""
        return ": ".join(part for part in (self.path, self.key, self.expected) if part)


@dataclass(frozen=True, slots=True)
class PresetFile:
    """The usable content of a preset file."""

    presets: tuple[Preset, ...] = ()
    sweeps: tuple[DocumentSweep, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalog:
    """The usable presets and sweeps in order, and the problems of the rest."""

    presets: tuple[Preset, ...]
    problems: tuple[PresetProblem, ...] = ()
    sweeps: tuple[DocumentSweep, ...] = ()

    def find(self, preset_id: str) -> Preset:
        """Return the preset with this id; raise UnknownPreset, with similar ids, if there is none."""
        for preset in self.presets:
            if preset.id == preset_id:
                return preset
        matches = [preset.id for preset in find_presets(self.presets, preset_id)]
        raise UnknownPreset(preset_id, [preset.id for preset in self.presets], matches[:_MAX_SUGGESTIONS])


def load_catalog(extra_directories: Sequence[Path] = ()) -> Catalog:
    """Return linkgauge's own presets and those of other directories, which need not exist.

    The first preset with an id counts; a later one is reported as a problem.
    """
    presets: dict[str, tuple[Preset, Path]] = {}
    sweeps: dict[str, tuple[DocumentSweep, Path]] = {}
    problems: list[PresetProblem] = []
    own_files, own_problems = _read_own_files()
    problems.extend(own_problems)
    for path, content in chain(own_files, _every_file(extra_directories, problems)):
        _add_new(presets, content.presets, path, problems)
        _add_new(sweeps, content.sweeps, path, problems)
    usable = tuple(_usable_sweeps(sweeps, presets, problems))
    return Catalog(tuple(preset for preset, _ in presets.values()), tuple(problems), usable)


def _add_new(
    known: dict[str, tuple[Item, Path]], items: Sequence[Item], path: Path, problems: list[PresetProblem]
) -> None:
    """Add the items with new ids to those already known."""
    for item in items:
        if item.id in known:
            problems.append(
                PresetProblem(str(path), item.id, f"expected a new id; {known[item.id][1]} already has this one")
            )
        else:
            known[item.id] = (item, path)


def _usable_sweeps(
    sweeps: dict[str, tuple[DocumentSweep, Path]],
    presets: dict[str, tuple[Preset, Path]],
    problems: list[PresetProblem],
) -> Iterator[DocumentSweep]:
    """Yield each sweep whose preset exists. Presets may be in other files, so call this last."""
    for sweep, path in sweeps.values():
        if sweep.preset in presets:
            yield sweep
        else:
            expected = f"expected the id of a preset, got {sweep.preset!r}"
            problems.append(PresetProblem(str(path), f"{sweep.id}.preset", expected))


@cache
def _read_own_files() -> tuple[tuple[tuple[Path, PresetFile], ...], tuple[PresetProblem, ...]]:
    """Return linkgauge's own files and their problems. Reading them takes 25 to 35 ms; a process does so once."""
    problems: list[PresetProblem] = []
    return tuple(_every_file((_OWN,), problems)), tuple(problems)


def _every_file(directories: Sequence[Path], problems: list[PresetProblem]) -> Iterator[tuple[Path, PresetFile]]:
    for directory in directories:
        try:
            paths = sorted(p for p in directory.iterdir() if p.suffix == ".toml")
        except OSError as error:
            # A file in place of a directory above it leaves nothing to read; one in its own place is a mistake.
            if not isinstance(error, FileNotFoundError | NotADirectoryError) or directory.exists():
                problems.append(PresetProblem(str(directory), "", f"cannot be read: {error.strerror}"))
            continue
        if directory == _OWN:
            paths.sort(key=lambda path: _ORDER.index(path.stem) if path.stem in _ORDER else len(_ORDER))
        for path in paths:
            yield path, _read_file(path, problems)


def _read_file(path: Path, problems: list[PresetProblem]) -> PresetFile:
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):  # reading from a pipe would never end
            problems.append(PresetProblem(str(path), "", "expected a regular file"))
            return PresetFile()
        if facts.st_size > _MAX_FILE_BYTES:
            problems.append(PresetProblem(str(path), "", f"expected at most {format_bytes(_MAX_FILE_BYTES)}"))
            return PresetFile()
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problems.append(PresetProblem(str(path), "", f"cannot be read: {error.strerror}"))
    except UnicodeDecodeError:
        problems.append(PresetProblem(str(path), "", "expected UTF-8 text"))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and a number of too many digits
        problems.append(PresetProblem(str(path), "", f"expected TOML{_place_of(error)}"))
    else:
        return parse_preset_file(str(path), content, problems)
    return PresetFile()


def _place_of(error: Exception) -> str:
    """Return the place of an error in a TOML file; empty if the error has none."""
    place = re.search(r"at (line \d+, column \d+|end of document)", str(error))
    return f"; the error is {place[0].replace('document', 'file')}" if place else ""


def check_id(preset_id: str) -> str:
    """Return the id; raise DecodeError if it is unfit for a command line or a CSV file."""
    if not _ID.fullmatch(preset_id) or preset_id in _RESERVED or len(preset_id) > _MAX_ID:
        raise DecodeError("id", "small letters and digits, joined by - or ., and not auto", preset_id)
    return preset_id


def parse_preset_file(path: str, content: dict[str, Any], problems: list[PresetProblem]) -> PresetFile:
    """Return the usable presets and sweeps of a file's content, and add the faults to `problems`."""
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
    """Return the name of a preset in a problem: its id, or its place in the file if the id is unusable."""
    preset_id = cast("dict[str, object]", table).get("id") if isinstance(table, dict) else None
    return preset_id if isinstance(preset_id, str) and _ID.fullmatch(preset_id) else place


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
        reference = ", ".join(filter(None, (rate.table, rate.row, rate.column)))
        raise DecodeError(where, "the table, row and column of one number of this preset", reference)
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
