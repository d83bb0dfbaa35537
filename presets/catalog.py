"""The catalog: every preset file is read and checked, and each preset can be found by its id.

The dataclasses of preset.py are the schema, the engine's strict decoder reads them, and preset_validation.py checks
what types cannot express. A fault costs only the preset or the file that has it. It is reported with its file, its
key and the expected value.
"""

import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from ..engine.model.errors import DecodeError, UnknownPreset
from ..engine.model.serialization import decode, read_toml
from .number_text import format_bytes
from .preset import DocumentSweep, Preset, Source
from .preset_search import find_presets
from .preset_validation import ID_FORM, MAX_ID, read_preset, read_sweep

T = TypeVar("T")
Item = TypeVar("Item", Preset, DocumentSweep)

_OWN: Final = Path(__file__).with_name("catalog")
_ORDER: Final = ("aix", "loopback", "modern", "hp", "lpar", "zvm")  # the most common links come first
_MAX_FILE_BYTES: Final = 4_194_304
_KEYS: Final = ("source", "preset", "sweep")
_MAX_SUGGESTIONS: Final = 4


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
    """The usable presets and sweeps in order, and the problems of the others."""

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


def listed_presets(presets: Iterable[Preset]) -> dict[str, list[Preset]]:
    """Return presets below the headings of a list: Ethernet that is computed, the other links, then documents.

    The heading of a document's presets names it: it may have the same kind of link as another one.
    """
    headings: dict[str, list[Preset]] = {}
    for preset in sorted(presets, key=_place):
        document = f": {preset.source.title}" if preset.source.tables else ""
        headings.setdefault(f"{preset.family}{document}", []).append(preset)
    return headings


def _place(preset: Preset) -> int:
    if preset.source.tables:
        return 2
    return 0 if preset.link.framing == "ethernet" else 1


def load_catalog(extra_directories: Sequence[Path] = ()) -> Catalog:
    """Return linkgauge's own presets and the presets of other directories, which need not exist.

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
    """Return linkgauge's own files and their problems. A process reads them once, which takes 25 to 35 ms."""
    problems: list[PresetProblem] = []
    return tuple(_every_file((_OWN,), problems)), tuple(problems)


def _every_file(directories: Sequence[Path], problems: list[PresetProblem]) -> Iterator[tuple[Path, PresetFile]]:
    for directory in directories:
        try:
            paths = sorted(p for p in directory.iterdir() if p.suffix == ".toml")
        except OSError as error:
            # A file in place of a parent directory means that there are no presets; one in its own place is a
            # mistake.
            if not isinstance(error, FileNotFoundError | NotADirectoryError) or directory.exists():
                problems.append(PresetProblem(str(directory), "", f"cannot be read: {error.strerror}"))
            continue
        if directory == _OWN:
            paths.sort(key=lambda path: _ORDER.index(path.stem) if path.stem in _ORDER else len(_ORDER))
        for path in paths:
            yield path, _read_file(path, problems)


def _read_file(path: Path, problems: list[PresetProblem]) -> PresetFile:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # reading from a pipe would never end
            problems.append(PresetProblem(str(path), "", "expected a regular file"))
            return PresetFile()
        if status.st_size > _MAX_FILE_BYTES:
            problems.append(PresetProblem(str(path), "", f"expected at most {format_bytes(_MAX_FILE_BYTES)}"))
            return PresetFile()
        content = read_toml(path.read_text(encoding="utf-8"))
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
    presets = _read_each(path, content, "preset", lambda table: read_preset(source, table), problems)
    sweeps = _read_each(path, content, "sweep", read_sweep, problems) if "sweep" in content else []
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
    """Return the name of a table in a problem: its id, or its place in the file if the id is unusable."""
    preset_id = cast("dict[str, object]", table).get("id") if isinstance(table, dict) else None
    is_id = isinstance(preset_id, str) and len(preset_id) <= MAX_ID and ID_FORM.fullmatch(preset_id)
    return cast("str", preset_id) if is_id else place
