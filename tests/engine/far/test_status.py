"""Entries of an endpoint's log: a line for the user, fields for a program."""

from linkgauge.engine.far.status import LogEntry


def test_a_line_begins_with_its_client() -> None:
    """The fields have the text without it."""
    entry = LogEntry("refused", "too many", client="192.0.2.8", limit="clients")
    assert entry == "192.0.2.8: too many"
    assert entry.event == "refused"
    assert entry.fields == {"client": "192.0.2.8", "limit": "clients", "text": "too many"}


def test_an_entry_without_a_client_is_its_text() -> None:
    """Its own events have none."""
    entry = LogEntry("listening", "listening on port 5820", port=5820)
    assert entry == "listening on port 5820"
    assert entry.fields == {"port": 5820, "text": entry}
