"""The table of TCP counters: each row is a field of a session's sample and has its own offset."""

from dataclasses import fields

from linkgauge.engine.model.counters.samples import SessionSample
from linkgauge.engine.model.counters.session_counters import TCP_COUNTER_NAMES, TCP_COUNTERS


def test_every_counter_is_a_field_of_a_sessions_sample() -> None:
    """A row without its field would never leave the sampler."""
    optional = {field.name for field in fields(SessionSample) if field.default is None}
    assert set(TCP_COUNTER_NAMES) <= optional


def test_no_two_counters_share_a_name_or_an_offset() -> None:
    """A row that was copied and half changed counts twice."""
    places = {(counter.source, counter.offset) for counter in TCP_COUNTERS}
    assert len(set(TCP_COUNTER_NAMES)) == len(places) == len(TCP_COUNTERS)
