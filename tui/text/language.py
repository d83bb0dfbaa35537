"""The language of the presets' names: the requested one, else that of the locale, else English."""

import os
import re
from collections.abc import Mapping
from typing import Final

from ...engine.model.errors import PlanError

LANGUAGES: Final = ("en", "ja")
_CODE: Final = re.compile("[a-z]+", re.ASCII)
_LOCALE: Final = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set counts, as in POSIX


def resolve_language(requested: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the code of the language. Raises PlanError for a requested language without names."""
    if requested is not None:
        if requested.lower() not in LANGUAGES:
            raise PlanError("language", repr(requested), f"give {' or '.join(LANGUAGES)}")
        return requested.lower()
    locale = next(filter(None, (environment.get(name) for name in _LOCALE)), "")
    code = _CODE.match(locale)
    return code[0] if code is not None and code[0] in LANGUAGES else "en"
