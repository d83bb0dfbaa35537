"""The screen of an endpoint: its keys, and its pictures."""

# The screen is read from Textual's compositor.
# pyright: reportPrivateUsage=false

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from linkgauge.engine.far.status import ClientStatus, EndpointStatus, EndpointTotals, LogEntry, RunStatus
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.plan import SECOND_NS, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.app.app import EndpointApp
from linkgauge.tui.endpoint.client_table import ClientTable
from linkgauge.tui.endpoint.endpoint_log import EndpointLog
from linkgauge.tui.endpoint.endpoint_rates import EndpointInfo
from linkgauge.tui.endpoint.endpoint_screen import _invitation
from linkgauge.tui.endpoint.endpoint_setup import EndpointConfig, prepare_endpoint
from linkgauge.tui.endpoint.served_endpoint import ServedEndpoint, endpoint_info
from linkgauge.tui.kit.drawing.screen_diff import screen_strips
from linkgauge.tui.session.credentials import parse_pasted_peer
from textual.pilot import Pilot

from ..app_driver import screen_text

COMMAND = "LINKGAUGE_KEY=v7m2-9kqd-x4tz-83fw linkgauge check auto db-02"
FACTS = EndpointInfo("db-02", "port 5820, all addresses", "key required: new at this start, y copies it", COMMAND)
STREAM = RunStatus(Workload.STREAM, Settings(Direction.OUT, 5, 262_144), 30 * SECOND_NS, 0, 0, 0)

# By default some depend on this machine's cores and memory.
LIMITS = Limits(workers=8, memory_bytes=4 << 30, client_memory_bytes=1 << 30, deny=("10.0.0.0/8",))


