"""Connections of other programs in words, for the command line and the screen. Pure."""

from typing import TYPE_CHECKING

from ...engine.model.directions import Direction
from . import numbers

if TYPE_CHECKING:
    from ...observe.observation import Observation, Owner


def totals_text(observation: "Observation") -> str:
    """Return the line of totals."""
    totals = observation.totals
    parts = [
        f"{numbers.quantity(totals.sockets, 'connection')}, {numbers.count(totals.moving)} moving payload",
        f"{numbers.arrow(Direction.OUT)} {numbers.rate(totals.out_bit_s)}",
        f"{numbers.arrow(Direction.IN)} {numbers.rate(totals.in_bit_s)}",
    ]
    if totals.ended:
        short = f", {numbers.count(totals.short_lived)} within one interval" if totals.short_lived else ""
        parts.append(f"{numbers.count(totals.ended)} ended{short}")
    return "; ".join(parts)


def owner_text(owner: "Owner | None", user: str) -> str:
    """Return the process of a socket; its user alone if the process is not visible."""
    return f"(user {user})" if owner is None else f"{owner.name}/{owner.pid}"
