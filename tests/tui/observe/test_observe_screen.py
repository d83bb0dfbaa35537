"""The screen of observed connections: scripted observations, and real connections of this host."""

import asyncio
import os
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.host.sockets.socket_message import SocketAddress
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.results.run_log import RunLog, RunQuery
from linkgauge.observe.observation import Observation, Owner, Status
from linkgauge.observe.observer import observe
from linkgauge.observe.request import ObserveRequest, parse_target
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.app.app import ObserveApp
from linkgauge.tui.gauges.flow_gauge import FlowGauge
from linkgauge.tui.kit.screens.help import HelpScreen
from linkgauge.tui.observe.connection_screen import ConnectionScreen
from linkgauge.tui.observe.connection_table import ConnectionTable
from linkgauge.tui.observe.observe_screen import ObserveScreen, screen_request
from linkgauge.tui.observe.observed_records import ObservedRecords
from linkgauge.tui.words.redaction import REDACTION
from textual.pilot import Pilot

from ..app_driver import screen_text, until
from .example_observations import Source, connection, ended, examples, observation
from .watched_connection import Watched

pytestmark = pytest.mark.usefixtures("world")


@asynccontextmanager
async def observe_app(
    observations: AsyncIterable[Observation], size: tuple[int, int] = (120, 40), target: str | None = None
) -> AsyncGenerator[tuple[ObserveApp, Pilot[None]]]:
    """Run the app without a terminal."""
    app = ObserveApp(observations, target)
    async with app.run_test(size=size) as pilot:
        yield app, pilot


async def shows(pilot: Pilot[None], text: str) -> None:
    """Wait until the screen has a text."""
    await until(pilot, lambda: text in screen_text(pilot.app))


def cursor(pilot: Pilot[None]) -> int | None:
    """Return the number of the connection at the cursor."""
    key = pilot.app.screen.query_one(ConnectionTable).key_at_cursor
    return None if key is None else key.cookie


async def test_rows_with_the_reason_of_each() -> None:
    """The panel has evidence and remedy of the connection at the cursor."""
    source = Source()
    async with observe_app(source) as (_, pilot):
        await shows(pilot, "Reading the connections of this host")
        source.put(observation(examples(), notes=("The processes of other users are not visible.",)))
        await shows(pilot, "receiver too slow")
        text = screen_text(pilot.app)
        for words in (
            "6 connections, 5 moving payload",
            "6 shown",
            "▲ The processes of other users",
            "(user anna)",
        ):
            assert words in text
        await pilot.press("down")
        await shows(pilot, "→ at the remote end: see whether its program reads in time")
        assert "for 90 % of the time, with a window of 26 064 bytes" in screen_text(pilot.app)
        assert "◆ Packets are lost on the path." in screen_text(pilot.app)


async def test_the_connection_at_the_cursor_is_saved_from_a_key_to_the_next(tmp_path: Path) -> None:
    """In the table and in the gauges; the mark says so, and the history has it."""
    with RunLog.open(tmp_path) as log:
        records, watched = ObservedRecords(lambda: log), Watched()
        source = Source()
        app = ObserveApp(source, records=records)
        async with app.run_test(size=(120, 40)) as pilot:
            source.put(watched.look())
            await shows(pilot, "1 shown")
            await pilot.press("w")
            await shows(pilot, "● saving 1")
            assert len(re.findall(r"\S● ", screen_text(app))) == 1, "the mark of the row"
            source.put(watched.look())
            await until(pilot, lambda: len(log.find_runs(RunQuery())) == 1)
            await pilot.press("enter")
            await shows(pilot, "● saving")
            await pilot.press("w")
            await shows(pilot, "saved")
            assert "● saving" not in screen_text(app)
            await pilot.press("w", "q")
            await shows(pilot, "● saving 1")
        entries = log.read_entries(log.find_runs(RunQuery()))
    assert [each.kind for each in entries] == ["observed", "observed"]
    assert {each.verdict for each in entries} == {"none"}  # leaving has ended the second one


async def test_without_a_run_log_the_key_says_so() -> None:
    """An app that stores nothing."""
    source = Source()
    async with observe_app(source) as (_, pilot):
        source.put(Watched().look())
        await shows(pilot, "1 shown")
        await pilot.press("w")
        await shows(pilot, "There is no run log")


