"""The control conversation as a client, against servers that follow a script, up to the moment they break off."""

import asyncio
import contextlib
import json
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest
from linkgauge.engine.iperf3.near import client as client_module
from linkgauge.engine.iperf3.near import run as run_module
from linkgauge.engine.iperf3.near.run import open_iperf3_run
from linkgauge.engine.model.errors import PeerBusy, PeerError, PeerNotLinkgauge, PeerRefused, PeerUnreachable
from linkgauge.engine.model.events import Event, Totals, Warned
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason

from ...conftest import DEADLINE_S, RATE_BIT_S

pytestmark = pytest.mark.usefixtures("fork_server")

COOKIE_BYTES = 37
READ = "read"  # a document
STREAM = "stream"
END = "end"  # of the test, by the client
STALL = "stall"
CREATED = [9, READ, 10, STREAM]
RUNNING = [*CREATED, 1, 2]
ENDED = [*RUNNING, END, 13, READ]
RESULTS: dict[str, Any] = {
    **dict.fromkeys(("cpu_util_total", "cpu_util_user", "cpu_util_system"), 1.0),
    "sender_has_retransmits": -1,
    "streams": [{"id": 1, "bytes": 10**6, "retransmits": -1, "jitter": 0, "errors": 0, "packets": 0}],
}
Step = int | str | bytes | dict[str, Any]


class ScriptedServer:
    """A server of one test that does the steps of a script, and then closes."""

    def __init__(self, script: list[Step]) -> None:
        self.script = script
        self.parameters: Any = None
        self.broken_connections = 0
        self._cookie = b""
        self._streams: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a control connection, or a stream of its test."""
        self._writers.append(writer)
        if self.broken_connections:
            self.broken_connections -= 1
            writer.close()
            return
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            cookie = await reader.readexactly(COOKIE_BYTES)
            if cookie == self._cookie:
                self._streams.put_nowait(writer)
                while await reader.read(1 << 20):
                    pass
                return
            self._cookie = cookie
            for step in self.script:
                await self._do(step, reader, writer)
        self.close()

    async def _do(self, step: Step, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if step == READ:
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            document = json.loads(await reader.readexactly(length))
            self.parameters = self.parameters or document
        elif step == STREAM:
            await self._streams.get()
        elif step == END:
            while await reader.readexactly(1) != b"\x04":
                pass
        elif step == STALL:
            await asyncio.Event().wait()
        elif isinstance(step, dict):
            data = json.dumps(step).encode()
            writer.write(struct.pack(">I", len(data)) + data)
        else:
            writer.write(step if isinstance(step, bytes) else bytes([int(step) & 0xFF]))

    def close(self) -> None:
        """Close every connection."""
        for writer in self._writers:
            writer.close()


@contextlib.asynccontextmanager
async def serving(script: list[Step]) -> AsyncIterator[tuple[ScriptedServer, Peer]]:
    """Give a server of a script, and its peer."""
    scripted = ScriptedServer(script)
    server = await asyncio.start_server(scripted.accept, "127.0.0.1", 0)
    try:
        port: int = server.sockets[0].getsockname()[1]
        yield scripted, Peer.parse(f"iperf3://127.0.0.1:{port}")
    finally:
        scripted.close()
        server.close()


def plan_of(**more: Any) -> Plan:
    """Return a plan of half a second at a low rate."""
    return Plan(**{"duration_ns": SECOND_NS // 2, "interval_ns": SECOND_NS // 10, "rate_bit_s": RATE_BIT_S, **more})


async def run_against(script: list[Step], **more: Any) -> list[Event]:
    """Return the events of a run against a script."""
    async with (
        asyncio.timeout(DEADLINE_S),
        serving(script) as (_, peer),
        open_iperf3_run(plan_of(**more), peer) as run,
    ):
        return [event async for event in run]


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ([], PeerUnreachable, "before it answered; check that an iperf3 server listens"),
        ([-1], PeerBusy, "busy"),
        ([b"HTTP/1.1 400"], PeerNotLinkgauge, "not an iperf3 server.*check the port"),
        ([10], PeerNotLinkgauge, "in place of PARAM_EXCHANGE"),
        ([9, READ], PeerUnreachable, r"after the parameters.*give iperf3://USER@HOST"),
        ([9, READ, -2, struct.pack(">ii", 142, 0)], PeerRefused, "user name and password; check user"),
        ([9, READ, -2, struct.pack(">i", 142)], PeerRefused, "user name and password"),  # 3.2 to 3.19
        ([9, READ, -2], PeerRefused, "no reason"),
        ([9, READ, -2, struct.pack(">ii", 37, 0)], PeerRefused, "give a shorter --seconds"),
        ([9, READ, -2, struct.pack(">ii", 141, 105)], PeerRefused, r"no buffer space.*smaller --window"),
        ([9, READ, -2, struct.pack(">ii", 999, -5)], PeerRefused, "iperf3 error 999"),
        ([9, READ, 11], PeerRefused, "was stopped there"),
        ([9, READ, 10], PeerError, "closed the connection while the sessions were opened|session"),
        ([9, READ, 10, -2, struct.pack(">ii", 204, 0)], PeerRefused, "could not accept a session"),
        (CREATED, PeerUnreachable, "while the sessions were opened"),
        ([*CREATED, 1], PeerUnreachable, "while the sessions were opened"),
    ],
)
async def test_a_server_that_breaks_off_before_the_test_is_explained(
    script: list[Step], kind: type[PeerError], words: str
) -> None:
    """In each state: the server's reason, and a remedy."""
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(kind, match=words):
            await run_against(script)


