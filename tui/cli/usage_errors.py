"""Texts of errors on the command line: the option as typed, the mistake, and the remedy.

Click's own texts reach nobody: this is the only place that turns its errors into words.
"""

import re
from collections.abc import Container, Sequence
from difflib import get_close_matches
from typing import Final

from click import (
    Argument,
    BadOptionUsage,
    BadParameter,
    ClickException,
    MissingParameter,
    NoSuchOption,
    Parameter,
    UsageError,
)

from ...engine.model.errors import PlanError

# Fields of a plan or of a link whose option has another name.
_OPTIONS: Final = {
    "block size": "--block",
    "client port": "--cport",
    "congestion control": "--congestion",
    "CSV file": "--csv",
    "duration": "--seconds",
    "hosts": "HOST",
    "hosts file": "--hosts",
    "HTML file": "--html",
    "language": "--lang",
    "maximum jitter": "--max-jitter",
    "maximum loss": "--max-loss",
    "maximum rise": "--max-rise",
    "mesh": "--resume",
    "minimum rate": "--min-rate",
    "peer": "PEER",
    "port": "PEER: port",
    "preset": "PRESET",
    "preset id": "NAME",
    "sweep": "--resume",
    "VLAN tags": "--vlan",
    "warm-up": "--warmup",
}
_FILES: Final = {"CSV file", "HTML file", "report"}
# Options of iperf3 that have another name here, by their spellings there. The first name that a command has counts.
_IPERF3_NAMES: Final = {
    ("--length", "-l"): ("--block",),
    ("-C",): ("--congestion",),
    ("--set-mss", "-M"): ("--mss",),
    ("--no-delay", "-N"): ("--nodelay",),
    ("--tos", "-S"): ("--dscp",),
    ("--zerocopy", "-Z"): ("--mode sendfile",),
    ("--udp", "-u"): ("--workload udp",),
    ("--skip-rx-copy",): ("--mode discard",),
    ("--omit", "-O"): ("--warmup",),
    ("-B",): ("--source", "--bind"),
    ("--bind-dev",): ("--device",),
    ("--affinity", "-A"): ("--cores",),
    ("--time",): ("--seconds",),
    ("--parallel",): ("--sessions",),
    ("--bandwidth", "--bitrate"): ("--rate",),
    ("--title", "-T"): ("--label",),
    ("-p",): ("--port",),
}
# What replaces options of iperf3 that have no counterpart.
_IPERF3_REMEDIES: Final = {
    ("--client", "-c"): "give the host alone: linkgauge run HOST",
    ("--server", "-s"): "start the remote end with linkgauge endpoint",
    ("--port", "-p"): "write the port behind the host: HOST:PORT",
    ("--verbose", "-V"): "the summary has all details; linkgauge -v prints a log",
    ("--format", "-f"): "Mb/s and MiB/s are both printed",
    ("--daemon", "-D"): "docs/endpoint.md has a service for systemd",
}

_RUN_IDS: Final = "linkgauge runs lists them"
_PRESET_IDS: Final = "linkgauge presets lists them"
# By the end of the command's path.
_MISSING: Final = (
    *((f" runs {each}", _RUN_IDS) for each in ("show", "compare", "label", "delete", "export", "report")),
    (" presets show", _PRESET_IDS),
    (" lab", _PRESET_IDS),
)


def plan_error_text(error: PlanError, options: Container[str]) -> str:
    """Return the text of an error, which begins with the option of its field; `options` are all that there are."""
    regular = f"--{error.field.lower().replace(' ', '-').replace('_', '-')}"
    option = _OPTIONS.get(error.field) or (regular if regular in options else error.field)
    if error.field in _FILES:
        return f"{option} {error.value}: {error.allowed[:1].lower()}{error.allowed[1:]}"
    if error.field == "link options":
        return f"link options ({error.value}): {error.allowed}"
    return f"{option} {error.value} is invalid; {error.allowed}"


def click_error_text(error: ClickException) -> str:
    """Return the text of a command line that Click cannot read, and the command that shows the help."""
    context = error.ctx if isinstance(error, UsageError) else None
    hint = "" if context is None else f"\nsee: {context.command_path} --help"
    return f"{_click_text(error)}{hint}"


def _click_text(error: ClickException) -> str:
    match error:
        case MissingParameter(param=Parameter() as parameter):
            return f"{_name(parameter)} is missing{_missing_hint(error)}"
        case BadParameter(param=Parameter() as parameter):
            return f"{_name(parameter)} {error.message}"
        case NoSuchOption():
            return f"there is no option {error.option_name}{_option_hint(error)}"
        case BadOptionUsage() if "requires an arg" in error.message:
            return f"{error.option_name} needs a value"
        case _:
            pass
    extra = re.fullmatch(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", error.message)
    return error.message if extra is None else f"unexpected argument: {extra[1]}"


def _missing_hint(error: MissingParameter) -> str:
    """Return what to give for an argument that is missing; "" for a command without a word about it."""
    path = "" if error.ctx is None else str(error.ctx.command_path)
    return next((f"; {text}" for command, text in _MISSING if path.endswith(command)), "")


def _option_hint(error: NoSuchOption) -> str:
    """Return the text to type instead of an option that the command lacks; "" if nothing resembles it."""
    name, command = error.option_name, None if error.ctx is None else error.ctx.command
    options = {option for each in (command.params if command else ()) for option in each.opts}
    for spellings, names in _IPERF3_NAMES.items():
        own = [each for each in names if each.partition(" ")[0] in options]
        if name in spellings and own:
            return f"; iperf3's {name} is {own[0]} here"
    if "--seconds" in options:  # the command tests something
        remedies = [text for spellings, text in _IPERF3_REMEDIES.items() if name in spellings]
        if remedies:
            return f"; {remedies[0]}"
    nearest = get_close_matches(name, error.possibilities or (), n=1, cutoff=0.7)
    return f"; did you mean {nearest[0]}?" if nearest else ""


def _name(parameter: Parameter) -> str:
    """Return the longest spelling of an option, or the placeholder of an argument."""
    if isinstance(parameter, Argument):
        return str(parameter.metavar)
    return max(parameter.opts, key=len)


def join_choices(choices: Sequence[str]) -> str:
    """Return `a, b or c`."""
    *first, last = choices
    return f"{', '.join(first)} or {last}" if first else last


def nearest_command(word: str, commands: Sequence[str]) -> str | None:
    """Return the command that a mistyped word is meant to be; None if it is like none of them."""
    nearest = get_close_matches(word.lower(), commands, n=1, cutoff=0.6)
    return nearest[0] if nearest else None
