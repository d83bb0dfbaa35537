"""The numbers by which an iperf3 server refuses or ends a test, and their meaning in words.

Pure. A stock client has its own sentence for each number that its version knows.
"""

from enum import IntEnum
from typing import Self

from ...model.errors import Iperf3Refusal


class ErrorNumber(IntEnum):
    """The reason of a refusal, as `iperf_api.h` numbers them, and its sentence without subject."""

    sentence: str

    def __new__(cls, number: int, sentence: str) -> Self:
        """Return the member of a number."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.sentence = sentence
        return member

    DURATION = 5, "the duration is longer than it allows"
    STREAMS = 6, "it does not allow so many sessions"
    BLOCK_SIZE = 7, "it does not allow this block size"
    WINDOW_SIZE = 8, "the window is larger than it allows"
    MSS = 10, "it does not allow this MSS"
    OMIT = 12, "the warm-up is longer than it allows"
    BURST = 15, "it does not allow so many blocks in a burst"
    END_CONDITIONS = 16, "it takes one of duration, bytes and blocks"
    DATAGRAM_SIZE = 20, "it does not allow this size of datagrams"
    TOS = 21, "it does not allow this DSCP"
    BOTH_DIRECTIONS = 25, "a test is either reversed or bidirectional"
    TOTAL_RATE = 27, "the rate of all sessions together is above its limit"
    MAX_DURATION = 37, "the duration is longer than its operator allows"
    COOKIE = 106, "it received no cookie"
    CONTROL_READ = 108, "it could not read from the control connection"
    CONTROL_CLOSED = 109, "it lost the control connection"
    MESSAGE = 110, "it received an unknown message"
    PARAMETERS = 114, "it does not accept the parameters of the test"
    RESULTS = 117, "it could not read the results of this end"
    CLIENT_TERMINATED = 119, "the client stopped the test"
    SERVER_TERMINATED = 120, "it was stopped during the test"
    ACCESS_DENIED = 121, "it is busy with another test"
    SET_MSS = 123, "its kernel does not accept this MSS"
    PROTOCOL = 131, "it does not have this protocol"
    CONGESTION = 134, "its kernel does not have this congestion control"
    WINDOW_GRANTED = 141, "its kernel does not grant this window"
    AUTHORIZATION = 142, "it does not accept the user name and password"
    NO_DATA = 144, "it received no data for too long"
    TIME_EXPIRED = 160, "the test lasted longer than it waits"
    CREATE_STREAM = 200, "it could not create a session"
    STREAM_ACCEPT = 204, "it could not accept a session"
    STREAM_WRITE = 205, "it could not send on a session"
    STREAM_READ = 206, "it could not receive on a session"
    STREAM_ID = 208, "it does not know a session that the results name"


def explain_number(number: int | None) -> str:
    """Return the reason of a refusal for the user, without subject; None is an unknown number."""
    if number is None:
        return "it gave no reason"
    return ErrorNumber(number).sentence if number in set(ErrorNumber) else f"iperf3 error {number}"


def refuse_by_number(number: ErrorNumber) -> Iperf3Refusal:
    """Return a refusal in the sentence of its number."""
    return Iperf3Refusal(number, number.sentence)
