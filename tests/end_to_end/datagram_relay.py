"""`python datagram_relay.py`: a link between two network namespaces whose faults of datagrams are known exactly.

It drops, duplicates, delays and swaps the payload datagrams of a UDP session, by a seed, and passes every other
frame on at once: TCP, handshakes and feedback arrive as they were sent. It knows a datagram by the number that it
begins with. Each line of standard input is either faults, as JSON, which begin a new count and are answered by
`{}`, or `"truth"`, which is answered by what has been done to each flow since then. The namespaces last as long as
this process, which ends with its standard input.
"""

import heapq
import json
import os
import random
import select
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from linkgauge.engine.lab.devices import FAR_DEVICE, NEAR_DEVICE, create_tap_pair, run_tool
from linkgauge.engine.lab.namespaces import NetworkNamespace

ADDRESSES: Final = {4: ("198.18.0.1", "198.18.0.2"), 6: ("fd18::1", "fd18::2")}
_PREFIXES: Final = {4: 30, 6: 64}
# A relay that is held up for a second must not become a link that loses: the device holds as many frames.
_QUEUED_FRAMES: Final = 20_000
_FRAMES_AT_ONCE: Final = 64
_FRAME_BYTES: Final = 65_536
_SECOND_NS: Final = 1_000_000_000
_LARGE: Final = 1_000  # bytes: a segment with payload
_LONGEST_SWAP_NS: Final = 50_000_000
_PRIORITY: Final = -10
_ETHERNET: Final = 14
_IPV4, _IPV6, _UDP = b"\x08\x00", b"\x86\xdd", 17
_PAYLOAD: Final = struct.Struct("<QQQ")  # number, time of sending, cookie
_MOST_NUMBERS: Final = 1 << 62  # control datagrams begin with a larger number


@dataclass(frozen=True)
class Faults:
    """What happens to payload datagrams; shares are from 0 to 1, and drawn for each datagram by itself.

    `loss_burst` datagrams in a row are lost each time. Every `loss_period`-th is lost, 0 is none. Of each flow
    those with the number `lost_from` and above are lost. A copy follows its original, a swapped datagram waits
    until `swap_distance` others have overtaken it. `jitter_ns` is drawn evenly, so that datagrams overtake others.
    All other frames wait for `frame_delay_ns`, and of the large ones the share `frame_loss` is lost. Every
    `held_every`-th of these waits for `held_ns` more, 0 is none: segments of TCP that follow overtake it.
    """

    seed: int = 1
    loss: float = 0.0
    loss_burst: int = 1
    loss_period: int = 0
    lost_from: int | None = None
    duplicate: float = 0.0
    swap: float = 0.0
    swap_distance: int = 1
    delay_ns: int = 0
    jitter_ns: int = 0
    frame_delay_ns: int = 0
    frame_loss: float = 0.0
    held_every: int = 0
    held_ns: int = 0


class Datagram(NamedTuple):
    """A payload datagram: its flow, its number, and when it was sent."""

    flow: bytes
    number: int
    stamp_ns: int


def read_datagram(frame: bytes) -> Datagram | None:
    """Return the payload datagram in an Ethernet frame; None for every other frame."""
    kind = frame[12:14]
    if kind == _IPV4 and frame[23] == _UDP:
        begin, addresses = _ETHERNET + 4 * (frame[_ETHERNET] & 0x0F), frame[26:34]
    elif kind == _IPV6 and frame[20] == _UDP:
        begin, addresses = _ETHERNET + 40, frame[22:54]
    else:
        return None
    if len(frame) < begin + 8 + _PAYLOAD.size:
        return None
    number, stamp_ns, _ = _PAYLOAD.unpack_from(frame, begin + 8)
    if number >= _MOST_NUMBERS:
        return None
    return Datagram(addresses + frame[begin : begin + 4], number, stamp_ns)


@dataclass
class FlowTruth:
    """What was done to one flow. `missing` never reached the relay: numbers below the largest that did.

    `reordered` counts by RFC 4737: a datagram with a smaller number than one that has been passed on before it; its
    extent is the number of datagrams since the earliest such one, and it is 3-reordered if the last three all have
    larger numbers. Copies do not count. `gaps` are runs of numbers of which none was passed on. `delays_ns` are the
    times from the sender's stamp until the datagram was passed on, `added_ns` the delays that were drawn.
    """

    sent: int = 0
    missing: int = 0
    lost: int = 0
    duplicates: int = 0
    reordered: int = 0
    reordered_3: int = 0
    extent: int = 0
    gaps: int = 0
    gap_longest: int = 0
    delays_ns: list[int] = field(default_factory=list)
    added_ns: list[int] = field(default_factory=list)


