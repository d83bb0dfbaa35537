"""An observed connection in words."""

from dataclasses import replace

import pytest
from linkgauge.engine.host.sockets.socket_message import SocketAddress
from linkgauge.observe.observation import ConnectionKey, DatagramSocket, Owner, Status
from linkgauge.tui.observe.connection_words import (
    SEVERITY,
    STATUS_MARKS,
    STATUS_WORDS,
    empty_text,
    facts,
    figures,
    notes,
    process_text,
    short_reason,
)

from .example_observations import connection, ended, examples, observation, received

NBSP = "\u00a0"


def plain(texts: list[str]) -> str:
    """Return texts in one line with plain spaces."""
    return "; ".join(texts).replace(NBSP, " ")


def test_every_status_has_a_mark_a_word_and_a_rank() -> None:
    """No two of them have the same mark."""
    assert set(STATUS_MARKS) == set(STATUS_WORDS) == set(SEVERITY) == {*Status}
    assert len({*STATUS_MARKS.values()}) == len(Status)


def test_the_reason_in_a_few_words_is_the_first_finding_or_the_status() -> None:
    """A connection that ended keeps its finding."""
    rows = examples()
    assert [short_reason(row) for row in rows] == [
        "fills its path",
        "receiver too slow",
        "not seen at this end",
        "program sets the rate",
        "new",
        "idle",
    ]
    assert short_reason(replace(ended(rows[1]), findings=rows[1].findings)) == "ended: receiver too slow"


def test_a_process_that_is_not_visible_is_its_user() -> None:
    """The user of a socket is always known."""
    assert process_text(connection(1, 1.0)) == "nginx/1001"
    assert process_text(connection(1, 1.0, owner=None)) == "(user anna)"


def test_the_figures_of_a_sender_and_of_a_receiver() -> None:
    """A receiver has no windows: they are at the far end."""
    assert plain(figures(connection(1, 8e6))) == (
        "RTT 20.1 ms, minimum 19.0 ms; cwnd 1.25M, in flight 25.5K; 3 retransmits (0.1 %) in 3 s; "
        "waits for the peer's window 90 %"
    )
    assert plain(figures(received(1, 8e6))) == "receive buffer unread 2 %"
    assert plain(facts(connection(12, 8e6))) == (
        "established; eth0; cubic; seen for 12 s; sent 7.63 MiB, received 7.81 KiB"
    )


def test_the_notes_have_the_udp_socket_that_drops_most() -> None:
    """Before what is not visible."""
    sockets = [
        DatagramSocket(
            ConnectionKey("udp", SocketAddress("192.0.2.7", port), SocketAddress("192.0.2.7", 0), port),
            "root",
            0,
            0,
            dropped,
            dropped,
            212_992,
            Owner(9, "dnsmasq", "root"),
        )
        for port, dropped in ((53, 12), (67, 0))
    ]
    seen = replace(
        observation([], notes=("The processes of other users are not visible.",)), datagrams=tuple(sockets)
    )
    assert plain(notes(seen)) == (
        "UDP: the receive buffer of dnsmasq/9 at 192.0.2.7:53 dropped 12 datagrams.; "
        "The processes of other users are not visible."
    )


@pytest.mark.parametrize(
    ("sockets", "target", "filter_text", "total", "text"),
    [
        (0, None, "", 0, "This host has no TCP connection yet. A new one appears here by itself."),
        (7, None, "", 0, "This host has 7 connections, and none of them moves payload."),
        (0, "db-02", "", 0, "No connection matches db-02."),
        (7, None, "x", 6, "None of the 6 connections matches 'x'."),
    ],
)
def test_an_empty_table_says_why(sockets: int, target: str | None, filter_text: str, total: int, text: str) -> None:
    """A sentence in place of rows."""
    seen = observation([], sockets=sockets)
    assert empty_text(seen, target=target, filter_text=filter_text, total=total).replace(NBSP, " ") == text
    assert "Reading" in empty_text(None, target=None, filter_text="", total=0)
