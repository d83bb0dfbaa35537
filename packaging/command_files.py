"""Manual pages and shell completions, made from the command line's own definitions.

Usage: .venv/bin/python packaging/command_files.py [--check]

Writes packaging/man and packaging/completions, which the wheel installs. They are committed, so that a package can
be built if the program cannot run. With --check nothing is written: the exit status is 1 if a file is out of
date.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from linkgauge import __version__
from linkgauge.tui.cli.click_extension.command_help import description, section, spelling
from linkgauge.tui.cli.completion import SCRIPTS
from linkgauge.tui.cli.main import program
from linkgauge.tui.session.setting_table import SETTINGS

PROGRAM: Final = "linkgauge"
FOLDER: Final = Path(__file__).parent
COMPLETIONS: Final = {"bash": PROGRAM, "zsh": f"_{PROGRAM}", "fish": f"{PROGRAM}.fish"}
ENVIRONMENT: Final = {
    "LINKGAUGE_KEY": "The key of the remote endpoint, instead of --key-file.",
    "LINKGAUGE_PEER": "The remote host of a command that names none; linkgauge lab --shell sets it.",
    "LINKGAUGE_SSH_COMMAND": "The command that starts ssh, for ssh:// peers and the hosts of a mesh.",
    "LINKGAUGE_DATA_DIR": "The directory of the saved runs.",
    "LINKGAUGE_CONFIG_DIR": "The directory of settings, keys and your own presets.",
    "LINKGAUGE_LOG": "debug for a log on standard error, or the path of a file for it.",
    "LINKGAUGE_WORKLOADS": "Modules of further workloads, separated by commas.",
    **{row.variable: f"The setting {row.name}: {row.help}" for row in SETTINGS.values()},
    "NO_COLOR": "Set to anything for output without colours.",
}


def command_files() -> dict[Path, str]:
    """Return every generated file, by its path below this folder."""
    root = program.make_context(PROGRAM, [], resilient_parsing=True)
    pages = {f"{PROGRAM}.1": _main_page(program)}
    for name, subcommand in _commands(program):
        pages[f"{PROGRAM}-{name}.1"] = _command_page(name, subcommand, root)
    files = {Path("man", name): text for name, text in pages.items()}
    for shell, name in COMPLETIONS.items():
        files[Path("completions", name)] = SCRIPTS[shell]
    return files


def _commands(group: Any) -> list[tuple[str, Any]]:
    return [(name, command) for name, command in group.commands.items() if not command.hidden]


def _main_page(command: Any) -> str:
    lines = [*_head(PROGRAM, "measure the throughput of a network link, and why it is short")]
    lines += [".SH SYNOPSIS", rf"\fB{PROGRAM}\fR [\fIPEER\fR]", ".br", rf"\fB{PROGRAM}\fR \fICOMMAND\fR ..."]
    lines += [".SH DESCRIPTION", *_prose(command.help), *_parameters(command), ".SH COMMANDS"]
    for name, subcommand in _commands(command):
        lines += [".TP", rf"\fB{PROGRAM}\-{name}\fR(1)", _text(_first_line(subcommand))]
    lines += [".SH PEERS AND EXIT STATUS", *_prose(command.epilog), ".SH ENVIRONMENT"]
    for name, meaning in ENVIRONMENT.items():
        lines += [".TP", rf"\fB{name}\fR", _text(meaning)]
    references = ", ".join(rf"\fB{PROGRAM}\-{name}\fR(1)" for name, _ in _commands(command))
    return _page([*lines, ".SH SEE ALSO", references])


def _command_page(name: str, command: Any, root: Any) -> str:
    lines = [*_head(f"{PROGRAM}-{name}", _first_line(command).rstrip("."))]
    context = command.make_context(name, [], parent=root, resilient_parsing=True)
    subcommands = list(_descendants(command, context))
    lines += [".SH SYNOPSIS", *_synopsis(command, context)]
    for _, subcommand, own in subcommands:
        lines += [".br", *_synopsis(subcommand, own)]
    lines += [".SH DESCRIPTION", *_prose(command.help), *_parameters(command)]
    for path, subcommand, _ in subcommands:
        lines += [f".SH {path.upper()}", *_prose(subcommand.help)]
        lines += [line.replace(".SH", ".SS", 1) for line in _parameters(subcommand)]
    return _page([*lines, ".SH SEE ALSO", rf"\fB{PROGRAM}\fR(1)"])


def _descendants(command: Any, context: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the path, the command and the context of each command below another."""
    for child, subcommand in _commands(command) if hasattr(command, "commands") else []:
        own = subcommand.make_context(child, [], context, resilient_parsing=True)
        yield own.command_path, subcommand, own
        yield from _descendants(subcommand, own)


def _synopsis(command: Any, context: Any) -> list[str]:
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    return [rf"\fB{_text(context.command_path)}\fR [\fIoptions\fR] {_text(' '.join(pieces))}"]


def _parameters(command: Any) -> list[str]:
    """Return the sections of arguments and options, one for each box of the help."""
    sections: dict[str, list[str]] = {}
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        sections.setdefault(section(parameter), []).extend(
            [".TP", rf"\fB{_text(spelling(parameter))}\fR", _text(description(parameter))]
        )
    return [line for title, lines in sections.items() for line in (f".SH {_text(title.upper())}", *lines)]


def _first_line(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


def _prose(text: str | None) -> Iterator[str]:
    for number, paragraph in enumerate((text or "").split("\n\n")):
        if number:
            yield ".PP"
        yield _text(" ".join(paragraph.split()))


def _text(text: str) -> str:
    """Return text as roff: no character of it is a command."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").strip()
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _head(name: str, purpose: str) -> list[str]:
    title = f'.TH {name.upper()} 1 "" "{PROGRAM} {__version__}" "User commands"'
    return ["'\\\" t -*- coding: utf-8 -*-", title, ".SH NAME", rf"{_text(name)} \- {_text(purpose)}"]


def _page(lines: list[str]) -> str:
    return "\n".join([*lines, ""])


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(
        description="Manual pages and completions from the command line's definitions."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is out of date")
    check = parser.parse_args().check
    files = command_files()
    there = {path.relative_to(FOLDER) for name in ("man", "completions") for path in (FOLDER / name).glob("*")}
    stale = [
        path for path, text in files.items() if path not in there or (FOLDER / path).read_text("utf-8") != text
    ]
    surplus = there - files.keys()
    if check:
        for path in [*stale, *surplus]:
            sys.stderr.write(f"packaging/{path} is out of date: run make command-files\n")
        return 1 if stale or surplus else 0
    for path in stale:
        (FOLDER / path).parent.mkdir(exist_ok=True)
        (FOLDER / path).write_text(files[path], encoding="utf-8")
    for path in surplus:
        (FOLDER / path).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
