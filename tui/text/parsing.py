"""What a person types to what the engine takes: windows, rates, durations, pass marks, peers.

Pure. Every function raises PlanError with what was given and what is allowed; the limits themselves are
the engine's own, in plan.py.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final, TypeVar

from ...engine.model.errors import PlanError
from ...engine.model.peer import Peer, check_port, is_ssh_address
from ...engine.model.plan import MAX_CORES, MAX_SESSIONS, SECOND_NS, Direction
from ...engine.results.sweep import MAX_POINTS
from ...presets.preset import TUNNELS, Tunnel
from ...presets.schema import MAX_MTU_BYTES, MIN_MTU_BYTES

UNTIL_STOPPED: Final = ("none", "until stopped", "until-stopped")
# A bounded number of digits: no text of a person can make us compute with huge numbers.
_SIZE: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(?:([kmg])i?)?b?", re.ASCII | re.IGNORECASE)
_TIME: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s*([a-z]*)", re.ASCII | re.IGNORECASE)
_NUMBER: Final = re.compile(r"(\d{1,4}(?:\.\d{1,6})?)\s*%?", re.ASCII)
_HERTZ: Final = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)\s*(?:Hz)?", re.ASCII | re.IGNORECASE)
_RATE: Final = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*([KMGTkmgt])(?:b(?:it)?(?:/s|ps)?)?", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_BIT_S: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_NANOSECONDS: Final = {
    **dict.fromkeys(("", "s", "sec"), SECOND_NS),
    "ms": SECOND_NS // 1_000,
    **dict.fromkeys(("m", "min"), 60 * SECOND_NS),
    "h": 3_600 * SECOND_NS,
}


def window_bytes(text: str) -> int | None:
    """Read a window: `auto` (None), `65536`, `56K`, `1M`, `64KiB`; K, M and G are powers of 1,024."""
    if text.strip().lower() == "auto":
        return None
    return _size(text, "window", "give auto, or a size such as 56K or 1M (2K to 1G)")


def block_bytes(text: str) -> int:
    """Read the size of what a session sends at once: `1M`, `128K`, `65536`."""
    return _size(text, "block size", "give a size such as 128K or 1M (64 bytes to 16M)")


def message_bytes(text: str, field: str) -> int:
    """Read the size of a request or of its answer: `200`, `8K`, `20M`."""
    return _size(text, field, "give a size such as 200, 8K or 1M")


def _size(text: str, field: str, allowed: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise PlanError(field, repr(text), allowed)
    value = Decimal(match[1]) * _BYTES[(match[2] or "").lower()]
    if value != int(value):
        raise PlanError(field, repr(text), "give a whole number of bytes")
    return int(value)


def line_rate_bit_s(text: str) -> int:
    """Read what a line carries: `2.5G`, `100M`, `10Gb`, `622.08 Mbit/s`; K, M, G and T are powers of 1,000.

    Without a letter it would be bits a second, which nobody means; a B stands for bytes, which no line has.
    """
    allowed = "give bits a second such as 100M, 2.5G or 10Gb (1K to 10T)"
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise PlanError("line rate", repr(text), allowed)
    value = Decimal(match[1]) * _BIT_S[match[2].lower()]
    if value != int(value) or not _BIT_S["k"] <= value <= 10 * _BIT_S["t"]:
        raise PlanError("line rate", repr(text), allowed)
    return int(value)


def mtu_bytes(text: str) -> int:
    """Read a link's MTU; a tunnel or a preset may leave it less room than these limits."""
    allowed = f"give bytes, {MIN_MTU_BYTES} to {MAX_MTU_BYTES}"
    mtu = integer(text, "MTU", allowed)
    if not MIN_MTU_BYTES <= mtu <= MAX_MTU_BYTES:
        raise PlanError("MTU", mtu, allowed)
    return mtu


def tunnel(text: str) -> Tunnel:
    """Read the name of a tunnel, in letters of any size."""
    for name in TUNNELS:
        if text.strip().lower() == name:
            return name
    raise PlanError("tunnel", repr(text), f"give one of {', '.join(TUNNELS)}")


def duration_ns(text: str) -> int | None:
    """Read how long a run lasts: `10`, `1.5`, `2m`, `1h`, or `none`, which is until it is stopped."""
    if text.strip().lower() in UNTIL_STOPPED:
        return None
    return time_ns(text, "duration", "give seconds such as 10, 1.5 or 2m, or none for until stopped")


def time_ns(text: str, field: str, allowed: str) -> int:
    """Read a time: a number, in seconds or with ms, s, m or h behind it."""
    match = _TIME.fullmatch(text.strip())
    unit = None if match is None else _NANOSECONDS.get(match[2].lower())
    if match is None or unit is None:
        raise PlanError(field, repr(text), allowed)
    return int(Decimal(match[1]) * unit)


