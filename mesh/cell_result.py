"""The decoder of a cell's result, as a host sends it: the events of its run, or an error. Pure.

A host is not trusted. Its lines are bounded in number and size and decoded strictly, and they must be one whole run
of the requested plan.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, cast, get_args

from ..engine.model.directions import End
from ..engine.model.errors import DecodeError, PlanError, make_printable
from ..engine.model.events import Ended, Event, Started
from ..engine.model.plan import Plan
from ..engine.model.serialization import decode_tagged, reject_duplicate_keys
from .events import CellFailure, FailureCode
from .plan import Pairing

MAX_LINES: Final = 50_000
MAX_CELL_BYTES: Final = 32 << 20
"""The maximum size of a run's events as text: a minute of 64 sessions has half of it."""
_MAX_DETAIL: Final = 300
_EVENTS: Final = cast("tuple[type[Event], ...]", get_args(Event))


def read_cell(lines: object, plan: Plan, pairing: Pairing) -> tuple[Event, ...] | CellFailure:
    """Return the events of a run that its near host sent, or why there is no result.

    Args:
        lines: the host's answer: a list of JSON texts.
        plan: the requested plan.
        pairing: names the near and the far host.
    """
    try:
        texts = _check_lines(lines)
        if failure := _read_error(texts[-1], pairing):
            return failure
        events = tuple(
            decode_tagged(_EVENTS, json.loads(text, object_pairs_hook=reject_duplicate_keys)) for text in texts
        )
        end = _check_order(events, plan)
    except (DecodeError, PlanError, ValueError, TypeError, RecursionError) as error:
        text = make_printable(" ".join(str(error).split()))[:_MAX_DETAIL]
        return CellFailure(FailureCode.FAILED, f"it sent a result that cannot be read: {text}", pairing.near)
    if not end.end.reason.is_regular:
        detail = make_printable(end.end.detail)[:_MAX_DETAIL]
        return CellFailure(FailureCode.FAILED, f"the test broke off: {detail or end.end.reason}")
    return events


def _check_lines(lines: object) -> Sequence[str]:
    items = cast("list[object]", lines) if isinstance(lines, list) else []
    if not items:
        raise DecodeError("result", "a list of lines", "none")
    if len(items) > MAX_LINES:
        raise DecodeError("result", f"at most {MAX_LINES} lines", len(items))
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) < len(items):
        raise DecodeError("result", "lines of text", "others")
    if sum(map(len, texts)) > MAX_CELL_BYTES:
        raise DecodeError("result", f"at most {MAX_CELL_BYTES >> 20} MiB", "more")
    return texts


def _read_error(text: str, pairing: Pairing) -> CellFailure | None:
    """Return the failure that a line describes (`cell_run.error_line`); None for the line of an event."""
    members: Any = json.loads(text, object_pairs_hook=reject_duplicate_keys)
    if not isinstance(members, dict) or "error" not in members:
        return None
    fields = cast("dict[str, object]", members)
    detail, code, end = (fields.get(key) for key in ("error", "code", "end"))
    if not isinstance(detail, str) or not isinstance(code, str) or code not in set(FailureCode):
        raise DecodeError("error", "a text and a code", code)
    if end is not None and (not isinstance(end, str) or end not in set(End)):
        raise DecodeError("end", "near, far or null", end)
    host = None if end is None else pairing.near if end == End.NEAR else pairing.far
    return CellFailure(FailureCode(code), make_printable(" ".join(detail.split()))[:_MAX_DETAIL], host)


def _check_order(events: Sequence[Event], plan: Plan) -> Ended:
    """Return the last event; raise DecodeError unless the events are one whole run of the plan."""
    first, last = events[0], events[-1]
    if not isinstance(first, Started) or not isinstance(last, Ended):
        raise DecodeError("result", "events from Started to Ended", type(last).__name__)
    if any(isinstance(event, Started | Ended) for event in events[1:-1]):
        raise DecodeError("result", "one run", "several")
    for name in ("workload", "settings", "duration_ns"):
        # The cores and other choices of a run may differ.
        if getattr(first.plan, name) != getattr(plan, name):
            raise DecodeError(f"Started.plan.{name}", str(getattr(plan, name)), getattr(first.plan, name))
    return last
