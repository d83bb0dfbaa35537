"""How many segments a sender's TCP sends again at once: sample by sample, over all sessions of a direction.

Chance takes single packets, so their number in a sample varies about as much as its mean. A full queue, or a
policer with an empty bucket, takes many at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_OUTLIERS: Final = 2


def _largest(counts: Sequence[int]) -> list[int]:
    return sorted(counts, reverse=True)[:_OUTLIERS]


@dataclass(slots=True)
class LostAtOnce:
    """The segments sent again in each sample: their sum, the sum of their squares, and the largest numbers.

    `lossy` of the `samples` had any, and the last `quiet` samples had none.
    """

    samples: int = 0
    lossy: int = 0
    quiet: int = 0
    lost: int = 0
    squares: int = 0
    largest: list[int] = field(default_factory=list[int])

    def note_lost(self, lost: int) -> None:
        """Add a sample with its number of segments that were sent again."""
        self.extend(LostAtOnce(1, int(lost > 0), int(not lost), lost, lost * lost, [lost]))

    def extend(self, other: "LostAtOnce") -> None:
        """Add the samples of a time that followed, or of another direction."""
        self.quiet = other.quiet + (0 if other.lossy else self.quiet)
        self.samples += other.samples
        self.lossy += other.lossy
        self.lost += other.lost
        self.squares += other.squares
        self.largest = _largest([*self.largest, *other.largest])

    @property
    def lossy_share(self) -> float | None:
        """The share of samples in which something was sent again; None without samples."""
        return self.lossy / self.samples if self.samples else None

    @property
    def quiet_share(self) -> float | None:
        """The share of samples after the last one in which something was sent again; None without samples."""
        return self.quiet / self.samples if self.samples else None

    @property
    def dispersion(self) -> float | None:
        """The variance of the segments sent again in a sample, as a share of their mean; None without any.

        It is about 1 if each packet is lost by chance, and large if many are lost at once, again and again. The two
        largest samples are left out: a slow start that ends in a queue loses much at once.
        """
        samples, lost = self.samples - len(self.largest), self.lost - sum(self.largest)
        if samples < _OUTLIERS or lost <= 0:
            return None
        return (self.squares - sum(each * each for each in self.largest)) / lost - lost / samples
