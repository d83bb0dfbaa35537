"""The cause of a lost session, from the end that knows it.

Pure. Where one end aborts a connection, the other end sees it closed, and its own worker may report that before
the cause arrives.
"""

from typing import Final

from ..model.wording import EndText

CLOSED_BY_PEER: Final = "closed by the other end"

_Connection = tuple[str, int, int]


class SessionFailure:
    """The first session that was lost, and the most precise cause reported for it."""

    def __init__(self) -> None:
        self._connection: _Connection | None = None
        self._why = ""

    def __bool__(self) -> bool:
        """Return whether a session was lost."""
        return self._connection is not None

    def record(self, direction: str, session: int, generation: int, reason: str) -> None:
        """Record that a connection ended, with the reason that one end reports."""
        connection = (direction, session, generation)
        if self._connection is None or (connection == self._connection and self._why == CLOSED_BY_PEER):
            self._connection, self._why = connection, reason

    def __str__(self) -> str:
        if self._connection is None:
            return "no session was lost"
        direction, session, _generation = self._connection
        return EndText.SESSION_LOST.format(session=session, direction=direction, reason=self._why)
