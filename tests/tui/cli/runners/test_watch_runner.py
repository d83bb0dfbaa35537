"""The metrics of a watch that a command carries out: a real Prometheus scrapes them, and each event renews them."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.metrics.publication import PublishingPlan
from linkgauge.tui.cli.runners.watch_runner import publish_watch
from linkgauge.tui.watch.running.watch_journal import CommittedEvents
from linkgauge.tui.watch.running.watch_session import WatchSession
from linkgauge.watch.data_budget import MonthUse
from linkgauge.watch.events import WatchEnded, WatchEvent
from linkgauge.watch.watch_state import PeerStatus

from ....metrics.prometheus_programs import Prometheus, fetch, run_prometheus, run_pushgateway
from ....metrics.watched_peers import BUSY, NOW_S, PLAN, STATUSES, change, ended, peer


class Observers(CommittedEvents):
    """Those who hear of the events of a watch; a test calls them, and nothing is committed."""

    def __init__(self) -> None:
        self.all: list[Callable[[WatchEvent], None]] = []

    def subscribe(self, observe: Callable[[WatchEvent], None]) -> None:
        """Keep a function."""
        self.all.append(observe)


class View(WatchSession):
    """A watch with its plan and its statuses, which does nothing."""

    def __init__(self) -> None:
        self.plan, self.shown, self.events = PLAN, STATUSES, Observers()

    @property
    def statuses(self) -> Mapping[str, PeerStatus]:
        """The statuses that the test has set."""
        return self.shown

    @property
    def use(self) -> MonthUse:
        """No data yet."""
        return MonthUse()

    def report(self, text: str, peer: str | None = None) -> None:
        """Fail: there is no reason for a notice."""
        raise AssertionError(text, peer)


@pytest.mark.every
async def test_prometheus_has_the_numbers_of_a_watch_and_forgets_a_removed_peer(tmp_path: Path) -> None:
    """At the next scrape, and not after Prometheus' five minutes of staleness."""
    view = View()
    async with publish_watch(PublishingPlan(("127.0.0.1", 0)), view) as url:
        assert url is not None
        scraping = run_prometheus(tmp_path, {"watch": url})
        prometheus: Prometheus = await asyncio.to_thread(scraping.__enter__)
        try:
            [(labels, goodput)] = await asyncio.to_thread(
                prometheus.wait_for, "8 * linkgauge_check_goodput_bytes_per_second"
            )
            assert (labels["watch"], labels["peer"], goodput) == ("office", "fra", 56.3e6)
            view.plan = replace(view.plan, peers=(peer("lon"),))
            gone = 'count(linkgauge_checks_total) == 3 unless on () linkgauge_checks_total{peer="fra"}'
            assert await asyncio.to_thread(prometheus.wait_for, gone)
        finally:
            await asyncio.to_thread(scraping.__exit__, None, None, None)


async def test_the_end_of_a_watch_is_pushed_and_its_file_stays(tmp_path: Path) -> None:
    """The file keeps the last results, which stay true."""
    view, textfile = View(), tmp_path / "office.prom"
    with run_pushgateway() as gateway:
        plan = PublishingPlan(textfile=str(textfile), push=gateway)
        async with publish_watch(plan, view):
            view.shown = {"fra": replace(BUSY, flaps=7)}
            for event in (BUSY.last_probe, ended(BUSY.last_check.result), change(NOW_S), WatchEnded(NOW_S)):
                for observe in view.events.all:
                    observe(event)
        text = (await asyncio.to_thread(fetch, f"{gateway}/metrics")).decode()
        assert 'job="linkgauge",peer="fra",watch="office"} 7' in text
    assert 'linkgauge_flaps_total{peer="fra",watch="office"} 7.0' in textfile.read_text()
