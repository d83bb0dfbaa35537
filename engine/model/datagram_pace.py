"""Datagrams of a low rate: how small they are, and the rate at which a test would send too few of them. Pure."""

from typing import TYPE_CHECKING, Final

from .errors import PlanError

if TYPE_CHECKING:
    from .plan import Settings

MIN_DATAGRAM_BYTES: Final = 24  # the header of a payload datagram, protocol/datagrams.py
MAX_DATAGRAM_BYTES: Final = 65_507  # 65,535 without the headers of IPv4 and UDP
_SLOW_DATAGRAMS_S: Final = 10
_FEWEST_DATAGRAMS: Final = 2  # of a session: one says nothing of a rate
_SECOND_NS: Final = 1_000_000_000


def slow_datagram_bytes(settings: "Settings") -> int | None:
    """Return the most that a datagram may hold for several to go every second in each session; None without a rate.

    At 32 kb/s in 16 sessions, datagrams of 1,472 bytes would be 6 s apart.
    """
    if settings.rate_bit_s is None or settings.searches_rate:
        return None
    return max(MIN_DATAGRAM_BYTES, settings.rate_bit_s // (8 * settings.sessions * _SLOW_DATAGRAMS_S))


def check_datagram_pace(settings: "Settings", duration_ns: int | None) -> None:
    """Raise PlanError if the sessions would send no more than their first datagram."""
    size, rate = settings.datagram_bytes or slow_datagram_bytes(settings), settings.rate_bit_s
    if size is None or rate is None or duration_ns is None or settings.searches_rate:
        return
    each_s = 8 * size * settings.sessions / rate
    seconds = duration_ns / _SECOND_NS
    if each_s <= seconds / _FEWEST_DATAGRAMS:
        return
    raise PlanError(
        "rate",
        rate,
        f"each session would send one datagram of {size} bytes every {each_s:.3g} s, "
        f"fewer than {_FEWEST_DATAGRAMS} in {seconds:g} s; "
        "give a higher --rate, a smaller --datagram, fewer --sessions, or more --seconds",
    )
