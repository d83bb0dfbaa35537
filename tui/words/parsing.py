"""Parsing of typed values: windows, rates, times, pass marks, peers, languages, and the ranges of a sweep.

Pure. Every function raises PlanError with the text and the allowed values. Most limits come from plan.py.
The modules of results are imported late: the command line parses before it needs any of them.
A range doubles from its first value to its last, `16K..4M`; `/STEP` adds instead, `512..10240/512`.
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeVar

from ...engine.model.directions import Direction
from ...engine.model.errors import PlanError
from ...engine.model.peer import Peer, is_iperf3_address, is_ssh_address
from ...engine.model.plan import (
    MAX_CORES,
    MAX_DATAGRAM_BYTES,
    MAX_PORT,
    MAX_SESSIONS,
    MIN_DATAGRAM_BYTES,
    SECOND_NS,
)
from ...engine.model.speed_server import is_speed_address
from ...presets.preset import MAX_MTU_BYTES, MIN_MTU_BYTES, TUNNELS, Tunnel
from ...presets.sending_rate import RATE_WORDS, SendingRate
from .redaction import REDACTION

if TYPE_CHECKING:
    from ...engine.results.responsiveness.grade import Grade

T = TypeVar("T")
W = TypeVar("W", bound=str)

DEFAULT_REFRESH_HZ: Final = 4.0
MIN_REFRESH_HZ: Final = 0.5
MAX_REFRESH_HZ: Final = 30.0
LANGUAGES: Final = ("en", "ja")  # of the presets' names
_DATAGRAM_REMEDY: Final = f"give auto, or {MIN_DATAGRAM_BYTES} to {MAX_DATAGRAM_BYTES} bytes"
LOOPBACK: Final = "127.0.0.1"
UNTIL_STOPPED: Final = ("none", "until stopped", "until-stopped")
# The number of digits is bounded, so that no text makes us compute with huge numbers.
_SIZE: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(?:([kmg])i?)?b?", re.ASCII | re.IGNORECASE)
_TIME: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s*([a-z]*)", re.ASCII | re.IGNORECASE)
NEVER: Final = "never"
_AGE: Final = re.compile(r"(\d{1,6})\s*([hdw])", re.ASCII | re.IGNORECASE)
_HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24}
_NUMBER: Final = re.compile(r"(\d{1,4}(?:\.\d{1,6})?)\s*%?", re.ASCII)
_HERTZ: Final = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)\s*(?:Hz)?", re.ASCII | re.IGNORECASE)
_MILLISECONDS: Final = re.compile(r"(\d{1,5}(?:\.\d{1,3})?)\s*(?:ms)?", re.ASCII | re.IGNORECASE)
_RATE_REMEDY: Final = "give bits a second with a unit, such as 100K, 6M, 2.5G or 10Gb (1K to 10T)"
_RATE: Final = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*([KMGTkmgt])(?:b(?:it)?(?:/s|ps)?)?", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_BIT_S: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_LANGUAGE_CODE: Final = re.compile("[a-z]+", re.ASCII)
_LOCALE: Final = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set counts, as in POSIX
_RANGE_SYNTAX: Final = "give values with commas, or ranges: 16K..1M doubles, 1..10/1 adds"
_NANOSECONDS: Final = {
    **dict.fromkeys(("", "s", "sec"), SECOND_NS),
    "ms": SECOND_NS // 1_000,
    **dict.fromkeys(("m", "min"), 60 * SECOND_NS),
    "h": 3_600 * SECOND_NS,
}


def window_bytes(text: str) -> int | None:
    """Parse a window: `auto` (None), `65536`, `56K`, `1M`, `64KiB`; K, M and G are powers of 1,024."""
    if text.strip().lower() == "auto":
        return None
    return _size(text, "window", "give auto, or a size such as 56K or 1M (2K to 1G)")


def block_bytes(text: str) -> int:
    """Parse the size of a single send call: `1M`, `128K`, `65536`."""
    return _size(text, "block size", "give a size such as 128K or 1M (64 bytes to 16M)")


def message_bytes(text: str, field: str) -> int:
    """Parse the size of a request or a response: `200`, `8K`, `20M`."""
    return _size(text, field, "give a size such as 200, 8K or 1M")


def _match(pattern: re.Pattern[str], text: str, field: str, allowed: str) -> re.Match[str]:
    """Return the match of a text without the spaces around it; raise PlanError without one."""
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise PlanError(field, repr(text), allowed)
    return match


def _size(text: str, field: str, allowed: str) -> int:
    match = _match(_SIZE, text, field, allowed)
    value = Decimal(match[1]) * _BYTES[(match[2] or "").lower()]
    if value != int(value):
        raise PlanError(field, repr(text), "give a whole number of bytes")
    return int(value)


def line_rate_bit_s(text: str) -> int:
    """Parse a line rate: `2.5G`, `100M`, `10Gb`, `622.08 Mbit/s`; K, M, G and T are powers of 1,000."""
    return _bit_s(text, "line rate")


def rate_bit_s(text: str) -> int:
    """Parse the rate that a test is limited to, written like a line rate."""
    return _bit_s(text, "rate")


def minimum_rate_bit_s(text: str) -> int:
    """Parse the lowest rate that is a pass, written like a line rate."""
    return _bit_s(text, "minimum rate")


def _bit_s(text: str, field: str, allowed: str = _RATE_REMEDY) -> int:
    """Parse bits a second. A number without a unit is refused: it is hardly ever meant. So is a B for bytes."""
    match = _match(_RATE, text, field, allowed)
    value = Decimal(match[1]) * _BIT_S[match[2].lower()]
    if value != int(value) or not _BIT_S["k"] <= value <= 10 * _BIT_S["t"]:
        raise PlanError(field, repr(text), allowed)
    return int(value)


def sending_rate(text: str) -> SendingRate:
    """Parse the rate that datagrams are sent at: `100M`, or a word of RATE_WORDS."""
    word = text.strip().lower()
    for name in RATE_WORDS:
        if word == name:
            return name
    return _bit_s(
        text,
        "rate",
        f"give {', '.join(RATE_WORDS)}, or bits a second with a unit, such as 100M or 2.5G (1K to 10T)",
    )


def datagram_bytes(text: str) -> int | None:
    """Parse the UDP payload of a datagram: `1400`, `8K`, or `auto` (None) for what the path's MTU holds."""
    if text.strip().lower() == "auto":
        return None
    return _size(text, "datagram", _DATAGRAM_REMEDY)