class FlowRecord:
    """Everything that came of one flow, and everything that was passed on, in order."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self.passed: list[int] = []
        self.delays_ns: list[int] = []
        self.added_ns: list[int] = []

    def truth(self) -> FlowTruth:
        """Count what was done."""
        came, copies = set(self.came), Counter(self.passed)
        first = list(dict.fromkeys(self.passed))
        truth = FlowTruth(
            sent=len(came),
            missing=max(came, default=-1) + 1 - len(came),
            lost=len(came) - len(copies),
            duplicates=len(self.passed) - len(copies),
            delays_ns=self.delays_ns,
            added_ns=self.added_ns,
        )
        records: list[tuple[int, int]] = []  # the positions and numbers of those that are larger than all before
        for position, number in enumerate(first):
            if records and number < records[-1][1]:
                truth.reordered += 1
                truth.reordered_3 += position >= 3 and min(first[position - 3 : position]) > number
                earliest = next(at for at, larger in records if larger > number)
                truth.extent = max(truth.extent, position - earliest)
            else:
                records.append((position, number))
        expected = 0
        for number in [*sorted(copies), max(came, default=-1) + 1]:  # the last gap may be at the end
            if number > expected:
                truth.gaps += 1
                truth.gap_longest = max(truth.gap_longest, number - expected)
            expected = number + 1
        return truth


@dataclass
class _Swapped:
    """A datagram that waits until `left` others have overtaken it."""

    left: int
    frame: bytes
    datagram: Datagram


class FaultyDirection:
    """One direction of the link. It has no clock: each call says the time."""

    def __init__(self, faults: Faults, seed: str) -> None:
        self._faults = faults
        self._random = random.Random(seed)  # noqa: S311 - chance, not secrets
        self._order = self._large = 0
        self._waiting: list[tuple[int, int, bytes, Datagram | None]] = []
        self._swapped: dict[bytes, _Swapped] = {}
        self._lost_in_a_row = 0
        self.flows: dict[bytes, FlowRecord] = {}

    def send(self, frame: bytes, now_ns: int) -> None:
        """Accept a frame."""
        datagram = read_datagram(frame)
        if datagram is None:
            self._send_frame(frame, now_ns)
            return
        faults, draw = self._faults, self._random.random
        flow = self.flows.setdefault(datagram.flow, FlowRecord())
        flow.came.append(datagram.number)
        lost, copied, swapped, jitter = draw(), draw(), draw(), draw()  # always four: faults do not shift others
        if self._is_lost(lost, datagram, len(flow.came)):
            return
        added_ns = faults.delay_ns + int(jitter * faults.jitter_ns)
        flow.added_ns.append(added_ns)
        if swapped < faults.swap and datagram.flow not in self._swapped:
            self._swapped[datagram.flow] = _Swapped(faults.swap_distance, frame, datagram)
            self._pass_at(now_ns + _LONGEST_SWAP_NS, b"", datagram)  # nothing may follow it
            return
        due_ns = now_ns + added_ns
        for _ in range(1 + (copied < faults.duplicate)):
            self._pass_at(due_ns, frame, datagram)
        self._overtake(datagram.flow, due_ns)

    def _send_frame(self, frame: bytes, now_ns: int) -> None:
        faults, held_ns = self._faults, 0
        if len(frame) > _LARGE:
            self._large += 1
            if faults.frame_loss and self._random.random() < faults.frame_loss:
                return
            if faults.held_every and not self._large % faults.held_every:
                held_ns = faults.held_ns
        self._pass_at(now_ns + faults.frame_delay_ns + held_ns, frame, None)

    def _is_lost(self, drawn: float, datagram: Datagram, count: int) -> bool:
        faults = self._faults
        if self._lost_in_a_row:
            self._lost_in_a_row -= 1
            return True
        if drawn < faults.loss:
            self._lost_in_a_row = faults.loss_burst - 1
            return True
        is_periodic = faults.loss_period > 0 and count % faults.loss_period == 0
        return is_periodic or (faults.lost_from is not None and datagram.number >= faults.lost_from)

    def _overtake(self, flow: bytes, due_ns: int) -> None:
        swapped = self._swapped.get(flow)
        if swapped is None:
            return
        swapped.left -= 1
        if not swapped.left:
            del self._swapped[flow]
            self._pass_at(due_ns, swapped.frame, swapped.datagram)

    def _pass_at(self, due_ns: int, frame: bytes, datagram: Datagram | None) -> None:
        self._order += 1
        heapq.heappush(self._waiting, (due_ns, self._order, frame, datagram))

    def pop_arrivals(self, now_ns: int) -> Iterator[tuple[bytes, Datagram | None]]:
        """Yield the frames that have arrived by now, with their datagrams."""
        while self._waiting and self._waiting[0][0] <= now_ns:
            _, _, frame, datagram = heapq.heappop(self._waiting)
            if not frame and datagram is not None:  # the end of a wait
                swapped = self._swapped.get(datagram.flow)
                if swapped is None or swapped.datagram.number != datagram.number:
                    continue
                frame = self._swapped.pop(datagram.flow).frame
            yield frame, datagram

    def next_event_ns(self) -> int | None:
        """Return the time of the next arrival; None if nothing waits."""
        return self._waiting[0][0] if self._waiting else None

    def note_passed(self, datagram: Datagram, at_ns: int) -> None:
        """Count a datagram that has been passed on."""
        flow = self.flows[datagram.flow]
        if datagram.number not in flow.passed[-1:]:  # a copy follows its original
            flow.delays_ns.append(at_ns - datagram.stamp_ns)
        flow.passed.append(datagram.number)


class Relay:
    """The relay between two TAP devices: frames of the near one go out, of the far one in."""

    def __init__(self, taps: tuple[int, int]) -> None:
        self._taps = taps
        self._faults = Faults()
        self._directions = self._begin()

    def _begin(self) -> tuple[FaultyDirection, FaultyDirection]:
        out, in_ = (FaultyDirection(self._faults, f"{self._faults.seed} {side}") for side in ("out", "in"))
        return out, in_

    def run(self, commands: int) -> None:
        """Carry frames, and answer each line of the commands, until they end."""
        os.set_blocking(commands, False)
        while True:
            due = [at for at in (each.next_event_ns() for each in self._directions) if at is not None]
            wait_s = max(0, min(due) - time.monotonic_ns()) / _SECOND_NS if due else None
            readable, _, _ = select.select([*self._taps, commands], [], [], wait_s)
            if commands in readable:
                lines = os.read(commands, _FRAME_BYTES)
                if not lines:
                    return
                for line in lines.splitlines():
                    print(json.dumps(self._answer(json.loads(line))), flush=True)  # noqa: T201
            for side, tap in enumerate(self._taps):
                if tap in readable:
                    self._read(side, tap)
                self._write(side, self._taps[1 - side])

    def _answer(self, command: Any) -> dict[str, Any]:
        if command == "truth":
            flows = zip(("out", "in"), self._directions, strict=True)
            return {name: [asdict(each.truth()) for each in side.flows.values()] for name, side in flows}
        self._faults = Faults(**command)
        self._directions = self._begin()
        return {}

    def _read(self, side: int, tap: int) -> None:
        with suppress(BlockingIOError):
            for _ in range(_FRAMES_AT_ONCE):
                self._directions[side].send(os.read(tap, _FRAME_BYTES), time.monotonic_ns())

    def _write(self, side: int, tap: int) -> None:
        direction = self._directions[side]
        for frame, datagram in direction.pop_arrivals(time.monotonic_ns()):
            at_ns = time.monotonic_ns()
            os.write(tap, frame)
            if datagram is not None:
                direction.note_passed(datagram, at_ns)


def configure(device: str, side: int) -> None:
    """Configure a device of this namespace as one end of the link."""
    run_tool("ip", "link", "set", "lo", "up")
    run_tool("ip", "link", "set", device, "txqueuelen", str(_QUEUED_FRAMES))
    for version, addresses in ADDRESSES.items():
        without_wait = ["nodad"] if version == 6 else []
        address = f"{addresses[side]}/{_PREFIXES[version]}"
        run_tool("ip", "address", "add", address, "dev", device, *without_wait)
    run_tool("ip", "link", "set", device, "up")


def main() -> None:
    """Make the link, say where its namespaces are, and carry its frames."""
    near = NetworkNamespace.create()
    far = NetworkNamespace.create()
    with near.enter():
        taps = create_tap_pair(far)
        configure(NEAR_DEVICE, 0)
    with far.enter():
        configure(FAR_DEVICE, 1)
    with suppress(OSError):
        os.nice(_PRIORITY)
    print(json.dumps([near.path, far.path]), flush=True)  # noqa: T201
    Relay(taps).run(sys.stdin.fileno())


if __name__ == "__main__":
    main()
