"""Why a session was lost, in the words of the end that knows it.

Pure. Where one end gives a connection up, the other one sees it closed, and that may be heard of first: its own
worker is nearer than the other end's word.
"""

from typing import Final

from ..model.wording import EndText

CLOSED_BY_PEER: Final = "closed by the other end"

_Connection = tuple[str, int, int]


class SessionFailure:
    """The first session that was lost, and the best that is known of why."""

    def __init__(self) -> None:
        self._connection: _Connection | None = None
        self._why = ""

    def __bool__(self) -> bool:
        """Whether one was lost."""
        return self._connection is not None

    def record(self, direction: str, session: int, generation: int, reason: str) -> None:
        """Take in that a connection ended, and why, as one end tells it."""
        connection = (direction, session, generation)
        if self._connection is None or (connection == self._connection and self._why == CLOSED_BY_PEER):
            self._connection, self._why = connection, reason

    def __str__(self) -> str:
        if self._connection is None:
            return "no session was lost"
        direction, session, _generation = self._connection
        return EndText.SESSION_LOST.format(session=session, direction=direction, reason=self._why)
