"""Runs of the log by their start and by the host that they tested."""

from collections.abc import Iterator
from datetime import datetime

from ...engine.results.run_log import RunLog, RunQuery, RunRecord
from ..text.run_list import value_in


def selected_runs(log: RunLog, earliest: datetime | None = None, host: str | None = None) -> Iterator[RunRecord]:
    """Yield runs, the oldest first, that began at `earliest` or later, and whose peer or remote host has a text.

    The text is a part of the peer, of its address or of its host's name, in upper or lower case. A run without a
    known start has none that is late enough.
    """
    for run in log.records(log.find_runs(RunQuery(is_descending=False))):
        if (earliest is None or _is_since(run, earliest)) and (host is None or _has_host(run, host.casefold())):
            yield run


def _is_since(run: RunRecord, earliest: datetime) -> bool:
    try:
        return run.started_utc is not None and datetime.fromisoformat(run.started_utc) >= earliest
    except (ValueError, TypeError):  # no time, or one without a zone
        return False


def _has_host(run: RunRecord, text: str) -> bool:
    names = (run.peer, value_in(run.document, "address"), value_in(run.document, "far", "hostname"))
    return any(text in str(name).casefold() for name in names if name is not None)
