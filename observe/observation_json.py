"""An observation for programs: the keys must not change."""

from typing import Any, Final

from ..engine.model.counters.samples import SessionSample
from ..engine.model.directions import Direction
from ..engine.results.csv_export import Cell, cell_text
from ..engine.results.figure_codec import DOCUMENT_VERSION, encode, mbit, ms, percent, rounded_seconds
from ..presets.diagnosis.finding import finding_figures
from .observation import DatagramSocket, FlowFigures, Observation, ObservedConnection, Owner

_GAUGES: Final = (
    "rtt_us",
    "min_rtt_us",
    "cwnd_bytes",
    "mss_bytes",
    "unacked_bytes",
    "unsent_bytes",
    "peer_window_bytes",
    "send_buffer_bytes",
)
_RATES: Final = ("pacing_bit_s", "delivery_bit_s")
_RECEIVED: Final = ("receive_buffer_bytes", "unread_memory_bytes", "out_of_order")
CSV_COLUMNS: Final = (
    "elapsed_s",
    "protocol",
    "local",
    "remote",
    "cookie",
    "pid",
    "process",
    "user",
    "state",
    "direction",
    "out_mbit_s",
    "in_mbit_s",
    "out_bytes",
    "in_bytes",
    "rtt_us",
    "cwnd_bytes",
    "retransmits",
    "busy_percent",
    "rwnd_limited_percent",
    "sndbuf_limited_percent",
    "expected_mbit_s",
    "status",
    "finding",
    "reason",
)
"""The columns of a row for each connection of each interval. Shares and retransmits are of the last 3 seconds."""


def observation_json(observation: Observation) -> dict[str, Any]:
    """Return an observation as JSON values. Percents are means over the last three seconds."""
    totals = observation.totals
    return {
        "schema": DOCUMENT_VERSION,
        "type": "observation",
        "started_utc": observation.started_utc,
        "elapsed_s": rounded_seconds(observation.elapsed_ns),
        "interval_s": rounded_seconds(observation.interval_ns),
        "totals": {
            "sockets": totals.sockets,
            "moving": totals.moving,
            "out_mbit_s": mbit(totals.out_bit_s),
            "in_mbit_s": mbit(totals.in_bit_s),
            "ended": totals.ended,
            "short_lived": totals.short_lived,
            "short_lived_bytes": totals.short_lived_bytes,
            "unowned": totals.unowned,
        },
        "connections": [_connection(each) for each in observation.connections],
        "udp": [_datagram_socket(each) for each in observation.datagrams],
        "interfaces": [
            {"name": each.name, "out_mbit_s": mbit(each.out_bit_s), "in_mbit_s": mbit(each.in_bit_s)}
            for each in observation.interfaces
        ],
        "notes": list(observation.notes),
        "cpu_ms": ms(observation.cost_ns),
    }


def csv_row(observation: Observation, connection: ObservedConnection) -> list[str]:
    """Return the row of a connection; an unknown value is empty."""
    owner, main, sent = connection.owner, connection.main, connection.out
    sample = sent.sample
    values: tuple[Cell, ...] = (
        rounded_seconds(observation.elapsed_ns),
        connection.key.protocol,
        str(connection.key.local),
        str(connection.key.remote),
        connection.key.cookie,
        None if owner is None else owner.pid,
        None if owner is None else owner.name,
        connection.user,
        connection.state,
        connection.direction.value,
        mbit(connection.out.bit_s),
        mbit(connection.in_.bit_s),
        connection.out.bytes,
        connection.in_.bytes,
        sample and sample.rtt_us,
        sample and sample.cwnd_bytes,
        main.retransmits,
        *map(percent, (sent.busy, sent.rwnd_limited, sent.sndbuf_limited)),
        mbit(connection.expected and connection.expected.bit_s),
        connection.status.value,
        connection.findings[0].code if connection.findings else None,
        connection.reason,
    )
    # A process of any user chooses its own name.
    return [cell_text(each) for each in values]


def _connection(connection: ObservedConnection) -> dict[str, Any]:
    key, expected = connection.key, connection.expected
    return {
        "local": str(key.local),
        "remote": str(key.remote),
        "cookie": key.cookie,
        "state": connection.state,
        "process": _owner(connection.owner),
        "user": connection.user,
        "congestion": connection.congestion,
        "bbr_mbit_s": mbit(connection.bbr and connection.bbr.bit_s),
        "interface": None if connection.nic is None else connection.nic.name,
        "observed_s": rounded_seconds(connection.observed_ns),
        "direction": connection.direction.value,
        "mbit_s": mbit(connection.bit_s),
        "expected_mbit_s": mbit(expected and expected.bit_s),
        "expected_source": None if expected is None else expected.source,
        "status": connection.status.value,
        "reason": connection.reason,
        "out": _flow(connection.out),
        "in": _flow(connection.in_),
        "findings": [encode(each) for each in finding_figures(connection.findings)],
    }


def _flow(flow: FlowFigures) -> dict[str, Any]:
    document: dict[str, Any] = {"mbit_s": mbit(flow.bit_s), "bytes": flow.bytes}
    sample = flow.sample
    if flow.direction is Direction.IN:
        return document | {"unread_percent": percent(flow.unread)} | _values(sample, _RECEIVED)
    return (
        document
        | {
            "busy_percent": percent(flow.busy),
            "rwnd_limited_percent": percent(flow.rwnd_limited),
            "sndbuf_limited_percent": percent(flow.sndbuf_limited),
            "retransmitted_percent": percent(flow.retransmitted),
            "retransmits": flow.retransmits,
        }
        | _values(sample, _GAUGES)
        | {name.replace("_bit_s", "_mbit_s"): mbit(value) for name, value in _values(sample, _RATES).items()}
    )


def _values(sample: SessionSample | None, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: None if sample is None else getattr(sample, name) for name in names}


def _datagram_socket(row: DatagramSocket) -> dict[str, Any]:
    return {
        "local": str(row.key.local),
        "remote": str(row.key.remote) if row.key.remote.port else None,
        "cookie": row.key.cookie,
        "process": _owner(row.owner),
        "user": row.user,
        "receive_queue_bytes": row.receive_queue_bytes,
        "send_queue_bytes": row.send_queue_bytes,
        "dropped": row.dropped,
        "dropped_total": row.dropped_total,
        "receive_buffer_bytes": row.buffer_bytes,
    }


def _owner(owner: Owner | None) -> dict[str, Any] | None:
    if owner is None:
        return None
    return {"pid": owner.pid, "name": owner.name, "others": owner.others}
