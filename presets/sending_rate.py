"""The rate that a UDP test sends at: a number, the preset's expected rate, the receiver's, none, or a search's.

Pure. A stream adapts to the path. Datagrams need a rate, and a rate that is too high floods the link.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from ..engine.model.errors import PlanError
from ..engine.model.plan import MIN_RATE_BIT_S, Settings
from .number_text import format_rate

if TYPE_CHECKING:  # the command line reads rates before it needs events
    from ..engine.model.expected_rate import Expectation

RateWord = Literal["expected", "search", "max", "flood"]
SendingRate = int | RateWord
RATE_WORDS: Final[tuple[RateWord, ...]] = ("expected", "search", "max", "flood")
DEFAULT_RATE_BIT_S: Final = 10_000_000
_SEARCH_SHARE: Final = 5  # a search starts at a fifth of the expected rate; obudpst advises 10 to 20 %

FindExpectation = Callable[[Settings], "Expectation"]
"""Function that returns the expected rates of UDP payload under these settings."""


def expected_rate_bit_s(settings: Settings, find: FindExpectation) -> int | None:
    """Return the expected UDP payload rate of one direction of these settings; None without one.

    Two directions send at one rate: the lower of their two, or half of the total if only that is known. Datagrams
    of a low rate are small, and a line carries less of their payload.
    """
    rate = _lowest_rate(settings.with_changes(rate_bit_s="max"), find)
    if rate is None or rate < MIN_RATE_BIT_S:
        return rate
    return _lowest_rate(settings.with_changes(rate_bit_s=rate), find)


def _lowest_rate(settings: Settings, find: FindExpectation) -> int | None:
    expectation = find(settings)
    flows = [expectation[flow] for flow in settings.direction.flows]
    known = [rate.bit_s for rate in flows if rate is not None]
    if len(known) == len(flows):
        return round(min(known))
    total = expectation[settings.direction]
    return None if total is None else round(total.bit_s / len(flows))


def choose_rate(
    settings: Settings, rate: SendingRate | None, find: FindExpectation, preset_id: str | None = None
) -> tuple[Settings, str]:
    """Return the settings with a rate, and a notice about a rate that the user did not give, else an empty text.

    Args:
        settings: The settings of the test.
        rate: The requested rate; None is the expected rate, or 10 Mb/s if none is expected.
        find: Returns the expected rates under given settings.
        preset_id: The preset of these rates.

    Raises:
        PlanError: for `expected` without an expected rate, and for a search in several sessions.
    """
    if isinstance(rate, int):
        return settings.with_changes(rate_bit_s=rate), ""
    if rate == "max" or rate == "flood":  # noqa: PLR1714 - a set does not narrow the type
        return settings.with_changes(rate_bit_s=rate), ""
    expected = expected_rate_bit_s(settings, find)
    if rate == "search":
        start = DEFAULT_RATE_BIT_S if expected is None else max(expected // _SEARCH_SHARE, 1_000)
        return replace(settings, rate_bit_s=start, searches_rate=True, floods=False), ""
    if expected is not None:
        notice = f"sending {format_rate(expected)}, the expected UDP payload of {preset_id or 'the link'}"
        return settings.with_changes(rate_bit_s=expected), notice
    if rate == "expected":
        allowed = "no UDP rate is known for this link: give a rate such as 100M, or a preset that has one"
        raise PlanError("rate", "expected", allowed)
    notice = f"sending {format_rate(DEFAULT_RATE_BIT_S)}, since no UDP rate is expected; --rate gives another"
    return settings.with_changes(rate_bit_s=DEFAULT_RATE_BIT_S), notice
