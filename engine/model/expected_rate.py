"""The rate that a link should reach, for each direction.

Pure. An event of each run has it (`events.Started`), so that a stored run is judged as it was when it ran.
"""

from dataclasses import dataclass
from typing import Final, Literal

from .directions import PerDirection

# Bytes that were delayed and arrive at once exceed the rate of a wire a little for a moment.
_EXCESS: Final = 1.2


@dataclass(frozen=True, slots=True)
class ExpectedRate:
    """A rate that a link should reach, and its source.

    For transactions, `transactions_s` is the expected rate and `bit_s` the payload that they carry. `most_bit_s` is
    the capacity of the wire, if it can be computed.
    """

    bit_s: int
    basis: Literal["documented", "computed"]
    source: str
    transactions_s: float | None = None
    most_bit_s: int | None = None

    def is_exceeded_by(self, bit_s: float | None) -> bool:
        """Return whether a rate is more than such a link can carry: this must be another link."""
        return bit_s is not None and self.most_bit_s is not None and bit_s > _EXCESS * self.most_bit_s


@dataclass(frozen=True, slots=True)
class Expectation(PerDirection[ExpectedRate | None]):
    """The rates to expect of each direction and of both together; None if there is no expectation."""

    out: ExpectedRate | None = None
    in_: ExpectedRate | None = None
    total: ExpectedRate | None = None
