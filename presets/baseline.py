"""A preset from a run, as a baseline for later runs.

Pure. The result is a file in the schema of the catalogue, which the user can edit.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from ..engine.model.directions import Direction
from ..engine.model.errors import DecodeError, LinkgaugeError, PlanError
from ..engine.model.plan import Plan
from ..engine.model.serialization import make_printable
from ..engine.model.workload import Workload
from ..engine.results.summary import Summary
from .number_text import format_quantity
from .preset import Flow, LinkSpec
from .preset_validation import check_id

NO_WIRE: Final = LinkSpec("none")
_COLUMN: Final = "measured_mbit_s"
_COUNTED: Final = {Workload.RR: "measured_transactions_s", Workload.CRR: "measured_transactions_s"}


def baseline_toml(
    summary: Summary, *, preset_id: str, name: str, run_id: str, started_utc: str, link: LinkSpec = NO_WIRE
) -> str:
    """Return a preset file that expects the rates of the run and suggests its window.

    Each period of the run gives the rate of its direction and sessions. If two periods have equal settings, the
    later one counts. For rr and crr the rates are transactions a second, whichever end is the client.

    Args:
        summary: The results of the run.
        preset_id: The id of the new preset.
        name: Its name, for the user.
        run_id: The run, which is the source of each rate.
        started_utc: When the run began.
        link: The link; without one, the wire model computes no rate.

    Raises:
        PlanError: The id is invalid.
        LinkgaugeError: The run measured no rate that a later run can be compared with.
    """
    check_preset_id(preset_id)
    plan = summary.plan
    rates = _rates_of_run(summary, run_id)
    column = _COUNTED.get(plan.workload, _COLUMN)
    lines = [
        "# Made from a run; what is below may be edited.",
        "",
        "[source]",
        f"id = {_text(preset_id)}",
        f"title = {_text(f'run {run_id}')}",
        f'tables = [{{ table = "run", name = {_text(f"run {run_id} of {started_utc}")} }}]',
        "",
        "[[preset]]",
        f"id = {_text(preset_id)}",
        f"name = {_text(name)}",
        'family = "Own"',
        *_window_line(plan.settings.window_bytes),
        "",
        *_link_lines(link),
        "",
        *_table_lines(rates, column),
    ]
    lines += [line for key in rates for line in _rate_lines(*key, plan.workload, column)]
    return "\n".join(lines) + "\n"


def _rates_of_run(summary: Summary, run_id: str) -> dict[tuple[Flow, int], float]:
    """Return the rates that a later run can be compared with; raise LinkgaugeError if there are none."""
    workload = summary.plan.workload
    _check_comparable(summary.plan, run_id)
    rates = dict(_rates(summary))
    if rates:
        return rates
    if workload in _COUNTED and any(s.measured.out and s.measured.in_ for s in summary.periods):
        raise LinkgaugeError(
            f"run {run_id} had requests in both directions at once; a preset needs a run with one direction"
        )
    raise LinkgaugeError(f"run {run_id} measured no payload, so it has no rate for a preset")


def check_preset_id(preset_id: str) -> None:
    """Raise PlanError if this cannot be the id of a preset."""
    try:
        check_id(preset_id)
    except DecodeError as error:
        raise PlanError("preset id", repr(preset_id), "give small letters and digits, joined by - or .") from error


def _check_comparable(plan: Plan, run_id: str) -> None:
    """Raise LinkgaugeError if transactions had unusual sizes: later runs have the usual ones."""
    if not plan.has_documented_transactions:
        raise LinkgaugeError(
            f"run {run_id} has its own sizes or burst; a preset needs a run of {plan.workload} "
            "without --request, --response and --burst"
        )


def _rates(summary: Summary) -> Iterator[tuple[tuple[Flow, int], float]]:
    """Yield the rate of each period with its flow and sessions, in the unit of the table's column."""
    is_counted = summary.plan.workload in _COUNTED
    for period in summary.periods:
        direction, sessions = period.settings.direction, period.settings.sessions
        measured = period.measured[direction]
        if measured is None or not all(period.measured[flow] for flow in direction.flows):
            continue
        if is_counted:
            if direction is not Direction.DUPLEX and measured.transactions_s:
                yield ("exchange", sessions), measured.transactions_s
        elif measured.bit_s >= 1:
            yield (direction.value, sessions), measured.bit_s / 1e6


def _window_line(window_bytes: int | None) -> Iterator[str]:
    if window_bytes is not None:
        yield f"suggested_window_bytes = {window_bytes}"


def _table_lines(rates: Mapping[tuple[Flow, int], float], column: str) -> Iterator[str]:
    """Yield the run's rates as the table of a document."""
    yield "[[preset.tables]]"
    yield 'table = "run"'
    yield f'columns = ["{column}"]'
    yield "rows = ["
    for key, rate in rates.items():
        yield f"  {{ row = {_text(_row(*key))}, values = [{rate:.6f}] }},"
    yield "]"


def _row(flow: Flow, sessions: int) -> str:
    return f"{flow}, {format_quantity(sessions, 'session')}"


def _rate_lines(flow: Flow, sessions: int, workload: Workload, column: str) -> list[str]:
    carried = [] if workload is Workload.STREAM else [f"workload = {_text(workload)}"]
    return [
        "",
        "[[preset.rates]]",
        f"flow = {_text(flow)}",
        f"sessions = {sessions}",
        *carried,
        'table = "run"',
        f"row = {_text(_row(flow, sessions))}",
        f'column = "{column}"',
    ]


def _link_lines(link: LinkSpec) -> Iterator[str]:
    yield "[preset.link]"
    yield f"framing = {_text(link.framing)}"
    if link.line_rate_bit_s is not None:
        yield f"line_rate_bit_s = {link.line_rate_bit_s}"
    if link.mtu_bytes is not None:
        yield f"mtu_bytes = {link.mtu_bytes}"
    if link.duplex is not None:
        yield f"duplex = {_text(link.duplex)}"
    if link.timestamps:
        yield "timestamps = true"
    if link.tunnel is not None:
        yield f"tunnel = {_text(link.tunnel)}"


def _text(value: str) -> str:
    """Return a TOML basic string. JSON's escapes are TOML's too, except for control characters."""
    return json.dumps(make_printable(value), ensure_ascii=False)
