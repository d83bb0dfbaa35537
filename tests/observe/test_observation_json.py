"""Observations for programs: every value is one of JSON's, and unknown ones are null or empty."""

import json
from dataclasses import replace

from linkgauge.engine.host.sockets.socket_message import SocketAddress
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.observe.observation import (
    ConnectionKey,
    DatagramSocket,
    FlowFigures,
    InterfaceRates,
    Observation,
    ObservedConnection,
    Owner,
    Status,
    Totals,
)
from linkgauge.observe.observation_json import CSV_COLUMNS, csv_row, observation_json
from linkgauge.presets.diagnosis.finding import Finding

LOCAL, REMOTE = SocketAddress("192.0.2.1", 5), SocketAddress("2001:db8::1", 443)
FINDING = Finding("receive-window", None, 0.7, "It is slow.", "by its window", "do something")
CONNECTION = ObservedConnection(
    ConnectionKey("tcp", LOCAL, REMOTE, 7),
    "established",
    "alice",
    FlowFigures(Direction.OUT, 12_345_678.0, 1_000, (1.0, 2.0), busy=0.5),
    FlowFigures(Direction.IN),
    Status.LIMITED,
    "It is slow.",
    (FINDING,),
    Owner(1, "rsync", "alice"),
)
OBSERVATION = Observation(
    "2026-01-01T00:00:00Z",
    2 * SECOND_NS,
    SECOND_NS,
    (CONNECTION,),
    (DatagramSocket(ConnectionKey("udp", LOCAL, SocketAddress("0.0.0.0", 0), 8), "bob", 1, 2, 3, 4, 5),),  # noqa: S104
    (InterfaceRates("eth0", 1e6, 2e6),),
    Totals(sockets=3, moving=1),
    ("A note.",),
)


def test_an_observation_is_a_document() -> None:
    """Rates are in Mb/s, addresses as text, and a socket without a peer has none."""
    document = json.loads(json.dumps(observation_json(OBSERVATION), allow_nan=False))
    (row,) = document["connections"]
    assert (row["local"], row["remote"]) == ("192.0.2.1:5", "[2001:db8::1]:443")
    assert (row["mbit_s"], row["direction"], row["status"]) == (12.346, "out", "limited")
    assert row["process"] == {"pid": 1, "name": "rsync", "others": 0}
    assert row["findings"][0]["code"] == "receive-window"
    assert (row["out"]["busy_percent"], row["out"]["rtt_us"], row["in"]["unread_percent"]) == (50.0, None, None)
    assert (document["udp"][0]["remote"], document["udp"][0]["process"]) == (None, None)
    assert document["totals"]["sockets"] == 3


def test_the_name_of_a_process_is_no_formula() -> None:
    """Any user of the host can give a process a name, and the administrator opens the file."""
    hostile = replace(CONNECTION, owner=Owner(1, "=1+1\x1b[2J", "@alice"), user="@alice")
    cells = csv_row(OBSERVATION, hostile)
    assert {"'=1+1\N{REPLACEMENT CHARACTER}[2J", "'@alice"} <= set(cells)


def test_a_row_has_a_value_for_each_column() -> None:
    """An unknown one is empty."""
    row = dict(zip(CSV_COLUMNS, csv_row(OBSERVATION, CONNECTION), strict=True))
    assert (row["process"], row["finding"], row["busy_percent"], row["rtt_us"]) == (
        "rsync",
        "receive-window",
        "50",
        "",
    )
