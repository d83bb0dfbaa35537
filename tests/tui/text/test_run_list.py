"""Which of the kept runs a filter leaves."""

import pytest
from linkgauge.engine.results.run_log import RunRecord
from linkgauge.tui.text.run_list import RunFilter, SearchableRun


def row(run_id: str, preset: str, peer: str, verdict: str | None, label: str | None = None) -> RunRecord:
    """Return a run of which only the words matter here."""
    return RunRecord(
        run_id, preset, peer, label, "2026-11-21T01:46:29Z", None, None, verdict, None, is_running=False
    )


ROWS = [
    row("r3", "gbe-fd-1500", "db-02", "pass", "before the change"),
    row("r2", "10gbe-fd-9000", "DB-03", "short", "After"),
    row("r1", "", "loopback", None),
]


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
def test_a_filter_leaves_what_has_all_of_it(wanted: RunFilter, left: list[str]) -> None:
    """Letters of any size; the order stays."""
    assert [one.run_id for one in wanted.apply(ROWS)] == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", ["r3", "r2", "r1"]),
        ("db", ["r3", "r2"]),
        ("db after", ["r2"]),
        ("label:db", []),
        ("peer:db- 1500", ["r3"]),
        ("pass", ["r3"]),
        ("nonsense:db", []),
    ],
)
def test_every_word_must_be_somewhere(text: str, left: list[str]) -> None:
    """Or in the part that is named before a colon."""
    assert [one.run_id for one in ROWS if SearchableRun(one).matches(text)] == left
