"""The states of an iperf3 test, as the control connection names them: either end sends a signed byte. Pure."""

from enum import IntEnum
from typing import Final

from ...model.errors import RemoteProtocolError

_BYTE_VALUES: Final = 256
_SIGN_BIT: Final = 128


class State(IntEnum):
    """A state of a test. The server sends most of them; the client sends those that end it."""

    TEST_START = 1
    TEST_RUNNING = 2
    TEST_END = 4
    PARAM_EXCHANGE = 9
    CREATE_STREAMS = 10
    SERVER_TERMINATE = 11
    CLIENT_TERMINATE = 12
    EXCHANGE_RESULTS = 13
    DISPLAY_RESULTS = 14
    IPERF_DONE = 16
    ACCESS_DENIED = -1
    SERVER_ERROR = -2

    @property
    def wire_byte(self) -> bytes:
        """The byte that names this state on the control connection."""
        return bytes([self % _BYTE_VALUES])

    @classmethod
    def from_byte(cls, value: int) -> "State":
        """Return the state of a byte, 0 to 255; raise RemoteProtocolError if there is none."""
        try:
            return cls(value - _BYTE_VALUES if value >= _SIGN_BIT else value)
        except ValueError:
            raise RemoteProtocolError(f"iperf3 has no state {value}") from None
