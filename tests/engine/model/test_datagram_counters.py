"""The table of a UDP session's counters: each row is a field of its sample."""

from dataclasses import fields

from linkgauge.engine.model.datagram_counters import DATAGRAM_COUNTER_NAMES
from linkgauge.engine.model.samples import DatagramSample


def test_every_counter_is_a_field_of_the_sample_in_the_same_order() -> None:
    """The sample is the wire format of the table."""
    assert tuple(field.name for field in fields(DatagramSample))[2:] == DATAGRAM_COUNTER_NAMES
