"""An observation in a terminal: a line of totals, the connections by goodput, UDP sockets that drop, and notes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.text import Text

from ....observe.observation import DatagramSocket, Observation, ObservedConnection, Status
from ...kit.drawing.printed_table import PrintedTable
from ...words import numbers
from ...words.observed import owner_text, totals_text
from ...words.table import Column, Strong, Table

if TYPE_CHECKING:
    from rich.console import RenderableType

_TEXT: Final = Column(is_text=True)
_COLUMNS: Final = (
    Column("Mb/s"),
    Column("", is_text=True),
    Column("process", is_text=True),
    Column("local", is_text=True, rank=2),
    Column("remote", is_text=True),
    Column("RTT", rank=3),
    Column("retransmits", rank=1),
    Column("why", is_text=True, wraps=True),
)
_UDP_COLUMNS: Final = (
    Column("dropped"),
    Column("unread"),
    Column("buffer", rank=1),
    Column("process", is_text=True),
    Column("local", is_text=True),
    Column("remote", is_text=True, rank=2),
)


def observation_parts(observation: Observation) -> "Iterator[RenderableType]":
    """Yield the parts of an observation, from top to bottom."""
    yield Text(totals_text(observation), "bold")
    if observation.connections:
        yield PrintedTable(Table(_COLUMNS, [_row(each) for each in observation.connections]))
    remedies = list(dict.fromkeys(_remedies(observation)))
    if remedies:
        yield Text("\n".join(("", *remedies)))
    if observation.datagrams:
        yield Text("\nUDP sockets that dropped datagrams, or whose queue is not empty", "bold")
        yield PrintedTable(Table(_UDP_COLUMNS, [_udp_row(each) for each in observation.datagrams]))
    if observation.notes:
        yield Text("\n".join(("", *observation.notes)), "dim")


def _row(connection: ObservedConnection) -> tuple[str, ...]:
    sample = connection.out.sample
    main = connection.main
    why = connection.reason
    return (
        numbers.mbit(connection.bit_s),
        numbers.arrow(connection.direction),
        owner_text(connection.owner, connection.user),
        str(connection.key.local),
        str(connection.key.remote),
        numbers.round_trip(None if sample is None else sample.rtt_us),
        numbers.count(main.retransmits if main is connection.out else None),
        Strong(why) if connection.status is Status.LIMITED else why,
    )


def _udp_row(row: DatagramSocket) -> tuple[str, ...]:
    return (
        numbers.count(row.dropped),
        numbers.size(row.receive_queue_bytes),
        numbers.size(row.buffer_bytes),
        owner_text(row.owner, row.user),
        str(row.key.local),
        str(row.key.remote) if row.key.remote.port else "",
    )


def _remedies(observation: Observation) -> Iterator[str]:
    """Yield the evidence and the remedy of the first finding of each connection."""
    for each in observation.connections:
        if each.status is Status.LIMITED and each.findings:
            first = each.findings[0]
            yield f"{each.key.remote}: {first.text} ({numbers.percent(100 * first.confidence, 0)} sure)"
            yield f"  {first.evidence}"
            yield f"  to do: {first.remedy}"
