"""What a person writes beside a run: a label, to find it by, and a note. Pure."""

from typing import Final

from .errors import PlanError
from .serialization import printable

LABEL_LIMIT: Final = 80  # one line of a list
NOTE_LIMIT: Final = 2_000  # a few sentences


def checked_label(text: str | None) -> str | None:
    """Return a label as it is kept; None, or nothing but spaces, is none. Raises PlanError where it is too long."""
    return _checked(text, "label", LABEL_LIMIT)


def checked_note(text: str | None) -> str | None:
    """Return a note as it is kept, on one line; raise PlanError where it is too long."""
    return _checked(text, "note", NOTE_LIMIT)


def cut_label(text: str | None) -> str | None:
    """Return a label, or the name of a group, as it is kept; one that is too long is cut."""
    return _one_line(text or "")[:LABEL_LIMIT] or None


def _checked(text: str | None, what: str, limit: int) -> str | None:
    words = _one_line(text or "")
    if len(words) > limit:
        raise PlanError(what, f"{len(words)} characters", f"give at most {limit}")
    return words or None


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))
