"""The words about an end that is an iperf3."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Started
from linkgauge.engine.model.plan import Dialect
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import replay
from linkgauge.tui.words.event_lines import EventLines
from linkgauge.tui.words.iperf3 import host_text, live_source_text, source_texts, unseen_text

from ...engine.results.iperf3_runs import SERVER, iperf3_run, reported, total
from ...engine.results.log_entries import HOST


def test_the_host_behind_an_iperf3_is_not_seen_and_has_no_cores() -> None:
    """Not `unknown, 0 cores`: those are the protocol's silence and no facts."""
    assert host_text(SERVER) == "iperf3, which tells nothing of its host"
    assert host_text(HOST) == "Linux, 2\N{NO-BREAK SPACE}cores"
    log = EventLines()
    for event in iperf3_run(Direction.OUT, totals=reported(total(Direction.OUT, 1, 5))):
        log.add_event(event)
    texts = [line.text for line in log.lines]
    assert texts[0] == "connected to db-02: iperf3, which tells nothing of its host"
    assert "remote iperf3: its results have arrived" in texts
    assert not any("unknown" in text or "0 cores" in text for text in texts)


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.UDP])
def test_a_summary_says_whose_figures_it_has(workload: Workload) -> None:
    """The receiver's, whichever end that is; without its results the sender's, in words of the protocol."""
    parts = total(Direction.OUT, 1, 11_000_000, received=11_000, lost=1_000)
    whose = "count and the clock of iperf3"
    if workload is Workload.UDP:  # whose clock goes on after the last datagram
        whose = "count of iperf3, over the time in which linkgauge sent; losses at the very end are not in it"
    complete = replay(iperf3_run(Direction.DUPLEX, workload=workload, totals=reported(parts))).summary()
    assert source_texts(complete) == [
        f"→ received, by the {whose}",
        "← received, by linkgauge's own count",
    ]
    died = replay(iperf3_run(Direction.OUT, workload=workload, reason=Reason.PEER_LOST)).summary()
    (text,) = source_texts(died)
    assert text.startswith("→ iperf3 reported no results")
    assert ("sent" if workload is Workload.UDP else "acknowledged") in text


def test_a_gauge_says_what_it_shows_until_the_results_are_there() -> None:
    """Only for what the iperf3 receives; everything else is received here."""
    for unseen, received in ((End.FAR, Direction.OUT), (End.NEAR, Direction.IN)):
        for direction in Direction:
            names = [live_source_text(unseen, direction, is_datagram=is_udp) for is_udp in (False, True)]
            is_theirs = direction in {received, Direction.DUPLEX}
            assert names == (["acknowledged", "sent"] if is_theirs else ["", ""])
    assert live_source_text(None, Direction.OUT, is_datagram=False) == ""


def test_what_is_not_seen_is_named_once_and_only_for_an_iperf3() -> None:
    """Unknown values are no findings."""
    assert unseen_text(None) == ""
    assert unseen_text(End.FAR).startswith("the remote host is not seen through iperf3: ")


def test_a_run_with_a_browser_has_words_of_its_own() -> None:
    """Nothing in it is iperf3's."""
    page = replace(HOST, hostname="10.0.0.9", software="browser Chrome 156 on Android")
    first, *rest = iperf3_run(Direction.DUPLEX)
    assert isinstance(first, Started)
    summary = replay([replace(first, far=page), *rest]).summary()
    assert (summary.unseen_end, summary.dialect) == (End.FAR, Dialect.BROWSER)
    assert source_texts(summary) == [
        "→ acknowledged, by the local kernel's count",
        "← received, by the local kernel's count",
    ]
    assert unseen_text(summary.unseen_end, summary.dialect).startswith(
        "the remote host is not seen through a browser: "
    )
    assert host_text(page) == "a browser, which tells nothing of its host"
