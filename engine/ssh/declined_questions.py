"""ssh's questions if nobody can answer them: declined, and named in the error of the login."""

import re
from typing import Final

from ..model.serialization import make_printable

_PASSPHRASE: Final = re.compile(r"passphrase for (?:key )?'?([^':]+)", re.IGNORECASE)
_MOST_QUESTIONS: Final = 20


class DeclinedQuestions:
    """Declines every question of a login: pass `decline` to `serve_askpass`."""

    def __init__(self) -> None:
        self._questions: list[str] = []

    async def decline(self, question: str) -> None:
        """Note a question, without an answer."""
        if len(self._questions) < _MOST_QUESTIONS:
            self._questions.append(question)

    @property
    def locked_key(self) -> str | None:
        """The file of the first key whose passphrase ssh has asked for, as printable text; None without one."""
        keys = (make_printable(found[1]) for text in self._questions if (found := _PASSPHRASE.search(text)))
        return next(keys, None)
