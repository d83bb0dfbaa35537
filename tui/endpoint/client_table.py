"""The table of an endpoint's clients, with as many columns as its width allows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.text import Text
from textual.events import Resize
from textual.widgets import DataTable

from ...engine.far.status import RunStatus
from ..words import numbers
from ..words.numbers import RateUnit
from ..words.redaction import REDACTION
from .endpoint_rates import ClientReading


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its title, its width, the minimum width of a table that has it, and its text for a client."""

    name: str
    width: int
    from_width: int
    text: Callable[[ClientReading, RateUnit], str]
    is_number: bool = False


def _run(client: ClientReading, _units: RateUnit) -> str:
    run = client.run
    if run is None:
        return "no test"
    if client.software is None:
        return f"{run.workload} {run.settings.direction}"
    # A narrow table has no column for the host: the run names the other program.
    name = numbers.sanitize(client.software.partition(" ")[0])
    if not run.workload.is_datagram:
        return f"{name} {run.settings.direction}"
    return f"{name} {run.workload} {numbers.arrow(run.settings.direction)}"


def _client(client: ClientReading) -> str:
    return numbers.sanitize(client.address) or "ssh"


def _host(client: ClientReading) -> str:
    REDACTION.learn_host(client.hostname)
    return numbers.sanitize(client.hostname or client.software or numbers.UNKNOWN)


def _time(run: RunStatus) -> str:
    limit = "" if run.duration_ns is None else f" / {numbers.clock(run.duration_ns)}"
    return f"{numbers.clock(run.elapsed_ns)}{limit}"


def _of_run(text: Callable[[RunStatus], str]) -> Callable[[ClientReading, RateUnit], str]:
    """Return a column's text function for the run of a client; "" for a client without a run."""
    return lambda client, _units: "" if client.run is None else text(client.run)


_COLUMNS: Final = (
    _Column("client", 16, 0, lambda client, _: _client(client)),
    _Column("host", 16, 110, lambda client, _: _host(client)),
    _Column("since", 7, 0, lambda client, _: numbers.clock(client.connected_ns), is_number=True),
    _Column("run", 13, 0, _run),
    _Column("time", 13, 110, _of_run(_time), is_number=True),
    _Column("sess", 4, 0, _of_run(lambda run: str(run.settings.sessions)), is_number=True),
    _Column("window", 6, 160, _of_run(lambda run: numbers.window(run.settings.window_bytes))),
    _Column(
        "receives", 9, 0, lambda client, units: numbers.rate_in_unit(client.received_bit_s, units), is_number=True
    ),
    _Column("sends", 9, 0, lambda client, units: numbers.rate_in_unit(client.sent_bit_s, units), is_number=True),
    _Column("received", 9, 160, _of_run(lambda run: numbers.payload(run.received_bytes)), is_number=True),
    _Column("sent", 9, 160, _of_run(lambda run: numbers.payload(run.sent_bytes)), is_number=True),
)
_KEY: Final = _Column("key", 14, 124, lambda client, _: client.key_name or "")
# In a narrow table the name of the key stands behind the address.
_CLIENT_WITH_KEY: Final = _Column("client", 16, 0, lambda client, _: f"{_client(client)} {client.key_name or ''}")
_GAP: Final = 2
_WIDEST: Final = 30


class ClientTable(DataTable[Text]):
    """Shows readings of clients in the order of their arrival."""

    DEFAULT_CSS = """
    ClientTable {
        height: 1fr;
        padding: 0 1;
        background: $background;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & > .datatable--header { background: $background; color: $foreground 62%; text-style: bold; }
        &:focus { background-tint: $foreground 0%; }
    }
    """

    def __init__(self) -> None:
        super().__init__(cursor_type="none", cell_padding=0, zebra_stripes=False)
        self._cells: list[tuple[str, ...]] = []
        self._names: tuple[str, ...] = ()
        self._clients: Sequence[ClientReading] = ()
        self._units = RateUnit.MBIT

    def show_clients(self, clients: Sequence[ClientReading], units: RateUnit) -> None:
        """Show these clients; unchanged cells are not repainted."""
        self._clients, self._units = clients, units
        columns = _columns(self.size.width, has_key_names=any(client.key_name for client in clients))
        names = tuple(column.name for column, _ in columns)
        rows = [tuple(column.text(client, units) for column, _ in columns) for client in clients]
        self.border_title = f"clients {len(clients)}"
        self.border_subtitle = f"rates in {units.value}, as this end receives and sends"
        if names != self._names or len(rows) != len(self._cells):
            self._fill(columns, names, rows)
        else:
            for y, (row, before) in enumerate(zip(rows, self._cells, strict=True)):
                for x, (text, old) in enumerate(zip(row, before, strict=True)):
                    if text != old:
                        self.update_cell_at((y, x), _cell(text, *columns[x]))  # pyright: ignore[reportArgumentType]
        self._names, self._cells = names, rows

    def _fill(
        self, columns: list[tuple[_Column, int]], names: tuple[str, ...], rows: list[tuple[str, ...]]
    ) -> None:
        self.clear(columns=True)
        for (column, width), name in zip(columns, names, strict=True):
            self.add_column(_cell(name, column, width), width=width)
        for row in rows:
            self.add_row(*(_cell(text, *column) for text, column in zip(row, columns, strict=True)))

    def on_resize(self, _event: Resize) -> None:
        """Choose the columns for the new width."""
        self._names = ()
        self.show_clients(self._clients, self._units)


def _columns(width: int, *, has_key_names: bool) -> list[tuple[_Column, int]]:
    """Return the columns that have room, with their widths; the first takes the rest."""
    first, *others = _COLUMNS
    if has_key_names:
        first, others = (first, [_KEY, *others]) if width >= _KEY.from_width else (_CLIENT_WITH_KEY, others)
    visible = [column for column in (first, *others) if width >= column.from_width]
    rest = width - 4 - sum(column.width + _GAP for column in visible)
    extra = {_COLUMNS[0].name: max(min(rest, _WIDEST), 0)}
    return [(column, column.width + _GAP + extra.get(column.name, 0)) for column in visible]


def _cell(text: str, column: _Column, width: int) -> Text:
    cell = Text(text, no_wrap=True, overflow="ellipsis")
    cell.truncate(width - _GAP, overflow="ellipsis")
    if column.is_number:
        cell.align("right", width - _GAP)
    return cell
