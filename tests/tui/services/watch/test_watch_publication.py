"""The metrics of a watch: a real Prometheus scrapes them, and each event renews them."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.metrics.publication import PublishingPlan
from linkgauge.tui.services.watch.watch_publication import open_watch_publication
from linkgauge.watch.events import WatchEnded

from ....metrics.prometheus_programs import Prometheus, fetch, run_prometheus, run_pushgateway
from ....metrics.watched_peers import BUSY, NOW_S, change, ended, peer, watch_of_two


def refuse_notice(text: str) -> None:
    """Fail: nothing is to be said."""
    raise AssertionError(text)


@pytest.mark.every
async def test_prometheus_has_the_numbers_of_a_watch_and_forgets_a_removed_peer(tmp_path: Path) -> None:
    """At the next scrape, not after its staleness of five minutes."""
    view = watch_of_two()
    async with open_watch_publication(PublishingPlan(("127.0.0.1", 0)), view, refuse_notice) as published:
        assert published.url is not None
        scraping = run_prometheus(tmp_path, {"watch": published.url})
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
    """Its results stay true."""
    view, textfile = watch_of_two(), tmp_path / "office.prom"
    with run_pushgateway() as gateway:
        plan = PublishingPlan(textfile=str(textfile), push=gateway)
        async with open_watch_publication(plan, view, refuse_notice) as published:
            view.statuses = {"fra": replace(BUSY, flaps=7)}
            for event in (BUSY.last_probe, ended(BUSY.last_check.result), change(NOW_S), WatchEnded(NOW_S)):
                published.observe(event)
        text = (await asyncio.to_thread(fetch, f"{gateway}/metrics")).decode()
        assert 'job="linkgauge",peer="fra",watch="office"} 7' in text
    assert 'linkgauge_flaps_total{peer="fra",watch="office"} 7.0' in textfile.read_text()


async def test_without_a_place_for_them_nothing_is_published() -> None:
    """Most watches have none."""
    async with open_watch_publication(None, watch_of_two(), refuse_notice) as published:
        published.observe(WatchEnded(NOW_S))
        assert published.url is None
