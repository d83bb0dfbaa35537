"""Stored runs as lines of a list, and the filter of the list."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.results.run_log import RunLog, RunQuery, RunRecord
from linkgauge.engine.results.run_log.run_brief import RunBrief
from linkgauge.tui.cli.render.runs import run_list
from linkgauge.tui.words.run_line import RunFilter, filter_parts, run_line, settings_count, short_peers


def row(run_id: str, preset: str, peer: str, verdict: str | None, label: str | None = None) -> RunRecord:
    """Return a run of which only the words matter here."""
    return RunRecord(
        number=1,
        run_id=run_id,
        preset=preset,
        peer=peer,
        label=label,
        started_utc="2026-11-21T01:46:29Z",
        reason=None,
        verdict=verdict,
        is_running=False,
        note=None,
        group=None,
        figures=RunBrief(),
        document=None,
        detail=None,
    )


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunLog]:
    """Yield a log of three runs; the oldest one has neither label nor verdict."""
    with RunLog.open(tmp_path_factory.mktemp("three_runs")) as log:
        log.begin("r1", "", "loopback")
        log.begin("r2", "10gbe-fd-9000", "DB-03", "After")
        log.finish("r2", "short", {})
        log.begin("r3", "gbe-fd-1500", "db-02", "before the change")
        log.finish("r3", "pass", {})
        yield log


def left_by(log: RunLog, query: RunQuery) -> list[str]:
    """Return the ids of the runs that match, the newest first."""
    return [entry.run_id for entry in log.entries(log.find_runs(query))]


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        (RunFilter(), ["r3", "r2", "r1"]),
        (RunFilter(preset="gbe"), ["r3", "r2"]),
        (RunFilter(peer="db-0", verdict="short"), ["r2"]),
        (RunFilter(label="AFTER"), ["r2"]),
        (RunFilter(verdict="none"), []),
        (RunFilter(peer=""), ["r3", "r2", "r1"]),
    ],
)
def test_a_filter_leaves_what_has_all_of_it(three_runs: RunLog, wanted: RunFilter, left: list[str]) -> None:
    """Letters of any size; the order stays."""
    assert left_by(three_runs, wanted.query()) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", ["r3", "r2", "r1"]),
        ("db", ["r3", "r2"]),
        ("db after", ["r2"]),
        ("label:db", []),
        ("peer:db- 1500", ["r3"]),
        ("preset=gbe-fd", []),
        ("pass", ["r3"]),
        ("nonsense:db", []),
    ],
)
def test_every_word_must_be_somewhere(three_runs: RunLog, text: str, left: list[str]) -> None:
    """Or in the part that is named before a colon."""
    assert left_by(three_runs, RunQuery(filter_parts(text))) == left


NODES = ("storage-node-01.dc1.example.com:5820", "storage-node-02.dc1.example.com:5820")


@pytest.mark.parametrize("width", [14, 18, 24, 40])
def test_peers_that_differ_in_the_middle_can_be_told_apart(width: int) -> None:
    """What they have in common makes room; a peer that is short enough stays whole, without the usual port."""
    short = short_peers((*NODES, "db-02:5820", "db-02:6000"), width)
    assert len(set(short.values())) == 4
    assert all(len(text) <= width for text in short.values())
    assert (short["db-02:5820"], short["db-02:6000"]) == ("db-02", "db-02:6000")
    assert "1" in short[NODES[0]]
    assert "2" in short[NODES[1]]


def test_a_single_long_peer_loses_its_middle() -> None:
    """Both ends of a name say most about it."""
    assert short_peers(("ssh://root@a-very-long-name.example.com:2222",), 16) == {
        "ssh://root@a-very-long-name.example.com:2222": "ssh://ro…om:2222"
    }


def changed_row(*settings: tuple[str, Any, int | None], workload: str = "stream") -> RunRecord:
    """Return a run with a period of each of these settings, in turn."""
    names = ("direction", "sessions", "window_bytes")
    periods = [dict(zip(names, values, strict=True)) for values in settings]
    document = {"plan": {**periods[0], "workload": workload}, "stretches": periods}
    return replace(row("r1", "gbe-fd-1500", "db-02", "none"), figures=RunBrief.of(document))


def test_a_udp_run_is_listed_with_the_rates_and_sizes_that_it_had() -> None:
    """A document of an earlier version has neither."""
    same = {"direction": "out", "sessions": 1, "window_bytes": None}
    rates = [{**same, "rate": "fixed", "rate_mbit_s": rate, "datagram_bytes": None} for rate in (100.0, 500.0)]
    size = {**rates[1], "datagram_bytes": 64}

    def listed(*periods: dict[str, Any]) -> str:
        document = {"plan": {**periods[0], "workload": "udp"}, "stretches": list(periods)}
        line = run_line(replace(row("r1", "gbe-fd-1500", "db-02", "none"), figures=RunBrief.of(document)))
        return line.test.replace("\N{NO-BREAK SPACE}", " ")

    assert listed(rates[0]) == "udp→1"
    assert listed(*rates) == "udp 100 Mb/s → 500 Mb/s"
    assert listed(rates[1], size) == "udp datagram size auto → 64"
    assert listed(*rates, size) == "udp 3 settings"
    assert listed(same, {**same, "rate_mbit_s": "fast"}) == "udp→1"


@pytest.mark.parametrize(
    ("settings", "test", "count"),
    [
        ([("out", 4, None)], "→4", 1),
        ([("out", 1, None), ("out", 4, None)], "1 → 4 sessions", 2),
        ([("out", 1, None), ("out", 1, None), ("out", 4, None)], "1 → 4 sessions", 2),
        ([("out", 1, None), ("out", 4, None), ("out", 1, None)], "1 → 4 → 1 sessions", 2),
        ([("out", 1, None), ("in", 1, None)], "out → in", 2),
        ([("out", 1, None), ("out", 1, 65_536)], "window auto → 64K", 2),
        ([("out", 1, None), ("in", 4, None)], "2 settings", 2),
        ([("out", number, None) for number in (1, 2, 3, 5)], "4 settings", 4),
        ([("out", 1, None), ("out", "many", None)], "→1", 0),
        ([("out", 1, None), ("up", 2, None)], "→1", 0),
        ([("out", 1, None), ("out", 10**9, None)], "→1", 0),
    ],
)
def test_a_run_whose_settings_changed_is_not_listed_under_its_first_plan(
    settings: list[tuple[str, Any, int | None]], test: str, count: int
) -> None:
    """The change stands in place of the plan; a damaged document has the plan."""
    changed = changed_row(*settings)
    assert run_line(changed).test.replace("\N{NO-BREAK SPACE}", " ") == test
    assert settings_count(changed.figures) == count
    _, (line,) = run_list([changed])
    assert (f"{count}\N{NO-BREAK SPACE}settings" in line) is (count > 1)


def test_a_workload_with_transactions_is_named_beside_the_change() -> None:
    """It is the same throughout a run."""
    changed = changed_row(("out", 1, None), ("out", 4, None), workload="rr")
    assert run_line(changed).test.replace("\N{NO-BREAK SPACE}", " ") == "rr 1 → 4 sessions"


@pytest.mark.parametrize(
    ("total", "plan", "rate", "with_unit"),
    [
        ({"mbit_s": 941.4}, {}, "941.4", "941.4 Mb/s"),
        ({"mbit_s": 94.15, "transactions_s": 106_280.4}, {}, "106 280/s", "106 280/s"),
        ({"mbit_s": 94.15}, {"responsiveness": "phases"}, "–", "– Mb/s"),
        ({}, {}, "–", "– Mb/s"),
    ],
    ids=["stream", "transactions", "under load", "unknown"],
)
def test_a_run_is_listed_with_its_rate(
    total: dict[str, float], plan: dict[str, str], rate: str, with_unit: str
) -> None:
    """A mean over loads of different directions would mean nothing."""
    document = {"plan": plan, "measured": {"total": total}}
    line = run_line(replace(row("r1", "gbe-fd-1500", "db-02", "none"), figures=RunBrief.of(document)))
    assert line.rate.replace("\N{NO-BREAK SPACE}", " ") == rate
    assert line.rate_with_unit.replace("\N{NO-BREAK SPACE}", " ") == with_unit
