"""States as stock programs have them."""

from linkgauge.engine.iperf3.protocol.states import State
from linkgauge.engine.model.errors import RemoteProtocolError


def test_every_byte_is_a_state_or_a_protocol_error() -> None:
    """A state goes as one signed byte."""
    known = set()
    for value in range(256):
        try:
            known.add(State.from_byte(value))
        except RemoteProtocolError:
            continue
        assert State.from_byte(value).wire_byte == bytes([value])
    assert known == set(State)
    assert State.ACCESS_DENIED.wire_byte == b"\xff"