@pytest.mark.parametrize("script", [[STALL], [9, READ, STALL], [*CREATED, STALL]], ids=len)
async def test_a_server_that_says_nothing_is_given_up(script: list[Step], monkeypatch: pytest.MonkeyPatch) -> None:
    """No wait is without an end."""
    monkeypatch.setattr(client_module, "ANSWER_DEADLINE_S", 0.3)
    with pytest.raises(PeerUnreachable, match=r"sent nothing for 0.3 s"):
        await run_against(script)


@pytest.mark.parametrize(
    ("script", "reason", "words"),
    [
        (RUNNING, Reason.PEER_LOST, "closed the connection"),
        ([*RUNNING, 11], Reason.PEER_STOPPED, "was stopped there"),
        ([*RUNNING, -2, struct.pack(">ii", 160, 0)], Reason.PEER_STOPPED, "longer than it waits"),
        ([*RUNNING, 13], Reason.FAILED, "during the test"),
        ([*RUNNING, b"\x63"], Reason.FAILED, "no state 99"),
    ],
)
async def test_a_server_that_breaks_off_during_the_test_ends_the_run_at_once(
    script: list[Step], reason: Reason, words: str
) -> None:
    """Each with its own reason, long before the end of the test."""
    events = await run_against(script, duration_ns=60 * SECOND_NS, warmup_ns=0)
    end = events[-1].end  # type: ignore[union-attr]
    assert end.reason is reason
    assert words in end.detail


@pytest.mark.every
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([*RUNNING, END], Reason.COMPLETED),
        ([*RUNNING, END, 13], Reason.COMPLETED),
        (ENDED, Reason.COMPLETED),
        ([*ENDED, b"\xff\xff\xff\xff"], Reason.FAILED),
        ([*ENDED, b"\x00\x00\x00\x02{]"], Reason.FAILED),
        ([*ENDED, {"streams": "none"}, 14], Reason.FAILED),
        ([*ENDED, {**RESULTS, "streams": []}, 14], Reason.COMPLETED),
        ([*ENDED, RESULTS], Reason.COMPLETED),
        ([*ENDED, RESULTS, 9], Reason.FAILED),
        ([*RUNNING, END, STALL], Reason.PEER_LOST),
    ],
)
async def test_a_test_without_usable_results_has_this_ends_figures_and_says_what_is_missing(
    script: list[Step], reason: Reason, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning, or the reason that the far end was not understood. A server that falls silent is lost as well."""
    monkeypatch.setattr(run_module, "FINISH_DEADLINE_S", 1.0)
    events = await run_against(script)
    end = events[-1].end  # type: ignore[union-attr]
    assert end.reason is reason
    warned = any("sent no results" in event.text for event in events if isinstance(event, Warned))
    assert warned is (reason is not Reason.FAILED)
    assert warned or "broke the protocol" in end.detail
    assert not [event for event in events if isinstance(event, Totals)]


async def test_a_connection_that_a_server_breaks_off_between_two_tests_is_tried_again() -> None:
    """A stock server does not listen for a moment after each test, and the next run of a sweep begins at once."""
    script: list[Step] = [*ENDED, RESULTS, 14]
    async with asyncio.timeout(DEADLINE_S), serving(script) as (server, peer):
        server.broken_connections = 2
        async with open_iperf3_run(plan_of(), peer) as run:
            events = [event async for event in run]
    assert [event for event in events if isinstance(event, Totals)]


async def test_a_complete_conversation_has_totals_and_sends_the_parameters_of_the_plan() -> None:
    """An old server's results have no time: then it is this end's."""
    script: list[Step] = [*ENDED, RESULTS, 14]
    async with (
        asyncio.timeout(DEADLINE_S),
        serving(script) as (server, peer),
        open_iperf3_run(plan_of(), peer) as run,
    ):
        events = [event async for event in run]
    (totals,) = [event for event in events if isinstance(event, Totals)]
    assert totals.sessions[0].bytes == 10**6
    assert 0.3 * SECOND_NS < totals.span_ns < 2 * SECOND_NS
    expected = {"tcp": True, "time": 1, "omit": 0, "parallel": 1, "bandwidth": RATE_BIT_S, "len": 131_072}
    assert {key: server.parameters[key] for key in expected} == expected
    assert "linkgauge" in server.parameters["client_version"]
