"""A preset made out of a run reads back as what the run measured."""

import tempfile
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.errors import LinkgaugeError, PlanError
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.summary import CpuSummary, Measurement, Period, Summary, TcpSummary
from linkgauge.presets.baseline import baseline_toml
from linkgauge.presets.catalog import Catalog, PresetProblem, load_catalog, parse_preset_file
from linkgauge.presets.expectation import find_expectation
from linkgauge.presets.preset import LinkSpec

CPU = CpuSummary(None, None, None, None)
TCP = TcpSummary(None, None, None, None, None, None)


def period(direction: Direction, sessions: int, out: int | None = None, in_: int | None = None) -> Period:
    """Return a period of eight seconds at these rates."""
    rates = [None if bit_s is None else Measurement(bit_s, 8 * SECOND_NS) for bit_s in (out, in_, total(out, in_))]
    return Period(Settings(direction, sessions), Expectation(), PerDirection(*rates))


def total(*rates: int | None) -> int | None:
    """Return the sum of the known rates; None without any."""
    known = [bit_s for bit_s in rates if bit_s is not None]
    return sum(known) if known else None


def run(*periods: Period) -> Summary:
    """Return a run of these periods."""
    end = RunEnd(Reason.COMPLETED, "its time was up")
    return Summary(Plan(), PerDirection(None, None, None), Expectation(), periods, CPU, CPU, TCP, (), end)


def write(summary: Summary, **given_: Any) -> str:
    """Return the file of a run's preset."""
    named = {"preset_id": "mine", "name": "Mine", "run_id": "7", "started_utc": "2024-05-01T10:00:00Z"}
    return baseline_toml(summary, **{**named, **given_})


def read(text: str) -> Catalog:
    """Return the catalogue with this file in it."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "mine.toml").write_text(text, encoding="utf-8")
        return load_catalog([Path(directory)])


def test_a_preset_of_a_run_expects_the_measured_rate() -> None:
    """To the bit, with the run as its source."""
    catalog = read(write(run(period(Direction.OUT, 1, out=941_480_123))))
    assert catalog.problems == ()
    got = find_expectation(catalog.find("mine"), Settings(Direction.OUT))
    assert got.out
    assert (got.out.bit_s, got.out.basis) == (941_480_123, "documented")
    assert got.out.source == "run 7 of 2024-05-01T10:00:00Z"
    assert find_expectation(catalog.find("mine"), Settings(Direction.IN)) == Expectation()


def test_every_period_gives_its_rate_and_the_later_of_equal_ones_counts() -> None:
    """A run whose toggles were changed is a table of several rows."""
    summary = run(
        period(Direction.OUT, 1, out=500_000_000),
        period(Direction.OUT, 5, out=900_000_000),
        period(Direction.DUPLEX, 5, out=800_000_000, in_=700_000_000),
        period(Direction.OUT, 1, out=600_000_000),
    )
    mine = read(write(summary)).find("mine")
    assert [(r.flow, r.sessions, mine.rate_bit_s(r)) for r in mine.rates] == [
        ("out", 1, 600_000_000),
        ("out", 5, 900_000_000),
        ("duplex", 5, 1_500_000_000),
    ]


@pytest.mark.parametrize(
    "periods",
    [(), (period(Direction.OUT, 1),), (period(Direction.OUT, 1, out=0),), (period(Direction.DUPLEX, 1, out=9),)],
)
def test_a_run_that_measured_nothing_makes_no_preset(periods: tuple[Period, ...]) -> None:
    """A run cannot be judged by an unknown rate, by 0, or by half of a duplex run."""
    with pytest.raises(LinkgaugeError, match="run 7 measured no payload"):
        write(run(*periods))


@pytest.mark.parametrize("preset_id", ["", "My Link", "auto", 'a"b'])
def test_an_id_unfit_for_the_command_line_is_refused_before_writing(preset_id: str) -> None:
    """The command line is wrong, and nothing else."""
    with pytest.raises(PlanError, match="preset id"):
        write(run(period(Direction.OUT, 1, out=9)), preset_id=preset_id)


@pytest.mark.parametrize(
    "link",
    [
        LinkSpec("none"),
        LinkSpec("ethernet", 10_000_000_000, 1450, "full", timestamps=True, tunnel="vxlan"),
        LinkSpec("atm", 155_520_000, 9180, "half"),
    ],
)
def test_the_link_of_a_preset_reads_back_unchanged(link: LinkSpec) -> None:
    """It is the link of the run's own preset."""
    measured = run(period(Direction.IN, 3, in_=5_000_000))
    text = write(replace(measured, plan=Plan(Settings(window_bytes=57_344))), link=link)
    mine = read(text).find("mine")
    assert mine.link == link
    assert mine.suggested_window_bytes == 57_344


