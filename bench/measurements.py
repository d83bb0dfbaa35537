"""What a benchmark measured, as values: every round of every entry, and the machine. Read and written as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal, cast

Role = Literal["ours", "peer", "floor"]


@dataclass(frozen=True)
class Round:
    """One measurement: the rate in the entry's unit, and CPU milliseconds for each MiB or transaction.

    `stopped_rate` is the rate of the same connections while the entry's own process was stopped, `own_cores` the
    share of a core that this process took, and `screen_byte_s` what it wrote to its terminal. Of datagrams,
    `limit_bit_s` is the rate that the sender was limited to, `lost_share` what did not arrive, and `skipped` how
    many the sender left out because it was late.
    """

    rate: float
    cpu_ms: float | None = None
    stopped_rate: float | None = None
    own_cores: float | None = None
    screen_byte_s: float | None = None
    limit_bit_s: int | None = None
    lost_share: float | None = None
    skipped: int | None = None


@dataclass
class EntryResult:
    """The rounds of one entry by their number: one that was broken off has none.

    `failure` has the words of an entry that failed, `retries` those of each round that succeeded the second time.
    One with `requested_bit_s` was to send at that rate, and is compared with it.
    """

    label: str
    role: Role
    unit: str
    at_least: float | None = None
    cpu_at_most: float | None = None
    failure: str | None = None
    retries: list[str] = field(default_factory=list[str])
    rounds: dict[int, Round] = field(default_factory=dict[int, Round])
    requested_bit_s: int | None = None

    @property
    def median_rate(self) -> float | None:
        """The median rate; None without a round."""
        return median(each.rate for each in self.rounds.values()) if self.rounds else None


@dataclass
class CaseResult:
    """A case: our entry first, then those that it is compared with, then the floors."""

    name: str
    title: str
    entries: list[EntryResult]

    @property
    def ours(self) -> EntryResult:
        """The entry that the others are compared with."""
        return self.entries[0]

    @property
    def floor_rate(self) -> float | None:
        """The median rate of the fastest floor; None if no floor was measured."""
        rates = [entry.median_rate for entry in self.entries if entry.role == "floor"]
        return max((rate for rate in rates if rate is not None), default=None)


@dataclass
class Results:
    """A whole benchmark: when, where and how it was measured, and its cases.

    `machine` and `versions` are names with texts; `is_partial` is True if only some cases were wanted.
    """

    date: str
    machine: dict[str, str]
    versions: dict[str, str]
    missing: list[str]
    rounds: int
    seconds: int
    is_partial: bool
    is_interrupted: bool = False
    elapsed_s: float = 0.0
    repeated: int = 0
    disturbed: int = 0
    memory_copy_bit_s: float | None = None
    cases: list[CaseResult] = field(default_factory=list[CaseResult])

    def save(self, path: Path) -> None:
        """Write the results as JSON, in place of an earlier file."""
        draft = path.with_name(f"{path.name}.new")
        draft.write_text(json.dumps(asdict(self), indent=1, allow_nan=False) + "\n", encoding="utf-8")
        draft.replace(path)


def load_results(path: Path) -> Results:
    """Read results from a file of `Results.save`. Raises OSError, and ValueError if it is no such file."""
    try:
        value = cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
        cases = [_case(case) for case in value.pop("cases")]
        return Results(**value, cases=cases)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} has no results of a benchmark") from error


def _case(value: dict[str, Any]) -> CaseResult:
    return CaseResult(value["name"], value["title"], [_entry(entry) for entry in value["entries"]])


def _entry(value: dict[str, Any]) -> EntryResult:
    rounds = {int(number): Round(**each) for number, each in value.pop("rounds").items()}
    return EntryResult(**value, rounds=rounds)


def known(values: Sequence[float | None]) -> list[float]:
    """Return the values that are known."""
    return [value for value in values if value is not None]
