"""What a person writes beside a run: a label, to find it by, and a note. Pure."""

from typing import Final

from .errors import PlanError
from .serialization import make_printable

MAX_LABEL_CHARACTERS: Final = 80  # one line of a list
MAX_NOTE_CHARACTERS: Final = 2_000  # a few sentences


def validate_label(text: str | None) -> str | None:
    """Return a label as it is kept; None, or nothing but spaces, is none. Raises PlanError where it is too long."""
    return _checked(text, "label", MAX_LABEL_CHARACTERS)


def validate_note(text: str | None) -> str | None:
    """Return a note as it is kept, on one line; raise PlanError where it is too long."""
    return _checked(text, "note", MAX_NOTE_CHARACTERS)


def truncate_label(text: str | None) -> str | None:
    """Return a label, or the name of a group, as it is kept; one that is too long is cut."""
    return _one_line(text or "")[:MAX_LABEL_CHARACTERS] or None


def _checked(text: str | None, what: str, limit: int) -> str | None:
    words = _one_line(text or "")
    if len(words) > limit:
        raise PlanError(what, f"{len(words)} characters", f"give at most {limit}")
    return words or None


def _one_line(text: str) -> str:
    return make_printable(" ".join(text.split()))
