"""Results of a benchmark for tests: small ones, made of rates."""

from collections.abc import Sequence

from measurements import CaseResult, EntryResult, Results, Role, Round


def entry(
    label: str,
    role: Role,
    rates: Sequence[float],
    *,
    at_least: float | None = None,
    cpu_at_most: float | None = None,
    unit: str = "bit/s",
) -> EntryResult:
    """Return an entry with a round for each rate, which costs 1 ms for each MiB."""
    rounds = {number: Round(rate, 1.0) for number, rate in enumerate(rates)}
    return EntryResult(label, role, unit, at_least, cpu_at_most, rounds=rounds)


def case(name: str, *entries: EntryResult) -> CaseResult:
    """Return a case of entries, ours first."""
    return CaseResult(name, f"the case {name}", list(entries))


def results(*cases: CaseResult) -> Results:
    """Return the results of a whole benchmark."""
    return Results(
        date="2026-01-02",
        machine={"CPU": "A CPU", "cores": "2 virtual", "kernel": "Linux 6.1", "congestion control": "cubic"},
        versions={"linkgauge": "0.1.0", "iperf3": "3.21", "neper": "1.1.0"},
        missing=["ethr"],
        rounds=3,
        seconds=2,
        is_partial=False,
        elapsed_s=1440.0,
        repeated=4,
        disturbed=1,
        memory_copy_bit_s=80e9,
        cases=list(cases),
    )
