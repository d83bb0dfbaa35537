"""The datagrams of many flows, each over a session of its own, between two ends that have their secrets. Pure.

    near  ORDER     asks the far end for a round: its number, its flows, sweeps, their size and their pace
    far   STATUS    answers it, again for each repeated order: whether the round is over, and what was not sent
    near  QUERY     asks for the arrivals of one flow in the near end's own round, from a place in their list on
    far   ARRIVALS  answers it: a part of the list, its length, and the counts of the flow
    near  TRACE     asks the far end to trace the path of this flow, or to end that

In each sweep of a round, every flow sends one datagram, and in every eighth a second one right behind it. Their
headers are those of payload (payload_datagrams.py), whose number is that of the round and the place in the flow.
All others have a code over all of their bytes, and go over any flow. Every session is one of UDP
(datagram_handshake.py), so each end sends only to an address and port that has echoed its cookie.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from .coded_datagrams import decode_coded, encode_coded
from .payload_datagrams import PAYLOAD_HEADER

MAX_FLOWS: Final = 512
MAX_ROUNDS: Final = 16
MAX_SWEEPS: Final = 4_000
MIN_FLOW_DATAGRAM_BYTES: Final = 64
MAX_FLOW_DATAGRAM_BYTES: Final = 9_000
MIN_GAP_NS: Final = 50_000
MAX_GAP_NS: Final = 1_000_000_000
ENTRIES_IN_DATAGRAM: Final = 250
TWIN_EVERY: Final = 8
"""Of so many sweeps, the last one has two datagrams of each flow, one right behind the other."""
LATEST: Final = (1 << 32) - 1
ENTRY_ZERO: Final = 1 << 31
ENTRY_NS: Final = 100
"""Arrivals are delays in this unit, above the first one of the session, plus `ENTRY_ZERO`. 0 is no arrival."""
_ROUND_BITS: Final = 32
_FLOW_MASK_BYTES: Final = MAX_FLOWS // 8
_USE: Final = b"flow"
_ORDER: Final = struct.Struct(f">IIII{_FLOW_MASK_BYTES}s")
_STATUS: Final = struct.Struct(">II?")
_QUERY: Final = struct.Struct(">III")
_ARRIVALS: Final = struct.Struct(">IIIIIII")
_TRACE: Final = struct.Struct(">I?")


def numbers_of_sweep(sweep: int) -> tuple[int, ...]:
    """Return the numbers of a flow's datagrams in a sweep: one, or two."""
    number = sweep + sweep // TWIN_EVERY
    return (number, number + 1) if sweep % TWIN_EVERY == TWIN_EVERY - 1 else (number,)


def numbers_in(sweeps: int) -> int:
    """Return how many datagrams of a flow are in so many sweeps."""
    return sweeps + sweeps // TWIN_EVERY


def is_twin(number: int) -> bool:
    """Return whether a datagram is the second one of its flow in its sweep."""
    return number % (TWIN_EVERY + 1) == TWIN_EVERY


def flow_number(round_: int, number: int) -> int:
    """Return the number of a datagram in the header of payload."""
    return round_ << _ROUND_BITS | number


def read_flow_header(data: bytes, cookie: int) -> tuple[int, int, int] | None:
    """Return round, number and send stamp of a flow's datagram; None for any other bytes."""
    if len(data) < PAYLOAD_HEADER.size:
        return None
    whole, stamp_ns, found = PAYLOAD_HEADER.unpack_from(data)
    round_, number = whole >> _ROUND_BITS, whole & (1 << _ROUND_BITS) - 1
    is_possible = found == cookie and 0 < round_ <= MAX_ROUNDS and number < numbers_in(MAX_SWEEPS)
    return (round_, number, stamp_ns) if is_possible else None