def loss_goal_ppm(text: str) -> int:
    """Parse the share of datagrams that may be lost, in percent: `0`, `0.1`, `0.1%`; return it in a million."""
    return _loss_ppm(text, "loss goal")


def loss_limit(text: str) -> float:
    """Parse the largest lost share that is a pass, in percent as `loss_goal_ppm`; return it as 0 to 1."""
    return _loss_ppm(text, "maximum loss") / 1_000_000


def _loss_ppm(text: str, field: str) -> int:
    match = _NUMBER.fullmatch(text.strip())
    ppm = None if match is None else Decimal(match[1]) * 10_000
    if ppm is None or not 0 <= ppm <= 1_000_000 or ppm != int(ppm):
        raise PlanError(field, repr(text), "give 0 to 100 percent, such as 0 or 0.1%")
    return int(ppm)


def jitter_ns(text: str) -> int:
    """Parse a jitter in milliseconds: `5`, `0.5`, `5ms`."""
    match = _match(_MILLISECONDS, text, "maximum jitter", "give milliseconds, such as 5 or 0.5")
    return int(Decimal(match[1]) * 1_000_000)


def rise_ns(text: str) -> int:
    """Parse a rise of latency in milliseconds: `30`, `0.5`, `30ms`."""
    match = _MILLISECONDS.fullmatch(text.strip())
    if match is None or not Decimal(match[1]):
        raise PlanError("maximum rise", repr(text), "give milliseconds, such as 30 or 0.5ms")
    return int(Decimal(match[1]) * 1_000_000)


def grade(text: str) -> "Grade":
    """Parse a grade of latency under load, in upper or lower case: `A+`, `b`."""
    from ...engine.results.responsiveness.grade import GRADES

    return _word(GRADES[:-1], text, "grade")  # the last one is a pass for everything


def _word(words: tuple[W, ...], text: str, field: str) -> W:
    """Return the word that a text is, in upper or lower case; raise PlanError for any other."""
    for word in words:
        if text.strip().lower() == word.lower():
            return word
    raise PlanError(field, repr(text), f"give one of {', '.join(words)}")


def bytes_limit(text: str, field: str = "bytes") -> int:
    """Parse the number of bytes that end a test, or that are the most of a month: `100M`, `10G`."""
    return _size(text, field, "give a number of bytes such as 100M or 10G")


def mtu_bytes(text: str) -> int:
    """Parse the MTU of a link. A tunnel or a preset may have narrower limits."""
    allowed = f"give bytes, {MIN_MTU_BYTES} to {MAX_MTU_BYTES}"
    mtu = integer(text, "MTU", allowed)
    if not MIN_MTU_BYTES <= mtu <= MAX_MTU_BYTES:
        raise PlanError("MTU", mtu, allowed)
    return mtu


def tunnel(text: str) -> Tunnel:
    """Parse the name of a tunnel, in upper or lower case."""
    return _word(TUNNELS, text, "tunnel")


