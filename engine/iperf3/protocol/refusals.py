"""The numbers by which an iperf3 server refuses or ends a test, and what they mean for a person.

Pure. A stock client has a sentence of its own for each number that its version knows.
"""

from enum import IntEnum
from typing import Final

from ...model.errors import Iperf3Refusal


class ErrorNumber(IntEnum):
    """The reason of a refusal, as `iperf_api.h` numbers them."""

    DURATION = 5
    STREAMS = 6
    BLOCK_SIZE = 7
    WINDOW_SIZE = 8
    MSS = 10
    OMIT = 12
    BURST = 15
    END_CONDITIONS = 16
    DATAGRAM_SIZE = 20
    TOS = 21
    BOTH_DIRECTIONS = 25
    TOTAL_RATE = 27
    MAX_DURATION = 37
    COOKIE = 106
    CONTROL_READ = 108
    CONTROL_CLOSED = 109
    MESSAGE = 110
    PARAMETERS = 114
    RESULTS = 117
    CLIENT_TERMINATED = 119
    SERVER_TERMINATED = 120
    ACCESS_DENIED = 121
    SET_MSS = 123
    PROTOCOL = 131
    CONGESTION = 134
    WINDOW_GRANTED = 141
    AUTHORIZATION = 142
    NO_DATA = 144
    TIME_EXPIRED = 160
    CREATE_STREAM = 200
    STREAM_ACCEPT = 204
    STREAM_WRITE = 205
    STREAM_READ = 206
    STREAM_ID = 208


_SENTENCES: Final = {
    ErrorNumber.DURATION: "the duration is longer than it allows",
    ErrorNumber.STREAMS: "it does not allow so many sessions",
    ErrorNumber.BLOCK_SIZE: "it does not allow this block size",
    ErrorNumber.WINDOW_SIZE: "the window is larger than it allows",
    ErrorNumber.MSS: "it does not allow this MSS",
    ErrorNumber.OMIT: "the warm-up is longer than it allows",
    ErrorNumber.BURST: "it does not allow so many blocks in a burst",
    ErrorNumber.END_CONDITIONS: "it takes one of duration, bytes and blocks",
    ErrorNumber.DATAGRAM_SIZE: "it does not allow this size of datagrams",
    ErrorNumber.TOS: "it does not allow this DSCP",
    ErrorNumber.BOTH_DIRECTIONS: "a test is either reversed or bidirectional",
    ErrorNumber.TOTAL_RATE: "the rate of all sessions together is above its limit",
    ErrorNumber.MAX_DURATION: "the duration is longer than its operator allows",
    ErrorNumber.COOKIE: "it received no cookie",
    ErrorNumber.CONTROL_READ: "it could not read from the control connection",
    ErrorNumber.CONTROL_CLOSED: "it lost the control connection",
    ErrorNumber.MESSAGE: "it received an unknown message",
    ErrorNumber.PARAMETERS: "it does not accept the parameters of the test",
    ErrorNumber.RESULTS: "it could not read the results of this end",
    ErrorNumber.CLIENT_TERMINATED: "the client stopped the test",
    ErrorNumber.SERVER_TERMINATED: "it was stopped during the test",
    ErrorNumber.ACCESS_DENIED: "it is busy with another test",
    ErrorNumber.SET_MSS: "its kernel does not accept this MSS",
    ErrorNumber.PROTOCOL: "it does not have this protocol",
    ErrorNumber.CONGESTION: "its kernel does not have this congestion control",
    ErrorNumber.WINDOW_GRANTED: "its kernel does not grant this window",
    ErrorNumber.AUTHORIZATION: "it does not accept the user name and password",
    ErrorNumber.NO_DATA: "it received no data for too long",
    ErrorNumber.TIME_EXPIRED: "the test lasted longer than it waits",
    ErrorNumber.CREATE_STREAM: "it could not create a session",
    ErrorNumber.STREAM_ACCEPT: "it could not accept a session",
    ErrorNumber.STREAM_WRITE: "it could not send on a session",
    ErrorNumber.STREAM_READ: "it could not receive on a session",
    ErrorNumber.STREAM_ID: "it does not know a session that the results name",
}


def explain_number(number: int | None) -> str:
    """Return the reason of a refusal for a person, without subject; None is an unknown number."""
    if number is None:
        return "it gave no reason"
    sentence = _SENTENCES.get(ErrorNumber(number)) if number in set(ErrorNumber) else None
    return sentence or f"iperf3 error {number}"


def refuse_by_number(number: ErrorNumber) -> Iperf3Refusal:
    """Return a refusal in the sentence of its number."""
    return Iperf3Refusal(number, explain_number(number))