@dataclass(frozen=True, slots=True)
class RoundOrder:
    """A round to send: `sweeps` datagrams on each of the flows, of this UDP payload, one every `gap_ns`."""

    round: int
    sweeps: int
    datagram_bytes: int
    gap_ns: int
    flows: tuple[int, ...]

    @property
    def is_allowed(self) -> bool:
        """Whether an end sends such a round: it is bounded in datagrams, their size and their rate."""
        has_size = MIN_FLOW_DATAGRAM_BYTES <= self.datagram_bytes <= MAX_FLOW_DATAGRAM_BYTES
        has_pace = MIN_GAP_NS <= self.gap_ns <= MAX_GAP_NS
        return has_size and has_pace and 0 < self.round <= MAX_ROUNDS and 0 < self.sweeps <= MAX_SWEEPS

    def pack(self, secret: bytes) -> bytes:
        """Return its bytes."""
        mask = sum(1 << flow - 1 for flow in self.flows).to_bytes(_FLOW_MASK_BYTES, "little")
        body = _ORDER.pack(self.round, self.sweeps, self.datagram_bytes, self.gap_ns, mask)
        return encode_coded(secret, _USE, b"O", body)

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it has another length."""
        if len(body) != _ORDER.size:
            return None
        round_, sweeps, datagram_bytes, gap_ns, mask_bytes = _ORDER.unpack(body)
        mask = int.from_bytes(mask_bytes, "little")
        return cls(
            round_,
            sweeps,
            datagram_bytes,
            gap_ns,
            tuple(flow for flow in range(1, MAX_FLOWS + 1) if mask >> flow - 1 & 1),
        )


@dataclass(frozen=True, slots=True)
class RoundStatus:
    """Whether the far end has sent a round, and how many datagrams of it its own host dropped."""

    round: int
    unsent: int
    is_over: bool

    def pack(self, secret: bytes) -> bytes:
        """Return its bytes."""
        return encode_coded(secret, _USE, b"T", _STATUS.pack(self.round, self.unsent, self.is_over))

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it has another length."""
        return cls(*_STATUS.unpack(body)) if len(body) == _STATUS.size else None


@dataclass(frozen=True, slots=True)
class ArrivalQuery:
    """A question for the arrivals of a flow in a round, from a place in their list on."""

    round: int
    flow: int
    offset: int

    def pack(self, secret: bytes) -> bytes:
        """Return its bytes."""
        return encode_coded(secret, _USE, b"U", _QUERY.pack(self.round, self.flow, self.offset))

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it has another length."""
        return cls(*_QUERY.unpack(body)) if len(body) == _QUERY.size else None


@dataclass(frozen=True, slots=True)
class FlowArrivals:
    """A part of a flow's arrivals in a round: an entry for each datagram by its number, as `ENTRY_NS` explains.

    `total` is the length of the whole list, `reordered` counts second datagrams of a sweep that came before the
    first, `duplicates` those that came again, `unread` those that found no room in the socket.
    """

    round: int
    flow: int
    total: int
    reordered: int
    duplicates: int
    unread: int
    offset: int
    entries: tuple[int, ...] = ()

    def pack(self, secret: bytes) -> bytes:
        """Return its bytes."""
        counts = (self.reordered, self.duplicates, self.unread)
        head = _ARRIVALS.pack(self.round, self.flow, self.total, *counts, self.offset)
        return encode_coded(secret, _USE, b"W", head + struct.pack(f">{len(self.entries)}I", *self.entries))

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it has an impossible length, or more than it says."""
        rest = len(body) - _ARRIVALS.size
        if rest < 0 or rest % 4 or rest > ENTRIES_IN_DATAGRAM * 4:
            return None
        round_, flow, total, reordered, duplicates, unread, offset = _ARRIVALS.unpack_from(body)
        entries = struct.unpack(f">{rest // 4}I", body[_ARRIVALS.size :])
        found = cls(round_, flow, total, reordered, duplicates, unread, offset, entries)
        is_possible = found.total <= numbers_in(MAX_SWEEPS) and found.offset + len(found.entries) <= found.total
        return found if is_possible and max(found.reordered, found.duplicates) <= LATEST >> 1 else None


@dataclass(frozen=True, slots=True)
class FlowTrace:
    """A request to trace the path of a flow, or to end the trace and send it on the control connection."""

    flow: int
    is_on: bool

    def pack(self, secret: bytes) -> bytes:
        """Return its bytes."""
        return encode_coded(secret, _USE, b"X", _TRACE.pack(self.flow, self.is_on))

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it has another length."""
        return cls(*_TRACE.unpack(body)) if len(body) == _TRACE.size else None


FlowDatagram = RoundOrder | RoundStatus | ArrivalQuery | FlowArrivals | FlowTrace
_DECODERS: Final[dict[bytes, Callable[[bytes], FlowDatagram | None]]] = {
    b"O": RoundOrder.unpack,
    b"T": RoundStatus.unpack,
    b"U": ArrivalQuery.unpack,
    b"W": FlowArrivals.unpack,
    b"X": FlowTrace.unpack,
}


def decode_flow_datagram(data: bytes, secret: bytes) -> FlowDatagram | None:
    """Return such a datagram of the flow with a secret; None for any other bytes, which never raise."""
    return decode_coded(data, secret, _USE, _DECODERS)
