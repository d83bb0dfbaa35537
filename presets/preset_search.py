"""Search presets by the names that users type: `10g`, `gigabit`, `25gbe`, `jumbo`, `oc-3`, `auto`.

Pure. A preset matches a query if all its words do. A speed (`10g`, `10 gb/s`, `10gbase-t`) matches the line
rate of the link, so that `5g` does not find 25 Gb/s; any other word is looked up in the preset's names.
"""

import re
from collections.abc import Iterable
from typing import Final
from unicodedata import normalize

from .preset import LinkSpec, Preset

AUTO_SEARCH_TEXT: Final = "auto automatic detect: by the network interfaces (nic) of both ends"
"""The search text of the choice that selects the preset by both ends' interfaces."""

_UNITS_MBIT: Final = {"m": 1.0, "g": 1e3, "t": 1e6}
# A number with a unit of a rate. After the first letter come the usual endings: gb, gbe, gbit/s, gige, gigabit, ...
_SPEED: Final = re.compile(
    r"(?<!\S)(\d+(?:\.\d+)?)[ -]?"
    r"(?:([mgt])(?:eg|ega|ig|iga|era)?(?:be?|a?bits?|e|bps)?(?:/s|ps)?(?:[ -]?ethernet)?|(g?)base-?\w*)"
    r"(?!\S)"
)
_SPEED_WORDS: Final = {
    "gig": 1_000,
    "giga": 1_000,
    "gigabit": 1_000,
    "gige": 1_000,
    "gigabitethernet": 1_000,
    "fastethernet": 100,
    "oc3": 155,
    "oc-3": 155,
    "stm-1": 155,
    "oc12": 622,
    "oc-12": 622,
    "stm-4": 622,
}
_FAST_ETHERNET: Final = re.compile(r"\bfast ethernet\b")
_DECIMAL_COMMA: Final = re.compile(r"(?<=\d),(?=\d)")
_PRIVATE_DIGITS: Final = {ord(digit): 0xE000 + int(digit) for digit in "0123456789"}
_JUMBO_BYTES: Final = range(8_000, 9_217)
# More names of a preset, by a word of its own ones.
_ALIASES: Final = {
    "aws": "amazon ec2",
    "google": "gcp gce",
    "wireguard": "wg vpn",
    "pppoe": "dsl",
    "loopback": "localhost lo self",
    "lpar": "powervm ibm",
    "z/vm": "zvm ibm mainframe",
    "aix": "ibm",
    "modern": "today",
}
_UNKNOWN_LINKS: Final = re.compile(r"\b(wi-?fi|wlan|wireless|802\.11\w*|lte|infiniband)\b")


def search_text(preset: Preset, language: str = "en") -> str:
    """Return the text that queries are compared with: a preset's names, aliases and line rate."""
    names = (preset.id, preset.name, preset.name_in(language), preset.family, preset.source.title)
    text = _fold(" ".join(names))
    aliases = [alias for word, alias in _ALIASES.items() if word in text]
    return " ".join([text, *aliases, *_link_words(preset.link)])


def matches_query(text: str, query: str) -> bool:
    """Return whether all words of a query are in a search text."""
    return all(term in text for term in _terms(query))


def find_presets(presets: Iterable[Preset], query: str, language: str = "en") -> tuple[Preset, ...]:
    """Return the presets that match a query, in their order."""
    terms = _terms(query)
    return tuple(p for p in presets if all(term in text for text in [search_text(p, language)] for term in terms))


def unknown_link_hint(query: str) -> str:
    """Return a hint if a query names a kind of link without a preset; else an empty text."""
    match = _UNKNOWN_LINKS.search(_fold(query))
    if match is None:
        return ""
    return (
        f"{match[0]} has no fixed rate, so it has no preset: choose auto and give --line-rate, or test without one"
    )


def _terms(query: str) -> list[str]:
    """Return the parts of a search text that a query asks for."""
    text = _DECIMAL_COMMA.sub(".", _fold(query)).replace(",", " ")
    text = _FAST_ETHERNET.sub("fastethernet", text)
    terms: list[str] = []

    def take_speed(match: re.Match[str]) -> str:
        unit = _UNITS_MBIT[match[2]] if match[2] else _UNITS_MBIT["g" if match[3] else "m"]
        terms.append(_speed_term(float(match[1]) * unit))
        return ""

    words = _SPEED.sub(take_speed, text).split()
    return terms + [_speed_term(_SPEED_WORDS[word]) if word in _SPEED_WORDS else word for word in words]


def _link_words(link: LinkSpec) -> Iterable[str]:
    """Yield the words for a link's line rate and MTU."""
    if link.line_rate_bit_s is not None:
        yield _speed_term(link.line_rate_bit_s / 1e6)
    if link.mtu_bytes is not None:
        yield f"mtu{link.mtu_bytes}"
        if link.framing == "ethernet" and link.mtu_bytes in _JUMBO_BYTES:
            yield "jumbo 9k"
    if link.duplex is not None:
        yield f"{link.duplex}-duplex {link.duplex[0]}dx"


def _speed_term(mbit_s: float) -> str:
    """Return a line rate as a word of search texts, without decimals: ATM's 155.52 Mb/s is called 155.

    Its digits are private characters, so that a number in a query does not match them.
    """
    return f"<{str(int(mbit_s)).translate(_PRIVATE_DIGITS)}>"


def _fold(text: str) -> str:
    """Return text in the form for comparison: `ＭＴＵ` is `mtu`."""
    return normalize("NFKC", text).casefold()
