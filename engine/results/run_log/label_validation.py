"""Labels and notes of runs: one line each, of limited length. Pure."""

from typing import Final

from ...model.errors import PlanError
from ...model.serialization import make_printable

MAX_LABEL_CHARACTERS: Final = 80  # one line of a list
MAX_NOTE_CHARACTERS: Final = 2_000  # a few sentences


def validate_label(text: str | None) -> str | None:
    """Return the label to store, None for an empty one; raise PlanError if it is too long."""
    return _validate(text, "label", MAX_LABEL_CHARACTERS)


def validate_note(text: str | None) -> str | None:
    """Return the note to store, on one line; raise PlanError if it is too long."""
    return _validate(text, "note", MAX_NOTE_CHARACTERS)


def truncate_label(text: str | None) -> str | None:
    """Return the label, or the name of a group, to store; cut it if it is too long."""
    return _one_line(text or "")[:MAX_LABEL_CHARACTERS] or None


def _validate(text: str | None, field: str, limit: int) -> str | None:
    words = _one_line(text or "")
    if len(words) > limit:
        raise PlanError(field, f"of {len(words)} characters", f"give at most {limit}")
    return words or None


def _one_line(text: str) -> str:
    return make_printable(" ".join(text.split()))