def duration_ns(text: str) -> int | None:
    """Parse the duration of a run: `10`, `1.5`, `2m`, `1h`, or `none` for until it is stopped."""
    if text.strip().lower() in UNTIL_STOPPED:
        return None
    return time_ns(text, "duration", "give seconds such as 10, 1.5 or 2m, or none to test until Ctrl-C")


def time_ns(text: str, field: str, allowed: str) -> int:
    """Parse a time: a number of seconds, or one with the unit ms, s, m or h."""
    match = _TIME.fullmatch(text.strip())
    unit = None if match is None else _NANOSECONDS.get(match[2].lower())
    if match is None or unit is None:
        raise PlanError(field, repr(text), allowed)
    return int(Decimal(match[1]) * unit)


def age(text: str, field: str = "--keep") -> timedelta:
    """Parse the age of runs: `90d`, `12h`, `4w`. A number without a unit is refused: it cannot mean seconds."""
    match = _match(_AGE, text, field, "give hours, days or weeks: 12h, 90d or 4w")
    return timedelta(hours=int(match[1]) * _HOURS[match[2].lower()])


def since(text: str, now: datetime) -> datetime:
    """Parse the time since when: an age such as `7d` or `12h`, or a date or time in UTC such as `2026-11-21`."""
    if _AGE.fullmatch(text.strip()):
        try:
            return now - age(text, "--since")
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise PlanError("--since", repr(text), "give an age or a date: 7d, 12h or 2026-11-21") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def thin_after(text: str) -> str:
    """Parse the age from which runs are thinned by themselves: `30d`, or `never`. Return it as it is saved."""
    if text.strip().lower() == NEVER:
        return NEVER
    try:
        age(text)
    except PlanError as error:
        raise PlanError("thin_after", repr(text)[:60], "give never, or an age such as 30d or 12w") from error
    return text.strip().lower()


def log_size(text: str) -> int:
    """Parse the largest size of the run log: `500M`, `2G`; powers of 1,024."""
    return _size(text, "--max", "give a size such as 500M or 2G")


def pass_percent(text: str) -> float:
    """Parse a pass mark in percent of the expected rate: `95`, `97.5`, `90%`."""
    match = _match(_NUMBER, text, "pass mark", "give percents such as 95 or 97.5")
    from ...presets.verdict import check_pass_percent  # imports much that `--help` does not need

    return check_pass_percent(float(match[1]))


def refresh_hz(text: str) -> float:
    """Parse the refresh rate of the screen: `4`, `0.5`, `10 Hz`."""
    match = _match(_HERTZ, text, "refresh rate", "give frames a second such as 4 or 0.5")
    return check_refresh_hz(float(match[1]))


def check_refresh_hz(hz: float) -> float:
    """Return a refresh rate that the eye can follow and an SSH line can carry; raise PlanError for others."""
    if not MIN_REFRESH_HZ <= hz <= MAX_REFRESH_HZ:
        raise PlanError("refresh rate", f"{hz:g} Hz", f"give {MIN_REFRESH_HZ:g} to {MAX_REFRESH_HZ:g} a second")
    return hz


def ci_percent(text: str) -> float:
    """Parse half the width of a confidence interval, in percent of the mean: `1%`, `0.5`."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None or not 0.01 <= float(match[1]) <= 50:
        raise PlanError("--until-ci", repr(text), "give percents of the mean such as 1% or 0.5 (0.01 to 50)")
    return float(match[1])


def peer(text: str) -> Peer:
    """Parse a peer: a host, an address with or without a port or a scheme, or `loopback`."""
    if "/" in text and not (is_ssh_address(text) or is_iperf3_address(text) or is_speed_address(text)):
        schemes = "ssh://HOST, iperf3://HOST, librespeed://HOST, ndt7://HOST"
        allowed = f"give HOST, HOST:PORT, [IPv6]:PORT, {schemes} or loopback"
        raise PlanError("peer", repr(text), allowed)
    parsed = Peer.parse(text)
    REDACTION.learn_peer(parsed)
    return parsed


def sessions(text: str) -> int:
    """Parse a number of sessions."""
    return integer(text, "sessions", f"give 1 to {MAX_SESSIONS}")


def listening_port(text: str) -> int:
    """Parse the port to listen on; 0 stands for any free one."""
    return _port(text, "--port", 0, "give a number from 1 to 65535, or 0 for a free one")


def iperf3_port(text: str) -> int:
    """Parse the port for clients of iperf3; 0 stands for any free one."""
    return _port(text, "--iperf3", 0, "give a number from 1 to 65535, or 0 for a free one")


def data_port(text: str) -> int:
    """Parse the port of the data connections."""
    return _port(text, "--data-port", 1, "give a number from 1 to 65535")


def _port(text: str, field: str, lowest: int, allowed: str) -> int:
    port = integer(text, field, allowed)
    if not lowest <= port <= MAX_PORT:
        raise PlanError(field, port, allowed)
    return port


def metrics_address(text: str) -> tuple[str, int]:
    """Parse the address of a server for metrics: `ADDR:PORT`, `[IPv6]:PORT`, or `PORT` for this host alone."""
    allowed = "give ADDR:PORT, [IPv6]:PORT, or PORT for this host alone; port 0 takes a free one"
    host, port = _place(text, "--metrics", allowed)
    return LOOPBACK if host is None else host, port


DEFAULT_HTTP_PORT: Final = 8080  # of the page for a device that joins the app


def http_address(text: str) -> tuple[str | None, int]:
    """Parse the address of the page for browsers: `ADDR:PORT`, `[IPv6]:PORT`, or `PORT` at the endpoint's."""
    allowed = "give ADDR:PORT, [IPv6]:PORT, or PORT for the endpoint's own address; port 0 takes a free one"
    return _place(text, "--http", allowed)


