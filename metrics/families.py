"""The metrics of linkgauge: each name with its type, its labels and its meaning. Pure.

Names and units follow Prometheus' conventions (prometheus.io/docs/practices/naming): base units, so that a rate is
in bytes a second, as in node_exporter, and shares are ratios. Multiply by 8 for bits. No label has a value that a
stranger chooses: client addresses would make as many series as there are clients. The names of
keys are an endpoint's own, 64 at most. Observed connections have as many labels as are shown, and no others stay.
"""

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["gauge", "counter"]

_PEER: Final = ("watch", "peer")
_OBSERVED: Final = ("process", "remote")


@dataclass(frozen=True, slots=True)
class Family:
    """A metric. The name of a counter ends in `_total`."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    kind: Kind = "gauge"


@dataclass(frozen=True, slots=True)
class Reading:
    """The present value of a metric. `labels` are the values of the family's labels, in their order."""

    family: Family
    value: float
    labels: tuple[str, ...] = ()


BUILD_INFO: Final = Family("linkgauge_build_info", "1, with the version of this linkgauge.", ("version",))

# The last full test that counted

CHECK_GOODPUT: Final = Family(
    "linkgauge_check_goodput_bytes_per_second",
    "Payload a second of the last test, as the receivers counted it, both directions together.",
    _PEER,
)
CHECK_TRANSACTIONS: Final = Family(
    "linkgauge_check_transactions_per_second", "Transactions a second of the last test.", _PEER
)
CHECK_EXPECTED: Final = Family(
    "linkgauge_check_expected_ratio", "Result of the last test as a share of the expected rate.", _PEER
)
PASS_MARK: Final = Family(
    "linkgauge_check_pass_mark_ratio", "Share of the expected rate below which a test is below its mark.", _PEER
)
CHECK_VERDICT: Final = Family(
    "linkgauge_check_verdict",
    "1 for the verdict of the last test, 0 for the others: good, below its mark, failed.",
    (*_PEER, "verdict"),
)
CHECK_FINDING: Final = Family(
    "linkgauge_check_finding", "1 for the first finding of the last test: why it is not faster.", (*_PEER, "code")
)
CHECK_LOSS: Final = Family(
    "linkgauge_check_loss_ratio", "Lost datagrams of the last test as a share of those sent.", _PEER
)
CHECK_RETRANSMITS: Final = Family(
    "linkgauge_check_retransmits_per_byte",
    "Retransmitted segments of the last test for each byte of its payload.",
    _PEER,
)
CHECK_RUNNING: Final = Family("linkgauge_check_running", "1 while a test of the peer runs, else 0.", _PEER)
CHECK_SKIPPED: Final = Family(
    "linkgauge_check_skipped",
    "1 if the newest due test was left out: no data left in the budget, or interface or endpoint busy.",
    (*_PEER, "reason"),
)

# The last probe

PROBE_LATENCY: Final = Family(
    "linkgauge_probe_latency_seconds", "Median round trip of the last probe, on the idle link.", _PEER
)
PROBE_LOSS: Final = Family(
    "linkgauge_probe_loss_ratio", "Lost datagrams of the last probe as a share of those sent.", _PEER
)
PROBE_SUCCESS: Final = Family(
    "linkgauge_probe_success", "1 if the last probe had an answer, 0 if it had none.", _PEER
)

# What has happened so far

CHECKS: Final = Family(
    "linkgauge_checks_total", "Tests that have ended, repetitions included.", (*_PEER, "verdict"), "counter"
)
MISSED: Final = Family(
    "linkgauge_checks_missed_total", "Due tests that a later one overtook before they began.", _PEER, "counter"
)
RETESTS: Final = Family("linkgauge_retests_total", "Tests that were repetitions.", _PEER, "counter")
FLAPS: Final = Family("linkgauge_flaps_total", "Tests below their mark whose repetition was not.", _PEER, "counter")
SHIFTS: Final = Family(
    "linkgauge_level_shifts_total",
    "Changes of level that were found, by what changed, for the worse or the better.",
    (*_PEER, "metric", "direction"),
    "counter",
)
PATH_CHANGES: Final = Family(
    "linkgauge_path_changes_total",
    "Changes of the path to the peer (`out`) and back (`in`), if it is traced.",
    (*_PEER, "direction"),
    "counter",
)
PATH_HOPS: Final = Family(
    "linkgauge_path_hops", "Hops of the path in the last test, the other end included.", (*_PEER, "direction")
)
DATA: Final = Family(
    "linkgauge_data_bytes_total",
    "Payload of tests and probes, both directions. It starts again each month (UTC).",
    _PEER,
    "counter",
)
MONTH_DATA: Final = Family(
    "linkgauge_month_data_bytes", "Payload of this month's tests and probes (UTC), both directions.", _PEER
)
PEER_BUDGET: Final = Family("linkgauge_month_budget_bytes", "Payload that the peer may cost a month.", _PEER)
WATCH_BUDGET: Final = Family(
    "linkgauge_watch_month_budget_bytes",
    "Payload that all peers of the watch together may cost a month.",
    ("watch",),
)

