"""The list of presets in a terminal."""

from collections.abc import Sequence

from rich.table import Table

from ....engine.model.events import ExpectedRate
from ....engine.model.plan import Direction, Settings
from ....presets.expectation import find_expectation
from ....presets.preset import Preset
from ...text import numbers


def preset_list(presets: Sequence[Preset], language: str = "en") -> Table:
    """Return the table of presets with the expected rates of one session, one way and duplex."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("id", no_wrap=True, style="bold")
    table.add_column("link", overflow="fold")
    table.add_column("one way\nMb/s", justify="right", no_wrap=True)
    table.add_column("duplex\nMb/s", justify="right", no_wrap=True)
    table.add_column("from", no_wrap=True)
    for preset in presets:
        outward = find_expectation(preset, Settings(Direction.OUT)).out
        both = find_expectation(preset, Settings(Direction.DUPLEX)).total
        table.add_row(
            preset.id,
            numbers.sanitize(preset.name_in(language)),
            _mbit(outward),
            _mbit(both),
            _basis(outward or both),
        )
    return table


def _mbit(expected: ExpectedRate | None) -> str:
    return numbers.UNKNOWN if expected is None else numbers.mbit(expected.bit_s)


def _basis(expected: ExpectedRate | None) -> str:
    return numbers.UNKNOWN if expected is None else expected.basis
