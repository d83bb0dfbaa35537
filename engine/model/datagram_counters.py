"""The table of a UDP session's counters, in the order in which shared memory has them.

Pure. A new counter is a row of the table and a field of the same name in `DatagramSample`, which is its wire
format. All else follows the table: metering/shared_counters.py stores them in this order, metering/sampler.py takes
the differences of the cumulative ones, and the results add them up by their kind.
"""

from dataclasses import dataclass
from typing import Final, Literal

from .socket_info import CounterKind


@dataclass(frozen=True, slots=True)
class DatagramCounter:
    """A counter of datagrams, and the end of a session that reports it."""

    name: str
    kind: CounterKind = "cumulative"
    end: Literal["sender", "receiver"] = "receiver"


DATAGRAM_COUNTERS: Final = (
    DatagramCounter("sent", end="sender"),
    DatagramCounter("send_dropped", end="sender"),
    DatagramCounter("skipped", end="sender"),
    DatagramCounter("datagram_bytes", "gauge", "sender"),
    DatagramCounter("rate_bit_s", "gauge", "sender"),
    DatagramCounter("is_grouped", "gauge", "sender"),
    DatagramCounter("sent_tos", "gauge", "sender"),
    DatagramCounter("rtt_us", "gauge", "sender"),
    DatagramCounter("return_delay_us", "gauge", "sender"),
    DatagramCounter("search_phase", "gauge", "sender"),
    DatagramCounter("best_bit_s", "gauge", "sender"),
    DatagramCounter("best_lost_ppm", "gauge", "sender"),
    DatagramCounter("best_delay_us", "gauge", "sender"),
    DatagramCounter("best_rtt_us", "gauge", "sender"),
    DatagramCounter("loss_free_bit_s", "gauge", "sender"),
    DatagramCounter("advanced"),
    DatagramCounter("received"),
    DatagramCounter("duplicates"),
    DatagramCounter("late"),
    DatagramCounter("reordered"),
    DatagramCounter("reordered_3"),
    DatagramCounter("extent", "peak"),
    DatagramCounter("gaps"),
    DatagramCounter("gap_longest", "peak"),
    DatagramCounter("socket_dropped"),
    DatagramCounter("invalid"),
    DatagramCounter("jitter_sum_ns"),
    DatagramCounter("jitter_count"),
    DatagramCounter("jitter_max_ns", "peak"),
    DatagramCounter("ce_marks"),
    DatagramCounter("received_tos", "gauge"),
    DatagramCounter("receive_buffer_bytes", "gauge"),
)
SEARCH_DONE: Final = 3  # the counter `search_phase` once the search has its results
DATAGRAM_COUNTER_NAMES: Final = tuple(counter.name for counter in DATAGRAM_COUNTERS)