def _place(text: str, field: str, allowed: str) -> tuple[str | None, int]:
    """Return an address to listen on, None without one, and the port."""
    host, colon, port = text.rpartition(":")
    if not colon:
        return None, _port(port, field, 0, allowed)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise PlanError(field, repr(text), allowed)
    if not host or not host.isprintable() or " " in host:
        raise PlanError(field, repr(text), allowed)
    return host, _port(port, field, 0, allowed)


def cores(text: str) -> tuple[int, ...]:
    """Parse a list of cores: `0`, `0,2`, `0-3`, `0-1,4`."""
    allowed = "give cores such as 0,2 or 0-3"
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        low = integer(first, "cores", allowed)
        high = integer(last, "cores", allowed) if dash else low
        if not 0 <= low <= high < MAX_CORES:
            raise PlanError("cores", repr(text), allowed)
        numbers += range(low, high + 1)
    return tuple(numbers)


def integer(text: str, field: str, allowed: str) -> int:
    """Parse a whole number."""
    return int(_match(_WHOLE, text, field, allowed)[0])


def direction_values(text: str) -> tuple[Direction, ...]:
    """Parse directions: `out`, `in`, `duplex`, with commas."""
    by_name = {direction.value: direction for direction in Direction}
    directions: list[Direction] = []
    for word in text.split(","):
        if word.strip().lower() not in by_name:
            raise PlanError("direction", repr(word), "give out, in or duplex, with commas for several")
        directions.append(by_name[word.strip().lower()])
    return tuple(dict.fromkeys(directions))


def window_values(text: str) -> tuple[int | None, ...]:
    """Parse windows: sizes, ranges of them, and `auto`."""
    return _values(text, "window", window_bytes)


def session_values(text: str) -> tuple[int, ...]:
    """Parse numbers of sessions."""
    return _values(text, "sessions", sessions)


def message_values(text: str) -> tuple[int, ...]:
    """Parse sizes of a single send call."""
    return _values(text, "message size", block_bytes)


def _values(text: str, field: str, parse: Callable[[str], T]) -> tuple[T, ...]:
    from ...engine.results.sweep import MAX_POINTS

    values: list[T] = []
    for part in text.split(","):
        first, dots, rest = part.partition("..")
        if not dots:
            values.append(parse(part))
            continue
        last, slash, step = rest.partition("/")
        ends = parse(first), parse(last)
        increment = message_bytes(step, field) if slash else None
        values += _range(field, part, ends, increment)
        if len(values) > MAX_POINTS:
            break
    if len(values) > MAX_POINTS:
        raise PlanError(field, repr(text), f"a sweep has at most {MAX_POINTS} runs")
    return tuple(dict.fromkeys(values))


def _range(field: str, part: str, ends: tuple[T, T], step: int | None) -> list[T]:
    """Return the values of a range. The last one is included even if doubling or the step skips it."""
    from ...engine.results.sweep import MAX_POINTS

    first, last = ends
    if not isinstance(first, int) or not isinstance(last, int) or first > last or first < 1 or step == 0:
        raise PlanError(field, repr(part), _RANGE_SYNTAX)
    values = [first]
    while values[-1] < last and len(values) <= MAX_POINTS:
        values.append(min(last, values[-1] * 2 if step is None else values[-1] + step))
    return values


def resolve_language(requested: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the code of the language. Raises PlanError for a requested language without names."""
    if requested is not None:
        if requested.lower() not in LANGUAGES:
            raise PlanError("language", repr(requested), f"give {' or '.join(LANGUAGES)}")
        return requested.lower()
    locale = next(filter(None, (environment.get(name) for name in _LOCALE)), "")
    code = _LANGUAGE_CODE.match(locale)
    return code[0] if code is not None and code[0] in LANGUAGES else "en"