@given(st.text(max_size=40), st.text(max_size=20))
def test_any_name_makes_a_file_that_reads_back(name: str, run_id: str) -> None:
    """Quotes, backslashes, control characters, emoji: the file stays TOML, and controls no terminal."""
    text = write(run(period(Direction.OUT, 1, out=5_000_000)), name=f"x{name}", run_id=run_id)
    problems: list[PresetProblem] = []
    (mine,) = parse_preset_file("mine.toml", tomllib.loads(text), problems).presets
    assert problems == []
    assert mine.name.replace("\u00a0", " ").isprintable()


def summary_of(workload: Workload, *periods: Period, **sizes: int) -> Summary:
    """Return a run of transactions."""
    total = next((s.measured.out or s.measured.in_ for s in periods), None)
    return replace(run(*periods), plan=Plan(workload=workload, **sizes), measured=PerDirection(None, None, total))


def counted(direction: Direction, sessions: int, transactions: int) -> Period:
    """Return a period of eight seconds with this number of transactions in each of its directions."""
    measurement = Measurement(transactions * 1_000, 8 * SECOND_NS, transactions)
    flows = direction.flows
    return Period(
        Settings(direction, sessions),
        Expectation(),
        PerDirection(
            measurement if Direction.OUT in flows else None, measurement if Direction.IN in flows else None, None
        ),
    )


@pytest.mark.parametrize("workload", [Workload.RR, Workload.CRR])
def test_transactions_are_expected_as_they_were_counted(workload: Workload) -> None:
    """For either end as client, by the number of pairs. A period of both directions is left out."""
    summary = summary_of(
        workload,
        counted(Direction.OUT, 1, 80_004),
        counted(Direction.DUPLEX, 5, 400_000),
        counted(Direction.IN, 10, 800_000),
    )
    catalog = read(write(summary))
    assert catalog.problems == ()
    mine = catalog.find("mine")
    for settings, per_s in ((Settings(), 10_000.5), (Settings(Direction.IN, 16), 100_000.0)):
        got = find_expectation(mine, settings, workload)
        expected = got.in_ if settings.direction is Direction.IN else got.out
        assert expected is not None
        assert (expected.transactions_s, expected.basis) == (per_s, "documented")
    assert find_expectation(mine, Settings()) == Expectation()
    other = Workload.CRR if workload is Workload.RR else Workload.RR
    assert find_expectation(mine, Settings(), other) == Expectation()


def test_fetches_are_expected_by_their_payload() -> None:
    """A fetch is a stream except for its first round trip: both are compared with it."""
    summary = summary_of(Workload.FETCH, period(Direction.DUPLEX, 5, out=800_000_000, in_=100_000_000))
    mine = read(write(summary)).find("mine")
    assert [rate.workload for rate in mine.rates] == ["fetch"]
    for workload in (Workload.FETCH, Workload.STREAM):
        got = find_expectation(mine, Settings(Direction.DUPLEX, 5), workload).total
        assert got is not None
        assert (got.bit_s, got.transactions_s) == (900_000_000, None)


@pytest.mark.parametrize(
    ("summary", "why"),
    [
        (summary_of(Workload.RR, counted(Direction.OUT, 1, 9), burst=4), "its own sizes or burst"),
        (summary_of(Workload.CRR, counted(Direction.OUT, 1, 9), response_bytes=9), "its own sizes or burst"),
        (summary_of(Workload.RR, counted(Direction.DUPLEX, 1, 9)), "both directions at once"),
        (summary_of(Workload.RR, counted(Direction.OUT, 1, 0)), "measured no payload"),
    ],
)
def test_transactions_with_unusual_sizes_make_no_preset(summary: Summary, why: str) -> None:
    """With the reason, and what to do."""
    with pytest.raises(LinkgaugeError, match=why):
        write(summary)
