"""Connections of other programs in words, for the command line and the screen. Pure."""

from typing import TYPE_CHECKING

from ...engine.model.directions import Direction
from . import numbers

if TYPE_CHECKING:
    from ...engine.model.events import ObservedSocket, Started
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


def observed_facts(started: "Started") -> list[tuple[str, str]]:
    """Return the program, its user and both addresses of an entry of the run log; none for a test."""
    observed = started.observed
    if observed is None:
        return []
    return [
        ("program", numbers.sanitize(program_text(observed))),
        ("local", numbers.sanitize(f"{started.near.hostname}, {observed.local}")),
        ("remote", numbers.sanitize(observed.remote)),
    ]


def program_text(observed: "ObservedSocket") -> str:
    """Return the process and the user of an entry: `rsync/812 (user eve)`."""
    user = f"(user {observed.user})"
    return user if observed.program is None else f"{observed.program}/{observed.pid} {user}"


def owner_text(owner: "Owner | None", user: str) -> str:
    """Return the process of a socket; its user alone if the process is not visible."""
    return f"(user {user})" if owner is None else f"{owner.name}/{owner.pid}"