# When

LAST_CHECK: Final = Family(
    "linkgauge_last_check_timestamp_seconds", "When the last test that counted ended.", _PEER
)
NEXT_CHECK: Final = Family("linkgauge_next_check_timestamp_seconds", "When the next test is due.", _PEER)
LAST_PROBE: Final = Family("linkgauge_last_probe_timestamp_seconds", "When the last probe ended.", _PEER)
NEXT_PROBE: Final = Family("linkgauge_next_probe_timestamp_seconds", "When the next probe is due.", _PEER)

# An endpoint

CLIENTS: Final = Family("linkgauge_endpoint_clients", "Clients that are connected.")
CLIENT_LIMIT: Final = Family("linkgauge_endpoint_clients_limit", "Clients that may be connected at once.")
RUNS: Final = Family("linkgauge_endpoint_runs", "Tests that run.")
PENDING: Final = Family(
    "linkgauge_endpoint_pending_connections", "Connections that have not identified themselves yet."
)
DRAINING: Final = Family(
    "linkgauge_endpoint_draining", "1 while the endpoint waits for its last tests and admits no client, else 0."
)
ADMITTED: Final = Family(
    "linkgauge_endpoint_admitted_clients_total",
    "Clients that were admitted, by the name of the key that they proved; empty without a name.",
    ("key",),
    "counter",
)
ENDED_RUNS: Final = Family(
    "linkgauge_endpoint_ended_runs_total", "Tests that have ended, by the reason.", ("reason",), "counter"
)
PROBES: Final = Family(
    "linkgauge_endpoint_probes_total",
    "Probes and turns of a watch, and measurements of a path's MTU.",
    (),
    "counter",
)
REJECTIONS: Final = Family(
    "linkgauge_endpoint_rejections_total",
    "Connections and datagrams that were rejected, by the limit that they exceeded or the kind of rejection.",
    ("reason",),
    "counter",
)
RECEIVED: Final = Family(
    "linkgauge_endpoint_received_bytes_total", "Payload that tests received at this end.", (), "counter"
)
SENT: Final = Family("linkgauge_endpoint_sent_bytes_total", "Payload that tests sent from this end.", (), "counter")

# Observed connections

OBSERVED_GOODPUT: Final = Family(
    "linkgauge_observed_goodput_bytes_per_second",
    "Payload a second of the last interval, by process, remote host and direction; `other` is all the rest.",
    (*_OBSERVED, "direction"),
)
OBSERVED_CONNECTIONS: Final = Family(
    "linkgauge_observed_connections", "Connections of a process with a remote host, of the fastest ones.", _OBSERVED
)
OBSERVED_RTT: Final = Family(
    "linkgauge_observed_rtt_seconds", "Round trip of the fastest connection of the pair.", _OBSERVED
)
OBSERVED_STATUS: Final = Family(
    "linkgauge_observed_status",
    "1 for the status of the fastest connection of the pair.",
    (*_OBSERVED, "status"),
)
OBSERVED_FINDING: Final = Family(
    "linkgauge_observed_finding",
    "1 for the first finding of the fastest connection of the pair: why it is not faster.",
    (*_OBSERVED, "code"),
)
OBSERVED_SOCKETS: Final = Family("linkgauge_observed_sockets", "TCP connections that match.")
OBSERVED_MOVING: Final = Family(
    "linkgauge_observed_moving_sockets", "TCP connections that moved payload in the last interval."
)
OBSERVED_ENDED: Final = Family(
    "linkgauge_observed_ended_total", "TCP connections that have ended since the beginning.", (), "counter"
)

FAMILIES: Final[tuple[Family, ...]] = tuple(
    value for value in list(globals().values()) if isinstance(value, Family)
)
"""Every metric there is."""
