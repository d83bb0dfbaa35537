"""The file of the settings, `settings.toml` in the configuration directory, and the values that hold.

A variable comes before the file, and the file before the default; the command line comes before all of them. A file
with a mistake is refused as a whole: every mistake is named with the file, its line, its key and what is allowed.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any, Final, cast

from ...engine.host.saved_files import PRIVATE_FILE_MODE, create_private_directory, write_atomically
from ...engine.model.errors import PlanError, UnknownPreset, UsageError, explain_os_error, make_printable
from ...engine.model.serialization import read_toml
from .setting_table import OWN_THEME, SETTINGS, Setting

FILE_NAME: Final = "settings.toml"
BUILT_IN: Final = "built-in"
TABLES: Final = ("keys", "theme")
NAME: Final = "name"
_HEADER: Final = "# The settings of linkgauge: `linkgauge settings --template` prints all of them.\n"
_LINE_IN_ERROR: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_HEADING: Final = re.compile(r"\s*\[+\s*([^]\s]+)\s*\]")
_MAX_TEXT: Final = 60
_MAX_FILE_BYTES: Final = 64 * 1024
_TEMPLATE_WIDTH: Final = 100
_THEME_TEMPLATE: Final = """\
# Colours of your own, in place of the line `theme`: of the theme `base`, with these changes. Textual's names:
# primary, secondary, warning, error, success, accent, foreground, background, surface, panel, boost, dark.
#[theme]
#base = "nord"
#primary = "#88c0d0"
"""


@dataclass(frozen=True, slots=True)
class HeldValue:
    """The value that holds for a setting: as text, as parsed, and its source. All are None if it is not set."""

    text: str | None = None
    value: Any = None
    source: str = BUILT_IN


@dataclass(frozen=True, slots=True)
class HeldSettings:
    """The settings that hold, by name, and the tables of the file with the lines of their keys."""

    path: Path
    values: Mapping[str, HeldValue]
    tables: Mapping[str, Mapping[str, Any]]
    text: str = ""

    def value(self, name: str) -> Any:
        """Return the parsed value of a setting that has a default for every command."""
        held, row = self.values[name], SETTINGS[name]
        return held.value if held.text is not None or row.default is None else row.parse(row.default)

    def mistake(self, table: str, key: str, problem: str) -> UsageError:
        """Return the error about a key of a table."""
        return UsageError(f"{_place(self.path, self.text, key, table)}: {make_printable(problem)}")


def read_settings(folder: Path, environment: Mapping[str, str] = os.environ) -> HeldSettings:
    """Return the settings that hold. A missing file is not a mistake; raises UsageError for every other one."""
    path = folder / FILE_NAME
    text = _read(path)
    document, mistakes = _parse(path, text), list[str]()
    tables: dict[str, Mapping[str, Any]] = {}
    found: dict[str, HeldValue] = {}
    for key, value in document.items():
        place = _place(path, text, key)
        if key in TABLES and isinstance(value, dict):
            tables[key] = cast("dict[str, Any]", value)
            if key in SETTINGS:  # the theme: its colours, and the name of another one that is in force
                _hold(found, SETTINGS[key], tables[key].get(NAME, OWN_THEME), place, mistakes)
        elif key in SETTINGS:
            _hold(found, SETTINGS[key], value, place, mistakes)
        else:
            known = ", ".join([*SETTINGS, *(f"[{table}]" for table in TABLES if table not in SETTINGS)])
            mistakes.append(f"{place}: {make_printable(key[:_MAX_TEXT])!r} is not a setting; known: {known}")
    for row in SETTINGS.values():
        if environment.get(row.variable):
            _hold(found, row, environment[row.variable], row.variable, mistakes)
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return HeldSettings(path, {name: found.get(name, HeldValue()) for name in SETTINGS}, tables, text)


def save_settings(folder: Path, changed: Mapping[str, str]) -> None:
    """Write changed settings into the file, each as TOML, and leave everything else in it as it is.

    Raises OSError, and UsageError for a file with a mistake, which stays as it is.
    """
    path = folder / FILE_NAME
    create_private_directory(folder)
    document = _parse(path, text := _read(path) or _HEADER)
    meant = {**document}
    for name, literal in changed.items():
        is_table = isinstance(document.get(name), dict)
        value = read_toml(f"value = {literal}")["value"]
        meant[name] = {**document[name], NAME: value} if is_table else value
        text = _with_line(text, NAME, literal, table=name) if is_table else _with_line(text, name, literal)
    if _parse(path, text) != meant:  # a value over several lines would be cut
        raise UsageError(f"{path}: {', '.join(changed)} cannot be changed there; edit the file")
    write_atomically(path, text, mode=PRIVATE_FILE_MODE)


def settings_template() -> str:
    """Return a file with every setting and its default, all of them as comments."""
    lines = ["# Settings of linkgauge. Remove the # of a line to set it.", ""]
    for row in SETTINGS.values():
        usual = f" Default: {row.usual}." if row.usual else ""
        lines += wrap(row.help + usual, _TEMPLATE_WIDTH, initial_indent="# ", subsequent_indent="# ")
        lines += [f"# Variable: {row.variable}{_scope(row)}", f"#{row.name} = {row.example}", ""]
    return "\n".join([*lines, _THEME_TEMPLATE])


def _scope(row: Setting) -> str:
    return f"; {row.option} of {', '.join(row.commands)}." if row.option else "."


def _read(path: Path) -> str:
    try:
        if path.is_fifo():  # without a writer it would wait
            raise UsageError(f"{path}: it is a pipe; the settings are a file")
        with path.open("rb") as stream:
            data = stream.read(_MAX_FILE_BYTES + 1)  # a device may have no size, and no end
        if len(data) > _MAX_FILE_BYTES:  # each mistake is a line
            raise UsageError(f"{path}: it is larger than {_MAX_FILE_BYTES // 1024} KiB; is it the settings?")
        return data.decode().replace("\r\n", "\n")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError:
        raise UsageError(f"{path}: it is not text in UTF-8") from None
    except OSError as error:
        raise UsageError(f"{path}: {explain_os_error(error)}") from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return read_toml(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, or a number with too many digits
        why = make_printable(str(error))
        match = _LINE_IN_ERROR.search(why)
        where = f"{path}, line {match[1]}" if match and match[1] else str(path)
        raise UsageError(f"{where}: it is not TOML: {_LINE_IN_ERROR.sub('', why)}") from None


def _hold(found: dict[str, HeldValue], row: Setting, value: object, place: str, mistakes: list[str]) -> None:
    """Note the value of a setting, or the mistake in it."""
    is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    shown = make_printable(repr(value)[:_MAX_TEXT])
    if not is_plain:
        mistakes.append(f"{place}: {row.name} {shown} is invalid; give a text or a number")
        return
    try:
        found[row.name] = HeldValue(str(value), row.parse(str(value)), place)
    except PlanError as error:
        mistakes.append(f"{place}: {row.name} {shown} is invalid; {error.allowed}")
    except UnknownPreset as error:
        mistakes.append(f"{place}: {error}")


def _place(path: Path, text: str, key: str, table: str = "") -> str:
    """Return the file with the line of a key; without a line if the key is written in another way."""
    inside = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADING.match(line)
        inside = header[1] if header else inside
        names = {f"[{key}" if header else key, f'"{key}"'}
        if (header and header[1] == key) or (inside == table and line.partition("=")[0].strip() in names):
            return f"{path}, line {number}"
    return str(path)


def _with_line(text: str, key: str, literal: str, table: str = "") -> str:
    """Return the text of a file with a value in the line of its key; a new line is the last of its table."""
    lines, inside, new = text.splitlines(), "", f"{key} = {literal}"
    for number, each in enumerate(lines):
        header = _HEADING.match(each)
        if header and inside == table:
            return "\n".join([*lines[:number], new, "", *lines[number:], ""])
        inside = header[1] if header else inside
        if inside == table and not header and each.partition("=")[0].strip() == key:
            return "\n".join([*lines[:number], new, *lines[number + 1 :], ""])
    return "\n".join([*lines, new, ""])
