"""A made-up connection of another program, as it is observed once a second."""

from linkgauge.engine.host.sockets.socket_message import SocketAddress
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import ObservedSocket
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.observe.connection_track import ConnectionTrack
from linkgauge.observe.observation import ConnectionKey, Observation, ObservedConnection, Status

from ...observe.made_sockets import INTERVAL_NS, Socket
from ...observe.tracked import HERE, RATE
from .example_observations import SLOW_READER

STEP = 250_000  # a quarter of a second at 8 Mb/s
KEY = ConnectionKey("tcp", SocketAddress("192.0.2.1", 1), SocketAddress("192.0.2.9", 80), 7)
NAME = ObservedSocket("192.0.2.1:1", "192.0.2.9:80", "eve", "rsync\x1b[31m", 812)


class Watched:
    """A connection that is observed once a second."""

    def __init__(self, key: ConnectionKey = KEY) -> None:
        self.key = key
        self.track = ConnectionTrack(Socket(port=key.cookie).reading(), 0)
        self._socket = Socket(port=key.cookie)
        self._count = 0

    def look(self, *, sends: bool = True, status: Status = Status.LIMITED, samples: int = 4) -> Observation:
        """Return the observation of the next second."""
        for _ in range(samples):
            self._count += 1
            rise = {"busy_us": self._socket.busy_us + 250_000, "retransmits": self._count, "needless": self._count}
            name = "acked" if sends else "received"
            self._socket = self._socket.later(**rise | {name: getattr(self._socket, name) + STEP})
            self.track.add_reading(self._socket.reading(), self._count * INTERVAL_NS)
        flow = Direction.OUT if sends else Direction.IN
        for each in self.track.flows.values():
            each.add_bytes(samples * STEP if each.direction is flow else 0, self._count * INTERVAL_NS)
            each.end_interval(samples * INTERVAL_NS)
        out, in_ = (
            self.track.flows[each].figures(self.track.flows[each].sums()) for each in Direction.DUPLEX.flows
        )
        row = ObservedConnection(
            key=self.key,
            state="established",
            user="eve",
            out=out,
            in_=in_,
            status=status,
            reason=SLOW_READER.text,
            findings=(SLOW_READER,) if status is Status.LIMITED else (),
            expected=RATE,
            events=self.track.events(flow, HERE, NAME, RATE),
        )
        return Observation("2026-11-28T17:00:00Z", self._count * INTERVAL_NS, SECOND_NS, (row,))