def pass_percent(text: str) -> float:
    """Read a pass mark in percent of the expected rate: `95`, `97.5`, `90%`."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise PlanError("pass mark", repr(text), "give percents such as 95 or 97.5")
    from ...presets.verdict import check_pass_percent  # of all that it stands on, help needs nothing

    return check_pass_percent(float(match[1]))


def refresh_hz(text: str) -> float:
    """Read how often a screen is drawn: `4`, `0.5`, `10 Hz`."""
    match = _HERTZ.fullmatch(text.strip())
    if match is None:
        raise PlanError("refresh rate", repr(text), "give frames a second such as 4 or 0.5")
    return check_refresh_hz(float(match[1]))


def ci_percent(text: str) -> float:
    """Read how narrow an interval is to be, in percent of the mean to each side: `1%`, `0.5`."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None or not 0.01 <= float(match[1]) <= 50:
        raise PlanError("--until-ci", repr(text), "give percents of the mean such as 1% or 0.5 (0.01 to 50)")
    return float(match[1])


def peer(text: str) -> Peer:
    """Read a peer: `HOST`, `HOST:PORT`, an IPv6 address, `[IPv6]:PORT`, `ssh://[USER@]HOST[:PORT]`, `loopback`."""
    if "/" in text and not is_ssh_address(text):
        raise PlanError("peer", repr(text), "give HOST, HOST:PORT, [IPv6]:PORT, ssh://HOST or loopback")
    return Peer.parse(text)


def sessions(text: str) -> int:
    """Read a number of sessions."""
    return integer(text, "sessions", f"a run has 1 to {MAX_SESSIONS}")


def listening_port(text: str) -> int:
    """Read the port to listen on; 0 stands for any free one."""
    port = integer(text, "port", "give a number from 1 to 65535, or 0 for a free one")
    return port if port == 0 else check_port(port)


def cores(text: str) -> tuple[int, ...]:
    """Read a list of cores: `0`, `0,2`, `0-3`, `0-1,4`."""
    allowed = "give cores such as 0,2 or 0-3"
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        low = integer(first, "cores", allowed)
        high = integer(last, "cores", allowed) if dash else low
        if not 0 <= low <= high < MAX_CORES:
            raise PlanError("cores", repr(text), allowed)
        found += range(low, high + 1)
    return tuple(found)


def integer(text: str, field: str, allowed: str) -> int:
    """Read a whole number."""
    if _WHOLE.fullmatch(text.strip()) is None:
        raise PlanError(field, repr(text), allowed)
    return int(text)


# MERGED FROM tui/cli/ranges:
# Values of a sweep as a person types them: `16K..4M`, `1,2,5,10`, `512..10240/512`, `auto,64K`.
#
# Pure. A range doubles from its first value up to its last; `/STEP` adds instead. Every function raises PlanError
# with what was given and what is allowed.

T = TypeVar("T")
_ALLOWED: Final = "give values with commas, or ranges: 16K..1M doubles, 1..10/1 adds"


def direction_values(text: str) -> tuple[Direction, ...]:
    """Read directions: `out`, `in`, `duplex`, with commas."""
    known = {direction.value: direction for direction in Direction}
    found: list[Direction] = []
    for word in text.split(","):
        if word.strip().lower() not in known:
            raise PlanError("direction", repr(word), "give out, in or duplex, with commas for several")
        found.append(known[word.strip().lower()])
    return tuple(dict.fromkeys(found))


def window_values(text: str) -> tuple[int | None, ...]:
    """Read windows: sizes, ranges of them, and `auto`."""
    return _values(text, "window", window_bytes)


def session_values(text: str) -> tuple[int, ...]:
    """Read numbers of sessions."""
    return _values(text, "sessions", sessions)


def message_values(text: str) -> tuple[int, ...]:
    """Read what a session hands to its socket at once."""
    return _values(text, "message size", block_bytes)


def _values(text: str, field: str, read: Callable[[str], T]) -> tuple[T, ...]:
    found: list[T] = []
    for part in text.split(","):
        first, dots, rest = part.partition("..")
        if not dots:
            found.append(read(part))
            continue
        last, slash, step = rest.partition("/")
        ends = read(first), read(last)
        gap = message_bytes(step, field) if slash else None
        found += _range(field, part, ends, gap)
        if len(found) > MAX_POINTS:
            break
    if len(found) > MAX_POINTS:
        raise PlanError(field, repr(text), f"a sweep has at most {MAX_POINTS} runs")
    return tuple(dict.fromkeys(found))


def _range(field: str, part: str, ends: tuple[T, T], step: int | None) -> list[T]:
    """Return the values of a range, its last one included wherever doubling or the step end."""
    first, last = ends
    if not isinstance(first, int) or not isinstance(last, int) or first > last or first < 1 or step == 0:
        raise PlanError(field, repr(part), _ALLOWED)
    found = [first]
    while found[-1] < last and len(found) <= MAX_POINTS:
        found.append(min(last, found[-1] * 2 if step is None else found[-1] + step))
    return found


DEFAULT_REFRESH_HZ: Final = 4.0
MIN_REFRESH_HZ: Final = 0.5
MAX_REFRESH_HZ: Final = 30.0


def check_refresh_hz(hz: float) -> float:
    """Return how often a screen is drawn; raise PlanError where nobody could follow it, or no line carry it."""
    if not MIN_REFRESH_HZ <= hz <= MAX_REFRESH_HZ:
        raise PlanError("refresh rate", f"{hz:g} Hz", f"give {MIN_REFRESH_HZ:g} to {MAX_REFRESH_HZ:g} a second")
    return hz
