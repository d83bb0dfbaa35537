"""Commands and events of workers: each arrives as it was sent."""

import pytest
from linkgauge.engine.model.plan import Direction, End, Mode, Settings, SocketOptions
from linkgauge.engine.model.serialization import decode, encode
from linkgauge.engine.model.socket_info import SocketInfo
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.workers.commands import (
    COMMANDS,
    EVENTS,
    AdoptSession,
    ApplyChange,
    Command,
    Configure,
    ConnectionFailed,
    ConnectionLost,
    ConnectionOpened,
    OpenSession,
    StartPayload,
    WorkerEvent,
    WorkerReady,
)
from linkgauge.engine.workloads.session_handshake import ConnectTarget, SessionSpec

SPEC = SessionSpec(Direction.IN, 3, 1, 65_536, "00" * 16)
SAMPLES: tuple[Command | WorkerEvent, ...] = (
    Configure(End.FAR, 1, 2, Mode.COPY, SocketOptions(), Workload.RR, 3, 4, 5, 6, (0, 1), shares_core=True),
    OpenSession(SPEC, ConnectTarget.from_address("00" * 16, ("::1", 5820, 0, 0))),
    AdoptSession(SPEC),
    StartPayload(),
    ApplyChange(Settings(Direction.DUPLEX, 4), 2, 1),
    WorkerReady(),
    ConnectionOpened(SocketInfo(End.FAR, Direction.IN, 3, "cubic", None, None, None, None, None)),
    ConnectionFailed(Direction.IN, 3, 1, "no answer in time"),
    ConnectionLost(Direction.IN, 3, 1, "the other end closed it"),
)


@pytest.mark.parametrize("message", SAMPLES, ids=lambda message: type(message).__name__)
def test_each_command_and_event_arrives_as_it_was_sent(message: Command | WorkerEvent) -> None:
    """A field that JSON cannot carry would fail in a worker only."""
    assert decode(type(message), encode(message)) == message


def test_every_kind_is_in_its_table() -> None:
    """The channel decodes by these tables."""
    assert {type(message) for message in SAMPLES} == {*COMMANDS, *EVENTS}
