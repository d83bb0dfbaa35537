"""The end of a run: its reason for programs, its sentence for the user.

Pure. The engine composes the sentences: `EndText.FAR_GONE.format(error=...)`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why a run ended."""

    COMPLETED = "completed"  # its duration was up
    STOPPED = "stopped"  # the user stopped it
    INTERRUPTED = "interrupted"  # a signal stopped the near end
    PEER_STOPPED = "peer_stopped"  # the far end stopped it
    PEER_LOST = "peer_lost"  # the far end vanished
    SESSION_LOST = "session_lost"  # a data connection broke
    WORKER_LOST = "worker_lost"  # a worker process ended by itself
    FAILED = "failed"  # anything else that broke

    @property
    def is_regular(self) -> bool:
        """Whether the run ended as the user wanted."""
        return self in {Reason.COMPLETED, Reason.STOPPED}

    @property
    def is_fault(self) -> bool:
        """Whether the run broke off: neither its own end nor the user, by a key or a signal, ended it."""
        return self not in {Reason.COMPLETED, Reason.STOPPED, Reason.INTERRUPTED}


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run: the reason for programs, the detail for the user."""

    reason: Reason
    detail: str


STILL_RUNNING: Final = RunEnd(Reason.INTERRUPTED, "still running")
"""In place of an end, for a run of the run log whose process is alive. No end ever sends it."""


class EndText(StrEnum):
    """Details of the end of a run: the text of `RunEnd.detail`."""

    DURATION_UP = "finished"
    SEARCH_DONE = "the search for the capacity has ended"
    STOPPED_HERE = "stopped by the user"
    CONNECTION_ENDED = "the connection ended"
    RUN_CLOSED = "the test was closed"
    RUN_ABANDONED = "the test was abandoned"
    LOG_CUT_OFF = "interrupted before its reason was recorded"
    SESSIONS_SLOW = "the link is too slow or busy to open all in {seconds} s; give fewer --sessions"
    SESSION_UNOPENED = "no data connection to {peer}: {reason}"
    SESSION_LOST = "session {session} {direction} was lost: {reason}"
    NEAR_WORKER_LOST = "local: {reason}"
    FAR_WORKER_LOST = "remote: {reason}"
    FAR_GONE = "the connection to the remote host was lost: {error}"
    FAR_SILENT = "the remote host has not answered for {seconds:.0f} s"
    FAR_NOT_UNDERSTOOD = "the remote host broke the protocol: {error}"
    END_UNCONFIRMED = "the remote host did not confirm the end of the test"
    FAR_SHUTDOWN = "the remote endpoint is shutting down"
    IPERF3_ENDED = "the iperf3 server {reason}"
    SERVER_ENDED = "the server {reason} after {seconds:.1f} s"
    SERVER_SILENT = "no payload has moved for {seconds:.0f} s: the server neither sends nor takes any"
    NEAR_GONE = "the connection to the client was lost: {error}"
    NEAR_SILENT = "the client has not answered for {seconds:.0f} s"
    NEAR_NOT_READING = "the client does not read its samples"
    START_OVERDUE = "the client did not start the test in time"
    PAGE_GONE = "the page was closed, or its connection was lost"
    PAGE_UNOPENED = "the page did not open its connections within {seconds:.0f} s: show it on the device again"
    PAGE_BLOCKED = "the page could not open the connection: something between it and this host forbids further ones"
    PAGE_STOPPED = "stopped on the device"
    CLIENT_STILL = "the client has neither read nor sent for long"
    PAGE_SILENT = "the page has not answered for {seconds:.0f} s"
    STOP_OVERDUE = "the client did not stop the test at the end of its duration"
