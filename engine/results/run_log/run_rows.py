"""Runs as rows of CSV, one a run: what was tested, over which address, and the figures of its document. Pure.

Every value is one of the run's document, or of its entry in the run log. An empty cell is unknown. Columns are only
ever added, at the end.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..csv_export import Cell, cell_text
from ..json_document import cell_in, list_in
from .store import RunRecord

# The column, and the members of the document that lead to its value.
_FIGURES: Final[dict[str, tuple[str, ...]]] = {
    "address": ("address",),
    "ip_version": ("ip_version",),
    "near_host": ("near", "hostname"),
    "far_host": ("far", "hostname"),
    "workload": ("plan", "workload"),
    "direction": ("newest", "direction"),
    "sessions": ("newest", "sessions"),
    "window_bytes": ("newest", "window_bytes"),
    "seconds": ("measured", "total", "seconds"),
    "out_mbit_s": ("measured", "out", "mbit_s"),
    "in_mbit_s": ("measured", "in", "mbit_s"),
    "total_mbit_s": ("measured", "total", "mbit_s"),
    "transactions_s": ("measured", "total", "transactions_s"),
    "expected_mbit_s": ("expected", "total", "mbit_s"),
    "percent_of_expected": ("measured", "total", "percent_of_expected"),
    "lost_percent": ("measured", "total", "udp", "lost_percent"),
    "retransmits": ("tcp", "retransmits"),
    "rtt_us": ("tcp", "rtt_us"),
    "end_reason": ("ended", "reason"),
    "end_detail": ("ended", "detail"),
    "periods": ("periods",),
}
_NAMES: Final = ("run_id", "started_utc", "peer", "label", "preset", "verdict")
RUN_COLUMNS: Final = (*_NAMES, *_FIGURES)


def run_rows(runs: Iterable[RunRecord]) -> Iterator[list[str]]:
    """Yield the rows of runs, the header first."""
    yield list(RUN_COLUMNS)
    for run in runs:
        named: list[Cell] = [run.run_id, run.started_utc, run.peer, run.label, run.preset, run.verdict]
        document = _with_newest(run.document)
        figures = (cell_in(document, *keys) for keys in _FIGURES.values())
        yield [cell_text(value) for value in (*named, *figures)]


def _with_newest(document: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return a document with the settings that its results are of, as `newest`, and the number of its periods."""
    periods = list_in(document, "stretches")
    measured = [period for period in periods if cell_in(period, "measured", "total", "bytes") is not None]
    newest = measured[-1] if measured else (document or {}).get("plan")
    return {**(document or {}), "newest": newest, "periods": len(periods) or None}
