"""Texts of errors on the command line: the option as typed, what is wrong with it, what would be right.

Typer's and pydantic's own texts reach nobody: this is the only place that turns their errors into words.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

from typer.exceptions import TyperException

from ...engine.model.errors import PlanError

# Fields of a plan or of a link whose option has another name.
_OPTIONS: Final = {
    "block size": "--block",
    "bytes": "--bytes",
    "client port": "--cport",
    "congestion control": "--congestion",
    "far cores": "--far-cores",
    "CSV file": "--csv",
    "data port": "--data-port",
    "duration": "--seconds",
    "HTML file": "--html",
    "language": "--lang",
    "line rate": "--line-rate",
    "message size": "--message-size",
    "pass mark": "--pass-mark",
    "peer": "PEER",
    "port": "PEER: port",
    "preset": "PRESET",
    "preset id": "NAME",
    "ssh command": "--ssh-command",
    "sweep": "--resume",
    "TLS fingerprint": "--tls-fingerprint",
    "VLAN tags": "--vlan",
    "warm-up": "--warmup",
    "wrong MTU": "--wrong-mtu",
    **{
        name: f"--{name.lower()}"
        for name in (
            *("burst", "cores", "delay", "device", "direction", "DSCP", "figure", "interval", "label", "loss"),
            *("MSS", "MTU", "probe", "rate", "report", "request", "response", "sessions", "slow", "source"),
            *("tunnel", "window", "workers"),
        )
    },
}
_FILES: Final = {"CSV file", "HTML file", "report"}
# What pydantic calls a value that it cannot convert, and the remedy.
_REMEDIES: Final = {"int": "give a whole number", "float": "give a number", "bool": "give yes or no"}


def plan_error_text(error: PlanError) -> str:
    """Return the text of an error, which begins with the option of its field."""
    option = _OPTIONS.get(error.field, error.field)
    if error.field in _FILES:
        return f"{option} {error.value}: {error.allowed[:1].lower()}{error.allowed[1:]}"
    if error.field == "link options":
        return f"link options ({error.value}): {error.allowed}"
    return f"{option} {error.value} is invalid; {error.allowed}"


def typer_error_text(error: TyperException) -> str:
    """Return the text of a command line that Typer cannot read, and the command that shows the help."""
    context: Any = getattr(error, "ctx", None)
    hint = "" if context is None else f"\nsee: {context.command_path} --help"
    return f"{_typer_text(error)}{hint}"


def _typer_text(error: Any) -> str:
    parameter: Any = getattr(error, "param", None)
    if hasattr(error, "param_type") and parameter is not None:
        return f"{_name(parameter)} is missing"
    if parameter is not None:
        return f"{_name(parameter)} {_conversion_text(error)}"
    if hasattr(error, "possibilities"):
        possible: Sequence[str] = error.possibilities or ()
        nearest = get_close_matches(str(error.option_name), possible, n=1, cutoff=0.0)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        return f"there is no option {error.option_name}{hint}"
    if hasattr(error, "option_name"):
        return f"{error.option_name} needs a value" if "requires an arg" in error.message else error.message
    extra = re.fullmatch(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", error.message)
    return error.message if extra is None else f"unexpected argument: {extra[1]}"


def _name(parameter: Any) -> str:
    """Return the longest spelling of an option, or the placeholder of an argument."""
    if parameter.param_type_name == "argument":
        return parameter.metavar or parameter.name.upper()
    return max(parameter.opts, key=len)


def _conversion_text(error: Any) -> str:
    """Return what is wrong with a value, from the error of pydantic that is the cause, if any."""
    details: Any = getattr(error.__cause__, "errors", None)
    if details is None:
        return error.message
    detail = details()[0]
    value, kind = detail["input"], detail["type"].partition("_")[0]
    choices = re.search(r"is not one of (.*)\.", detail["msg"])
    if choices is not None:
        allowed = [choice.strip("' ") for choice in choices[1].split(",")]
        return f"'{value}' is invalid; give {join_choices(allowed)}"
    return f"'{value}' is invalid; {_REMEDIES.get(kind, 'see the help')}"


def join_choices(choices: Sequence[str]) -> str:
    """Return `a, b or c`."""
    *first, last = choices
    return f"{', '.join(first)} or {last}" if first else last


def nearest_command(word: str, commands: Sequence[str]) -> str | None:
    """Return the command that a mistyped word is meant to be; None if it is like none of them."""
    nearest = get_close_matches(word.lower(), commands, n=1, cutoff=0.6)
    return nearest[0] if nearest else None
