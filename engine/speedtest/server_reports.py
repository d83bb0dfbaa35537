"""The reports of an NDT7 server: TCP_INFO of its kernel, about four times a second, as JSON.

Each value is checked, and one that is not a plausible count is unknown. They explain a rate, and never are one.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from ..model.counters.samples import SessionSample
from ..model.counters.session_counters import TCP_COUNTERS, since_last
from ..model.directions import Direction
from ..model.texts.warning_text import bytes_implausible

_MOST: Final = 1 << 53  # the integers of JSON
_BUFFERS_BYTES: Final = 64 << 20
# The names of ndt-server: those of struct tcp_info (linux/tcp.h) without their prefix. Without the congestion
# control, which is often BBR there, the rate at which TCP paces says nothing.
_FIELDS: Final = {
    "retransmits": "TotalRetrans",
    "busy_us": "BusyTime",
    "rwnd_limited_us": "RWndLimited",
    "sndbuf_limited_us": "SndBufLimited",
    "rtt_us": "RTT",
    "cwnd_bytes": "SndCwnd",
    "mss_bytes": "SndMSS",
    "bytes_retrans": "BytesRetrans",
    "min_rtt_us": "MinRTT",
    "delivery_bit_s": "DeliveryRate",
    "peer_window_bytes": "SndWnd",
    "unsent_bytes": "NotsentBytes",
    "unacked_bytes": "Unacked",
}
Counters = tuple[int | None, ...]


class ServerReports:
    """The newest report, and the one that the last sample was made from."""

    def __init__(self) -> None:
        self._newest: tuple[int, Counters] | None = None
        self._sampled: tuple[int, Counters] | None = None
        self._received_bytes = 0

    def take(self, data: bytes) -> None:
        """Take a report; one that is not understood is left out."""
        try:
            document: Any = json.loads(data)
        except (ValueError, RecursionError):
            return
        match document:
            case {"TCPInfo": {**values}}:
                info: dict[Any, Any] = values
            case _:
                return
        self._received_bytes = max(self._received_bytes, _count(info, "BytesReceived") or 0)
        acked = _count(info, "BytesAcked")
        if acked is not None:
            self._newest = acked, _counters(info)

    def sender_sample(self, flow: Direction, session: int) -> SessionSample | None:
        """Return the rise of the server's counters since the last call as a sample; None without a new report."""
        newest, before = self._newest, self._sampled
        if newest is None or newest is before:
            return None
        self._sampled = newest
        acked = newest[0] - (0 if before is None else before[0])
        return SessionSample(
            flow, session, max(0, acked), **since_last(None if before is None else before[1], newest[1])
        )

    def find_discrepancies(self, acknowledged_bytes: int) -> list[str]:
        """Return a warning if the server claims to have received far more than its kernel acknowledged."""
        if self._received_bytes <= 2 * acknowledged_bytes + _BUFFERS_BYTES:
            return []
        return [bytes_implausible(received=self._received_bytes, acknowledged=acknowledged_bytes)]


def _counters(info: Mapping[str, Any]) -> Counters:
    """Return the counters of a report in the order of their table, in the units of their names."""
    mss = _count(info, _FIELDS["mss_bytes"])
    values: list[int | None] = []
    for counter in TCP_COUNTERS:
        name = _FIELDS.get(counter.name)
        value = None if name is None else _count(info, name)
        if value is not None and counter.unit == "segments":
            value = None if mss is None else value * mss
        elif value is not None and counter.unit == "bytes_s":
            value = value * 8 or None
        elif counter.unit == "rtt_us":
            value = value or None
        values.append(None if value is None or value >= _MOST else value)
    return tuple(values)


def _count(info: Mapping[str, Any], name: str) -> int | None:
    value = info.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None
