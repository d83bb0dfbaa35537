"""The panels of an endpoint: its state at each width, its rates, its limits and its log."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.tui.endpoint.endpoint_log import EndpointLogLine
from linkgauge.tui.endpoint.endpoint_panels import (
    EndpointGauge,
    EndpointHeader,
    EndpointLogView,
    LimitsPanel,
    RateHistory,
)
from linkgauge.tui.endpoint.endpoint_rates import EndpointInfo, EndpointSnapshot, Totals
from linkgauge.tui.words.numbers import RateUnit
from textual.widgets import Static

from ..gauges.instrument_bench import Bench, lines_of
from .endpoint_examples import CLIENTS, WidgetApp

INFO = EndpointInfo("db-\x1b[2J02", "port 5820, every address", "asks for its key", "linkgauge check auto db-02")
BUSY = EndpointSnapshot(INFO, 65 * SECOND_NS, totals=Totals(clients=3, refused=2, runs=7, bytes=2**30))
NOON = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)


async def header_lines(snapshot: EndpointSnapshot, width: int) -> list[str]:
    """Return the lines of a header in a terminal of a width."""
    app = Bench(EndpointHeader())
    async with app.run_test(size=(width, 4)) as pilot:
        app.instrument.show(snapshot)
        await pilot.pause()
        return lines_of(app)


@pytest.mark.parametrize("iperf3", [None, "port 5201, with a user name"])
async def test_the_header_says_where_and_for_whom_iperf3_is_served(iperf3: str | None) -> None:
    """Its port and its access differ from the endpoint's."""
    _first, second = await header_lines(replace(BUSY, info=replace(INFO, iperf3=iperf3)), 140)
    assert ("iperf3: port 5201, with a user name" in second) is (iperf3 is not None)
    assert "asks for its key" in second


@pytest.mark.parametrize("width", [60, 80, 140])
async def test_the_right_side_is_whole_at_each_width(width: int) -> None:
    """The left side is cut, and its control characters are harmless."""
    first, second = await header_lines(BUSY, width)
    assert first.endswith("● SERVING 01:05")
    assert "7 runs" in second
    assert second.endswith("2 rejected")
    assert {len(first), len(second)} == {width - 2}
    assert "\x1b" not in first


async def test_a_draining_endpoint_shows_the_time_that_is_left() -> None:
    """In place of its uptime."""
    first, _ = await header_lines(EndpointSnapshot(INFO, SECOND_NS, drain_left_ns=28 * SECOND_NS), 80)
    assert first.endswith("◌ DRAINING 00:28 left")


async def test_an_endpoint_without_clients_has_no_totals() -> None:
    """Zeros would only distract."""
    _, second = await header_lines(EndpointSnapshot(INFO), 80)
    assert second.strip() == "asks for its key"


async def test_the_past_ends_at_the_right_with_the_newest_second() -> None:
    """The highest second is as high as the plot, and half of it half as high; older seconds have no room."""
    app = Bench(EndpointGauge("received"))
    async with app.run_test(size=(42, 8)) as pilot:
        app.instrument.show(RateHistory(2e9, [*[9e9] * 100, *[0.0] * 38, 2e9, 4e9], RateUnit.MBIT))
        await pilot.pause()
        plot = lines_of(app)[-5:]
        assert [line[-2:] for line in plot] == [" █", " █", "▄█", "██", "██"]
        assert plot[-1] == f"{'▁' * 38}██"
        assert "highest 4 000 Mb/s" in str(app.instrument.border_subtitle).replace("\u00a0", " ")


@pytest.mark.parametrize("size", [(20, 1), (20, 3), (80, 4), (80, 12)], ids=str)
async def test_the_number_and_its_unit_are_there_at_each_size(size: tuple[int, int]) -> None:
    """In plain digits if large ones have no room."""
    app = Bench(EndpointGauge("sent"))
    async with app.run_test(size=size) as pilot:
        app.instrument.show(RateHistory(941e6, [941e6], RateUnit.MBIT))
        await pilot.pause()
        lines = lines_of(app)
        assert len(lines) == size[1]
        assert any("Mb/s" in line for line in lines)
        assert ("941" in lines[0]) == (size[0] == 20)


async def test_each_limit_has_its_value_and_its_use() -> None:
    """Two clients; one has a run with five sessions."""
    app = WidgetApp(LimitsPanel())
    limits = Limits(deny=("10.0.0.0/8", "192.168.0.0/16"))
    async with app.run_test(size=(60, 30)) as pilot:
        app.widget.show_snapshot(EndpointSnapshot(INFO, clients=CLIENTS, received_bit_s=941e6, limits=limits))
        await pilot.pause()
        text = str(app.widget.query_one(Static).render()).replace("\u00a0", " ")
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in text.splitlines()}
    assert set(lines) == set(limits.values())
    assert lines["clients"].startswith("2 / ")
    assert lines["clients_per_address"].startswith("1 / ")
    assert lines["sessions"].startswith("5 / ")
    assert lines["duration_s"].startswith("9 / ")
    assert lines["deny"] == "10.0.0.0/8, 192.168.0.0/16"


def log_lines(count: int) -> list[EndpointLogLine]:
    """Return lines with their numbers."""
    return [EndpointLogLine(NOON, "refused", f"refusal {number}\x1b[2J") for number in range(count)]


async def test_each_line_is_written_once_however_often_it_is_shown() -> None:
    """Also when older lines are gone. An unknown kind has a dot."""
    app = WidgetApp(EndpointLogView())
    async with app.run_test(size=(60, 8)) as pilot:
        lines = log_lines(3)
        app.widget.show_lines(lines[:2], 2)
        app.widget.show_lines(lines[:2], 2)
        app.widget.show_lines([lines[1], lines[2], EndpointLogLine(NOON, "other", "more")], 4)
        await pilot.pause()
        shown = [line.strip() for line in app.lines() if line.strip()]
        assert [line.split()[1:4] for line in shown[:3]] == [["✗", "refusal", f"{n}"] for n in range(3)]
        assert [line.split()[0] for line in shown] == ["12:00:05"] * 4
        assert shown[3].split()[1:] == ["·", "more"]
