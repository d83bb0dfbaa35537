"""Events of a watch as JSON objects and back: the lines of `--json-stream`, the entries of the journal. Pure.

An object has a `type`: `watch_start`, `check_start`, `check_end`, `check_skip`, `checks_missed`, `probe`,
`level_change`, `path_change`, `change_told`, `data_used`, `watch_notice`, `watch_end`. Its other keys are the
fields of the event. Figures are an object by metric.

Reading is strict, because a journal may be damaged. Wrong types, unknown keys, impossible times and kinds from a
newer linkgauge are errors. `read_events` leaves such entries out and says why, so that one bad entry does not end
a watch.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from ..engine.model.errors import DecodeError, make_printable
from ..engine.model.serialization import decode, encode, reject_duplicate_keys
from .changes.level_watch import MAX_VALUES
from .events import (
    ChangeFound,
    ChangeTold,
    CheckBegan,
    CheckEnded,
    CheckSkipped,
    ChecksMissed,
    DataUsed,
    PathChanged,
    ProbeEnded,
    WatchEnded,
    WatchEvent,
    WatchNotice,
    WatchStarted,
)

KEPT_S: Final = 32 * 86_400.0
"""The journal keeps starts and notices for this time, and probes with a period of an hour or more."""
PROBES_KEPT_S: Final = 2 * 86_400.0
"""It keeps frequent probes for this time or longer: a day may have 1,440, and reading one takes 0.1 ms."""
RESULTS_KEPT_S: Final = 400 * 86_400.0
"""It keeps the ends of tests for this time, so that a year can be compared with the one before it."""

_TYPES: Final[dict[str, type[WatchEvent]]] = {
    "watch_start": WatchStarted,
    "check_start": CheckBegan,
    "check_end": CheckEnded,
    "check_skip": CheckSkipped,
    "checks_missed": ChecksMissed,
    "probe": ProbeEnded,
    "level_change": ChangeFound,
    "path_change": PathChanged,
    "change_told": ChangeTold,
    "data_used": DataUsed,
    "watch_notice": WatchNotice,
    "watch_end": WatchEnded,
}
_NAMES: Final = {kind: name for name, kind in _TYPES.items()}
_TIMES: Final = ("at_s", "cycle_s", "since_s", "until_s")
_END_OF_TIME_S: Final = 253_402_300_800.0  # the year 10000: the end of datetime
_MOST_ATTEMPTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class UnreadEntry:
    """An entry of a journal that is not an event of this linkgauge: its number, and the reason as a sentence."""

    number: int
    reason: str


def event_line(event: WatchEvent) -> dict[str, Any]:
    """Return an event as a JSON object."""
    line: dict[str, Any] = {"type": _NAMES[type(event)], **encode(event)}
    result = line.get("result")
    if result is not None:
        result["figures"] = dict(result["figures"])
    return line


def event_text(event: WatchEvent) -> str:
    """Return an event as JSON text of one line; raise ValueError for a figure that is not finite."""
    return json.dumps(event_line(event), separators=(",", ":"), allow_nan=False)


def parse_event(value: object) -> WatchEvent:
    """Return the event of a JSON object; raise DecodeError, which names the place and the expected value."""
    if not isinstance(value, dict):
        raise DecodeError("", "an object", value)
    members = dict(cast("dict[str, Any]", value))
    name = members.pop("type", None)
    kind = _TYPES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise DecodeError("type", "one of " + ", ".join(_TYPES), name)
    if "result" in members:
        members["result"] = _with_listed_figures(members["result"])
    event: WatchEvent = decode(kind, members)
    _check_numbers(event)
    return event


def read_events(entries: Iterable[tuple[int, str]]) -> Iterator[WatchEvent | UnreadEntry]:
    """Yield the event of each numbered text, in order; an UnreadEntry for one that is damaged or unknown."""
    for number, text in entries:
        try:
            yield parse_event(json.loads(text, object_pairs_hook=reject_duplicate_keys))
        except (DecodeError, ValueError, RecursionError) as error:
            yield UnreadEntry(number, make_printable(f"entry {number} of the journal is left out: {error}"))


def keep_until_s(event: WatchEvent, probe_every_s: float | None = None) -> float | None:
    """Return when the journal may forget an event, in seconds since 1970; None for a change, which stays for ever.

    Probes are kept until a level has its maximum of values, if a probe comes each `probe_every_s`.
    """
    match event:
        case ProbeEnded() if probe_every_s is not None:
            return event.at_s + min(KEPT_S, max(PROBES_KEPT_S, MAX_VALUES * probe_every_s))
        case ChangeFound() | PathChanged():
            return None
        case CheckEnded() | CheckSkipped() | ChecksMissed():
            return event.at_s + RESULTS_KEPT_S
        case _:
            return event.at_s + KEPT_S


def _with_listed_figures(result: object) -> object:
    """Return a result whose figures are a list of pairs, as in the dataclass."""
    if not isinstance(result, dict):
        return result
    members = cast("dict[str, Any]", result)
    figures = members.get("figures", {})
    if not isinstance(figures, dict):
        raise DecodeError("result.figures", "an object", figures)
    return {**members, "figures": [list(pair) for pair in cast("dict[str, Any]", figures).items()]}


def _check_numbers(event: WatchEvent) -> None:
    """Raise DecodeError for an impossible time or attempt."""
    for name in _TIMES:
        at_s = getattr(event, name, 0.0)
        if not 0 <= at_s < _END_OF_TIME_S:
            raise DecodeError(name, "seconds since 1970", at_s)
    attempt = getattr(event, "attempt", 0)
    if attempt > _MOST_ATTEMPTS:
        raise DecodeError("attempt", f"0 to {_MOST_ATTEMPTS}", attempt)
