"""The lines of an endpoint's log."""

from datetime import UTC, datetime

import pytest
from linkgauge.engine.far.status import LogEntry
from linkgauge.tui.endpoint.endpoint_log import EndpointLog, log_text

CLIENT = "192.0.2.7"


def ended(text: str, received: int, sent: int, milliseconds: int = 10_000) -> LogEntry:
    """Return the entry of a run's end."""
    figures = {"received_bytes": received, "sent_bytes": sent, "milliseconds": milliseconds}
    return LogEntry("run_ended", text, client=CLIENT, bytes=received + sent, **figures)


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (LogEntry("client", "connected", client=CLIENT, hostname="db-01"), "192.0.2.7: connected (db-01)"),
        (LogEntry("client", "connected", client=CLIENT, hostname=None), "192.0.2.7: connected"),
        (LogEntry("dropped", "rejected: wrong key", client=CLIENT), "192.0.2.7: rejected: wrong key"),
        (
            ended("finished", 1_176_750_000, 0),
            "192.0.2.7: finished: received 1.10 GiB at 941.4 Mb/s in 10 s",
        ),
        (
            ended("INTERRUPTED: the client has gone", 0, 42_500_000_000),
            "192.0.2.7: INTERRUPTED: the client has gone: sent 39.6 GiB at 34 Gb/s in 10 s",
        ),
        (
            ended("stopped", 1_250_000, 2_500_000, 1_000),
            "192.0.2.7: stopped: received 1.19 MiB at 10 Mb/s, sent 2.38 MiB at 20 Mb/s in 1 s",
        ),
        (ended("stopped", 0, 0, 0), "192.0.2.7: stopped: no payload"),
        ("any other line", "any other line"),
    ],
)
def test_a_line_has_the_client_and_the_figures_of_its_run(entry: str, line: str) -> None:
    """Rates and bytes of each direction that had payload."""
    assert log_text(entry).replace("\N{NO-BREAK SPACE}", " ") == line


def test_the_log_keeps_lines_of_any_kind() -> None:
    """Each has its text, and its event for the mark."""
    journal = EndpointLog(lambda: datetime(2026, 11, 21, 17, 2, 3, tzinfo=UTC))
    journal.append_entry(LogEntry("client", "connected", client="192.0.2.7"))
    journal.append_entry("something else")
    assert [(line.event, line.text) for line in journal.lines] == [
        ("client", "192.0.2.7: connected"),
        ("said", "something else"),
    ]
    assert journal.lines_written == 2
