"""The counters of a UDP session: the fields of its sample, in the order in which shared memory has them.

Pure. A new counter is a field of `DatagramSample`, which is also the wire format. All else follows from it:
metering/shared_counters.py stores the counters in this order, metering/sampler.py takes the differences of the
cumulative ones, and the results add them up by their kind.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from .plan import Direction
from .serialization import OMITTED_AT_DEFAULT
from .socket_info import CounterKind


def _sent(kind: CounterKind = "cumulative") -> Any:
    return field(default=None, metadata={"combines": kind, "end": "sender", **OMITTED_AT_DEFAULT})


def _received(kind: CounterKind = "cumulative") -> Any:
    return field(default=None, metadata={"combines": kind, "end": "receiver", **OMITTED_AT_DEFAULT})


# A table: each field is a counter, in the order of the shared memory.
@dataclass(frozen=True, slots=True)
class DatagramSample:
    """The datagrams of one UDP session in one direction, seen from one end.

    Cumulative counters are their rise during the interval. The other end's counters are None.

    At the sending end: datagrams that were `sent`, of which the own kernel dropped `send_dropped` (ENOBUFS);
    `skipped` ones that its pacing gave up because this end was held up. `datagram_bytes` is the UDP payload of
    each, `rate_bit_s` what the session is to send, 0 without a limit, `is_grouped` 1 in mode `rate`.
    `return_delay_us` is how much the one-way delay of the receiver's reports has risen above their shortest. A
    search for the rate (workloads/udp/capacity_search.py) has a `search_phase`, the second in which most arrived so
    far with its loss, delay variation and round trip (`best_bit_s` to `best_rtt_us`), and `loss_free_bit_s`.

    At the receiving end: `advanced` is the rise of the highest number, `received` are different datagrams, so that
    `advanced - received` are missing so far. A datagram that comes later takes its loss back, unless it is `late`:
    older than the receiver remembers. `reordered` came after a higher number, `reordered_3` after three of them
    (RFC 4737); `extent` is the largest reordering in packets. `gaps` are runs of missing numbers. `socket_dropped`
    are those for which this end's socket had no room, by the kernel's count. `jitter_sum_ns / jitter_count` is the
    mean jitter (RFC 3550). `ce_marks` are datagrams with the ECN mark for congestion (RFC 3168).
    """

    direction: Direction = field(metadata={"combines": "gauge"})
    session: int = field(metadata={"combines": "gauge"})
    sent: int | None = _sent()
    send_dropped: int | None = _sent()
    skipped: int | None = _sent()
    datagram_bytes: int | None = _sent("gauge")
    rate_bit_s: int | None = _sent("gauge")
    is_grouped: int | None = _sent("gauge")
    sent_tos: int | None = _sent("gauge")
    rtt_us: int | None = _sent("gauge")
    return_delay_us: int | None = _sent("gauge")
    search_phase: int | None = _sent("gauge")
    best_bit_s: int | None = _sent("gauge")
    best_lost_ppm: int | None = _sent("gauge")
    best_delay_us: int | None = _sent("gauge")
    best_rtt_us: int | None = _sent("gauge")
    loss_free_bit_s: int | None = _sent("gauge")
    advanced: int | None = _received()
    received: int | None = _received()
    duplicates: int | None = _received()
    late: int | None = _received()
    reordered: int | None = _received()
    reordered_3: int | None = _received()
    extent: int | None = _received("peak")
    gaps: int | None = _received()
    gap_longest: int | None = _received("peak")
    socket_dropped: int | None = _received()
    invalid: int | None = _received()
    jitter_sum_ns: int | None = _received()
    jitter_count: int | None = _received()
    jitter_max_ns: int | None = _received("peak")
    ce_marks: int | None = _received()
    received_tos: int | None = _received("gauge")
    receive_buffer_bytes: int | None = _received("gauge")


@dataclass(frozen=True, slots=True)
class DatagramCounter:
    """A counter of datagrams, and the end of a session that reports it."""

    name: str
    kind: CounterKind
    end: Literal["sender", "receiver"]


DATAGRAM_COUNTERS: Final = tuple(
    DatagramCounter(each.name, each.metadata["combines"], each.metadata["end"])
    for each in fields(DatagramSample)
    if "end" in each.metadata
)
SEARCH_DONE: Final = 3  # the counter `search_phase` once the search has its results
DATAGRAM_COUNTER_NAMES: Final = tuple(counter.name for counter in DATAGRAM_COUNTERS)
