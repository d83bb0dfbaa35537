"""The catalogue: every preset that can be read, and every problem met on the way.

A file that is wrong costs itself or its wrong presets and nothing else: what is wrong is kept beside the
good presets as a Problem that names the file, the key, and what was expected there.
"""

import stat
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from ..engine.model.errors import UnknownPreset
from .preset import DocumentSweep, Preset
from .schema import PresetFile, PresetProblem, parse_preset_file

_OWN: Final = Path(__file__).with_name("catalog")
_ORDER: Final = ("aix", "loopback", "modern", "hp", "lpar", "zvm")  # what is met most comes first
_MAX_FILE_BYTES: Final = 4_194_304

T = TypeVar("T", Preset, DocumentSweep)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every preset and sweep that could be read, in order, and every problem met."""

    presets: tuple[Preset, ...]
    problems: tuple[PresetProblem, ...] = ()
    sweeps: tuple[DocumentSweep, ...] = ()

    def find(self, preset_id: str) -> Preset:
        """Return the preset of that id; raise UnknownPreset, with the nearest names, where there is none."""
        for preset in self.presets:
            if preset.id == preset_id:
                return preset
        raise UnknownPreset(preset_id, [preset.id for preset in self.presets])


def load_catalog(extra_directories: Sequence[Path] = ()) -> Catalog:
    """Return linkgauge's own presets and those of `extra` directories, which need not exist.

    The first preset of an id is the one that counts; a later one is told as a problem.
    """
    presets: dict[str, tuple[Preset, Path]] = {}
    sweeps: dict[str, tuple[DocumentSweep, Path]] = {}
    problems: list[PresetProblem] = []
    for path, content in _every_file((_OWN, *extra_directories), problems):
        _take(presets, content.presets, path, problems)
        _take(sweeps, content.sweeps, path, problems)
    usable = tuple(_usable_sweeps(sweeps, presets, problems))
    return Catalog(tuple(preset for preset, _ in presets.values()), tuple(problems), usable)


def _take(taken: dict[str, tuple[T, Path]], found: Sequence[T], path: Path, problems: list[PresetProblem]) -> None:
    for item in found:
        if item.id in taken:
            problems.append(
                PresetProblem(str(path), item.id, f"expected a new id, {taken[item.id][1]} has it already")
            )
        else:
            taken[item.id] = (item, path)


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


def _every_file(directories: Sequence[Path], problems: list[PresetProblem]) -> Iterator[tuple[Path, PresetFile]]:
    for directory in directories:
        try:
            paths = sorted(p for p in directory.iterdir() if p.suffix == ".toml")
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(PresetProblem(str(directory), "", f"cannot be read: {error.strerror}"))
            continue
        if directory == _OWN:
            paths.sort(key=lambda path: _ORDER.index(path.stem) if path.stem in _ORDER else len(_ORDER))
        for path in paths:
            yield path, _read_file(path, problems)


def _read_file(path: Path, problems: list[PresetProblem]) -> PresetFile:
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):  # reading a pipe would wait for ever
            problems.append(PresetProblem(str(path), "", "expected a regular file"))
            return PresetFile()
        if facts.st_size > _MAX_FILE_BYTES:
            problems.append(PresetProblem(str(path), "", f"expected at most {_MAX_FILE_BYTES} bytes"))
            return PresetFile()
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problems.append(PresetProblem(str(path), "", f"cannot be read: {error.strerror}"))
    except UnicodeDecodeError:
        problems.append(PresetProblem(str(path), "", "expected UTF-8 text"))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and a number of too many digits
        problems.append(PresetProblem(str(path), "", f"expected TOML: {error}"))
    else:
        return parse_preset_file(str(path), content, problems)
    return PresetFile()