async def test_the_cursor_stays_at_its_connection_and_a_frozen_order_stays() -> None:
    """Before the user moves it, it is at the fastest one."""
    source = Source()
    async with observe_app(source) as (_, pilot):
        source.put(observation([connection(1, 3e6), connection(2, 2e6), connection(3, 1e6)]))
        await until(pilot, lambda: cursor(pilot) == 1)
        source.put(observation([connection(2, 5e6), connection(1, 3e6), connection(3, 1e6)], 2))
        await until(pilot, lambda: cursor(pilot) == 2)
        await pilot.press("down")
        assert cursor(pilot) == 1
        source.put(observation([connection(1, 9e6), connection(2, 5e6), connection(3, 1e6)], 3))
        await until(pilot, lambda: pilot.app.screen.query_one(ConnectionTable).highlighted == 0)
        assert cursor(pilot) == 1
        await pilot.press("p")
        await shows(pilot, "order frozen")
        source.put(observation([connection(3, 20e6), connection(1, 9e6), connection(2, 5e6)], 4))
        await shows(pilot, "20.00")
        assert [row.key.cookie for row in pilot.app.screen.query_one(ConnectionTable)._rows] == [1, 2, 3]
        await pilot.press("p")
        assert [row.key.cookie for row in pilot.app.screen.query_one(ConnectionTable)._rows] == [3, 1, 2]
        assert cursor(pilot) == 1


async def test_the_filter_narrows_the_rows_as_the_user_types() -> None:
    """Letters that are keys of actions are text there; escape shows all again."""
    source = Source()
    async with observe_app(source, (80, 24)) as (_, pilot):
        source.put(observation(examples()))
        await shows(pilot, "6 shown")
        await pilot.press(*"/rsync")
        await shows(pilot, "1 of 6 shown")
        await pilot.press(*"zz")
        await shows(pilot, "None of the 6 connections matches 'rsynczz'.")
        await pilot.press("enter", "enter")
        assert isinstance(pilot.app.screen, ObserveScreen)
        await pilot.press("escape")
        await shows(pilot, "6 shown")
        assert not pilot.app.screen.query_one("#filter").display


async def test_keys_and_clicks_sort() -> None:
    """The title has an arrow."""
    source = Source()
    async with observe_app(source) as (_, pilot):
        source.put(observation(examples()))
        await shows(pilot, "Mb/s▼")
        await pilot.press("S")
        await shows(pilot, "Mb/s▲")
        await pilot.press("s")
        await shows(pilot, "why▼")
        title = screen_text(pilot.app).splitlines()[2]
        await pilot.click(ConnectionTable, offset=(title.index("peer"), 0))
        await shows(pilot, "peer▲")
        await pilot.click(ConnectionTable, offset=(title.index("peer"), 0))
        await shows(pilot, "peer▼")


def test_an_observation_before_the_gauges_are_there_is_kept_and_not_drawn(tmp_path: Path) -> None:
    """A busy machine takes a while to make a screen."""
    row = examples()[1]
    with RunLog.open(tmp_path) as log:
        screen = ConnectionScreen(row, [], ObservedRecords(lambda: log))
        screen.take(replace(row, out=replace(row.out, bit_s=333e6)), None)


async def test_enter_opens_a_connection_in_gauges_and_escape_comes_back() -> None:
    """It goes on with the observations, and ends with its connection."""
    source = Source()
    async with observe_app(source) as (_, pilot):
        source.put(observation(examples()))
        await shows(pilot, "6 shown")
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConnectionScreen))
        gauge = pilot.app.screen.query_one("#gauge-out", FlowGauge)
        await until(pilot, lambda: gauge.value.bit_s == 412e6)
        for words in (
            "in flight",
            "needed",
            "throughput",
            "cwnd, KiB",
            "▼ receiver too slow",
            "◆ The receiver",
        ):
            assert words in screen_text(pilot.app)
        slow = examples()[1]
        source.put(observation([replace(slow, out=replace(slow.out, bit_s=333e6))], 2))
        await until(pilot, lambda: gauge.value.bit_s == 333e6)
        await pilot.press("p")
        await shows(pilot, "frozen")
        source.put(observation([replace(slow, out=replace(slow.out, bit_s=222e6))], 3))
        source.put(observation([ended(slow)], 4))
        await pilot.pause(0.3)
        assert gauge.value.bit_s == 333e6
        await pilot.press("p")
        await shows(pilot, "■ ended: receiver too slow")
        await pilot.press("escape")
        await shows(pilot, "1 shown")


@pytest.mark.every
async def test_one_part_of_the_screen_alone() -> None:
    """The table, then the panel, then both; in the gauges each panel in turn."""
    source = Source()
    async with observe_app(source) as (_, pilot):
        source.put(observation(examples()))
        await shows(pilot, "6 shown")
        table, detail = pilot.app.screen.query_one(ConnectionTable), pilot.app.screen.query_one("#detail")
        for shown in ((True, False), (False, True), (True, True)):
            await pilot.press("m")
            await until(pilot, lambda shown=shown: (table.display, detail.display) == shown)
        await pilot.press("m", "escape")
        await until(pilot, lambda: table.display and detail.display)
        await pilot.press("enter", "m")
        screen = pilot.app.screen
        await until(pilot, lambda: not screen.query_one("#why").display)
        await pilot.press("m", "m", "m")
        await until(pilot, lambda: screen.query_one("#why").display and not screen.query_one("#plots").display)
        await pilot.press("escape")
        await until(pilot, lambda: screen.query_one("#plots").display)


