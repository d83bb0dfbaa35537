"""What is observed: all connections, or those of a peer, a port, a process or a program."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from ..engine.model.errors import PlanError
from ..engine.model.plan import MAX_PORT, SECOND_NS
from ..presets.verdict import DEFAULT_PASS_PERCENT

MIN_INTERVAL_NS: Final = SECOND_NS // 4
MAX_INTERVAL_NS: Final = 60 * SECOND_NS
MAX_TOP: Final = 1_000
DEFAULT_TOP: Final = 20
_ALLOWED: Final = "give HOST, HOST:PORT, [IPv6]:PORT, :PORT, a process id, or the name of a program"
_BRACKETS: Final = re.compile(r"\[([0-9A-Fa-f:.%\w]+)\](?::(\d+))?", re.ASCII)
_MAX_NAME: Final = 253

TargetKind = Literal["host", "port", "pid", "name"]


@dataclass(frozen=True, slots=True)
class Target:
    """Which connections count. `host` is an address or a name, `port` a port of either end without a host.

    A `name` without dots may be a program or a host: the program comes first, if one has sockets.
    """

    kind: TargetKind
    text: str
    host: str | None = None
    port: int | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class ObserveRequest:
    """What is shown and how often. `line_rate_bit_s` replaces the line rate that an interface reports."""

    target: Target | None = None
    top: int = DEFAULT_TOP
    interval_ns: int = SECOND_NS
    line_rate_bit_s: int | None = None
    pass_percent: float = DEFAULT_PASS_PERCENT
    has_datagrams: bool = True


def parse_target(text: str) -> Target:
    """Return a target of the command line. Raises PlanError."""
    bracketed = _BRACKETS.fullmatch(text)
    is_clean = text.isprintable() and text.strip() == text and (bracketed is not None or "[" not in text)
    if not text or len(text) > _MAX_NAME or not is_clean:
        raise PlanError("target", text, _ALLOWED)
    if text.isdecimal() and text.isascii():
        return Target("pid", text, pid=int(text))
    host, _, port = text.rpartition(":") if text.count(":") == 1 else (text, "", None)
    if bracketed:
        host, port = bracketed[1], bracketed[2]
    if not host:
        return Target("port", text, port=_port(text, port))
    is_name = port is None and not bracketed and not {".", ":"} & set(text)
    return Target("name" if is_name else "host", text, host, _port(text, port))


def _port(text: str, digits: str | None) -> int | None:
    if digits is None:
        return None
    if not (digits.isdecimal() and digits.isascii() and 1 <= int(digits) <= MAX_PORT):
        raise PlanError("target", text, f"a port is 1 to {MAX_PORT}")
    return int(digits)
