"""What a run found, read from its document: of one that has just ended, or a stored one of any version. Pure.

`json_document` makes the document. Whatever else wants a figure of it reads it here, by its type. Reading never
fails: what an older linkgauge did not write, and what a damaged run log has instead, is unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from ..model.events import Reason

_MEGABIT: Final = 1e6
_TOO_MUCH: Final = 2.0**63  # no figure of a run; the run log's columns hold less


@dataclass(frozen=True, slots=True)
class MeasuredResult:
    """What arrived in a direction, or in both together; an unknown figure is None.

    `is_datagrams` says whether these were datagrams, and `loss` is the share of them that was lost.
    """

    bytes: int | None = None
    seconds: float | None = None
    bit_s: float | None = None
    transactions_s: float | None = None
    percent_of_expected: float | None = None
    is_datagrams: bool = False
    loss: float | None = None

    @classmethod
    def of(cls, value: object) -> Self | None:
        """Return a member of the document's `measured`; None where nothing was measured."""
        if not isinstance(value, dict) or not value:
            return None
        value = cast("dict[str, Any]", value)
        mbit_s, count = number_in(value, "mbit_s"), number_in(value, "bytes")
        lost_percent = number_in(value, "udp", "lost_percent")
        return cls(
            bytes=None if count is None else int(count),
            seconds=number_in(value, "seconds"),
            bit_s=None if mbit_s is None else mbit_s * _MEGABIT,
            transactions_s=number_in(value, "transactions_s"),
            percent_of_expected=number_in(value, "percent_of_expected"),
            is_datagrams=bool(value_in(value, "udp")),
            loss=None if lost_percent is None else lost_percent / 100,
        )


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    `detail` is of its end, and `why` has the codes of its findings, the strongest first. `resent` is the share of
    TCP's payload that was sent again.
    """

    verdict: str | None
    reason: Reason
    detail: str | None
    out: MeasuredResult | None
    in_: MeasuredResult | None
    total: MeasuredResult | None
    expected_bit_s: float | None
    warmup_s: float
    retransmits: int | None
    resent: float | None
    why: tuple[str, ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read a document; an end of an unknown reason is a failure."""
        reason = value_in(document, "ended", "reason")
        retransmits = number_in(document, "tcp", "retransmits")
        efficiency_percent = number_in(document, "tcp", "efficiency_percent")
        expected = (number_in(document, "expected", name, "mbit_s") for name in ("total", "out", "in"))
        mbit_s = next((rate for rate in expected if rate is not None), None)
        codes = (value_in(finding, "code") for finding in list_in(document, "why"))
        return cls(
            verdict=text_in(document, "verdict"),
            reason=next((each for each in Reason if each.value == reason), Reason.FAILED),
            detail=text_in(document, "ended", "detail"),
            out=MeasuredResult.of(value_in(document, "measured", "out")),
            in_=MeasuredResult.of(value_in(document, "measured", "in")),
            total=MeasuredResult.of(value_in(document, "measured", "total")),
            expected_bit_s=None if mbit_s is None else mbit_s * _MEGABIT,
            warmup_s=sum(number_in(period, "warmup_s") or 0 for period in list_in(document, "stretches")),
            retransmits=None if retransmits is None else int(retransmits),
            resent=None if efficiency_percent is None else 1 - efficiency_percent / 100,
            why=tuple(code for code in codes if isinstance(code, str)),
        )

    @property
    def worst_percent(self) -> float | None:
        """The percentage of the worst direction that has an expected rate."""
        measured = (self.out, self.in_, self.total)
        percents = [each.percent_of_expected for each in measured if each is not None]
        return min((percent for percent in percents if percent is not None), default=None)

    @property
    def loss(self) -> float | None:
        """What it lost as a share of what it sent; of TCP, what was sent again. None for transactions."""
        if self.total is None or self.total.transactions_s is not None:
            return None
        return self.total.loss if self.total.is_datagrams else self.resent


def value_in(document: object, *keys: str) -> Any:
    """Return a member of a document, by the names that lead to it; None where there is none."""
    for key in keys:
        document = cast("Mapping[str, Any]", document).get(key) if isinstance(document, Mapping) else None
    return document


def number_in(document: object, *keys: str) -> float | None:
    """Return a member that is a finite number; None for anything else."""
    value = value_in(document, *keys)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and abs(value) < _TOO_MUCH else None


def text_in(document: object, *keys: str) -> str | None:
    """Return a member that is a text; None for anything else."""
    value = value_in(document, *keys)
    return value if isinstance(value, str) else None


def cell_in(document: object, *keys: str) -> str | float | None:
    """Return a member that is a text, a number or a truth value; None for anything else."""
    value = value_in(document, *keys)
    return value if isinstance(value, str | int | float) else None


def list_in(document: object, *keys: str) -> list[Any]:
    """Return a member that is a list; an empty one for anything else."""
    value = value_in(document, *keys)
    return cast("list[Any]", value) if isinstance(value, list) else []