async def test_addresses_and_users_are_hidden_by_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also an address that a narrow column would shorten."""
    monkeypatch.setattr(REDACTION, "is_on", False)
    source = Source()
    row = connection(1, 3e6)
    peer = SocketAddress("2001:db8:1111:2222:3333:4444:5555:6666", 443)
    source.put(observation([replace(row, key=row.key._replace(remote=peer)), connection(2, 2e6)]))
    async with observe_app(source, (80, 24)) as (_, pilot):
        await shows(pilot, "10.0.0.2:443")
        await pilot.press("a")
        await until(pilot, lambda: "10.0.0.2" not in screen_text(pilot.app))
        source.put(observation([replace(row, key=row.key._replace(remote=peer)), connection(2, 2e6)], 2))
        await until(pilot, lambda: "5555" not in screen_text(pilot.app))
        assert "192.0.2.7" not in screen_text(pilot.app)
        assert "anna" not in screen_text(pilot.app)


async def test_names_of_other_programs_cannot_draw() -> None:
    """Markup and control characters of a process, a user or a reason are text, or gone."""
    source = Source()
    row = connection(1, 3e6, Status.UNKNOWN, reason="[red]x[/]\x1b[31m", owner=Owner(7, "[b]evil[/b]", "anna"))
    source.put(observation([row]))
    async with observe_app(source) as (_, pilot):
        await shows(pilot, "[b]evil[/b]/7")
        assert "[red]x[/]" in screen_text(pilot.app)
        assert "\x1b" not in screen_text(pilot.app)
        await pilot.press("enter")
        await shows(pilot, "[b]evil[/b]/7")


async def test_help_and_leaving() -> None:
    """`q` ends the app; the help has the keys of both screens."""
    source = Source()
    async with observe_app(source, target="db-02") as (app, pilot):
        await shows(pilot, "observe  db-02")
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        text = "\n".join(line.plain for line in app.screen._lines(400))
        for words in ("Filter as you type", "Show the next plot: throughput, RTT, cwnd", "program sets the rate"):
            assert words in text
        await pilot.press("escape", "q")
        await until(pilot, lambda: not app.is_running)


async def test_a_source_that_fails_stays_on_the_screen_with_the_reason() -> None:
    """What was known stays."""
    source = Source()
    async with observe_app(source) as (_, pilot):
        source.put(observation(examples()), LinkgaugeError("the kernel does not report its sockets"))
        await shows(pilot, "✗ the kernel does not report its sockets")
        assert "nginx/1001" in screen_text(pilot.app)


async def test_the_cockpit_opens_it_by_a_key(world: Any) -> None:
    """Escape goes back to the cockpit."""
    async with world.cockpit() as cockpit:
        await cockpit.pilot.press("i")
        await until(cockpit.pilot, lambda: isinstance(cockpit.app.screen, ObserveScreen))
        await cockpit.pilot.press("escape")
        await until(cockpit.pilot, lambda: not isinstance(cockpit.app.screen, ObserveScreen))


def test_the_table_has_more_rows_than_the_printed_one_unless_the_user_gave_a_number() -> None:
    """It scrolls."""
    assert screen_request(ObserveRequest()).top == 256
    assert screen_request(ObserveRequest(top=5)).top == 5


async def test_real_connections_of_this_process() -> None:
    """The real reader: a transfer over loopback, this process as its owner, in gauges, until it ends."""
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    sender = socket.create_connection(("127.0.0.1", port))
    receiver, _ = server.accept()
    loop = asyncio.get_running_loop()
    for each in (sender, receiver):
        each.setblocking(False)

    async def send() -> None:
        while True:
            await loop.sock_sendall(sender, bytes(20_000))
            await asyncio.sleep(0.02)

    async def receive() -> None:
        while await loop.sock_recv(receiver, 1 << 16):
            pass

    tasks = [asyncio.create_task(send()), asyncio.create_task(receive())]
    request = ObserveRequest(target=parse_target(f":{port}"), interval_ns=250_000_000)
    try:
        async with observe_app(observe(request, load_catalog()), target=f":{port}") as (_, pilot):
            await shows(pilot, f"/{os.getpid()}")
            text = screen_text(pilot.app)
            assert f"127.0.0.1:{port}" in text
            await pilot.press(*f"/peer::{port}", "enter", "enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, ConnectionScreen))
            await shows(pilot, "local sends, acknowledged")
            await shows(pilot, "program sets the rate")
            tasks[0].cancel()
            sender.close()
            await shows(pilot, "■ ended")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in (sender, receiver, server):
            each.close()
