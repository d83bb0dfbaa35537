"""The highest rate at which a tool loses at most 1 % of its datagrams: one search for all tools.

A tool that loses no more without a limit is measured so. The rate of another one is searched before its rounds,
by halving the logarithm of the range from a 64th of what it sends without a limit up to that: six steps, to within
7 %. A round that loses more than 1 % at its rate is measured again at nine tenths of it, then at ever fewer.
"""

from collections.abc import Callable
from math import sqrt

from measurements import Round
from rounds import RoundError
from tools import Entry

MOST_LOST = 0.01
SEARCH_ROUNDS = 7  # one without a limit, then the steps
_RANGE = 64
_NEXT_RATE = 0.9
_MOST_RATES = 10  # down to a hundredth

Measure = Callable[[Entry], Round]


def find_lossless(entry: Entry, measure: Measure) -> Entry:
    """Return the entry with its sender limited to the highest rate that is not lost; as it is if it loses nothing.

    Raises:
        RoundError: A round of the search failed.
    """
    first = measure(entry)
    if not _loses(first):
        return entry
    high = _sent_bit_s(first)
    low = high / _RANGE
    for _ in range(SEARCH_ROUNDS - 1):
        middle = sqrt(low * high)
        if _loses(measure(entry.at_rate(middle))):
            high = middle
        else:
            low = middle
    return entry.at_rate(low)


def measure_lossless(entry: Entry, measure: Measure) -> Round:
    """Return a round that loses at most 1 %, at the entry's rate or the next one below it.

    Raises:
        RoundError: A round failed, or each loses more.
    """
    for number in range(_MOST_RATES):
        measured = measure(entry)
        if not _loses(measured):
            return measured
        entry = entry.at_rate(_NEXT_RATE ** (number + 1) * (entry.limit_bit_s or _sent_bit_s(measured)))
    raise RoundError(f"loses more than {MOST_LOST:.0%} of its datagrams, also at {entry.limit_bit_s} bit/s")


def _loses(measured: Round) -> bool:
    return (measured.lost_share or 0.0) > MOST_LOST


def _sent_bit_s(measured: Round) -> float:
    return measured.rate / (1 - (measured.lost_share or 0.0))
