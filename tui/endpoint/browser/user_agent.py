"""Browser and system by the User-Agent header: known words and a version, and nothing else of the text. Pure."""

import re
from typing import Final

_MAX_CHARACTERS: Final = 512
# The first that a header names counts: each of them also names those below it.
_BROWSERS: Final = {
    "Edg": "Edge",
    "OPR": "Opera",
    "SamsungBrowser": "Samsung",
    "Firefox": "Firefox",
    "FxiOS": "Firefox",
    "CriOS": "Chrome",
    "Chrome": "Chrome",
    "Version": "Safari",
}
_SYSTEMS: Final = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "CrOS": "ChromeOS",
    "Windows": "Windows",
    "Macintosh": "macOS",
    "Linux": "Linux",
}


def describe_browser(user_agent: str) -> str:
    """Return browser and system: `Chrome 156 on Android`; empty if neither is known."""
    text = user_agent[:_MAX_CHARACTERS]
    matches = ((name, re.search(rf"{mark}/(\d{{1,4}})", text, re.ASCII)) for mark, name in _BROWSERS.items())
    browser = next((f"{name} {match[1]}" for name, match in matches if match is not None), "")
    system = next((name for mark, name in _SYSTEMS.items() if mark in text), "")
    return " on ".join(filter(None, (browser, system)))
