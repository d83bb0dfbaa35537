"""A mesh for programs: the document of `--json`, the lines of `--json-stream`, the rows of `--csv`. Pure.

`engine/results/schemas/mesh.schema.json` describes the document.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...engine.results.csv_export import cell_text
from ...engine.results.figure_codec import DOCUMENT_VERSION, mbit, ms, percent, round_figure, seconds
from ...mesh.events import CellEnded, CellFailure, HostLost, MeshBegan, MeshEvent, RoundBegan
from ...mesh.figures import CellFigure, MeshFinding, MeshMatrix
from ...mesh.plan import Host, MeshPlan
from ...mesh.reading.comparison import MeshComparison
from ...presets.verdict import DEFAULT_PASS_PERCENT, AcceptanceLimits
from .mesh_verdict import judge_mesh
from .mesh_words import comparison_lines, finding_words

CSV_COLUMNS: Final = (
    "group",
    "sender",
    "receiver",
    "sender_group",
    "receiver_group",
    "run_id",
    "mbit_s",
    "transactions_s",
    "expected_mbit_s",
    "percent_of_expected",
    "isolated_mbit_s",
    "isolated_run_id",
    "why",
    "failure",
    "failed_host",
    "detail",
    "lost_percent",
    "isolated_lost_percent",
    "counted",
    "rise_ms",
    "isolated_rise_ms",
    "beyond",
)


def mesh_json(
    plan: MeshPlan,
    matrix: MeshMatrix,
    findings: Sequence[MeshFinding],
    pass_percent: float = DEFAULT_PASS_PERCENT,
    comparison: MeshComparison | None = None,
) -> dict[str, Any]:
    """Return a mesh as one document; unknown values are null.

    `comparison` is the one with the last mesh of the same hosts.
    """
    base = plan.base
    return {
        "schema": DOCUMENT_VERSION,
        "group": matrix.group,
        "mode": matrix.mode.value,
        "seed": plan.seed,
        "preset": plan.preset,
        "pass_percent": pass_percent,
        "workload": str(base.workload),
        "sessions": base.settings.sessions,
        "duration_s": seconds(base.duration_ns),
        "limits": limits_json(plan.limits),
        "verdict": judge_mesh(matrix, findings, pass_percent),
        "is_complete": matrix.is_complete,
        "hosts": [host_json(host) for host in matrix.hosts],
        "cells": [cell_json(figure, plan.limits) for figure in _in_order(matrix)],
        "findings": [finding_json(finding) for finding in findings],
        "comparison": None if comparison is None else comparison_json(comparison),
    }


def comparison_json(comparison: MeshComparison) -> dict[str, Any]:
    """Return what has changed since an earlier mesh."""
    return {
        "group": comparison.before,
        "cells": len(comparison.cells),
        "median_percent": round_figure(comparison.percent),
        "slower": [finding_json(finding) for finding in comparison.slower],
        "faster": [finding_json(finding) for finding in comparison.faster],
        "words": list(comparison_lines(comparison)),
    }


def host_json(host: Host) -> dict[str, Any]:
    """Return a host."""
    return {"name": host.name, "group": host.group, "address": host.address}


def limits_json(limits: AcceptanceLimits) -> dict[str, Any]:
    """Return what every cell must keep."""
    return {
        "max_loss_percent": percent(limits.max_loss),
        "min_rate_mbit_s": mbit(limits.min_rate_bit_s),
        "max_rise_ms": ms(limits.max_rise_ns),
    }


def cell_json(figure: CellFigure, limits: AcceptanceLimits) -> dict[str, Any]:
    """Return the result of a cell, and the limits that it breaks."""
    return {
        "sender": figure.cell.sender,
        "receiver": figure.cell.receiver,
        "run_id": figure.run_id,
        "mbit_s": mbit(figure.bit_s),
        "transactions_s": round_figure(figure.transactions_s),
        "expected_mbit_s": mbit(figure.expected_bit_s),
        "percent_of_expected": round_figure(figure.percent),
        "isolated_mbit_s": mbit(figure.isolated_bit_s),
        "isolated_run_id": figure.isolated_run_id,
        "lost_percent": percent(figure.loss),
        "isolated_lost_percent": percent(figure.isolated_loss),
        "rise_ms": ms(figure.rise_ns),
        "isolated_rise_ms": ms(figure.isolated_rise_ns),
        "beyond": list(figure.check(limits).broken),
        "why": figure.why,
        "failure": failure_json(figure.failure),
        "counted": None if figure.value is None else "isolated" if figure.is_isolated else "first",
    }


def finding_json(finding: MeshFinding) -> dict[str, Any]:
    """Return a finding; `words` is its sentence."""
    return {
        "code": finding.code.value,
        "sender": finding.sender,
        "receiver": finding.receiver,
        "less_percent": round_figure(finding.less_percent),
        "lost_percent": round_figure(finding.lost_percent),
        "cells": [list(cell) for cell in finding.cells],
        "why": finding.why,
        "failure": failure_json(finding.failure),
        "limit": finding.limit,
        "words": finding_words(finding),
    }


def start_line(group: str, began: MeshBegan, done: int) -> dict[str, Any]:
    """Return the first line of a stream; `done` is the number of cells that earlier sessions have measured."""
    return {
        "type": "mesh_start",
        "schema": DOCUMENT_VERSION,
        "group": group,
        "mode": began.plan.mode.value,
        "hosts": [host_json(host) for host in began.plan.hosts],
        "cells": began.cells,
        "cells_done": done,
    }


def stream_lines(event: MeshEvent, figure: CellFigure | None, limits: AcceptanceLimits) -> Iterator[dict[str, Any]]:
    """Yield the lines of a stream for an event of a mesh between its first and its last one."""
    match event:
        case HostLost(host, failure):
            yield {"type": "mesh_host_lost", "host": host, "failure": failure_json(failure)}
        case RoundBegan(number, rounds):
            yield {"type": "mesh_round", "number": number, "rounds": rounds}
        case CellEnded() if figure is not None:
            yield {"type": "mesh_cell", "is_isolated": event.is_isolated, **cell_json(figure, limits)}
        case _:
            pass


def end_line(document: dict[str, Any]) -> dict[str, Any]:
    """Return the last line of a stream, with the document of the whole mesh."""
    return {"type": "mesh_end", "group": document["group"], "summary": document}


def csv_rows(matrix: MeshMatrix) -> Iterator[list[str]]:
    """Yield the rows of the CSV, the header first; an empty cell is unknown."""
    yield list(CSV_COLUMNS)
    groups = {host.name: host.group for host in matrix.hosts}
    for figure in _in_order(matrix):
        sender, receiver = figure.cell
        values: dict[str, Any] = {
            "group": matrix.group,
            **cell_json(figure, matrix.limits),
            "sender_group": groups.get(sender),
            "receiver_group": groups.get(receiver),
        }
        values["beyond"] = " ".join(values["beyond"])
        failure = figure.failure
        if failure is not None:
            values |= {"failure": failure.code.value, "failed_host": failure.host, "detail": failure.detail}
        cells = (values.get(name) for name in CSV_COLUMNS)
        yield [cell_text(cell) for cell in cells]


def _in_order(matrix: MeshMatrix) -> Iterator[CellFigure]:
    """Yield the results in the order of the hosts."""
    place = {host.name: number for number, host in enumerate(matrix.hosts)}
    last = len(place)
    for cell in sorted(matrix.figures, key=lambda cell: [place.get(name, last) for name in cell]):
        yield matrix.figures[cell]


def failure_json(failure: CellFailure | None) -> dict[str, Any] | None:
    """Return why a cell or a host has no result; None if it has one."""
    if failure is None:
        return None
    return {"code": failure.code.value, "detail": failure.detail, "host": failure.host}
