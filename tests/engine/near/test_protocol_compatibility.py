"""Both ends still understand an earlier version that speaks the same protocol, and are understood by it.

`data/earlier_version_conversation.json` holds the bytes of one run between two ends of that version, without a key:
65536-byte windows, duplex, one session, then two. `control` lists preambles and frames with their sender. `data`
holds the first bytes of each data connection, from the near and from the far end.
"""

import asyncio
import json
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.model.events import Event, Opened, Reason, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Plan, Settings
from linkgauge.engine.near.run import Run
from linkgauge.engine.protocol.framing import MAX_FRAME_BYTES, decompress
from linkgauge.engine.protocol.preamble import DATA_HELLO_BYTES, PREAMBLE_BYTES

RECORDED = json.loads(
    (Path(__file__).parent / "data/earlier_version_conversation.json").read_text(encoding="ascii")
)
CONTROL: list[tuple[str, bytes]] = [(sender, bytes.fromhex(text)) for sender, text in RECORDED["control"]]
DATA: dict[bytes, bytes] = {bytes.fromhex(near): bytes.fromhex(far) for near, far in RECORDED["data"]}
LENGTH = struct.Struct(">I")
DEADLINE_S = 20.0
ANSWERS = {
    "Hello": ["Welcome"],
    "Open": ["Ready", "SessionOpened", "SessionOpened"],
    "Start": ["Begun", "Report", "Report"],
    "Change": ["SessionOpened", "SessionOpened"],
    "Stop": ["Finish"],
}
Hear = Callable[[asyncio.StreamReader, str], Awaitable[None]]


def body_of(frame: bytes, sender: End) -> dict[str, Any]:
    """Return the JSON object in a frame."""
    return json.loads(decompress(frame[LENGTH.size :], MAX_FRAME_BYTES[sender]))


def fields_of(value: object, path: str = "") -> set[str]:
    """Return the paths of all keys in a JSON value; the items of a list share one path."""
    if isinstance(value, list):
        return set().union(*(fields_of(item, path) for item in value))
    if isinstance(value, dict):
        own = {f"{path}.{key}" for key in value}
        return own.union(*(fields_of(item, f"{path}.{key}") for key, item in value.items()))
    return set()


def bodies_of(sender: End) -> list[dict[str, Any]]:
    """Return the recorded messages of one end."""
    frames = [frame for end, frame in CONTROL if end == sender and len(frame) > PREAMBLE_BYTES]
    return [body_of(frame, sender) for frame in frames]


def known_fields(sender: End) -> dict[str, set[str]]:
    """Return the fields that each message of the earlier version's end has."""
    known: dict[str, set[str]] = {}
    for body in bodies_of(sender):
        known.setdefault(body["type"], set()).update(fields_of(body))
    return known


async def read_frame(reader: asyncio.StreamReader, sender: End) -> dict[str, Any]:
    """Return the next message but pings, whose fields must all be known to the earlier version.

    That version refuses a message with a field that it does not know.
    """
    while True:
        size = await reader.readexactly(LENGTH.size)
        body = body_of(size + await reader.readexactly(*LENGTH.unpack(size)), sender)
        if body["type"] not in {"Ping", "Pong"}:
            assert fields_of(body) <= known_fields(sender)[body["type"]], body
            return body


@asynccontextmanager
async def earlier_far_end() -> AsyncGenerator[tuple[Peer, list[bytes]]]:
    """Serve the recorded far end once; give its address and the openings of its data connections."""
    openings: list[bytes] = []
    failures: list[BaseException] = []

    async def replay_control(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for sender, recorded in CONTROL[1:]:  # after the near end's preamble
            if sender == End.FAR:
                writer.write(recorded)
            else:
                body = await read_frame(reader, End.NEAR)
                assert body["type"] == body_of(recorded, End.NEAR)["type"]
        await writer.drain()
        await reader.read()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            preamble = await reader.readexactly(PREAMBLE_BYTES)
            if preamble == CONTROL[0][1]:
                await replay_control(reader, writer)
            else:
                openings.append(preamble + await reader.readexactly(DATA_HELLO_BYTES))
                writer.write(DATA[openings[-1]])
                while await reader.read(1 << 20):
                    pass
        except (AssertionError, KeyError, asyncio.IncompleteReadError) as error:
            failures.append(error)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield Peer("127.0.0.1", server.sockets[0].getsockname()[1]), openings
    assert not failures


async def test_an_earlier_far_end_serves_a_run_of_todays_near_end(record: Any) -> None:
    """The run completes with the earlier end's samples, and opens the very data connections that are recorded."""
    plan = Plan(Settings(Direction.DUPLEX, 1, 65_536), duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10)

    def add_session(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.end is End.FAR and run.settings.sessions == 1:
            run.change(run.settings.with_changes(sessions=2))

    async with earlier_far_end() as (peer, openings):
        recorded = await record(plan, peer, add_session)
    assert recorded.end.reason is Reason.COMPLETED
    assert set(openings) == set(DATA)
    reports = [body for body in bodies_of(End.FAR) if body["type"] == "Report"]
    far_samples = [event.sample for event in recorded.samples if event.sample.end is End.FAR]
    assert [sample.elapsed_ns for sample in far_samples] == [each["sample"]["elapsed_ns"] for each in reports]
    opened = [event.facts for event in recorded.events if isinstance(event, Opened) and event.facts.end is End.FAR]
    assert {(facts.direction, facts.session) for facts in opened} == {
        (direction, session) for direction in (Direction.OUT, Direction.IN) for session in (1, 2)
    }


async def replay_near_end(address: tuple[str, int], hear: Hear) -> None:
    """Say what the recorded near end said, each message once the answers to the one before have come."""
    openings, writers = iter(DATA), list[asyncio.StreamWriter]()

    async def open_data() -> None:
        for opening in (next(openings), next(openings)):
            data_reader, data_writer = await asyncio.open_connection(*address)
            writers.append(data_writer)
            data_writer.write(opening)
            assert await data_reader.readexactly(1) == DATA[opening]

    reader, writer = await asyncio.open_connection(*address)
    writers.append(writer)
    writer.write(CONTROL[0][1])
    assert await reader.readexactly(PREAMBLE_BYTES) == CONTROL[0][1]
    for sender, recorded in CONTROL[1:]:
        if sender == End.NEAR:
            writer.write(recorded)
            kind = body_of(recorded, End.NEAR)["type"]
            if kind == "Change":
                await open_data()
            for answer in ANSWERS[kind]:
                await hear(reader, answer)
                if answer == "Ready":
                    await open_data()
    for each in writers:
        each.close()


async def test_todays_far_end_serves_a_run_of_an_earlier_near_end(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the recorded messages and tokens, and says nothing that the earlier near end would refuse."""
    token = next(body["token"] for body in bodies_of(End.FAR) if body["type"] == "Ready")
    monkeypatch.setattr("linkgauge.engine.far.run.secrets.token_bytes", lambda _size: bytes.fromhex(token))
    types: set[str] = set()

    async def hear(reader: asyncio.StreamReader, kind: str) -> None:
        latest = ""
        while latest != kind:
            latest = (await read_frame(reader, End.FAR))["type"]
            types.add(latest)

    async with asyncio.timeout(DEADLINE_S):
        await replay_near_end(endpoint.address, hear)
    assert types == {"Welcome", "Ready", "SessionOpened", "Begun", "Report", "Finish"}