class ScriptedEndpoint(ServedEndpoint):
    """An endpoint with or without clients. Each look is a quarter of a second later, up to the last."""

    def __init__(self, *, visited: bool) -> None:
        self.info = FACTS
        self.log = EndpointLog(lambda: datetime(2026, 11, 21, 17, 2, 3, tzinfo=UTC))
        self.visited = visited
        self.at_quarter = 0
        self.leaving = 0
        self.reloads = 0
        if visited:
            for entry in (
                LogEntry("client", "connected", client="192.0.2.7"),
                LogEntry("run_began", "started: stream", client="192.0.2.7"),
                LogEntry("refused", "rejected: \x1b[2J200 sessions are too many (its limit sessions is 128)"),
                LogEntry("run_ended", "finished", client="192.0.2.9", bytes=31 << 30),
            ):
                self.log.append_entry(entry)

    def status(self) -> EndpointStatus:
        """Return the next moment; the stream's rate goes up and down."""
        self.at_quarter = min(self.at_quarter + 1, 150)
        at_ns = self.at_quarter * SECOND_NS // 4
        received = sum(290_000_000 + 8_000_000 * ((7 * quarter) % 5) for quarter in range(self.at_quarter))
        clients = (
            ClientStatus(1, "192.0.2.7", "web-07", 0, _replaced(at_ns, received, 0, 5)),
            ClientStatus(
                2, "2001:db8::17", "web-09", SECOND_NS, _replaced(at_ns, received // 900, received // 100, 1)
            ),
            ClientStatus(3, "198.51.100.4", "lab", 2 * SECOND_NS),
        )
        closed = bool(self.leaving)
        totals = EndpointTotals(1, {"completed": 1}, {"sessions": 1}, 31 << 30)
        return EndpointStatus(
            at_ns, *((clients, 1, LIMITS, closed, totals) if self.visited else ((), 1, LIMITS, closed))
        )

    def reload(self) -> None:
        """Count it."""
        self.reloads += 1

    def shut_down(self) -> None:
        """Count it."""
        self.leaving += 1


def _replaced(elapsed_ns: int, received: int, sent: int, sessions: int) -> RunStatus:
    return RunStatus(Workload.STREAM, Settings(Direction.OUT, sessions), 60 * SECOND_NS, elapsed_ns, received, sent)


@asynccontextmanager
async def shown(
    endpoint: ScriptedEndpoint, size: tuple[int, int]
) -> AsyncGenerator[tuple[EndpointApp, Pilot[None]]]:
    """Run the app without a terminal; the endpoint's clock stands still."""
    app = EndpointApp(endpoint)
    async with asyncio.timeout(30), app.run_test(size=size) as pilot:
        drawn_to_the_end(app)
        await pilot.pause()
        yield app, pilot


def drawn_to_the_end(app: EndpointApp) -> None:
    """Look at the endpoint until it stands still."""
    for _ in range(150):
        app.endpoint.paint()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the app have a terminal that can show everything."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.mark.every
async def test_the_keys_of_the_screen_do_what_they_say(terminal: None) -> None:
    """Control characters in the log are harmless; every way to quit asks the endpoint to end."""
    endpoint = ScriptedEndpoint(visited=True)
    async with shown(endpoint, (80, 24)) as (app, pilot):
        assert "SERVING" in screen_text(app)
        assert "192.0.2.7" in screen_text(app)
        await pilot.press("y", "r")
        assert app.clipboard == COMMAND
        assert endpoint.reloads == 0  # there is no file
        await pilot.press("question_mark")
        assert "End the endpoint" not in screen_text(app)
        assert "Accept no new connections" in screen_text(app)
        assert "More sessions" not in screen_text(app)
        await pilot.press("escape", "s", "tab", "enter", "down", "enter", "escape")
        assert "MiB/s" in screen_text(app).splitlines()[3]
        for key, questions in (("q", 1), ("ctrl+c", 2), ("ctrl+q", 3)):
            await pilot.press(key)
            assert endpoint.leaving == questions
        await pilot.pause()
        assert "DRAINING 00:30 left" in screen_text(app)
        assert "\x1b" not in screen_text(app)


def test_the_copied_command_is_a_peer_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dialogs of the app take it whole: host, port and new key."""
    monkeypatch.delenv("LINKGAUGE_KEY", raising=False)
    config = EndpointConfig("0.0.0.0", 0)  # noqa: S104
    setup = prepare_endpoint(config, lambda _entry: None)
    with setup.listener:
        pasted = parse_pasted_peer(endpoint_info(config, setup).command)
        assert setup.new_key is not None
        assert pasted.port == setup.listener.getsockname()[1]
        assert pasted.access is not None
        assert pasted.access.key is not None
        assert pasted.access.key.reveal() == setup.new_key.reveal()


@pytest.mark.parametrize(
    ("bind", "words"),
    [
        ("127.0.0.1", "Only this host can connect. In another terminal:"),
        ("::1", "Only this host can connect. In another terminal:"),
        ("0.0.0.0", "Connect from the other host:"),  # noqa: S104
    ],
)
def test_the_screen_says_which_hosts_can_connect(monkeypatch: pytest.MonkeyPatch, bind: str, words: str) -> None:
    """No other host reaches an endpoint on loopback."""
    monkeypatch.delenv("LINKGAUGE_KEY", raising=False)
    config = EndpointConfig(bind, 0)
    setup = prepare_endpoint(config, lambda _entry: None)
    with setup.listener:
        assert words in _invitation(endpoint_info(config, setup)).plain


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=["80x24", "200x60"])
async def test_without_clients_the_screen_has_the_command_to_connect(terminal: None, size: tuple[int, int]) -> None:
    """With clients it has their table in its place."""
    async with shown(ScriptedEndpoint(visited=False), size) as (app, _):
        assert "No clients. Connect from the other host:" in screen_text(app)
        assert COMMAND in screen_text(app)
        assert not app.endpoint.query_one(ClientTable).display
    async with shown(ScriptedEndpoint(visited=True), size) as (app, _):
        assert COMMAND not in screen_text(app)
        assert app.endpoint.query_one(ClientTable).display


@pytest.mark.every
async def test_a_large_screen_has_larger_rates_and_a_longer_log(terminal: None) -> None:
    """The clients keep the rest."""
    async with shown(ScriptedEndpoint(visited=True), (200, 60)) as (app, _):
        heights = [app.endpoint.query_one(f"#{name}").size.height for name in ("rates", "below")]
        assert heights == [12, 20]


async def still(pilot: Any) -> None:
    """Wait until the screen is the same a few times over."""
    await pilot.pause()
    drawn_to_the_end(pilot.app)
    seen: list[list[Any]] = []
    async with asyncio.timeout(30):
        while len(seen) < 4 or any(seen[-1] != earlier for earlier in seen[-4:-1]):
            await pilot.pause()
            seen.append(screen_strips(pilot.app.screen))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_clients_and_what_they_carry(snap_compare: Any, terminal: None, size: tuple[int, int]) -> None:
    """Two clients with runs, and one without."""
    assert snap_compare(EndpointApp(ScriptedEndpoint(visited=True)), terminal_size=size, run_before=still)


def test_without_clients_the_screen_has_the_link_to_the_page_and_its_code() -> None:
    """The user's phone reads it from the screen."""
    page = "http://192.0.2.7:8080/rJ2v/"
    text = _invitation(replace(FACTS, page=page, page_code=("█▀█", "▄ ▄"))).plain
    assert f"{page}\n\n█▀█\n▄ ▄" in text
    assert "browser" not in _invitation(FACTS).plain
