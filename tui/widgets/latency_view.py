"""From what the app knows of a run to what its latency bars show. Pure."""

from statistics import median

from ...engine.plan import Direction
from ...engine.samples import Summary
from .board import Board, View
from .latency_reading import LatencyReading


def latency_reading(view: View) -> LatencyReading | None:
    """Return what there is to show of a run; None where it tells no latency."""
    if view.board is None:
        return None
    plan = view.board.plan
    if plan.probe:
        return _probed(view.board, view.summary)
    return _asked(view.board, view.summary) if plan.workload.is_transactional else None


def _asked(board: Board, summary: Summary | None) -> LatencyReading:
    direction = board.settings.direction
    title = f"latency, {board.plan.workload} {direction}"
    if summary is not None:
        told = {Direction.OUT: summary.out, Direction.IN: summary.in_, Direction.DUPLEX: summary.total}[direction]
        return LatencyReading(title, told.latency if told else None, None, summary.tcp.rtt_us, "whole run")
    rtts = [row.rtt_us for row in board.session_rows() if row.rtt_us is not None]
    latency = board.flow(direction).latency
    return LatencyReading(title, latency, None, round(median(rtts)) if rtts else None, "last second")


def _probed(board: Board, summary: Summary | None) -> LatencyReading:
    found = summary.probe if summary is not None else None
    if found is not None:
        idle, loaded = found.idle, found.loaded
        return LatencyReading(
            "latency under load",
            loaded.latency if loaded else None,
            idle.latency if idle else None,
            loaded.rtt_us if loaded else None,
            "whole run",
        )
    return board.probe.reading
